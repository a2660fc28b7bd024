import type { PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { derivedId, idTime, newId, prefixes, sibling } from "@tidegate/model/Ids"
import { loadAction, readActionPace } from "@tidegate/storage/workflows/Actions"
import { currentActions, pinnedActions } from "@tidegate/storage/workflows/ActionVersions"
import { runBacklog } from "../src/workflows/RunBacklog.ts"
import { backlogs } from "@tidegate/storage/delivery/Backlog"
import { cancelPending } from "@tidegate/storage/delivery/CancelPending"
import * as Database from "@tidegate/storage/Database"
import { readDeliverySettings } from "@tidegate/storage/delivery/DeliverySettings"
import { storeHold } from "@tidegate/storage/delivery/DestinationHolds"
import { dueRows, dueWork, noteStarts, pendingEvents, recentStarts } from "@tidegate/storage/delivery/DeliveryRows"
import { firstOfKeys, nextKeys, nextPosition, waitsForKey } from "@tidegate/storage/delivery/OrderingKeys"
import { lookUpRequest } from "@tidegate/storage/LookedUp"
import { migrate } from "@tidegate/storage/Migrations"
import { readPermits, storePermits } from "@tidegate/storage/delivery/RatePermits"
import { readDedupeWindows, readPendingWork, teamOfConnection } from "@tidegate/storage/delivery/RoutingJobs"
import { exchangeCommit, type ProxyExchangeRecord } from "@tidegate/storage/delivery/ProxyExchanges"
import { readRoutedSource, weighRoutedSource } from "@tidegate/storage/delivery/RoutedSource"
import { parseSecretKeys, type SecretUnreadable, Secrets } from "@tidegate/storage/secrets/Secrets"
import { noteLeased, readIngestSettings, takePeriod } from "@tidegate/storage/delivery/SourcePeriods"
import { storeActionHold } from "@tidegate/storage/workflows/ActionHolds"
import { dueRuns, partsOf, readRunning, readVersion } from "@tidegate/storage/workflows/Runs"
import { readValue } from "@tidegate/storage/workflows/TeamValues"
import { loadTransformation, pinTransformation } from "@tidegate/storage/control/Transformations"
import { freshDatabase } from "../../../test/postgres.ts"
import { acceptCommit, storedLookup } from "../src/journal/AcceptStatement.ts"
import type { RequestRecord } from "../src/journal/RequestRecord.ts"
import { attemptCommit } from "../src/journal/AttemptStatement.ts"
import { addUpCommit } from "../src/journal/CountStatement.ts"
import { markCommit } from "../src/journal/MarkStatement.ts"
import { type RunTransition, runCommit } from "../src/journal/RunStatement.ts"
import { routingCommit } from "../src/journal/RoutingStatement.ts"
import type { Basis, DecidedJob } from "../src/journal/RoutingRecord.ts"
import { attemptRecord } from "./attempts.ts"
import { requestRecord } from "./requests.ts"

/*
 * Every statement of the event path, as the program runs it. A test counts those in the sources, so that none is missing here.
 */

const destination = newId(prefixes.destination, Date.now())
const connection = newId(prefixes.connection, Date.now())
const otherConnection = newId(prefixes.connection, Date.now())

const workflow = newId(prefixes.workflow, Date.now())

/** It keeps an order. */
const lined = newId(prefixes.connection, Date.now())
const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`)

/** So many sources, each with a connection to a destination of its own; and one to the destination that the events are for. */
const connect = Effect.fnUntraced(function* (count: number, salt: string) {
  const sql = yield* SqlClient.SqlClient
  const stamps = sql.literal("now(), now()")
  yield* sql`insert into teams (id, name) values ('tm', 'tm') on conflict do nothing`
  // Each row raises its team's count: one transaction would look through all the versions of that row that it has made before.
  for (let from = 1; from <= count; from += atOnce) {
    const rows = sql`(select ${salt} || i as id from generate_series(${from}::int, ${Math.min(count, from + atOnce - 1)}::int) i) as rows`
    yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
      select 'src_' || id, 'tm', id, 'WEBHOOK', '{}', ${stamps} from ${rows}`
    yield* sql`insert into destinations (id, team_id, name, type, config, created_at, updated_at)
      select 'dst_' || id, 'tm', id, 'HTTP', '{}'::jsonb, ${stamps} from ${rows}
      union all select ${destination}, 'tm', 'one', 'HTTP', '{}'::jsonb, ${stamps} on conflict do nothing`
    yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, created_at, updated_at)
      select 'con_' || id, 'tm', id, 'src_' || id, case id when ${salt} || 1 then ${destination} else 'dst_' || id end, '[]', ${stamps}
      from ${rows}`
  }
})
/** Rows of one statement. */
const atOnce = 500

/** So many pending events, due now, with requests that wait for slow rules, and as many connections; answers the ids of the first 20. */
export const fill = Effect.fnUntraced(function* (count: number, connections = count) {
  const sql = yield* SqlClient.SqlClient
  const base = newId(prefixes.event, Date.now()).slice(4, 14)
  const salt = Math.random().toString(36).slice(2, 8).padEnd(6, "0")
  yield* connect(connections, salt)
  yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size,
      events_count, ignored_count, ingested_at, created_at, updated_at)
    select 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'tm', 'src', 'accepted', false, 'POST', '/', '', '{}', '', 0,
      1, 0, now(), now(), now() from generate_series(1, ${count}::int) i`
  yield* sql`insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, trigger, due_at,
      ingested_at, created_at, updated_at)
    select 'evt_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'tm', 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'),
      ${connection}, 'src', ${destination}, 'PENDING', 'INITIAL', now(), now(), now(), now() from generate_series(1, ${count}::int) i`
  yield* sql`insert into deliveries (event_id, shard, destination_id, connection_id, due_at, started_at)
    select 'evt_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 1, ${destination}, ${connection}, now(),
      case when i % 2 = 0 then now() - interval '1 hour' end
    from generate_series(1, ${count}::int) i`
  yield* sql`insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at)
    select 1, ${connection}, 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'tm', 'src', now()
    from generate_series(1, ${count}::int) i`
  yield* sql`insert into deliveries (event_id, shard, destination_id, connection_id, due_at, ordering_key, place, ready_at)
    select 'evt_' || ${base} || ${salt} || 'l' || lpad(i::text, 9, '0'), 1, ${destination}, ${lined}, ${sql.literal(waitsForKey)},
      'key-' || i % 100, ${sql.literal(nextPosition)}, now() from generate_series(1, ${count}::int) i`
  yield* sql`insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at, ordering_key, place)
    select 1, ${lined}, 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'tm', 'src', now(), 'key-' || i % 100,
      ${sql.literal(nextPosition)} from generate_series(1, ${count}::int) i`
  yield* sql`insert into dedupe_keys (connection_id, key, request_id, expires_at)
    select ${connection}, 'req_' || ${base} || ${salt} || lpad(i::text, 10, '0'), 'req', now() + interval '1 hour'
    from generate_series(1, ${count}::int) i`
  yield* begin(count, base + salt)
  return Array.from({ length: 20 }, (_, i) => `evt_${base}${salt}${String(i + 1).padStart(10, "0")}`)
})

