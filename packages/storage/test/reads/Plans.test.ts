import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { freshDatabase } from "../../../../test/postgres.ts"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import * as Database from "../../src/Database.ts"
import { migrate } from "../../src/Migrations.ts"
import * as AttemptReads from "../../src/reads/AttemptReads.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import * as ExecutionReads from "../../src/reads/ExecutionReads.ts"
import * as RequestReads from "../../src/reads/RequestReads.ts"
import * as RunDetail from "../../src/reads/RunDetail.ts"
import * as RunReads from "../../src/reads/RunReads.ts"
import * as TraceReads from "../../src/reads/TraceReads.ts"
import { explained } from "./Explained.ts"
import { anyAttempt, anyEvent, anyRequest, firstPage as page } from "./Filters.ts"
import { type History, makeHistory } from "./History.ts"

/*
 * Every list, along every filter, on a team with a long history beside another team's: no plan may read a table of records
 * through, and a page that finds something looks at a bounded number of rows, however many there are. One that finds nothing has looked through its
 * window, along an index.
 */

const team = "tm_plans"
const requests = Number(process.env["TIDEGATE_PLAN_ROWS"] ?? 60_000)

const transformation = "trs_plans"

/** Makes every event of the history's one that a transformation made something of, and each tenth of them warned. */
const transformHistory = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into transformations (id, team_id, name, code, code_hash, created_at, updated_at)
    select id, ${team}, id, '', '', now(), now() from unnest(array[${transformation}, 'trs_other']) id`
  yield* sql`insert into executions (id, team_id, transformation_id, request_id, connection_id, source_id, event_id,
      event_data_id, code_hash, log_level, failed, logs, duration, memory_bytes, created_at)
    select 'txe_' || substr(id, 5), team_id, case when id like '%0' then 'trs_other' else ${transformation} end, request_id,
      connection_id, source_id, id, 'edt_' || substr(id, 5), '', case when id like '%1' then 'warn' else 'info' end, false,
      '[]', 1, 1, created_at
    from events where retry_parent_event_id is null`
  yield* sql`insert into event_data (id, team_id, request_id, connection_id, method, path, query, headers, body, same_body,
      body_size, created_at)
    select 'edt_' || substr(id, 5), team_id, request_id, connection_id, 'POST', '/', '', '{}', null, true, 10, created_at
    from events where retry_parent_event_id is null`
  yield* sql`update events set event_data_id = 'edt_' || substr(id, 5) where connection_id in (
    select id from connections where team_id = ${team} order by id limit 5)`
  for (const table of ["executions", "event_data", "events"]) yield* sql.unsafe(`analyze ${table}`)
})

const workflow = "wfl_plans"

/** Makes a run of every request, each tenth of them another workflow's, each hundredth failed, with what was written of its one step. */
const runHistory = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into workflows (id, team_id, name, status, version, steps, edges, definition_hash, created_at, updated_at)
    select id, ${team}, id, 'active', 1, '[]', '[]', '', now(), now() from unnest(array[${workflow}, 'wfl_others']) id`
  yield* sql`insert into workflow_versions (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, created_at)
    select id, 1, team_id, name, status, '', 1, steps, edges, created_at from workflows`
  yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, parts, steps_count,
      created_at, updated_at)
    select ${prefixes.workflowRun} || substr(id, 5), team_id, case when id like '%0' then 'wfl_others' else ${workflow} end, id, source_id, 1,
      case when id like '%1a' then 'failed' else 'succeeded' end, 1, 1, ingested_at, ingested_at
    from requests`
  yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, created_at)
    select ${prefixes.workflowPart} || substr(id, 5), team_id, id, 1, '{"run":{},"steps":{},"edges":{}}', created_at from workflow_runs`
  for (const table of ["workflows", "workflow_versions", "workflow_runs", "workflow_steps"]) {
    yield* sql.unsafe(`analyze ${table}`)
  }
})

const crowded = "tm_crowded"
const flows = 250

