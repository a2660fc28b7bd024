import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Sharding, TestRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import { Connections } from "@tidegate/storage/Connections"
import { type Accepted, Journal } from "@tidegate/storage/Journal"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { type SlowOutcome, SlowRuleRunner, workOffPendingRoutes } from "../src/Connection/PendingRoutes.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import { shardOf } from "../src/Shards.ts"

const { createConnection, team, versionOf } = ControlPlane

const unused = () => Effect.die("not part of this suite")

/** Destinations that only take their wake-ups. */
const destinations = DestinationEntity.toLayer(
  Effect.succeed(
    DestinationEntity.of({
      Create: unused,
      Update: unused,
      Replace: unused,
      Disable: unused,
      Enable: unused,
      Delete: unused,
      RetryEvent: unused,
      Deliver: unused,
      Wake: () => Effect.void,
      Reload: () => Effect.void
    })
  )
)

const world = destinations.pipe(
  Layer.provideMerge(Layer.mergeAll(Journal.layer, TestRunner.layer)),
  Layer.provideMerge(ControlPlane.layer)
)

/** A slow rule of the test's own: decides by the request's path, and counts how often it was asked. */
const slowRule = (decide: (path: string) => SlowOutcome) => {
  const asked: Array<string> = []
  return {
    asked,
    rule: Effect.provideService(SlowRuleRunner, {
      run: (_, request) =>
        Effect.sync(() => {
          asked.push(request.path)
          return decide(request.path)
        })
    })
  }
}

/** A connection with a deduplicate rule, and requests that a door left to it as pending routes. */
const pending = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const sharding = yield* Sharding.Sharding
  const journal = yield* Journal
  const connection = yield* createConnection({
    rules: [
      { type: "deduplicate", window: 1000 },
      { type: "delay", delay: 5000 }
    ] as never
  })
  const version = (yield* versionOf(connection.source_id))!
  const ids = yield* Effect.forEach(paths, (path) =>
    Effect.callback<string>((resume) => {
      const at = Date.now()
      const id = newId(prefixes.request, at)
      journal.accept(
        {
          id,
          teamId: team,
          sourceId: connection.source_id,
          version,
          status: "accepted",
          verified: false,
          rejectionCause: null,
          method: "POST",
          path,
          query: "",
          headers: "{}",
          body: Buffer.from("{}"),
          bodySize: 2,
          externalId: null,
          originalIp: null,
          ingestedAt: at,
          events: [],
          ignored: [],
          pending: [{ connectionId: connection.id, shard: shardOf(sharding, connection.id) }]
        },
        (outcome: Accepted) => {
          assert.strictEqual(outcome, "committed")
          resume(Effect.succeed(id))
        }
      )
    })
  )
  return { connection, ids }
})

const stored = Effect.fnUntraced(function* (connectionId: string) {
  const sql = yield* SqlClient.SqlClient
  const events = yield* sql<{ id: string; request_id: string; queued: boolean; delay: number }>`
    select id, request_id, exists (select from deliveries d where d.event_id = e.id) as queued,
      (extract(epoch from due_at - created_at) * 1000)::int4 as delay
    from events e where connection_id = ${connectionId} order by request_id`
  const ignored = yield* sql<{ request_id: string; cause: string }>`
    select request_id, cause from ignored_events where connection_id = ${connectionId} order by request_id`
  const [left] = yield* sql<{ count: number }>`
    select count(*)::int4 as count from pending_routes where connection_id = ${connectionId}`
  const counts = yield* sql<{ id: string; events_count: number; ignored_count: number }>`
    select id, events_count, ignored_count from requests
    where id in (select request_id from events where connection_id = ${connectionId}
      union select request_id from ignored_events where connection_id = ${connectionId}) order by id`
  return { events, ignored, left: left!.count, counts }
})

layer(world, { excludeTestServices: true })("pending routes", (it) => {
  it.effect("become an event or an ignored event each, in one step, with the rules behind the slow one applied", () =>
    Effect.gen(function* () {
      const { connection, ids } = yield* pending(["/a", "/twin", "/b"])
      const { asked, rule } = slowRule((path) =>
        path === "/twin" ? { kind: "ignore", cause: "DEDUPLICATED", meta: [{ key: "x" }] } : { kind: "pass" }
      )
      yield* workOffPendingRoutes(connection.id).pipe(rule)
      assert.deepStrictEqual(asked, ["/a", "/twin", "/b"])
      const result = yield* stored(connection.id)
      assert.deepStrictEqual(
        result.events.map(({ id, request_id }) => [id, request_id]),
        [ids[0]!, ids[2]!].map((id) => [derivedId(prefixes.event, id, connection.id), id])
      )
      assert.isTrue(result.events.every((event) => event.queued && event.delay === 5000))
      assert.deepStrictEqual(result.ignored, [{ request_id: ids[1]!, cause: "DEDUPLICATED" }])
      assert.strictEqual(result.left, 0)
      assert.deepStrictEqual(
        result.counts.map((row) => [row.events_count, row.ignored_count]),
        [
          [1, 0],
          [0, 1],
          [1, 0]
        ]
      )
    })
  )

  it.effect("are worked off once, by however many at the same time", () =>
    Effect.gen(function* () {
      const { connection, ids } = yield* pending(Array.from({ length: 450 }, (_, i) => `/${i}`))
      const { rule } = slowRule(() => ({ kind: "pass" }))
      yield* Effect.all(
        Array.from({ length: 4 }, () => workOffPendingRoutes(connection.id)),
        { concurrency: "unbounded" }
      ).pipe(rule)
      const result = yield* stored(connection.id)
      assert.strictEqual(result.events.length, ids.length)
      assert.strictEqual(result.left, 0)
      assert.isTrue(result.counts.every((row) => row.events_count === 1))
    })
  )

  it.effect("wait while the slow rule says so, and lose nothing by an interruption", () =>
    Effect.gen(function* () {
      const { connection } = yield* pending(["/1", "/2"])
      yield* workOffPendingRoutes(connection.id)
      assert.strictEqual((yield* stored(connection.id)).left, 2)
      const never = Effect.provideService(SlowRuleRunner, { run: () => Effect.never })
      yield* workOffPendingRoutes(connection.id).pipe(never, Effect.timeoutOption("50 millis"))
      assert.strictEqual((yield* stored(connection.id)).left, 2)
      yield* workOffPendingRoutes(connection.id).pipe(slowRule(() => ({ kind: "pass" })).rule)
      const result = yield* stored(connection.id)
      assert.strictEqual(result.left, 0)
      assert.strictEqual(result.events.length, 2)
    })
  )

  it.effect("go by the rules as they are when they are worked off", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { connection } = yield* pending(["/1"])
      yield* connections.disable(team, connection.id)
      const { asked, rule } = slowRule(() => ({ kind: "pass" }))
      yield* workOffPendingRoutes(connection.id).pipe(rule)
      assert.deepStrictEqual(asked, [])
      const result = yield* stored(connection.id)
      assert.strictEqual(result.left, 0)
      assert.strictEqual(result.events.length, 0)
    })
  )
})
