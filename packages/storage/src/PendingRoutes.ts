import { Effect, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Rule } from "@tidegate/model/Rule"
import { HotSql, JournalSql } from "./Database.ts"
import * as Columns from "./journal/Columns.ts"
import { controlSlot } from "./RollupSlot.ts"

/** A request that waits for its connection's slow rules. */
export interface PendingRouteRow {
  readonly request_id: string
  readonly team_id: string
  readonly source_id: string
  readonly ingested_at: Date
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: string
  readonly body: Uint8Array | null
  /** Null unless the request is a replay. */
  readonly retry_kind: string | null
}

/** A connection as its pending routes are worked off by it. */
export interface RoutedConnection {
  readonly team_id: string
  readonly destination_id: string
  readonly rules: ReadonlyArray<Rule>
  /** Whether a request may become an event on it: it and its destination are enabled. */
  readonly routes: boolean
}

/** The connection as it is now; null when there is no such connection. */
export const readRoutedConnection = Effect.fnUntraced(function* (
  connectionId: string
): Effect.fn.Return<RoutedConnection | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [connection] = yield* sql<RoutedConnection>`
    select c.team_id, c.destination_id, c.rules,
      c.disabled_at is null and c.deleted_at is null and d.disabled_at is null and d.deleted_at is null as routes
    from connections c join destinations d on d.id = c.destination_id where c.id = ${connectionId}`
  return connection ?? null
})

/** A connection's pending routes, oldest first: so many, with bodies of so many bytes in all (the first always comes). */
export const readPendingRoutes = Effect.fnUntraced(function* (
  connectionId: string,
  limit: number,
  bytes: number
): Effect.fn.Return<ReadonlyArray<PendingRouteRow>, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  return yield* sql<PendingRouteRow>`
    with chosen as (
      select p.request_id, p.team_id, p.source_id, sum(r.body_size) over (order by p.request_id) - r.body_size as before
      from (
        select * from pending_routes where connection_id = ${connectionId} order by connection_id, request_id limit ${limit}
      ) p cross join lateral (select body_size from requests where requests.id = p.request_id limit 1) r
    )
    select c.request_id, c.team_id, c.source_id, r.ingested_at, r.method, r.path, r.query, r.headers, r.body, r.retry_kind
    from chosen c cross join lateral (select * from requests where requests.id = c.request_id limit 1) r
    where c.before < ${bytes}
    order by c.request_id`
})

/** A window that a request has opened: later requests of that key are duplicates until then (Unix ms). */
export interface DedupeWindow {
  readonly key: string
  readonly request_id: string
  readonly expires_at: number
}

/**
 * The windows of these keys on a connection. Has to be read after the pending routes that it decides about: whoever else
 * has settled some meanwhile has then committed the windows too.
 */
export const readDedupeWindows = Effect.fnUntraced(function* (
  connectionId: string,
  keys: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<DedupeWindow>, SqlError.SqlError, HotSql> {
  if (keys.length === 0) return []
  const sql = yield* HotSql
  return yield* sql<DedupeWindow>`
    select w.key, d.request_id, (extract(epoch from d.expires_at) * 1000)::float8 as expires_at
    from unnest(${Columns.text(keys)}) as w (key)
      cross join lateral (
        select request_id, expires_at from dedupe_keys
        where dedupe_keys.connection_id = ${connectionId} and dedupe_keys.key = w.key limit 1
      ) d`
})

/** How late a request may come to be worked off and still find the window that makes it a duplicate. */
const windowGrace = "1 day"

/**
 * Forgets windows that have long ended, every few minutes for as long as the process lives. Not at their end: a request that
 * came within it may be worked off later.
 */
export const forgetDedupeWindows = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`delete from dedupe_keys where expires_at < now() - ${windowGrace}::interval`
).pipe(
  Effect.catch((error) => Effect.logWarning("ended deduplication windows could not be forgotten", error)),
  Effect.repeat(Schedule.spaced("5 minutes"))
)

/** What a transformation made of a request; `body` null when it left the body alone. */
export interface TransformedData {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly query: string
  /** JSON object, as in `requests`. */
  readonly headers: string
  readonly body: Uint8Array | null
  readonly bodySize: number
}

