import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type History, makeHistory } from "../../storage/test/reads/History.ts"
import { newId, type Prefix, prefixes } from "@tidegate/model/Ids"
import { layer as server, teams } from "./ControlServer.ts"

/** Two teams with some of everything that a list shows; their rows differ in all that lists are narrowed to. */

export interface World extends History {
  readonly transformation: string
  /** A workflow that has run for each request of the history that was accepted. */
  readonly workflow: string
  /** A request that became more than a page of events and of ignored events. */
  readonly request: string
  readonly fixture: string
  /** A provider source that has been polled. */
  readonly itemSource: string
  /** A bulk operation that made requests and events. */
  readonly operation: string
  /** A moment that half of the requests are older than. */
  readonly middle: string
}

const delivery = {
  provider_account_id: null,
  schedule: { interval_minutes: 5 },
  auto_fallback: true,
  max_failures: 3,
  restore_after_minutes: 30
}

/** Copies of a row, each with an id of its own of the time of `at`, and with other members where that is said. */
const copies = Effect.fnUntraced(function* (
  table: string,
  of: string,
  prefix: Prefix,
  at: number,
  changes: ReadonlyArray<object>
) {
  const sql = yield* SqlClient.SqlClient
  for (const change of changes) {
    yield* sql.unsafe(
      `insert into ${table} select (jsonb_populate_record(t, $1::jsonb)).* from ${table} t where id = $2`,
      [JSON.stringify({ ...change, id: newId(prefix, at) }), of]
    )
  }
})

