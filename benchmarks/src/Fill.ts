/** Makes the records of one day inside the server: as many as a gateway would take hours to receive. */
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"

/** The resources of the records. The first connection is paused, and has waiting events. */
export interface Ends {
  readonly team: string
  readonly sources: ReadonlyArray<string>
  readonly destinations: ReadonlyArray<string>
  readonly connections: ReadonlyArray<string>
}

/** The bulk operation that made the retries below. */
export const operation = "bch_00000000000000000000000000"

/** This many of the oldest requests are retries, and this many of the newer events retry older ones, all by that operation. */
const retries = 50
const retried = { from: 5_000, to: 5_050, before: 2_900 }

/** Waiting events. */
const waiting = 2_000

const idFunction = `create or replace function bench_id(ms bigint, n bigint) returns text immutable language sql return
  ${Array.from({ length: 10 }, (_, i) => `substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> ${5 * (9 - i)}) & 31)::int + 1, 1)`).join(" || ")}
  || lpad(n::text, 16, '0')`

/**
 * The records of the last day: of a hundred requests one is rejected and one is filtered. Each of the others has one event, and
 * three of these have failed.
 */
const made = (ends: Ends, rows: number, now: number): string => {
  const oneOf = (ids: ReadonlyArray<string>, nth: string) =>
    `(array[${ids.map((id) => `'${id}'`).join(",")}])[1 + ${nth}]`
  const { connections, destinations, sources } = ends
  const open = connections.length - 1
  return `create unlogged table bench_made as
    select n, bench_id(ms, n) as id, to_timestamp(ms / 1000.0) as at, ${oneOf(sources, `n % ${sources.length}`)} as source,
      ${oneOf(destinations, `n % ${destinations.length}`)} as destination,
      ${oneOf(connections, `case when n < ${waiting} then 0 else 1 + n % ${open} end`)} as connection,
      case when n < ${waiting} then 'PENDING' when n % 100 = 0 then 'rejected' when n % 100 = 1 then 'ignored'
        when n % 100 < 5 then 'FAILED' else 'SUCCESSFUL' end as outcome
    from (select n, ${now - 86_000_000}::bigint + n * 85900000 / ${rows} as ms from generate_series(0, ${rows - 1}::bigint) n) t`
}

const requests = (team: string): string =>
  `insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size, external_id,
    events_count, ignored_count, retry_kind, ingested_at, created_at, updated_at)
  select 'req_' || id, '${team}', source, case outcome when 'rejected' then 'rejected' else 'accepted' end, n % 2 = 0, 'POST',
    '/', '', '{}', '{}', 2, 'ext-' || n, 1, 0,
    case when n < ${retries} then 'single' end, at, at, at from bench_made`

const events = (team: string): string => {
  const isRetry = `n >= ${retried.from} and n < ${retried.to}`
  return `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed, trigger, attempts, due_at,
    retry_parent_event_id, retry_operation_id, ingested_at, created_at, updated_at)
  select 'evt_' || id, '${team}', 'req_' || id, connection, source, destination, outcome, outcome = 'FAILED', 'INITIAL', 1,
    case outcome when 'PENDING' then at end,
    case when ${isRetry} then (select 'evt_' || o.id from bench_made o where o.n = bench_made.n - ${retried.before}) end,
    case when ${isRetry} then '${operation}' end, at, at, at
  from bench_made where outcome not in ('rejected', 'ignored')`
}

const ignored = (team: string): string =>
  `insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
  select 'ign_' || id, '${team}', 'req_' || id, connection, source, 'FILTERED', '[]', at from bench_made where outcome = 'ignored'`

const deliveries = `insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
  select id, team_id, 1, destination_id, connection_id, created_at from events where state = 'PENDING'`