/** One run of a transformation, as it is recorded. */
export interface ExecutionRecord {
  readonly id: string
  readonly transformationId: string
  readonly codeHash: string
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly logLevel: string
  readonly failed: boolean
  /** JSON array of {type, message}. */
  readonly logs: string
  /** Microseconds. */
  readonly duration: number
  readonly memoryBytes: number
}

/** What becomes of one pending route. `eventId` and `ignoredId` are derived, so a repeated step finds them taken. */
export type Fate =
  | { readonly kind: "event"; readonly eventId: string; readonly dueAt: number }
  | { readonly kind: "ignored"; readonly ignoredId: string; readonly cause: string; readonly meta: string }
  /** The connection takes no requests any more. */
  | { readonly kind: "dropped" }

export interface Settled {
  readonly requestId: string
  readonly fate: Fate
  /** Null when no transformation ran. */
  readonly execution: ExecutionRecord | null
  /** Null when nothing was transformed. */
  readonly transformed: TransformedData | null
  /** The deduplication window that this request opens. */
  readonly opens: { readonly key: string; readonly expiresAt: number } | null
}

/**
 * Replaces pending routes by what became of them, in one statement: the deleted rows drive the inserts, so a route that
 * somebody else has settled meanwhile is settled once.
 */
export const settlePendingRoutes = Effect.fnUntraced(function* (options: {
  readonly connectionId: string
  readonly destinationId: string
  readonly shard: number
  readonly now: number
  readonly settled: ReadonlyArray<Settled>
}): Effect.fn.Return<void, SqlError.SqlError, JournalSql> {
  const sql = yield* JournalSql
  const { connectionId, destinationId, now, settled, shard } = options
  const routes = <A>(of: (fate: Fate, one: Settled) => A): Array<A> => settled.map((one) => of(one.fate, one))
  const ran = settled.flatMap(({ execution, requestId }) => (execution === null ? [] : [{ execution, requestId }]))
  const executions = <A>(of: (one: ExecutionRecord, requestId: string) => A): Array<A> =>
    ran.map(({ execution, requestId }) => of(execution, requestId))
  const made = settled.flatMap(({ requestId, transformed }) =>
    transformed === null ? [] : [{ requestId, transformed }]
  )
  const data = <A>(of: (one: TransformedData, requestId: string) => A): Array<A> =>
    made.map(({ requestId, transformed }) => of(transformed, requestId))
  // A key that opens twice in a batch (its window ended within it) is kept with its last window.
  const opened = [
    ...new Map(
      settled.flatMap(({ opens, requestId }) => (opens === null ? [] : [[opens.key, { ...opens, requestId }] as const]))
    ).values()
  ]
  const at = new Date(now)
  const ids = Columns.text(routes((_, { requestId }) => requestId))
  yield* sql`
    with s as (
      select * from unnest(
        ${ids}, ${Columns.text(routes(({ kind }) => kind))},
        ${Columns.text(routes((fate) => (fate.kind === "event" ? fate.eventId : fate.kind === "ignored" ? fate.ignoredId : null)))},
        ${Columns.timestamptz(routes((fate) => (fate.kind === "event" ? fate.dueAt : null)))},
        ${Columns.text(routes((fate) => (fate.kind === "ignored" ? fate.cause : null)))},
        ${Columns.text(routes((fate) => (fate.kind === "ignored" ? fate.meta : null)))},
        ${Columns.text(routes((_, { transformed }) => transformed?.id ?? null))}
      ) as t (request_id, kind, id, due_at, cause, meta, data_id)
    ), taken as (
      delete from pending_routes p using s
      where p.connection_id = ${connectionId} and p.request_id = any(${ids})
        and p.request_id = s.request_id
      returning p.request_id, p.team_id, p.source_id, p.created_at, s.kind, s.id, s.due_at, s.cause, s.meta, s.data_id
    ), made as (
      insert into events (id, team_id, request_id, connection_id, source_id, destination_id, event_data_id, state, trigger,
        due_at, ingested_at, created_at, updated_at)
      select id, team_id, request_id, ${connectionId}, source_id, ${destinationId}, data_id, 'PENDING', 'INITIAL', due_at,
        created_at, ${at}, ${at}
      from taken where kind = 'event'
    ), queued as (
      insert into deliveries (event_id, shard, destination_id, connection_id, due_at)
      select id, ${shard}::int2, ${destinationId}, ${connectionId}, due_at from taken where kind = 'event'
    ), passed as (
      insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
      select id, team_id, request_id, ${connectionId}, source_id, cause, meta::jsonb, ${at}
      from taken where kind = 'ignored'
    ), x as (
      select * from unnest(
        ${Columns.text(executions((_, requestId) => requestId))}, ${Columns.text(executions((one) => one.id))},
        ${Columns.text(executions((one) => one.transformationId))}, ${Columns.text(executions((one) => one.codeHash))},
        ${Columns.text(executions((one) => one.errorCode))}, ${Columns.text(executions((one) => one.errorMessage))},
        ${Columns.text(executions((one) => one.logLevel))}, ${Columns.bool(executions((one) => one.failed))},
        ${Columns.text(executions((one) => one.logs))}, ${Columns.int4(executions((one) => one.duration))},
        ${Columns.int8(executions((one) => BigInt(one.memoryBytes)))}
      ) as t (request_id, id, transformation_id, code_hash, error_code, error_message, log_level, failed, logs, duration,
        memory_bytes)
    ), executed as (
      insert into executions (id, team_id, transformation_id, request_id, connection_id, source_id, event_id, event_data_id,
        code_hash, error_code, error_message, log_level, failed, logs, duration, memory_bytes, created_at)
      select x.id, team_id, transformation_id, x.request_id, ${connectionId}, source_id,
        case kind when 'event' then taken.id end, data_id, code_hash, error_code, error_message, log_level, failed, logs,
        duration, memory_bytes, ${at}
      from taken join x on x.request_id = taken.request_id where kind <> 'dropped'
    ), transformed as (
      insert into event_data (id, team_id, request_id, connection_id, method, path, query, headers, body, same_body, body_size,
        created_at)
      select t.id, team_id, t.request_id, ${connectionId}, method, path, query, headers, body, body is null, body_size, ${at}
      from taken join unnest(
        ${Columns.text(data((_, requestId) => requestId))}, ${Columns.text(data((one) => one.id))},
        ${Columns.text(data((one) => one.method))}, ${Columns.text(data((one) => one.path))},
        ${Columns.text(data((one) => one.query))}, ${Columns.text(data((one) => one.headers))},
        ${Columns.bytea(data((one) => one.body))}, ${Columns.int4(data((one) => one.bodySize))}
      ) as t (request_id, id, method, path, query, headers, body, body_size) on t.request_id = taken.request_id
      where kind <> 'dropped'
    ), opened as (
      insert into dedupe_keys (connection_id, key, request_id, expires_at)
      select ${connectionId}, key, o.request_id, o.expires_at
      from taken join unnest(
        ${Columns.text(opened.map((one) => one.requestId))}, ${Columns.text(opened.map((one) => one.key))},
        ${Columns.timestamptz(opened.map((one) => one.expiresAt))}
      ) as o (request_id, key, expires_at) on o.request_id = taken.request_id
      order by key
      on conflict (connection_id, key) do update set request_id = excluded.request_id, expires_at = excluded.expires_at
        where dedupe_keys.expires_at < excluded.expires_at
    ), counts as (
      select ${connectionId} as key_id, case kind when 'event' then 'created' else 'ignored' end as measure,
        date_trunc('minute', case kind when 'event' then ${at} else created_at end) as minute, team_id, count(*) as count
      from taken where kind <> 'dropped' group by 2, 3, 4
      union all
      select transformation_id, case when failed then 'execution_failed' else 'execution_successful' end,
        date_trunc('minute', ${at}), team_id, count(*)
      from taken join x on x.request_id = taken.request_id where kind <> 'dropped' group by 1, 2, 4
    ), counted as (
      insert into rollups (key_id, measure, minute, slot, team_id, count)
      select key_id, measure, minute, ${controlSlot}::int2, team_id, count from counts order by 1, 2, 3
      on conflict (key_id, measure, minute, slot) do update set count = rollups.count + excluded.count
    )
    update requests set
      events_count = events_count + (case taken.kind when 'event' then 1 else 0 end),
      ignored_count = ignored_count + (case taken.kind when 'ignored' then 1 else 0 end)
    from taken where requests.id = any(${ids}) and requests.id = taken.request_id and taken.kind <> 'dropped'`
})
