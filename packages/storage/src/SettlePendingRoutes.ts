import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import type { StoredHead } from "@tidegate/model/Message"
import type { PgTypes } from "@effect/sql-pg"
import { JournalSql } from "./Database.ts"
import * as Columns from "./journal/Columns.ts"
import { inLine as lineDue } from "./Lines.ts"
import { withPartitions } from "./Partitions.ts"
import { controlSlot } from "./RollupBins.ts"

/** What a transformation made of a request; `body` null when it left the body alone. */
export interface TransformedData extends StoredHead {
  readonly id: string
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

interface Settlement {
  readonly connectionId: string
  readonly destinationId: string
  /** The shard of the destination's actor. */
  readonly shard: number
  readonly now: number
  readonly settled: ReadonlyArray<Settled>
  /** Whether some of these requests have a place: see `Lines.ts`. */
  readonly inLine: boolean
}

type Fragment = Statement.Fragment

/**
 * Replaces pending routes by what became of them, in one statement: the deleted rows drive the inserts, so a route that
 * somebody else has settled meanwhile is settled once. Parts that a batch has no rows for are left out of it. One that stands in
 * line behind another that is not settled here is left pending. Answers the ids of the events and ignored events made.
 */
export const settlePendingRoutes = Effect.fnUntraced(function* (
  settlement: Settlement
): Effect.fn.Return<ReadonlySet<string>, SqlError.SqlError, JournalSql> {
  const sql = yield* JournalSql
  const { connectionId, destinationId, inLine, now, settled, shard } = settlement
  const at = new Date(now)
  const column = <A>(of: (fate: Fate, one: Settled) => A): Array<A> => settled.map((one) => of(one.fate, one))
  const requestIds = column((_, { requestId }) => requestId)
  const ids = Columns.text(requestIds)
  const [first, last] = Columns.bounds(requestIds)
  const executed = executions(sql, settlement)
  const statement = sql<{ id: string }>`
    with s as (
      select * from unnest(
        ${ids}, ${Columns.text(column(({ kind }) => kind))},
        ${Columns.text(column((fate) => (fate.kind === "event" ? fate.eventId : fate.kind === "ignored" ? fate.ignoredId : null)))},
        ${Columns.timestamptz(column((fate) => (fate.kind === "event" ? fate.dueAt : null)))},
        ${Columns.text(column((fate) => (fate.kind === "ignored" ? fate.cause : null)))},
        ${Columns.text(column((fate) => (fate.kind === "ignored" ? fate.meta : null)))},
        ${Columns.text(column((_, { transformed }) => transformed?.id ?? null))}
      ) as t (request_id, kind, id, due_at, cause, meta, data_id)
    ), ${inLine ? held(sql, connectionId, ids) : sql``} taken as (
      delete from pending_routes p using s
      where p.connection_id = ${connectionId} and p.request_id = any(${ids})
        and p.request_id = s.request_id
        ${inLine ? sql`and not exists (select from held where held.ordering_key = p.ordering_key and held.place < p.place)` : sql``}
      returning p.request_id, p.team_id, p.source_id, p.created_at, s.kind, s.id, s.due_at, s.cause, s.meta, s.data_id
        ${inLine ? sql`, p.ordering_key, p.place` : sql``}
    ), made as (
      insert into events (id, team_id, request_id, connection_id, source_id, destination_id, event_data_id, state, trigger,
        due_at, ingested_at, created_at, updated_at ${inLine ? sql`, ordering_key` : sql``})
      select id, team_id, request_id, ${connectionId}, source_id, ${destinationId}, data_id, 'PENDING', 'INITIAL', due_at,
        created_at, ${at}, ${at} ${inLine ? sql`, ordering_key` : sql``}
      from taken where kind = 'event'
    ), queued as (
      insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at
        ${inLine ? sql`, ordering_key, place, ready_at` : sql``})
      select id, team_id, ${shard}::int2, ${destinationId}, ${connectionId}, ${inLine ? sql.literal(waitingInLine) : sql`due_at`}
      from taken where kind = 'event'
    ), ${settled.some(({ fate }) => fate.kind === "ignored") ? ignored(sql, settlement) : sql``}
    ${executed === null ? sql`` : executed.parts}
    ${settled.some(({ transformed }) => transformed !== null) ? payloads(sql, settlement) : sql``}
    ${settled.some(({ opens }) => opens !== null) ? windows(sql, settlement) : sql``}
    counts as (
      select ${connectionId} as key_id, case kind when 'event' then 'created' else 'ignored' end as measure,
        date_trunc('minute', case kind when 'event' then ${at} else created_at end) as minute, team_id, count(*) as count
      from taken where kind <> 'dropped' group by 2, 3, 4
      ${executed === null ? sql`` : executed.counts}
    ), counted as (
      insert into rollups (key_id, measure, minute, slot, team_id, count)
      select key_id, measure, minute, ${controlSlot}::int2, team_id, count from counts order by 1, 2, 3
      on conflict (key_id, measure, minute, slot) do update set count = rollups.count + excluded.count
    )
    update requests set
      events_count = events_count + (case taken.kind when 'event' then 1 else 0 end),
      ignored_count = ignored_count + (case taken.kind when 'ignored' then 1 else 0 end)
    from taken where requests.id = any(${ids}) and requests.id >= ${first} and requests.id <= ${last}
      and requests.id = taken.request_id and taken.kind <> 'dropped'
    returning taken.id`
  const rows = yield* withPartitions(sql)(statement)
  return new Set(rows.map((row) => row.id))
})

/**
 * The earliest place of each line that is not settled here. Few are looked at: what is settled was read from the front. It is the fence
 * of an owner that is none any more, too: what another is about to settle is still there, or is gone with its event made.
 */
const held = (sql: SqlClient.SqlClient, connectionId: string, ids: PgTypes.Parameter): Fragment => sql`
    held as materialized (
      select ordering_key, min(place) as place from pending_routes
      where connection_id = ${connectionId} and ordering_key is not null and request_id <> all(${ids})
        and place < (select max(place) from (
          select place from pending_routes where connection_id = ${connectionId} and request_id = any(${ids}) offset 0
        ) here)
      group by 1
    ),`

/** When it is due, its key, its place, and when it may be tried, of an event in line and of one that is in none. */
const waitingInLine = `case when ordering_key is null then due_at else ${lineDue} end, ordering_key,
        case when ordering_key is not null then place end, case when ordering_key is not null then due_at end`

const ignored = (sql: SqlClient.SqlClient, { connectionId, now }: Settlement): Fragment => sql`
    passed as (
      insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
      select id, team_id, request_id, ${connectionId}, source_id, cause, meta::jsonb, ${new Date(now)}
      from taken where kind = 'ignored'
    ),`

/** The runs of transformations, and how they are counted; null when none ran. */
const executions = (
  sql: SqlClient.SqlClient,
  { connectionId, now, settled }: Settlement
): { readonly parts: Fragment; readonly counts: Fragment } | null => {
  const ran = settled.flatMap(({ execution, requestId }) => (execution === null ? [] : [{ execution, requestId }]))
  if (ran.length === 0) return null
  const column = <A>(of: (one: ExecutionRecord, requestId: string) => A): Array<A> =>
    ran.map(({ execution, requestId }) => of(execution, requestId))
  const at = new Date(now)
  const parts = sql`
    x as (
      select * from unnest(
        ${Columns.text(column((_, requestId) => requestId))}, ${Columns.text(column((one) => one.id))},
        ${Columns.text(column((one) => one.transformationId))}, ${Columns.text(column((one) => one.codeHash))},
        ${Columns.text(column((one) => one.errorCode))}, ${Columns.text(column((one) => one.errorMessage))},
        ${Columns.text(column((one) => one.logLevel))}, ${Columns.bool(column((one) => one.failed))},
        ${Columns.text(column((one) => one.logs))}, ${Columns.int4(column((one) => one.duration))},
        ${Columns.int8(column((one) => BigInt(one.memoryBytes)))}
      ) as t (request_id, id, transformation_id, code_hash, error_code, error_message, log_level, failed, logs, duration,
        memory_bytes)
    ), executed as (
      insert into executions (id, team_id, transformation_id, request_id, connection_id, source_id, event_id, event_data_id,
        code_hash, error_code, error_message, log_level, failed, logs, duration, memory_bytes, created_at)
      select x.id, team_id, transformation_id, x.request_id, ${connectionId}, source_id,
        case kind when 'event' then taken.id end, data_id, code_hash, error_code, error_message, log_level, failed, logs,
        duration, memory_bytes, ${at}
      from taken join x on x.request_id = taken.request_id where kind <> 'dropped'
    ),`
  const counts = sql`
      union all
      select transformation_id, case when failed then 'execution_failed' else 'execution_successful' end,
        date_trunc('minute', ${at}), team_id, count(*)
      from taken join x on x.request_id = taken.request_id where kind <> 'dropped' group by 1, 2, 4`
  return { parts, counts }
}

const payloads = (sql: SqlClient.SqlClient, { connectionId, now, settled }: Settlement): Fragment => {
  const made = settled.flatMap(({ requestId, transformed }) =>
    transformed === null ? [] : [{ requestId, transformed }]
  )
  const column = <A>(of: (one: TransformedData, requestId: string) => A): Array<A> =>
    made.map(({ requestId, transformed }) => of(transformed, requestId))
  return sql`
    transformed as (
      insert into event_data (id, team_id, request_id, connection_id, method, path, query, headers, body, same_body, body_size,
        created_at)
      select t.id, team_id, t.request_id, ${connectionId}, method, path, query, headers, body, body is null, body_size,
        ${new Date(now)}
      from taken join unnest(
        ${Columns.text(column((_, requestId) => requestId))}, ${Columns.text(column((one) => one.id))},
        ${Columns.text(column((one) => one.method))}, ${Columns.text(column((one) => one.path))},
        ${Columns.text(column((one) => one.query))}, ${Columns.text(column((one) => one.headers))},
        ${Columns.bytea(column((one) => one.body))}, ${Columns.int4(column((one) => one.bodySize))}
      ) as t (request_id, id, method, path, query, headers, body, body_size) on t.request_id = taken.request_id
      where kind <> 'dropped'
    ),`
}

const windows = (sql: SqlClient.SqlClient, { connectionId, settled }: Settlement): Fragment => {
  // A key that opens twice in a batch (its window ended within it) is kept with its last window.
  const opened = [
    ...new Map(
      settled.flatMap(({ opens, requestId }) => (opens === null ? [] : [[opens.key, { ...opens, requestId }] as const]))
    ).values()
  ]
  return sql`
    opened as (
      insert into dedupe_keys (connection_id, team_id, key, request_id, expires_at)
      select ${connectionId}, team_id, key, o.request_id, o.expires_at
      from taken join unnest(
        ${Columns.text(opened.map((one) => one.requestId))}, ${Columns.text(opened.map((one) => one.key))},
        ${Columns.timestamptz(opened.map((one) => one.expiresAt))}
      ) as o (request_id, key, expires_at) on o.request_id = taken.request_id
      order by key
      on conflict (connection_id, key) do update
        set team_id = excluded.team_id, request_id = excluded.request_id, expires_at = excluded.expires_at
        where dedupe_keys.expires_at < excluded.expires_at
    ),`
}
