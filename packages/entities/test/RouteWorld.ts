import { expect } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Predicate } from "effect"
import { Sharding, TestRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Json, Rule } from "@tidegate/model/Rule"
import { requestInput } from "@tidegate/rules/RequestInput"
import { type Call, type Execution, Sandbox, SandboxUnavailable } from "@tidegate/sandbox/Sandbox"
import { type Accepted, Journal, type RequestRecord } from "@tidegate/storage/Journal"
import { Transformations } from "@tidegate/storage/control/Transformations"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { newRequest, type PendingRequest } from "../src/Connection/PendingRequest.ts"
import { makeRouteWorker } from "../src/Connection/RouteWork.ts"
import type { DeliveryItem } from "../src/Destination/queue/DeliveryItem.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import * as HandoverBehaviour from "../src/dispatch/HandoverBehaviour.ts"
import { Dispatcher } from "../src/dispatch/Dispatcher.ts"
import { Lease } from "../src/Lease.ts"
import * as LocalEntities from "../src/dispatch/LocalEntities.ts"
import { shardOf } from "../src/Shards.ts"
import { noTunnel } from "./NoTunnel.ts"

export const { createConnection, team, versionOf } = ControlPlane

/** Works off what a connection has in SQL, as a new owner of it does. */
export const workOffPendingRoutes = (connectionId: string) =>
  Effect.flatMap(makeRouteWorker, (open) => {
    const routes = open(connectionId)
    routes.wake()
    return Effect.onInterrupt(routes.work, () => Effect.sync(routes.close))
  })

const unused = () => Effect.die("not part of this suite")

/** What destinations were handed, by event id. */
export const handedOver = new Map<string, DeliveryItem>()

/** Destinations that only take what they are handed. */
const destinations = DestinationEntity.toLayer(
  Effect.succeed(
    DestinationEntity.of({
      Create: unused,
      Update: unused,
      Replace: unused,
      Upsert: unused,
      Disable: unused,
      Enable: unused,
      Delete: unused,
      RetryEvent: unused,
      StartConsent: unused,
      EndConsent: unused,
      Deliver: ({ payload }) =>
        Effect.sync(() => {
          for (const item of payload.batch.items) handedOver.set(item.eventId, item)
        }),
      Wake: unused,
      Reload: () => Effect.void,
      Reread: () => Effect.void,
      ...noTunnel
    })
  )
)

/** Destinations at work, which are handed events as they are. */
const residents = Layer.succeed(LocalEntities.Destinations, {
  give: (_id, batch) => {
    for (const item of batch.items) handedOver.set(item.eventId, item)
    return true
  },
  add: () => Effect.void
})

export const world = Layer.mergeAll(destinations, HandoverBehaviour.layer).pipe(
  Layer.provideMerge(Dispatcher.layer),
  Layer.provideMerge(residents),
  Layer.provideMerge(Layer.mergeAll(Journal.layer, TestRunner.layer, Transformations.layer, Lease.layerAlways)),
  Layer.provideMerge(ControlPlane.layer)
)

export type Outcome = Partial<Execution["request"] & object> | { readonly error: string } | "unavailable"

/** `start` of a sandbox whose calls are these effects. It throws what a call dies of at once. */
const startingBy =
  (run: (call: Call) => Effect.Effect<Execution, SandboxUnavailable>): Sandbox["Service"]["start"] =>
  (call, done, unavailable) => {
    const fiber = Effect.runFork(
      Effect.match(run(call), { onSuccess: done, onFailure: ({ message }) => unavailable(message) })
    )
    fiber.addObserver((exit) => {
      if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) throw Cause.squash(exit.cause)
    })
    return () => fiber.interruptUnsafe()
  }

/** A sandbox of the test's own: decides by the request, and keeps what it was asked. */
export const sandbox = (decide: (call: Call) => Outcome | Effect.Effect<Outcome>, pinned: string | null = null) => {
  const calls: Array<Call> = []
  const run = Effect.fnUntraced(function* (call: Call): Effect.fn.Return<Execution, SandboxUnavailable> {
    calls.push(call)
    const decided = decide(call)
    const outcome = Effect.isEffect(decided) ? yield* decided : decided
    if (outcome === "unavailable") return yield* new SandboxUnavailable({ message: "not now" })
    const base = { warnings: [], startedAt: 0, finishedAt: 2, durationMs: 1.5, memoryBytes: 1000, pinned }
    return Predicate.hasProperty(outcome, "error")
      ? {
          ...base,
          request: null,
          written: null,
          error: { code: "RUNTIME_ERROR", name: "Error", message: outcome.error, line: 3 },
          logs: [],
          logLevel: "fatal"
        }
      : {
          ...base,
          request: { ...call.request, ...outcome },
          written:
            outcome.body === undefined
              ? null
              : { json: JSON.stringify(outcome.body), isText: typeof outcome.body === "string" },
          error: null,
          logs: [{ type: "log", message: "seen" }],
          logLevel: "info"
        }
  })
  const start = startingBy(run)
  const service = Sandbox.of({ run, start, check: () => Effect.succeed(null), pids: () => [] })
  const provided = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Sandbox>> =>
    Effect.provideService(work, Sandbox, service)
  return { calls, provided }
}

