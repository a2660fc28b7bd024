import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { idBound, prefixes } from "@tidegate/model/Ids"
import { day, ensurePartitions, startOfDay } from "../src/retention/Partitions.ts"

/** How much there was on each of the last days, today included. Everything has the same ids each time it is made. */
export interface OldDays {
  readonly now: number
  readonly days: number
  readonly teams: Readonly<Record<string, { readonly payload: number | null; readonly record: number | null }>>
  /** Requests a day and team. */
  readonly perDay: number
  readonly bodyBytes: number
}

const at = (
  prefix: "source" | "destination" | "connection" | "transformation" | "filter" | "action",
  team: string
): string => prefixes[prefix] + team.slice(3).padEnd(26, "0")

export const resourcesOf = (team: string) => ({
  source: at("source", team),
  destination: at("destination", team),
  connection: at("connection", team),
  transformation: at("transformation", team),
  filter: at("filter", team),
  action: at("action", team)
})

/** The time of the n-th request of a day: one a minute, from one o'clock on. */
const timeOf = (now: number, age: number, n: number): number => startOfDay(now) - age * day + 3_600_000 + n * 60_000

/** The part behind the prefix of the ids of the n-th request of a team on a day, and of all that it became. */
export const idOf = ({ now }: OldDays, team: string, age: number, n: number): string =>
  idBound(prefixes.request, timeOf(now, age, n)).slice(4) +
  `${team.slice(3)}${String(n).padStart(6, "0")}`.padEnd(16, "0")

/** Partitions of all those days and of the days around today. */
export const makeDays = Effect.fnUntraced(function* ({ days, now }: Pick<OldDays, "now" | "days">) {
  for (let age = days; age > 0; age -= 5) yield* ensurePartitions(now - age * day)
  yield* ensurePartitions(now)
})

/**
 * Of ten requests of a day one was transformed, one filtered, one passed on to an upstream, one failed; the others were delivered.
 * Nothing waits.
 */