const make = Effect.fnUntraced(function* (
  team: string,
  to: number
): Effect.fn.Return<World, unknown, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const from = to - 7_200_000
  const history = yield* makeHistory({ team, requests: 60, from, to })
  const [source, other] = history.sources
  yield* sql`update sources set type = 'STRIPE', name = 'a source', updated_at = now() + interval '1 minute' where id = ${source!}`
  yield* sql`update sources set disabled_at = now() where id = ${other!}`
  yield* sql`update destinations set disabled_at = now(), type = 'MOCK_API' where id = ${history.destinations[0]!}`
  yield* sql`update connections set paused_at = now() where id = ${history.connections[1]!}`
  yield* sql`update connections set disabled_at = now() where id = ${history.connections[2]!}`

  const [oldest] = yield* sql<{ id: string; at: Date }>`
    select request_id as id, created_at as at from events where team_id = ${team} and state = 'SUCCESSFUL' order by id limit 1`
  const request = oldest!.id
  const made = oldest!.at.getTime()
  const row = `evt_${request.slice(4)}`
  yield* copies(
    "events",
    row,
    prefixes.event,
    made,
    history.connections.slice(3, 9).map((connection_id, place) => ({
      connection_id,
      source_id: history.sources[place % 2 === 0 ? 0 : 3],
      destination_id: history.destinations[place % 3],
      state: place === 1 ? "FAILED" : "SUCCESSFUL",
      failed: place === 1
    }))
  )
  // As if their connections had led from there to there.
  yield* sql`insert into connection_links (connection_id, source_id, destination_id, team_id)
    select distinct connection_id, source_id, destination_id, team_id from events where team_id = ${team} on conflict do nothing`
  const [ignored] = yield* sql<{ id: string }>`select id from ignored_events where team_id = ${team} limit 1`
  yield* copies(
    "ignored_events",
    ignored!.id,
    prefixes.ignoredEvent,
    made,
    history.connections.slice(9, 16).map((connection_id, place) => ({
      connection_id,
      request_id: request,
      cause: place % 2 === 0 ? "FILTERED" : "DEDUPLICATED"
    }))
  )
  yield* copies("ignored_events", ignored!.id, prefixes.ignoredEvent, to - 60_000, [
    { cause: "DEDUPLICATED", source_id: history.sources[4] }
  ])

  const action =
    '{"auth_mode":"none","schema_version":"1.0.0","inputs":{},"rate_limit":null,"rate_limit_period":"second"}'
  const transformation = newId(prefixes.transformation, from)
  const codes = [transformation, ...Array.from({ length: 5 }, () => newId(prefixes.transformation, from))]
  for (const [place, id] of codes.entries()) {
    yield* sql`insert into transformations (id, team_id, name, code, code_hash, created_at, updated_at)
      values (${id}, ${team}, ${`t${6 - place}`}, '', '', now(), now())`
  }
  const places = [0, 1, 2, 3, 4, 5]
  const workflows = places.map(() => newId(prefixes.workflow, from))
  for (const [place, status] of ["active", "paused", "draft", "active", "paused", "draft"].entries()) {
    yield* sql`insert into workflows (id, team_id, name, source_id, status, version, steps, edges, definition_hash, created_at, updated_at)
      values (${workflows[place]!}, ${team}, ${`flow ${6 - place}`}, ${history.sources[place % 3]!}, ${status}, 1, '[]', '[]', '', now(), now())`
  }
  yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, outcome, error_code, error_step_id,
      label, steps_count, started_at, created_at, updated_at)
    select 'wfr_' || right(id, 26), team_id, ${workflows[0]!}, id, source_id, 1,
      case when place % 3 = 0 then 'failed' else 'succeeded' end, case place % 3 when 0 then 'failed' when 1 then 'completed' else 'filtered' end,
      case when place % 6 = 0 then 'TIMEOUT' when place % 6 = 3 then 'BAD_RESPONSE' end, case when place % 3 = 0 then 'step_' || place % 2 end,
      case place % 2 when 0 then 'even ' else 'odd ' end || place, 0, created_at, created_at, created_at
    from (select *, row_number() over (order by id) as place from requests where team_id = ${team} and status = 'accepted') r`
  yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, previews, created_at)
    select ${prefixes.workflowPart} || right(id, 26), team_id, id, 1, '{}', '{"0":{"output":{"preview":"of ' || upper(request_id) || '"}}}', created_at
    from workflow_runs where team_id = ${team}`
  for (const place of places) {
    yield* sql`insert into actions (id, team_id, name, provider_key, action_key, config, version, disabled_at, created_at, updated_at)
      values (${newId(prefixes.action, from)}, ${team}, ${`a${6 - place}`}, 'http', 'request', ${action}::json, 1,
        ${place === 1 ? new Date(from) : null}::timestamptz, now(), now())`
    yield* sql`insert into filters (id, team_id, name, conditions, hash, created_at, updated_at)
      values (${newId(prefixes.filter, from)}, ${team}, ${`f${6 - place}`}, '{"path":"/"}', '', now(), now())`
  }
  yield* sql`insert into executions (id, team_id, transformation_id, request_id, connection_id, source_id, event_id, code_hash,
      log_level, failed, logs, duration, memory_bytes, created_at)
    select 'txe_' || right(id, 26), team_id, ${transformation}, request_id, connection_id, source_id, id, '',
      case when state = 'FAILED' then 'error' else 'info' end, state = 'FAILED', '[]', 1, 1, created_at
    from events where team_id = ${team} and id like 'evt_%' and destination_id = ${history.destinations[2]!}`

  for (const place of [0, 1, 2, 3, 4, 5, 6, 7]) {
    // Two of them were seen at the same time.
    const seen = new Date(from + Math.floor(place / 2))
    yield* sql`insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at)
      values (${newId(prefixes.channelAlert, from)}, ${team}, ${history.sources[place % 4]!}, ${place < 4 ? "channel_stop_failed" : "channel_renewal_failed"},
        ${place % 4 === 3 ? "resolved" : "active"}, '', 1, ${seen}, ${seen})`
  }

  const operations = (yield* Effect.forEach(
    ["request_bulk_retry", "event_bulk_retry", "ignored_event_bulk_retry", "workflow_run_bulk_retry"] as const,
    (type) =>
      Effect.forEach(places, (place) => {
        const id = newId(prefixes.bulkOperation, from + place)
        return Effect.as(
          sql`insert into bulk_operations (id, team_id, type, filter, shard, created_at, finished_at) values (${id}, ${team}, ${type},
          ${JSON.stringify({ from: new Date(from).toISOString(), to: new Date(to).toISOString() })}::jsonb, 0, now(),
          ${place === 0 ? new Date(to) : null}::timestamptz)`,
          id
        )
      })
  )).flat()
  const operation = operations[0]!
  const [parent, retried, single] = (yield* sql<{ id: string }>`
    select right(id, 26) as id from requests where team_id = ${team} and status = 'accepted' order by id desc limit 3`).map(
    ({ id }) => id
  )
  yield* sql`update requests set retry_kind = 'bulk', retry_operation_id = ${operation}, retry_parent_request_id = ${`req_${parent}`}
    where id = ${`req_${retried}`}`
  yield* sql`update requests set retry_kind = 'single', retry_parent_request_id = ${`req_${parent}`} where id = ${`req_${single}`}`
  yield* sql`update events set retry_kind = 'bulk', retry_operation_id = ${operation}, retry_parent_event_id = ${`evt_${parent}`}
    where id = ${`evt_${retried}`}`
  yield* sql`update events set resolved_at = now(), resolved_by_event_id = ${`evt_${retried}`}
    where team_id = ${team} and failed and id in (select id from events where failed order by id desc limit 3)`

  const fixtures = Array.from({ length: 6 }, () => newId(prefixes.fixture, from))
  for (const [place, id] of fixtures.entries()) {
    const of = place === 0 ? history.sources[4]! : history.sources[2]!
    yield* sql`insert into request_fixtures (id, team_id, name, source_id, original_request_id, method, path, query, headers, presented,
        body, verified, created_at, updated_at)
      select ${id}, ${team}, ${`fixture ${place}`}, ${of}, id, method, path, query, headers, presented, body, verified, now(), now()
      from requests where id = ${request}`
  }
  yield* sql`insert into request_shares (id, team_id, request_id, token_hash, expires_at, revoked_at, forgotten_at, created_at, updated_at)
    select 'shr_' || substr(md5(id), 1, 24), team_id, id, id, now() + interval '1 day',
      case when row_number() over (order by id) % 4 = 0 then now() end, now() + interval '8 days', created_at, created_at
    from (select * from requests where team_id = ${team} order by id limit 14) r`
  yield* sql`insert into issues (id, team_id, destination_id, error_code, status, count, event_ids, first_seen_at, last_seen_at, opened_at,
      expires_at)
    select 'iss_' || substr(d.id, 5), d.team_id, d.id, 'TIMEOUT', case when row_number() over (order by d.id) % 3 = 0 then 'resolved' else 'open' end,
      1, '{}', now(), now() - row_number() over (order by d.id) * interval '1 second', now(), now() + interval '1 day'
    from destinations d where d.team_id = ${team}`
  const items = ["items", "more items"].map((name) => [newId(prefixes.source, from), name] as const)
  const provider = { provider_key: "websub", definition_key: "entry.added", inputs: { url: "https://blog.test/feed" } }
  for (const [id, name] of items) {
    yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
      select ${id}, team_id, ${name}, 'PROVIDER',
        jsonb_set(config::jsonb, '{provider}', ${JSON.stringify({ ...provider, ...delivery })}::jsonb)::json, now(), now()
      from sources where id = ${source!}`
  }
  const itemSource = items[0]![0]
  yield* sql`insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at)
    values (${newId(prefixes.channelAlert, from)}, ${team}, ${itemSource}, 'channel_provision_failed', 'active', 'no', 1, now(), now())`
  for (let place = 0; place < 12; place++) {
    yield* sql`insert into source_runs (id, team_id, source_id, status, reason, items_found, items_new, scheduled_at, expires_at)
      values (${newId(prefixes.sourceRun, from + place)}, ${team}, ${itemSource}, ${place % 3 === 0 ? "failed" : "succeeded"},
        'schedule', 10, ${place % 2}, now(), now() + interval '1 day')`
  }
  yield* sql`insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, created_at, updated_at)
    select 'pac_' || substr(id, 5), team_id, 'git_host', id, 'api_key', 'https://api.example.com', created_at, created_at
    from (select * from requests where team_id = ${team} order by id limit 14) r`
  return {
    ...history,
    itemSource,
    transformation,
    workflow: workflows[0]!,
    request,
    fixture: fixtures[0]!,
    operation,
    middle: new Date((from + to) / 2).toISOString()
  }
})

export class Worlds extends Context.Service<Worlds, { readonly a: World; readonly b: World }>()(
  "@tidegate/api/test/Worlds"
) {
  static readonly layer = Layer.effect(
    Worlds,
    Effect.gen(function* () {
      const to = Date.now()
      return { a: yield* make(teams.a.id, to), b: yield* make(teams.b.id, to) }
    })
  ).pipe(Layer.provideMerge(server), Layer.orDie)
}