export const noTransformation = sandbox(() => "unavailable")

export interface Sent {
  readonly path: string
  readonly body?: Json
  /** Milliseconds after the first. */
  readonly at?: number
}

export const transformation = Effect.fnUntraced(function* (env: Record<string, string> = {}) {
  const transformations = yield* Transformations
  const id = newId(prefixes.transformation, Date.now())
  yield* transformations.create(team, id, { name: id, code: "addHandler('transform', (r) => r)", env, isolation: null })
  return id
})

let lastMs = Date.now()

/** A connection with these rules (or one that there is), and requests that ingress left to it as routing jobs. */
export const pending = Effect.fnUntraced(function* (
  rules: ReadonlyArray<Rule>,
  sent: ReadonlyArray<Sent>,
  known?: { readonly id: string; readonly source_id: string }
) {
  const sharding = yield* Sharding.Sharding
  const journal = yield* Journal
  const connection = known ?? (yield* createConnection({ rules }))
  const version = (yield* versionOf(connection.source_id))!
  // A millisecond for each, so that they have an order.
  const start = Math.max(Date.now(), lastMs + 1)
  const requests = yield* Effect.forEach(sent, ({ at, body, path }, index) =>
    Effect.callback<PendingRequest>((resume) => {
      const ingestedAt = start + (at ?? index)
      lastMs = Math.max(lastMs, ingestedAt)
      const id = newId(prefixes.request, ingestedAt)
      const bytes = Buffer.from(JSON.stringify(body ?? {}, null, 2))
      const headers = { "content-type": "application/json", "x-one": "1" }
      const record: RequestRecord = {
        id,
        teamId: team,
        sourceId: connection.source_id,
        version,
        status: "accepted",
        verified: false,
        rejectionCause: null,
        method: "POST",
        path,
        query: "a=1",
        presented: null,
        headers: JSON.stringify(headers),
        body: bytes,
        bodySize: bytes.length,
        externalId: null,
        originalIp: null,
        ingestedAt,
        events: [],
        ignored: [],
        pending: [{ connectionId: connection.id, shard: shardOf(sharding, connection.id), ordering: null }],
        runs: [],
        cliEvents: 0
      }
      const received = { method: "POST", path, query: "a=1", headers }
      journal.accept(record, (outcome: Accepted) => {
        expect(outcome).toBe("committed")
        resume(Effect.succeed(newRequest(record, received, requestInput(received, bytes))))
      })
    })
  )
  return { connection, requests, ids: requests.map(({ id }) => id) }
})

export const stored = Effect.fnUntraced(function* (connectionId: string) {
  const sql = yield* SqlClient.SqlClient
  const events = yield* sql<{
    id: string
    request_id: string
    queued: boolean
    delay: number
    event_data_id: string | null
  }>`
    select id, request_id, exists (select from deliveries d where d.event_id = e.id) as queued, event_data_id,
      (extract(epoch from due_at - created_at) * 1000)::int4 as delay
    from events e where connection_id = ${connectionId} order by request_id`
  const ignored = yield* sql<{ request_id: string; cause: string; meta: unknown }>`
    select request_id, cause, meta from ignored_events where connection_id = ${connectionId} order by request_id`
  const executions = yield* sql<Record<string, unknown>>`
    select id, request_id, event_id, event_data_id, transformation_id, error_code, error_message, log_level, failed, logs,
      duration from executions where connection_id = ${connectionId} order by request_id`
  const [left] = yield* sql<{ count: number }>`
    select count(*)::int4 as count from pending_routes where connection_id = ${connectionId}`
  const counts = yield* sql<{ id: string; events_count: number; ignored_count: number }>`
    select id, events_count, ignored_count from requests
    where id in (select request_id from events where connection_id = ${connectionId}
      union select request_id from ignored_events where connection_id = ${connectionId}) order by id`
  return { events, ignored, executions, left: left!.count, counts }
})

/** Messages to actors are on their way when the work is done. */
export const handed = (eventId: string) =>
  Effect.suspend(() => Effect.fromNullishOr(handedOver.get(eventId))).pipe(
    // A turn of the loop, not of the fibers: the message goes through both.
    Effect.tapError(() => Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))),
    Effect.eventually
  )

export const deduplicate: Rule = { type: "deduplicate", window: 1_000, include_fields: ["body.id"] }
