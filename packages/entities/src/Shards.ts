import { EntityId, type Sharding } from "effect/cluster"

/** Fixed for the life of a database: every waiting row names its shard, so that a runner finds the rows of its shards. */
export const shardsPerGroup = 64

/** The shard that an entity of this id lives on. */
export const shardOf = (sharding: Sharding.Sharding["Service"], entityId: string): number =>
  sharding.getShardId(EntityId.make(entityId), "default").id
