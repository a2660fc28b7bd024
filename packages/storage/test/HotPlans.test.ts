import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes, sibling } from "@tidegate/model/Ids"
import * as Database from "@tidegate/storage/Database"
import { dueDestinations, dueRows, pendingEvents } from "@tidegate/storage/DeliveryRows"
import { attemptCommit } from "../src/journal/AttemptStatement.ts"
import { migrate } from "@tidegate/storage/Migrations"
import { readDedupeWindows, readPendingWork } from "@tidegate/storage/PendingRoutes"
import { type Settled, settlePendingRoutes } from "@tidegate/storage/SettlePendingRoutes"
import { freshDatabase } from "../../../test/postgres.ts"
import { attemptRecord } from "./attempts.ts"

const world = Layer.effectDiscard(migrate).pipe(
  Layer.provideMerge(
    Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url, hotConnections: 1, journalConnections: 1 })))
  )
)

const destination = newId(prefixes.destination, Date.now())
const connection = newId(prefixes.connection, Date.now())

/** So many pending events, due now. */
const fill = Effect.fnUntraced(function* (count: number) {
  const sql = yield* SqlClient.SqlClient
  const base = newId(prefixes.event, Date.now()).slice(4, 14)
  const salt = Math.random().toString(36).slice(2, 8).padEnd(6, "0")
  yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size,
      events_count, ignored_count, ingested_at, created_at, updated_at)
    select 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'tm', 'src', 'accepted', false, 'POST', '/', '', '{}', '', 0,
      1, 0, now(), now(), now() from generate_series(1, ${count}::int) i`
  yield* sql`insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, trigger, due_at,
      ingested_at, created_at, updated_at)
    select 'evt_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'tm', 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'),
      ${connection}, 'src', ${destination}, 'PENDING', 'INITIAL', now(), now(), now(), now() from generate_series(1, ${count}::int) i`
  yield* sql`insert into deliveries (event_id, shard, destination_id, connection_id, due_at)
    select 'evt_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 1, ${destination}, ${connection}, now()
    from generate_series(1, ${count}::int) i`
  yield* sql`insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at)
    select 1, ${connection}, 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'tm', 'src', now()
    from generate_series(1, ${count}::int) i`
  yield* sql`insert into dedupe_keys (connection_id, key, request_id, expires_at)
    select ${connection}, 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'req', now() + interval '1 hour'
    from generate_series(1, ${count}::int) i`
  return Array.from({ length: 20 }, (_, i) => `evt_${base}${salt}${String(i + 1).padStart(10, "0")}`)
})

/** Rows and index entries that tables of the event path have been read for, by this database so far. */
const reads = Effect.gen(function* () {
  for (const client of [yield* Database.HotSql, yield* Database.JournalSql]) {
    yield* client.unsafe("select pg_stat_force_next_flush()")
    yield* client.unsafe("select 1")
  }
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ count: number }>`
    select ((select coalesce(sum(seq_tup_read), 0) from pg_stat_user_tables) +
      (select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes))::int4 as count`
  return row!.count
})

const attempt = (eventId: string) =>
  attemptRecord({
    teamId: "tm",
    eventId,
    requestId: "req",
    connectionId: connection,
    sourceId: "src",
    destinationId: destination
  })

/** A route that a transformation and a deduplicate rule have passed. */
const settledAs = (eventId: string): Settled => {
  const requestId = sibling(prefixes.request, eventId)
  return {
    requestId,
    fate: { kind: "event", eventId: newId(prefixes.event, Date.now()), dueAt: Date.now() },
    execution: {
      id: derivedId(prefixes.execution, requestId, connection),
      transformationId: "trs",
      codeHash: "",
      errorCode: null,
      errorMessage: null,
      logLevel: "info",
      failed: false,
      logs: "[]",
      duration: 1,
      memoryBytes: 1
    },
    transformed: {
      id: derivedId(prefixes.eventData, requestId, connection),
      method: "POST",
      path: "/",
      query: "",
      headers: "{}",
      body: Buffer.from("{}"),
      bodySize: 2
    },
    opens: { key: requestId, expiresAt: Date.now() + 7_200_000 }
  }
}

const statements = {
  "recording 20 attempts": (events: ReadonlyArray<string>) =>
    Effect.flatMap(Database.JournalSql, (sql) => {
      const { parameters, statement } = attemptCommit(events.map(attempt), 1)
      return sql.unsafe(statement, parameters)
    }),
  "loading 20 pending events": (events: ReadonlyArray<string>) => pendingEvents(events, 1e6),
  "the first 20 due rows of a lane": () => dueRows(1, destination, Date.now() + 1000, 20, new Map()),
  "the first 20 pending routes of a connection": () => readPendingWork(connection, 20, 1e6),
  "the deduplication windows of 20 keys": (events: ReadonlyArray<string>) =>
    readDedupeWindows(
      connection,
      events.map((id) => sibling(prefixes.request, id))
    ),
  "settling 20 pending routes": (events: ReadonlyArray<string>) =>
    settlePendingRoutes({
      connectionId: connection,
      destinationId: destination,
      shard: 1,
      now: Date.now(),
      settled: events.map((id) => settledAs(id))
    }),
  "the destinations with due rows": () => dueDestinations([1, 2, 3], Date.now() + 1000)
}

layer(world, { excludeTestServices: true })("the hot statements", (it) => {
  it.effect("read by index what they need, also by a plan made when the tables were all but empty", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const few = yield* fill(30)
      yield* sql`analyze`
      for (const run of Object.values(statements)) yield* run(few)
      // Grown a thousandfold before anybody has looked again.
      const many = yield* fill(30_000)
      for (const [name, run] of Object.entries(statements)) {
        const before = yield* reads
        yield* run(many)
        expect((yield* reads) - before, name).toBeLessThan(500)
      }
    })
  )
})