/** The quarters of an hour of all counts. */
const quarters = `insert into rollups (key_id, measure, minute, slot, team_id, count)
  select key_id, measure || '/quarter', date_bin('15 minutes', minute, 'epoch'), slot, team_id, sum(count) from rollups group by 1, 2, 3, 4, 5`

/** The counts as they are after the gateway has added up all batches. */
const rollups = (team: string): string => {
  const under = (kind: string, measures: string, keys: string) => `
    select k.key, m.measure, c.minute, sum(c.n) from counted_once c
      cross join lateral (values ${measures}) as m (measure) cross join lateral (values ${keys}) as k (key)
    where ${kind} and m.measure is not null group by 1, 2, 3`
  const isEvent = "outcome not in ('rejected', 'ignored')"
  const ended = "nullif(lower(outcome), 'pending')"
  return `with counted_once as (
      select source, destination, connection, outcome, date_trunc('minute', at) as minute, count(*) as n
      from bench_made group by 1, 2, 3, 4, 5
    )
    insert into rollups (key_id, measure, minute, slot, team_id, count)
    select key, measure, minute, 0, '${team}', n from (
      ${under("true", "(case outcome when 'rejected' then 'rejected' else 'accepted' end)", `(source), ('${team}')`)}
      union all ${under("outcome = 'ignored'", "('ignored')", `(connection), (source), ('${team}')`)}
      union all ${under(isEvent, `('created'), (${ended})`, `(connection), (source), (destination), (source || '>' || destination), ('${team}')`)}
      union all ${under(isEvent, `('attempt_' || ${ended})`, `(destination), ('${team}')`)}
    ) r (key, measure, minute, n)`
}

const filled = ["requests", "events", "ignored_events"] as const

/**
 * The indexes that are not constraints. They are dropped and built again at the end, because building an index once is much
 * faster than adding each row to it.
 */
const indexes = `select c.relname, replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON '), i.indrelid::regclass::text
  from pg_index i join pg_class c on c.oid = i.indexrelid
  where i.indrelid in (${filled.map((table) => `'${table}'::regclass`).join(", ")}) and c.relkind = 'I'
    and not exists (select from pg_constraint where conindid = i.indexrelid)`

const settings = ["synchronous_commit = off", "maintenance_work_mem = '256MB'", "work_mem = '128MB'"]

/** Makes this number of requests with their events, on two connections at the same time. */
export const fill = Effect.fnUntraced(function* (
  first: PgConnection.PgConnection,
  second: PgConnection.PgConnection,
  ends: Ends,
  rows: number,
  now: number
) {
  const run = (connection: PgConnection.PgConnection, ...statements: ReadonlyArray<string>) =>
    Effect.forEach(statements, (statement) => connection.query(statement, [], false), { discard: true })
  const both = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) =>
    Effect.all([run(first, ...one), run(second, ...other)], { concurrency: 2, discard: true })

  for (const setting of settings) yield* both([`set ${setting}`], [`set ${setting}`])
  // Otherwise the server stops for a checkpoint after each gigabyte.
  yield* run(first, "alter system set max_wal_size = '16GB'", "select pg_reload_conf()")
  const found = yield* first.queryValues(indexes)
  const built = (ofRequests: boolean) =>
    found.flatMap(([, definition, table]) => ((table === "requests") === ofRequests ? [String(definition)] : []))
  yield* run(first, idFunction, made(ends, rows, now), ...found.map(([name]) => `drop index ${String(name)}`))
  yield* both(
    [requests(ends.team), ...built(true), "vacuum analyze requests"],
    [
      events(ends.team),
      ignored(ends.team),
      ...built(false),
      deliveries,
      "vacuum analyze events, ignored_events, deliveries"
    ]
  )
  yield* run(first, rollups(ends.team), quarters, "vacuum analyze rollups", "drop table bench_made")
  yield* run(
    first,
    "alter system reset max_wal_size",
    "select pg_reload_conf()",
    ...settings.map((one) => `reset ${one.split(" ")[0]}`)
  )
})