export const makeOldDays = Effect.fnUntraced(function* (options: OldDays) {
  const sql = yield* SqlClient.SqlClient
  const { bodyBytes, days, now, perDay, teams } = options
  yield* makeDays(options)
  for (const [team, { payload, record }] of Object.entries(teams)) {
    const { action, connection, destination, filter, source, transformation } = resourcesOf(team)
    yield* sql`insert into teams (id, name, payload_retention_days, record_retention_days)
      values (${team}, ${team}, ${payload}, ${record})`
    yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
      values (${source}, ${team}, 's', 'WEBHOOK', '{"allowed_http_methods":["POST"]}', now(), now())`
    yield* sql`insert into destinations (id, team_id, name, type, config, created_at, updated_at)
      values (${destination}, ${team}, 'd', 'MOCK_API', '{}', now(), now())`
    yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, created_at, updated_at)
      values (${connection}, ${team}, 'c', ${source}, ${destination}, '[]', now(), now())`
    yield* sql`insert into transformations (id, team_id, name, code, code_hash, created_at, updated_at)
      values (${transformation}, ${team}, 't', '', '', now(), now())`
    yield* sql`insert into filters (id, team_id, name, conditions, hash, created_at, updated_at)
      values (${filter}, ${team}, 'f', '{"path":"/"}', '', now(), now())`
    yield* sql`insert into actions (id, team_id, name, provider_key, action_key, config, version, created_at, updated_at)
      values (${action}, ${team}, 'a', 'http', 'request', '{"auth_mode":"none","schema_version":"1.0.0","inputs":{}}', 1, now(), now())`
    yield* sql`insert into action_versions (action_id, version, team_id, schema_version, inputs, content_hash)
      values (${action}, 1, ${team}, '1.0.0', '{}', '')`
    yield* sql`insert into transformation_versions (transformation_id, code_hash, team_id, code, superseded_at)
      values (${transformation}, 'before', ${team}, '', now())`

    const made: Array<{ readonly id: string; readonly at: string; readonly n: number }> = []
    for (let age = days; age >= 0; age--) {
      for (let n = 0; n < perDay; n++) {
        made.push({ id: idOf(options, team, age, n), at: new Date(timeOf(now, age, n)).toISOString(), n })
      }
    }
    yield* sql`create table made as
      select id, at::timestamptz as at, n from json_to_recordset(${JSON.stringify(made)}::json) as m (id text, at text, n int)`
    yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, presented, body,
        body_size, external_id, events_count, ignored_count, ingested_at, created_at, updated_at)
      select 'req_' || id, ${team}, ${source}, 'accepted', true, 'POST', '/orders', 'n=1',
        '{"content-type":"application/json"}', 'sealed', decode(repeat(md5(id), ${bodyBytes / 16}::int), 'hex'), ${bodyBytes}, 'ext-' || id,
        (n % 10 <> 1)::int, (n % 10 = 1)::int, at, at, at from made`
    yield* sql`insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
      select 'ign_' || id, ${team}, 'req_' || id, ${connection}, ${source}, 'FILTERED', '["body"]', at
      from made where n % 10 = 1`
    yield* sql`insert into events (id, team_id, request_id, connection_id, source_id, destination_id, event_data_id, state,
        failed, trigger, attempts, ingested_at, created_at, updated_at)
      select 'evt_' || id, ${team}, 'req_' || id, ${connection}, ${source}, ${destination},
        case when n % 10 = 0 then 'edt_' || id end, case when n % 10 = 3 then 'FAILED' else 'SUCCESSFUL' end, n % 10 = 3,
        'INITIAL', 1, at, at, at from made where n % 10 <> 1`
    yield* sql`insert into event_feed (id, team_id, event_ids)
      select 'fed_' || id, ${team}, array['evt_' || id] from made where n % 10 <> 1`
    yield* sql`insert into attempts (id, team_id, event_id, request_id, connection_id, source_id, destination_id,
        attempt_number, trigger, status, response_status, body, response_headers, requested_url, http_method, delivered_at,
        responded_at, delivery_latency, response_latency, created_at)
      select 'att_' || id, ${team}, 'evt_' || id, 'req_' || id, ${connection}, ${source}, ${destination}, 1, 'INITIAL',
        case when n % 10 = 3 then 'FAILED' else 'SUCCESSFUL' end, 200, convert_to('received ' || id, 'UTF8'),
        '{"content-type":"text/plain"}', 'https://target.test', 'POST', at, at, 1, 2, at from made where n % 10 <> 1`
    yield* sql`insert into event_data (id, team_id, request_id, connection_id, method, path, query, headers, body, same_body,
        body_size, created_at)
      select 'edt_' || id, ${team}, 'req_' || id, ${connection}, 'POST', '/', '', '{}', 'made', false, 4, at
      from made where n % 10 = 0`
    yield* sql`insert into executions (id, team_id, transformation_id, request_id, connection_id, source_id, event_id,
        event_data_id, code_hash, log_level, failed, logs, duration, memory_bytes, created_at)
      select 'txe_' || id, ${team}, ${transformation}, 'req_' || id, ${connection}, ${source}, 'evt_' || id, 'edt_' || id, '',
        'info', false, '[{"type":"log","message":"seen"}]', 1, 1, at from made where n % 10 = 0`
    yield* sql`insert into proxy_exchanges (id, team_id, source_id, request_id, target_url, http_method, response_status,
        response_body_truncated, started_at, created_at)
      select 'prx_' || id, ${team}, ${source}, 'req_' || id, 'https://up.test', 'POST', 200, false, at, at
      from made where n % 10 = 2`
    yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, outcome, parts, steps_count,
        started_at, finished_at, created_at, updated_at)
      select 'wfr_' || id, ${team}, ${`wfl_${team}`}, 'req_' || id, ${source}, 1, 'succeeded', 'completed', 1, 1, at, at, at, at
      from made where n % 10 = 2`
    yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, outputs, previews, created_at)
      select 'wsp_' || id, ${team}, 'wfr_' || id, 1, '{"run":{},"steps":{},"edges":{}}', 'given', '{}', at from made where n % 10 = 2`
    yield* sql`drop table made`
  }
  yield* sql`analyze`
})

/** Makes a delivered event one that waits, since its day. */
export const makeWaiting = Effect.fnUntraced(function* (options: OldDays, team: string, age: number, n: number) {
  const sql = yield* SqlClient.SqlClient
  const { connection, destination } = resourcesOf(team)
  const id = `evt_${idOf(options, team, age, n)}`
  yield* sql`delete from attempts where event_id = ${id}`
  yield* sql`update events set state = 'PENDING', failed = false, attempts = 0, due_at = created_at where id = ${id}`
  yield* sql`insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
    values (${id}, ${team}, 1, ${destination}, ${connection}, now())`
  return id
})

/** A request whose slow rules have not been worked off. */
export const makeRoutingJob = Effect.fnUntraced(function* (options: OldDays, team: string, age: number, n: number) {
  const sql = yield* SqlClient.SqlClient
  const { connection, source } = resourcesOf(team)
  const id = `req_${idOf(options, team, age, n)}`
  yield* sql`insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at)
    values (1, ${connection}, ${id}, ${team}, ${source}, now())`
  return id
})
