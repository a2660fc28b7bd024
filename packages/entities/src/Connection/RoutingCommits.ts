import { Clock, Effect } from "effect"
import { Sharding } from "effect/cluster"
import type { DecidedJob } from "@tidegate/storage/journal/RoutingRecord"
import { Journal, type RoutingOutcome } from "@tidegate/storage/Journal"
import { horizonMs, newItem, payloadOf } from "../Destination/queue/DeliveryItem.ts"
import { Dispatcher } from "../dispatch/Dispatcher.ts"
import { shardOf } from "../Shards.ts"
import type { Decider } from "./Decide.ts"
import type { PendingRequest } from "./PendingRequest.ts"
import type { RouteSettings } from "./RouteSettings.ts"
import { routeTelemetry } from "./RouteTelemetry.ts"

/** Decisions about the first of some requests, in the same order. */
export interface Decisions {
  readonly connectionId: string
  readonly to: Pick<Decider, "destinationId" | "isTunnel">
  /** The settings that decided; null when they were read together with the requests. */
  readonly by: RouteSettings | null
  readonly requests: ReadonlyArray<PendingRequest>
  readonly decided: ReadonlyArray<DecidedJob>
  readonly isOwned: () => boolean
  readonly done: (outcome: RoutingOutcome) => void
}

/** The approximate weight of decisions in the journal, in bytes. */
const bytesOf = (decided: ReadonlyArray<DecidedJob>): number =>
  decided.reduce(
    (sum, { execution, transformed }) =>
      sum + 512 + (transformed?.body?.length ?? 0) + (transformed?.headers.length ?? 0) + (execution?.logs.length ?? 0),
    0
  )

/**
 * Commits decisions through the journal: each event or ignored event is stored in the transaction that removes its routing job.
 * Then it reports what is committed, and hands the events to their destination so that it need not read them from SQL.
 */
export const makeRoutingCommits = Effect.gen(function* () {
  const sharding = yield* Sharding.Sharding
  const journal = yield* Journal
  const dispatcher = yield* Dispatcher
  const clock = yield* Clock.Clock
  const report = yield* routeTelemetry

  const announce = (
    { connectionId, decided, requests, to: { destinationId } }: Decisions,
    made: ReadonlySet<string>,
    now: number
  ): void => {
    for (const [index, one] of decided.entries()) {
      const request = requests[index]!
      const { fate, transformed } = one
      report(one, request, { connectionId, destinationId }, made, now)
      if (fate.kind !== "event" || fate.dueAt > now + horizonMs || !made.has(fate.eventId)) continue
      const head = transformed === null ? request.received : { ...transformed, headers: transformed.values }
      const payload = payloadOf(
        head,
        transformed?.body ? { ...request, body: transformed.body } : request,
        transformed?.id ?? null
      )
      const event = { id: fate.eventId, connectionId, dueAt: fate.dueAt, orderingKey: request.orderingKey }
      dispatcher.deliver(destinationId, newItem(event, request, now, payload))
    }
  }

  return (decisions: Decisions): void => {
    const { by, connectionId, decided, done, isOwned, requests, to } = decisions
    const now = clock.currentTimeMillisUnsafe()
    journal.commitRouting({
      connectionId,
      destinationId: to.destinationId,
      isTunnel: to.isTunnel,
      shard: shardOf(sharding, to.destinationId),
      now,
      basis: by?.basis ?? null,
      inOrder: requests.some((request) => request.inOrder),
      decided,
      bytes: bytesOf(decided),
      isOwned,
      done: (outcome) => {
        if (outcome.kind === "committed") announce(decisions, outcome.made, now)
        done(outcome)
      }
    })
  }
})