/** A run of one workflow for each of so many requests, due now; of every other one a part is stored. */
const begin = Effect.fnUntraced(function* (count: number, time: string) {
  const sql = yield* SqlClient.SqlClient
  const ids = sql`(select ${time} || lpad(i::text, 10, '0') as id, i from generate_series(1, ${count}::int) i) as ids`
  yield* sql`insert into workflows (id, team_id, name, source_id, status, version, steps, edges, definition_hash, created_at, updated_at)
    values (${workflow}, 'tm', 'one', null, 'active', 1, '[]', '[]', '', now(), now()) on conflict do nothing`
  yield* sql`insert into workflow_versions (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, created_at)
    values (${workflow}, 1, 'tm', 'one', 'active', '', 1, '[]', '[]', now()) on conflict do nothing`
  yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, parts, steps_count, created_at,
      updated_at)
    select 'wfr_' || id, 'tm', ${workflow}, 'req_' || id, 'src', 1, 'running', i % 2, 1, now(), now() from ${ids}`
  yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, created_at)
    select 'wsp_' || id, 'tm', 'wfr_' || id, 1, '{}', now() from ${ids} where i % 2 = 1`
  yield* sql`insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
    select 'wfr_' || id, 'tm', 1, ${workflow}, now() from ${ids}`
})

