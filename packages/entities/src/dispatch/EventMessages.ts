import { Effect } from "effect"
import { ShardId, Sharding } from "effect/cluster"
import { DestinationEntity } from "../Destination/DestinationProtocol.ts"
import { idOn, shardOf } from "../Shards.ts"
import { Handover } from "./Handover.ts"
import { HandoverEntity } from "./HandoverProtocol.ts"
import * as LocalEntities from "./LocalEntities.ts"
import type { Batches, Location } from "./Outgoing.ts"
import { Owners } from "./Owners.ts"
import { notify } from "./WakeUps.ts"

/** How committed events reach the actors of their destinations. Both ways are wake-up notifications, with the events in them. */
export const eventMessages = Effect.gen(function* () {
  const destination = yield* DestinationEntity.client
  const handover = yield* HandoverEntity.client
  const sharding = yield* Sharding.Sharding
  const owners = yield* Owners
  const local = yield* LocalEntities.Destinations

  const locationOf = (destinationId: string): Location => {
    const shard = shardOf(sharding, destinationId)
    return sharding.hasShardId(ShardId.make("default", shard)) ? "here" : owners.of(shard)
  }

  /** Gives the actors of this process their batches. An actor that is not in memory gets its batch by message. */
  const take = (batches: Batches): Effect.Effect<void> => {
    const asleep = Array.from(batches).filter(([id, batch]) => local.give(id, batch) === undefined)
    if (asleep.length === 0) return Effect.void
    return notify(
      Effect.forEach(asleep, ([id, batch]) => Effect.ignore(destination(id).Deliver({ batch }, { discard: true })), {
        concurrency: "unbounded",
        discard: true
      })
    )
  }

  /** Sends the events of destinations that live on the same runner in one message. */
  const handOver = (location: Location, batches: Batches): Effect.Effect<void> => {
    if (location === "here") return take(batches)
    const [any] = batches.keys()
    const to = idOn(sharding, shardOf(sharding, any!))
    return notify(handover(to).Take({ handover: new Handover(batches) }, { discard: true }))
  }

  return { locationOf, take, handOver }
})