/** A team of very many workflows, each with as many runs: newer ones than those of the other teams. */
const crowdedHistory = Effect.fnUntraced(function* (to: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into teams (id, name) values (${crowded}, ${crowded})`
  yield* sql`insert into workflows (id, team_id, name, status, version, steps, edges, definition_hash, created_at, updated_at)
    select 'wfl_crowd' || n, ${crowded}, 'Flow No. ' || n, case when n % 10 = 0 then 'paused' else 'active' end, 1, jsonb_build_array(
        jsonb_build_object('id', 'step', 'name', 'Step', 'resource_id', null, 'note', (select string_agg(md5(n || ' ' || i), '') from generate_series(1, 200) i))),
      '[]', '', now(), now() from generate_series(1, ${flows}::int) n`
  yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, parts, steps_count, created_at, updated_at)
    select ${prefixes.workflowRun} || id, ${crowded}, 'wfl_crowd' || 1 + n % ${flows}::int, ${prefixes.request} || id, 'src_x', 1, 'succeeded', 0, 1, at, at
    from (select n, history_id('crowd', ms, n) as id, to_timestamp(ms / 1000.0) as at from (
      select n, ${to}::bigint - n * 20 as ms from generate_series(1, ${(5 * requests) / 3}::int) n) r) r`
  yield* sql`analyze workflows, workflow_runs`
})

class Filled extends Context.Service<Filled, History>()("@tidegate/storage/test/Filled") {
  static readonly layer = Layer.effect(
    Filled,
    Effect.gen(function* () {
      yield* migrate
      const to = Date.now()
      yield* makeHistory({ team: "tm_other", requests: requests / 10, from: to - 20 * 3_600_000, to })
      const history = yield* makeHistory({ team, requests, from: to - 20 * 3_600_000, to })
      yield* transformHistory
      yield* runHistory
      yield* crowdedHistory(to)
      return history
    })
  ).pipe(Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url })))))
}

const plain = { data: false }
const whole = { data: true, eventSummary: true }

type Read = Effect.Effect<{ readonly count: number } | object, GatewayError | SqlError.SqlError, SqlClient.SqlClient>

const someRequest = Effect.gen(function* () {
  const { models } = yield* RequestReads.list(team, { ...anyRequest, status: "accepted" }, page, {
    data: false,
    eventSummary: false
  })
  return models[50]!.id
})

const someExecution = Effect.gen(function* () {
  const { models } = yield* ExecutionReads.list(team, transformation, { logLevels: [] }, page)
  return models[50]!.id
})

const anyRun = { statuses: [], sources: [], search: undefined }

const someRun = Effect.map(RunReads.list(team, workflow, [], page), ({ models }) => models[50]!.id)

/** Its statements on the connections of all others, where they are looked at. */
const runDetail = (id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.provideService(RunDetail.get(team, workflow, id, true), Database.HotSql, sql)
  )