const runOf = (eventId: string): string => sibling(prefixes.workflowRun, eventId)

const transition = (eventId: string, i: number): RunTransition => ({
  id: runOf(eventId),
  teamId: "tm",
  part: 2 - (i % 2),
  partId: newId(prefixes.workflowPart, idTime(eventId)!),
  at: Date.now(),
  status: "running",
  outcome: null,
  attempts: 1,
  succeeded: 0,
  failed: 0,
  skipped: 0,
  running: 1,
  kept: 0,
  error: null,
  startedAt: Date.now(),
  finishedAt: null,
  dueAt: Date.now() + i,
  moves: true,
  carried: null,
  steps: "{}",
  resources: null,
  outputs: null,
  previews: null
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
const decidedAs = (eventId: string): DecidedJob => {
  const requestId = sibling(prefixes.request, eventId)
  return {
    requestId,
    counted: true,
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
      values: {},
      body: Buffer.from("{}"),
      bodySize: 2
    },
    opens: { key: requestId, expiresAt: Date.now() + 7_200_000 }
  }
}

/** A route that nothing has changed. */
const plainAs = (eventId: string): DecidedJob => ({
  ...decidedAs(eventId),
  execution: null,
  transformed: null,
  opens: null
})

/** A route that a transformation has failed on. */
const ignoredAs = (eventId: string): DecidedJob => {
  const { requestId } = decidedAs(eventId)
  const ignoredId = newId(prefixes.ignoredEvent, Date.now())
  return {
    ...decidedAs(eventId),
    counted: true,
    fate: { kind: "ignored", ignoredId, cause: "TRANSFORMATION_FAILED", meta: "[]" },
    requestId,
    transformed: null,
    opens: null
  }
}

const basis: Basis = { sourceId: "src", version: 1, transformation: { id: "trs", mark: "1" } }

const results = (connectionId: string, decided: ReadonlyArray<DecidedJob>, basis: Basis | null = null) => ({
  connectionId,
  destinationId: destination,
  shard: 1,
  now: Date.now(),
  isTunnel: false,
  basis,
  inOrder: connectionId === lined,
  decided
})

/** A request of the time of that event, and the event that it becomes. */
const requestLike = (eventId: string) =>
  requestRecord({ teamId: "tm", sourceId: "src", ingestedAt: idTime(eventId)! }, { connection, destination })

/** It begins a run. */
const withRun = (request: RequestRecord): RequestRecord => {
  const id = derivedId(prefixes.workflowRun, request.id, workflow)
  return { ...request, runs: [{ id, workflowId: workflow, shard: 1, version: 1, steps: 1 }] }
}

const exchangeOf = (eventId: string): ProxyExchangeRecord => ({
  requestId: sibling(prefixes.request, eventId),
  teamId: "tm",
  sourceId: "src",
  targetUrl: "",
  httpMethod: "POST",
  responseStatus: null,
  responseHeaders: null,
  responseBody: null,
  responseBodyTruncated: false,
  errorCode: null,
  errorText: null,
  startedAt: 0,
  respondedAt: null,
  responseLatency: null,
  createdAt: 0
})

const committing = (commit: {
  readonly statement: string
  readonly parameters: ReadonlyArray<PgTypes.Parameter | number | string>
}) => Effect.flatMap(Database.JournalSql, (sql) => sql.unsafe(commit.statement, commit.parameters))

export interface HotStatement {
  /** The file of `src` that it stands in. */
  readonly file: string
  /** Runs it for these events, or for the requests of the same times. */
  readonly run: (
    events: ReadonlyArray<string>
  ) => Effect.Effect<unknown, SqlError.SqlError | SecretUnreadable, Database.Database | Secrets>
  /** It looks into every day, because nobody knows which: once per activation of an actor, never per event. */
  readonly everyDay?: true
}

export const hotStatements: Readonly<Record<string, HotStatement>> = {
  "accepting 20 requests, and 20 that begin runs": {
    file: "journal/AcceptStatement.ts",
    run: (events) =>
      Effect.andThen(
        committing(acceptCommit(events.map(requestLike))),
        committing(acceptCommit(events.map(requestLike).map(withRun)))
      )
  },
  "which of 20 requests are stored": {
    file: "journal/AcceptStatement.ts",
    run: (events) => committing(storedLookup(events.map((id) => sibling(prefixes.request, id))))
  },
  "recording 20 attempts": {
    file: "journal/AttemptStatement.ts",
    run: (events) => committing(attemptCommit(events.map(attempt)))
  },
  "adding up what was counted": { file: "journal/CountStatement.ts", run: () => committing(addUpCommit(1)) },
  "marking 20 paced deliveries": {
    file: "journal/MarkStatement.ts",
    run: (events) => committing(markCommit(events.map((eventId) => ({ eventId, startedAt: Date.now() }))))
  },
  "noting 20 slow deliveries": {
    file: "delivery/DeliveryRows.ts",
    run: (events) => noteStarts(events.map((id) => [id, Date.now()] as const))
  },
  "storing 20 proxy exchanges": {
    file: "delivery/ProxyExchanges.ts",
    run: (events) => committing(exchangeCommit(events.map(exchangeOf)))
  },
  "loading 20 pending events": { file: "delivery/DeliveryRows.ts", run: (events) => pendingEvents(events, 1e6) },
  "the first 20 due rows of a lane": {
    file: "delivery/DeliveryRows.ts",
    run: () => dueRows(1, destination, Date.now() + 1000, 20, new Map())
  },
  "when a destination has started deliveries": {
    file: "delivery/DeliveryRows.ts",
    run: () => recentStarts(1, destination, Date.now() - 60_000, 1_000),
    everyDay: true
  },
  "what a destination delivers by": {
    file: "delivery/DeliverySettings.ts",
    run: () => readDeliverySettings(destination, 1)
  },
  "what is due": { file: "delivery/DeliveryRows.ts", run: () => dueWork([1, 2, 3], Date.now() + 1000) },
  "the backlog of runs": { file: "workflows/RunBacklog.ts", run: () => runBacklog([1, 2, 3]) },
  "the backlogs": { file: "delivery/Backlog.ts", run: () => backlogs([1, 2, 3]) },
  "the first 20 pending routes of a connection": {
    file: "delivery/RoutingJobs.ts",
    run: () => readPendingWork(connection, 20, 1e6)
  },
  "the deduplication windows of 20 keys of two connections": {
    file: "delivery/RoutingJobs.ts",
    run: (events) => {
      const keys = events.map((id) => sibling(prefixes.request, id))
      return readDedupeWindows([connection, otherConnection].map((connectionId) => ({ connectionId, keys })))
    }
  },
  "the first of 20 lines": {
    file: "delivery/OrderingKeys.ts",
    run: () => firstOfKeys({ shard: 1, destinationId: destination, connectionId: lined }, keys, 5)
  },
  "the next 20 lines": {
    file: "delivery/OrderingKeys.ts",
    run: () => nextKeys({ shard: 1, destinationId: destination, connectionId: lined }, "key-2", 20)
  },
  "the team of a connection": { file: "delivery/RoutingJobs.ts", run: () => teamOfConnection(connection) },
  "settling 20 pending routes of two connections, and 20 that were ignored": {
    file: "journal/RoutingStatement.ts",
    run: (events) => {
      const decided = events.map(decidedAs)
      const half = events.length >> 1
      const both = [results(connection, decided.slice(half)), results(otherConnection, decided.slice(0, half), basis)]
      return Effect.andThen(
        committing(routingCommit(both)),
        Effect.andThen(
          committing(routingCommit([results(connection, events.map(ignoredAs))])),
          committing(routingCommit([results(lined, events.map(plainAs))]))
        )
      )
    }
  },
  "what a source to route by weighs": { file: "delivery/RoutedSource.ts", run: () => weighRoutedSource("src_1") },
  "a source to route by": { file: "delivery/RoutedSource.ts", run: () => readRoutedSource("src_1") },
  "a transformation to run": { file: "control/Transformations.ts", run: () => loadTransformation("tm", "trs_1") },
  "pinning a transformation": {
    file: "control/Transformations.ts",
    run: () => pinTransformation("trs_1", "hash", "because")
  },
  "20 runs that are due of a workflow": {
    file: "workflows/Runs.ts",
    run: (events) =>
      dueRuns(1, workflow, Date.now() + 1_000, { limit: 20, bytes: 1e6, inHand: events.slice(0, 2).map(runOf) })
  },
  "the parts of 20 runs": { file: "workflows/Runs.ts", run: (events) => partsOf(events.map(runOf)), everyDay: true },
  "a workflow that runs": { file: "workflows/Runs.ts", run: () => readRunning(workflow) },
  "a version of a workflow": { file: "workflows/Runs.ts", run: () => readVersion(workflow, 1) },
  "a transition of 20 runs": {
    file: "journal/RunStatement.ts",
    // In some batches all columns are alike of all runs, in others some have failed.
    run: (events) => {
      const all = events.map(transition)
      const half = Math.ceil(all.length / 2)
      const failed = all.slice(half).map((run, i) => Object.assign({}, run, { failed: i % 2, attempts: 1 + (i % 3) }))
      const alike = committing(runCommit(all.slice(0, half)))
      return failed.length === 0 ? alike : Effect.andThen(alike, committing(runCommit(failed)))
    }
  },
  "a saved action to call": { file: "workflows/Actions.ts", run: () => loadAction("tm", "act_1") },
  "the pace of a saved action": { file: "workflows/Actions.ts", run: () => readActionPace("act_1") },
  "saved actions as they are": {
    file: "workflows/ActionVersions.ts",
    run: () => currentActions("tm", ["act_1", "act_2"])
  },
  "saved actions as they were": {
    file: "workflows/ActionVersions.ts",
    run: () => pinnedActions("tm", [{ id: "act_1", revision: 1 }])
  },
  "a request that a step looks up": {
    file: "LookedUp.ts",
    run: ([event]) => lookUpRequest("tm", sibling(prefixes.request, event!), 1e6)
  },
  "until when a destination is held": {
    file: "delivery/DestinationHolds.ts",
    run: () => storeHold(destination, Date.now() + 60_000)
  },
  "until when the target of an action is held": {
    file: "workflows/ActionHolds.ts",
    run: () => storeActionHold("tm", "act_1", Date.now() + 60_000, Date.now())
  },
  "what steps have used of a rate": { file: "delivery/RatePermits.ts", run: () => readPermits("tm", "act_1") },
  "noting what steps use of a rate": {
    file: "delivery/RatePermits.ts",
    run: () => storePermits({ team_id: "tm", id: "act_1", before: "a", next: "a", until: new Date() })
  },
  "a value of a team": { file: "workflows/TeamValues.ts", run: () => readValue("tm", "key") },
  "the limit of a source": { file: "delivery/SourcePeriods.ts", run: () => readIngestSettings("src_1") },
  "taking over a source's period": {
    file: "delivery/SourcePeriods.ts",
    run: () => takePeriod({ source_id: "src_1", team_id: "tm", periodMs: 1_000, ahead: 10 })
  },
  "noting what is leased of a period": { file: "delivery/SourcePeriods.ts", run: () => noteLeased("src_1", 1n, 20) },
  "cancelling what waits for a connection": {
    file: "delivery/CancelPending.ts",
    run: () => cancelPending({ connection_id: connection })
  },
  "cancelling what waits for a destination": {
    file: "delivery/CancelPending.ts",
    run: () => cancelPending({ destination_id: destination })
  }
}

/** A migrated database on which each pool is one connection, so that a plan is made once. */
export const world = Layer.effectDiscard(migrate).pipe(
  Layer.provideMerge(
    Layer.unwrap(
      Effect.map(freshDatabase, (url) =>
        Database.layer({ url, connections: 1, hotConnections: 1, journalConnections: 1 })
      )
    )
  ),
  Layer.provideMerge(Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("ab".repeat(32))) }))
)
