import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { writeCounts } from "../../src/journal/CountStatement.ts"

/** What a made-up history holds, and when. */
export interface HistoryOptions {
  readonly team: string
  readonly requests: number
  /** Unix milliseconds; the requests are spread evenly over the window. */
  readonly from: number
  readonly to: number
}

export interface History {
  readonly sources: ReadonlyArray<string>
  readonly destinations: ReadonlyArray<string>
  /** `connections[i]` leads from `sources[i % sources]` to `destinations[i % destinations]`. */
  readonly connections: ReadonlyArray<string>
}

/** An id of the n-th record at a time, as SQL: the same n gives the same entropy, so an event's id tells its request's. */
const idFunction = `create or replace function history_id(salt text, ms bigint, n bigint) returns text immutable
  language sql return (
    select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> (5 * i)) & 31)::int + 1, 1), '' order by i desc)
    from generate_series(0, 9) i
  ) || substr(md5(salt || n), 1, 16)`

const sourceConfig = JSON.stringify({
  auth_type: null,
  allowed_http_methods: ["POST"],
  custom_response: null,
  mode: "webhook",
  proxy: null,
  chat_defer_ephemeral: false,
  rate_limit: null,
  rate_limit_period: null
})

const destinationConfig = JSON.stringify({
  url: "https://example.com/hooks",
  http_method: null,
  path_forwarding_disabled: false,
  rate_limit: null,
  rate_limit_period: "second",
  auth_type: null
})

/** What the gateway would have counted of it. */
const counts = `(
  select key_id, source_id, destination_id, measure, date_trunc('minute', at) as minute, team_id, count(*) as n
  from history cross join lateral (values
    (source, null, null, case outcome when 'rejected' then 'rejected' else 'accepted' end),
    (connection, source, null, case outcome when 'ignored' then 'ignored' end),
    (connection, source, destination, case when outcome not in ('rejected', 'ignored') then 'created' end),
    (connection, source, destination, case when outcome in ('SUCCESSFUL', 'FAILED', 'CANCELLED') then lower(outcome) end),
    (destination, null, null, case when outcome in ('SUCCESSFUL', 'FAILED') then 'attempt_' || lower(outcome) end)
  ) as c (key_id, source_id, destination_id, measure)
  where measure is not null group by 1, 2, 3, 4, 5, 6
) as c`

/**
 * Fills the tables with `requests` requests. Of a hundred: one is rejected, one ignored (filtered), the others are one event
 * each with an attempt; of these three failed, one waits. Of a thousand, one event was retried. Everything is spread
 * over five sources, ten destinations, twenty connections.
 */
