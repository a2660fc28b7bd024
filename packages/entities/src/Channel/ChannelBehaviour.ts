import { Clock, Context, Effect, Layer } from "effect"
import { Entity, Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { Channel } from "@tidegate/channels/machine/Channel"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { type PermitsByKey, permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { makeWakeableWorker, type Next } from "@tidegate/runtime/WakeableWorker"
import { makeChannelJournal } from "@tidegate/storage/channels/ChannelJournal"
import { type Advanced, type Outcome, postponeChannel } from "@tidegate/storage/channels/ChannelWork"
import type { HeldChannel } from "@tidegate/storage/channels/HeldChannel"
import { deliverItems } from "@tidegate/storage/channels/Items"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { Lease } from "../Lease.ts"
import { replayRouting } from "../Replay.ts"
import { shardOf } from "../Shards.ts"
import { ChannelEntity } from "./ChannelProtocol.ts"
import { ChannelsUnderWay } from "./ChannelsUnderWay.ts"
import { type CallingStep, makeChannelSteps } from "./ChannelSteps.ts"

/** Steps of channels that call providers at the same time in this process, and those of one team. Teams take turns. */
const Calls = Context.Reference<PermitsByKey>("@tidegate/entities/Channel/Calls", {
  defaultValue: () => permitsByKey({ permits: 64, perKey: 8 })
})

/** The wait (ms) before items are tried again that could not become requests. */
const refusedMs = 1_000
/** The wait (ms) after a defect. It would repeat: the channel's rows have led to it. */
const defectMs = 3_600_000

/** What the actors of a process share. */
const makeShared = Effect.gen(function* () {
  const steps = yield* makeChannelSteps
  return {
    calls: yield* Calls,
    actors: yield* wakeUps,
    routing: yield* replayRouting,
    perform: steps.perform,
    underWay: yield* ChannelsUnderWay,
    advance: yield* makeChannelJournal(steps.definitionOf)
  }
})

type Shared = Effect.Success<typeof makeShared>

/**
 * The actor of a channel. It has no state: before and after each call everything is in the channel's rows. It works until nothing
 * is due, and the poller wakes it when something is.
 */
const layerWith = ({ actors, advance, calls, perform, routing, underWay }: Shared) =>
  ChannelEntity.toLayer(
    Effect.gen(function* () {
      const { entityId: id } = yield* Entity.CurrentAddress
      const lease = yield* Lease
      const shard = shardOf(yield* Sharding.Sharding, id)

      /** Returns whether requests were made. */
      const deliver = Effect.fnUntraced(function* ({ source_id, team_id }: Channel) {
        const now = yield* Clock.currentTimeMillis
        const { connections, items, workflows } = yield* deliverItems({ source_id, team_id }, routing, now)
        yield* Effect.forEach(connections, actors.wakeConnection, { concurrency: 16, discard: true })
        yield* Effect.forEach(workflows, actors.wakeWorkflow, { concurrency: 16, discard: true })
        return items > 0
      })

      /** Null: the lease has ended, and the new owner makes the step. */
      const made = (channel: Channel, step: CallingStep) =>
        calls.within(channel.team_id)(
          Effect.suspend(() => (lease.isHeld(shard) ? perform(channel, step) : Effect.succeed(null)))
        )

      const work = Effect.fnUntraced(function* (): Effect.fn.Return<
        Next,
        SqlError.SqlError | GatewayError,
        Database | Secrets | Sharding.Sharding
      > {
        let outcome: Outcome | null = null
        let known: HeldChannel | null = null
        for (;;) {
          if (outcome === null && !lease.isHeld(shard)) return "idle"
          // What was done at the provider is stored even if the lease has ended meanwhile: the channel's version keeps the order.
          const advanced: Advanced | null = yield* advance(id, shard, outcome, known)
          if (advanced === null) return "idle"
          const { channel, held, next }: Advanced = advanced
          outcome = null
          known = null
          if (next.do === "wait" || next.do === "removed") return "idle"
          if (next.do === "deliver") {
            if (!(yield* deliver(channel))) return refusedMs
            continue
          }
          outcome = yield* made(channel, next)
          known = held
          if (outcome === null) return "idle"
        }
      })

      const postponed = (defect: unknown) =>
        Effect.gen(function* () {
          yield* Effect.logError("a channel cannot go on; it is tried again in an hour", { source_id: id }, defect)
          yield* postponeChannel(id, (yield* Clock.currentTimeMillis) + defectMs)
          return "idle" as const
        })

      const worker = makeWakeableWorker({
        step: Effect.catchDefect(work(), postponed),
        failed: (error) => Effect.logWarning("a channel could not go on yet", { source_id: id, error })
      })

      const worked = Effect.suspend(() => {
        if (worker.isWorking()) return worker.work
        underWay.add(id)
        return Effect.ensuring(
          worker.work,
          Effect.sync(() => underWay.delete(id))
        )
      })

      // The handler keeps the actor in memory while it works.
      return ChannelEntity.of({ Wake: () => worked })
    }),
    { concurrency: "unbounded" }
  )

/** One reader and writer of channels for all actors of a process: steps of the same moment share their statements. */
export const layer = Layer.unwrap(Effect.map(makeShared, layerWith))
