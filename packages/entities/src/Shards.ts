import { EntityId, ShardId, type Sharding } from "effect/cluster"

/** Fixed for the life of a database: every waiting row names its shard, so that a runner finds the rows of its shards. */
export const shardsPerGroup = 64

/** The shard that an entity of this id lives on. */
export const shardOf = (sharding: Sharding.Sharding["Service"], entityId: string): number =>
  sharding.getShardId(EntityId.make(entityId), "default").id

/** Whether this process holds the shard that an entity of this id lives on. */
export const holdsShardOf = (sharding: Sharding.Sharding["Service"], entityId: string): boolean =>
  sharding.hasShardId(ShardId.make("default", shardOf(sharding, entityId)))

const idsOn = new WeakMap<Sharding.Sharding["Service"], Map<number, string>>()

/** An entity id that is on this shard; the same on every process. */
export const idOn = (sharding: Sharding.Sharding["Service"], shard: number): string => {
  let ids = idsOn.get(sharding)
  if (ids === undefined) idsOn.set(sharding, (ids = new Map()))
  let id = ids.get(shard)
  for (let tried = 0; id === undefined; tried++) {
    if (shardOf(sharding, `shard-${tried}`) === shard) id = `shard-${tried}`
  }
  ids.set(shard, id)
  return id
}