export const makeHistory = Effect.fnUntraced(function* (
  options: HistoryOptions
): Effect.fn.Return<History, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { from, requests, team, to } = options
  const ids = (prefix: (typeof prefixes)[keyof typeof prefixes], count: number) =>
    Array.from({ length: count }, () => newId(prefix, from))
  const history = {
    sources: ids(prefixes.source, 5),
    destinations: ids(prefixes.destination, 10),
    connections: ids(prefixes.connection, 20)
  }
  const { connections, destinations, sources } = history

  yield* sql.unsafe(idFunction)
  yield* sql`insert into teams (id, name) values (${team}, ${team}) on conflict do nothing`
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    select id, ${team}, id, 'WEBHOOK', ${sourceConfig}, now(), now() from unnest(${[...sources]}::text[]) id`
  yield* sql`insert into destinations (id, team_id, name, type, config, created_at, updated_at)
    select id, ${team}, id, 'HTTP', ${destinationConfig}, now(), now() from unnest(${[...destinations]}::text[]) id`
  yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, created_at, updated_at)
    select id, ${team}, id, (${[...sources]}::text[])[1 + (n - 1) % 5], (${[...destinations]}::text[])[1 + (n - 1) % 10], '[]',
      now(), now()
    from unnest(${[...connections]}::text[]) with ordinality as c (id, n)`

  yield* sql`create unlogged table history as
    select n, ${team}::text as team_id, ${from}::bigint + n * ${to - from}::bigint / ${requests}::bigint as ms,
      history_id(${team}, ${from}::bigint + n * ${to - from}::bigint / ${requests}::bigint, n) as id,
      to_timestamp((${from}::bigint + n * ${to - from}::bigint / ${requests}::bigint) / 1000.0) as at,
      (${[...sources]}::text[])[1 + n % 5] as source, (${[...destinations]}::text[])[1 + n % 10] as destination,
      (${[...connections]}::text[])[1 + n % 20] as connection,
      case n % 100 when 0 then 'rejected' when 1 then 'ignored' when 2 then 'FAILED' when 3 then 'FAILED'
        when 4 then 'CANCELLED' when 5 then 'PENDING' else 'SUCCESSFUL' end as outcome
    from generate_series(0, ${requests - 1}::int) n`
  yield* sql`insert into requests (id, team_id, source_id, status, verified, rejection_cause, method, path, query, headers,
      body, body_size, external_id, events_count, ignored_count, ingested_at, created_at, updated_at)
    select 'req_' || id, ${team}, source, case outcome when 'rejected' then 'rejected' else 'accepted' end, n % 2 = 0,
      case outcome when 'rejected' then 'SOURCE_AUTH_FAILED' end, 'POST', '/orders', 'n=' || n,
      '{"content-type":"application/json"}', convert_to('{"n":' || n || '}', 'UTF8'), 10, 'ext-' || n,
      (outcome not in ('rejected', 'ignored'))::int, (outcome = 'ignored')::int, at, at, at
    from history`
  yield* sql`insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
    select 'ign_' || id, ${team}, 'req_' || id, connection, source, 'FILTERED', '["body"]', at
    from history where outcome = 'ignored'`
  yield* sql`insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed, trigger,
      attempts, due_at, response_status, error_code, last_attempt_at, successful_at, ingested_at, created_at, updated_at)
    select 'evt_' || id, ${team}, 'req_' || id, connection, source, destination, outcome,
      outcome in ('FAILED', 'CANCELLED'), 'INITIAL', (outcome in ('FAILED', 'SUCCESSFUL'))::int,
      case outcome when 'PENDING' then at end, case outcome when 'SUCCESSFUL' then 200 when 'FAILED' then 500 end,
      case outcome when 'FAILED' then 'BAD_RESPONSE' when 'CANCELLED' then 'CANCELLED' end,
      case when outcome in ('FAILED', 'SUCCESSFUL') then at end, case outcome when 'SUCCESSFUL' then at end, at, at, at
    from history where outcome not in ('rejected', 'ignored')`
  yield* sql`insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
    select 'evt_' || id, ${team}, 1, destination, connection, at from history where outcome = 'PENDING'`
  yield* sql`insert into attempts (id, team_id, event_id, request_id, connection_id, source_id, destination_id,
      attempt_number, trigger, status, response_status, error_code, body, response_headers, requested_url, http_method,
      successful_at, delivered_at, responded_at, delivery_latency, response_latency, created_at)
    select 'att_' || id, ${team}, 'evt_' || id, 'req_' || id, connection, source, destination, 1, 'INITIAL', outcome,
      case outcome when 'SUCCESSFUL' then 200 else 500 end, case outcome when 'FAILED' then 'BAD_RESPONSE' end,
      convert_to('answer ' || n, 'UTF8'), '{"content-type":"text/plain"}', 'https://example.com/hooks', 'POST',
      case outcome when 'SUCCESSFUL' then at end, at, at, 1, 2, at
    from history where outcome in ('FAILED', 'SUCCESSFUL')`
  yield* sql.unsafe(writeCounts(counts))
  yield* sql`drop table history`
  yield* sql`analyze`
  return history
})