/** `least`: a page at least that full; `most`: rows looked at in all. */
const cases: ReadonlyArray<readonly [name: string, read: (history: History) => Read, least: number, most: number]> = [
  ["events", () => EventReads.list(team, anyEvent, page, plain), 100, 500],
  ["events with data", () => EventReads.list(team, anyEvent, page, { data: true }), 100, 800],
  [
    "events of a source",
    ({ sources }) => EventReads.list(team, { ...anyEvent, sources: [sources[0]!] }, page, plain),
    100,
    700
  ],
  [
    "events of a connection",
    ({ connections }) => EventReads.list(team, { ...anyEvent, connections: [connections[7]!] }, page, plain),
    100,
    500
  ],
  [
    "events of ten connections",
    ({ connections }) => EventReads.list(team, { ...anyEvent, connections: connections.slice(0, 10) }, page, plain),
    100,
    2_500
  ],
  [
    "events of a destination",
    ({ destinations }) => EventReads.list(team, { ...anyEvent, destinations: [destinations[3]!] }, page, plain),
    100,
    500
  ],
  [
    "events of a source to a destination",
    ({ destinations, sources }) =>
      EventReads.list(team, { ...anyEvent, destinations: [destinations[3]!], sources: [sources[3]!] }, page, plain),
    100,
    500
  ],
  ["successful events", () => EventReads.list(team, { ...anyEvent, statuses: ["SUCCESSFUL"] }, page, plain), 100, 600],
  ["failed events", () => EventReads.list(team, { ...anyEvent, statuses: ["FAILED"] }, page, plain), 100, 3_000],
  [
    "failed events of a destination",
    ({ destinations }) =>
      EventReads.list(team, { ...anyEvent, statuses: ["FAILED"], destinations: [destinations[2]!] }, page, plain),
    100,
    5_000
  ],
  [
    "failed or cancelled events",
    () => EventReads.list(team, { ...anyEvent, statuses: ["FAILED", "CANCELLED"] }, page, plain),
    100,
    25_000
  ],
  ["queued events", () => EventReads.list(team, { ...anyEvent, statuses: ["QUEUED"] }, page, plain), 100, 25_000],
  [
    "held events, of which there are none",
    () => EventReads.list(team, { ...anyEvent, statuses: ["HOLD"] }, page, plain),
    0,
    25_000
  ],
  [
    "queued events of a connection",
    ({ connections }) =>
      EventReads.list(team, { ...anyEvent, statuses: ["QUEUED"], connections: [connections[5]!] }, page, plain),
    100,
    25_000
  ],
  [
    "events of a bulk operation that made none",
    () => EventReads.list(team, { ...anyEvent, operation: "bch_none" }, page, plain),
    0,
    10
  ],
  [
    "events by a request's external id",
    () => EventReads.list(team, { ...anyEvent, search: "ext-4242" }, page, plain),
    1,
    600
  ],
  [
    "events by an id's beginning",
    () => EventReads.list(team, { ...anyEvent, search: prefixes.event }, page, plain),
    100,
    500
  ],
  ["requests", () => RequestReads.list(team, anyRequest, page, whole), 100, 2_000],
  [
    "requests of a source",
    ({ sources }) => RequestReads.list(team, { ...anyRequest, sources: [sources[0]!] }, page, whole),
    100,
    2_000
  ],
  [
    "requests of all sources",
    ({ sources }) => RequestReads.list(team, { ...anyRequest, sources }, page, whole),
    100,
    2_500
  ],
  ["accepted requests", () => RequestReads.list(team, { ...anyRequest, status: "accepted" }, page, whole), 100, 2_000],
  ["rejected requests", () => RequestReads.list(team, { ...anyRequest, status: "rejected" }, page, whole), 100, 2_000],
  [
    "rejected requests of a source",
    ({ sources }) =>
      RequestReads.list(team, { ...anyRequest, status: "rejected", sources: [sources[0]!] }, page, whole),
    10,
    45_000
  ],
  [
    "requests of a source that rejected none",
    ({ sources }) =>
      RequestReads.list(team, { ...anyRequest, status: "rejected", sources: [sources[1]!] }, page, whole),
    0,
    45_000
  ],
  ["unverified requests", () => RequestReads.list(team, { ...anyRequest, verified: false }, page, whole), 100, 2_000],
  [
    "replays, of which there are none",
    () => RequestReads.list(team, { ...anyRequest, isRetry: true }, page, whole),
    0,
    10
  ],
  [
    "requests of a connection",
    ({ connections }) => RequestReads.list(team, { ...anyRequest, connections: [connections[7]!] }, page, whole),
    100,
    15_000
  ],
  [
    "requests by external id",
    () => RequestReads.list(team, { ...anyRequest, search: "ext-4242" }, page, whole),
    1,
    800
  ],
  [
    "requests by a common beginning",
    () => RequestReads.list(team, { ...anyRequest, search: "ext-" }, page, whole),
    100,
    5_000
  ],
  ["attempts", () => AttemptReads.list(team, anyAttempt, "desc", page), 100, 500],
  ["attempts, oldest first", () => AttemptReads.list(team, anyAttempt, "asc", page), 100, 500],
  [
    "attempts to a destination",
    ({ destinations }) => AttemptReads.list(team, { ...anyAttempt, destinations: [destinations[6]!] }, "desc", page),
    100,
    500
  ],
  [
    "attempts of a connection",
    ({ connections }) => AttemptReads.list(team, { ...anyAttempt, connections: [connections[6]!] }, "desc", page),
    100,
    10_000
  ],
  [
    "attempts of a connection, of which there are none",
    () => AttemptReads.list(team, { ...anyAttempt, connections: ["web_none"] }, "desc", page),
    0,
    2.5 * requests
  ],
  ["failed attempts", () => AttemptReads.list(team, { ...anyAttempt, status: "FAILED" }, "desc", page), 100, 10_000],
  [
    "attempts by error",
    () => AttemptReads.list(team, { ...anyAttempt, search: "bad_response" }, "desc", page),
    100,
    10_000
  ],
  [
    "attempts by URL",
    () => AttemptReads.list(team, { ...anyAttempt, search: "example.com/hooks" }, "desc", page),
    100,
    500
  ],
  [
    "attempts of a request",
    () => Effect.flatMap(someRequest, (request) => AttemptReads.list(team, { ...anyAttempt, request }, "desc", page)),
    1,
    800
  ],
  ["executions", () => ExecutionReads.list(team, transformation, { logLevels: [] }, page), 100, 500],
  [
    "executions that warned",
    () => ExecutionReads.list(team, transformation, { logLevels: ["warn"] }, page),
    100,
    10_500
  ],
  ["an execution", () => Effect.flatMap(someExecution, (id) => ExecutionReads.get(team, transformation, id)), 0, 300],
  ["runs of a workflow", () => RunReads.list(team, workflow, [], page), 100, 500],
  ["failed runs of a workflow", () => RunReads.list(team, workflow, ["failed"], page), 0, 25_000],
  ["queued runs, of which there are none", () => RunReads.list(team, workflow, ["queued"], page), 0, 2.5 * requests],
  [
    "runs that failed with a code",
    () => RunReads.list(team, workflow, [], page, { error_code: ["TIMEOUT"] }),
    0,
    2.5 * requests
  ],
  ["a run", () => Effect.flatMap(someRun, runDetail), 0, 800],
  ["runs of all workflows", () => RunReads.activity(team, anyRun, page), 100, 5_000],
  [
    "runs of a source",
    ({ sources }) => RunReads.activity(team, { ...anyRun, sources: [sources[0]!] }, page),
    1,
    50_000
  ],
  ["runs by a workflow's name", () => RunReads.activity(team, { ...anyRun, search: workflow }, page), 100, 5_000],
  ["runs by what nothing is called", () => RunReads.activity(team, { ...anyRun, search: "zzzzzz" }, page), 0, 130_000],
  [
    "queued runs of very many workflows by a part of their names",
    () => RunReads.activity(crowded, { ...anyRun, search: "flow no.", statuses: ["queued"] }, page),
    0,
    130_000
  ],
  ["a trace", () => Effect.flatMap(someRequest, (id) => TraceReads.get(team, id)), 0, 800]
]

layer(Filled.layer, { excludeTestServices: true })("Query plans of reads", (it) => {
  for (const [name, read, least, most] of cases) {
    it.effect(`A read looks at a bounded number of rows by index: ${name}`, () =>
      Effect.gen(function* () {
        const { answer, blocks, ms, rows, through, used } = yield* explained(read(yield* Filled))
        if (process.env["TIDEGATE_PLAN_PRINT"] !== undefined) {
          process.stdout.write(`| ${name} | ${rows} | ${blocks} | ${ms.toFixed(1)} | ${used.join(", ")} |\n`)
        }
        expect(through).toEqual([])
        expect(rows).toBeLessThanOrEqual(most)
        if ("count" in answer) expect(answer.count).toBeGreaterThanOrEqual(least)
      })
    )
  }
})
