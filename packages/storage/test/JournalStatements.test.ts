import { PgClient, PgTypes } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Result, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { type Replay, storeReplays } from "@tidegate/storage/bulk/Replays"
import { retryEvents } from "@tidegate/storage/bulk/EventRetry"
import { HotSql } from "@tidegate/storage/Database"
import { noteStarts } from "@tidegate/storage/delivery/DeliveryRows"
import { readDedupeWindows } from "@tidegate/storage/delivery/RoutingJobs"
import { countLimited } from "@tidegate/storage/delivery/SourcePeriods"
import { parseSecretKeys, Secrets } from "@tidegate/storage/secrets/Secrets"
import { derivedId, prefixes, seededId } from "@tidegate/model/Ids"
import { exchangeCommit, type ProxyExchangeRecord } from "@tidegate/storage/delivery/ProxyExchanges"
import { acceptCommit, storedLookup } from "../src/journal/AcceptStatement.ts"
import type { RequestRecord } from "../src/journal/RequestRecord.ts"
import { type AttemptRecord, attemptCommit } from "../src/journal/AttemptStatement.ts"
import { addUpCommit } from "../src/journal/CountStatement.ts"
import { markCommit } from "../src/journal/MarkStatement.ts"
import { type RunTransition, runCommit } from "../src/journal/RunStatement.ts"
import { routingCommit } from "../src/journal/RoutingStatement.ts"
import type { Basis, DecidedJob, RoutingResults } from "../src/journal/RoutingRecord.ts"
import { attemptRecord } from "./attempts.ts"
import { requestRecord } from "./requests.ts"

/*
 * What the journal sends to PostgreSQL, word for word: the text of each statement and its parameters, for batches of every kind. A change of how
 * statements are made must not change the fixture; a change of a statement shows in it, for its reviewer. White space is not compared: it says
 * nothing to the server, and lists that are generated break their lines elsewhere. Whether the statements do what they should is not said here: `Journal.test.ts` runs them.
 */

const at = Date.parse("2026-03-01T10:20:30.400Z")
const requestId = (i: number): string => seededId(prefixes.request, at + i, `request ${i}`)
const eventId = (i: number): string => seededId(prefixes.event, at + i, `event ${i}`)

/** The numbers of `count` records. */
const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, i) => i)

const request = (i: number, given: Partial<RequestRecord> = {}): RequestRecord =>
  requestRecord(
    {
      id: requestId(i),
      teamId: `team-${i % 2}`,
      sourceId: `source-${i % 2}`,
      ingestedAt: at + i * 40_000,
      path: `/path-${i}`,
      body: Buffer.from(`body-${i}`),
      originalIp: "192.0.2.1",
      ...given
    },
    { connection: `connection-${i % 2}`, destination: `destination-${i % 2}` }
  )

const plainEvent = (i: number): RequestRecord["events"][number] => ({
  id: derivedId(prefixes.event, requestId(i), "plain"),
  connectionId: "plain",
  destinationId: "destination-1",
  shard: 7,
  dueAt: at + 5_000,
  orderingKey: null
})

/** Of each kind that a request can become, one. */
const everything = (i: number): Partial<RequestRecord> => ({
  version: 3,
  events: [plainEvent(i), { ...plainEvent(i), id: eventId(i), connectionId: "lined", orderingKey: "key" }],
  ignored: [{ id: `ign_${i}`, connectionId: "ignoring", cause: "FILTERED", meta: `[{"rule":${i}}]` }],
  pending: [
    { connectionId: "slow", shard: 8, ordering: null },
    { connectionId: "slow and lined", shard: 9, ordering: { key: i === 0 ? null : "key" } }
  ],
  runs: [{ id: `wfr_${i}`, workflowId: "workflow", shard: 10, version: 4, steps: 5 }]
})

/** What differs from request to request in the columns that are the same for most. */
const unusual = (i: number): Partial<RequestRecord> => ({
  method: i === 0 ? "PUT" : "POST",
  externalId: i === 1 ? "external" : null,
  presented: i === 2 ? "sealed" : null,
  status: i === 3 ? "rejected" : "accepted",
  rejectionCause: i === 3 ? "DISABLED" : null,
  cliEvents: i
})

const attempt = (i: number, given: Partial<AttemptRecord> = {}): AttemptRecord =>
  attemptRecord({
    id: seededId(prefixes.attempt, at + i, `attempt ${i}`),
    teamId: "team-0",
    eventId: eventId(i),
    requestId: requestId(i),
    connectionId: "connection-0",
    sourceId: "source-0",
    destinationId: "destination-0",
    body: Buffer.from(`answer-${i}`),
    deliveredAt: at + i,
    respondedAt: at + i + 20,
    deliveryLatency: 20 + i,
    finishedAt: at + i + 21,
    eventCreatedAt: at,
    ...given
  })

const failure: Partial<AttemptRecord> = {
  successful: false,
  responseStatus: 503,
  errorCode: "HTTP_STATUS",
  failureMessage: "the answer was 503",
  retryAt: at + 60_000
}

const run = (i: number, given: Partial<RunTransition> = {}): RunTransition => ({
  id: seededId(prefixes.workflowRun, at + i, `run ${i}`),
  teamId: "team-0",
  part: i + 1,
  partId: seededId(prefixes.workflowPart, at + i, `part ${i}`),
  at: at + i,
  status: "running",
  outcome: null,
  attempts: 1,
  succeeded: i,
  failed: 0,
  skipped: 1,
  running: 1,
  kept: 100,
  error: null,
  startedAt: at,
  finishedAt: null,
  dueAt: at + 1_000,
  moves: true,
  carried: null,
  steps: `{"step":${i}}`,
  resources: null,
  outputs: null,
  previews: null,
  ...given
})

const failedRun: Partial<RunTransition> = {
  status: "failed",
  outcome: "failed",
  failed: 1,
  attempts: 2,
  error: { code: "STEP_FAILED", message: "a step has failed", stepId: "step" },
  finishedAt: at + 500,
  dueAt: null,
  carried: "{}",
  outputs: "{}",
  previews: "{}",
  resources: "{}"
}

const decided = (i: number, given: Partial<DecidedJob> = {}): DecidedJob => ({
  requestId: requestId(i),
  counted: true,
  fate: { kind: "event", eventId: eventId(i), dueAt: at + i },
  execution: null,
  transformed: null,
  opens: null,
  ...given
})

const ignoring: Partial<DecidedJob> = {
  fate: { kind: "ignored", ignoredId: "ign_1", cause: "DUPLICATE", meta: `{"of":"req_0"}` },
  opens: { key: "dedupe key", expiresAt: at + 3_600_000 }
}

const transforming: Partial<DecidedJob> = {
  execution: {
    id: "txe_1",
    transformationId: "transformation",
    codeHash: "hash",
    errorCode: "CODE",
    errorMessage: "message",
    logLevel: "warn",
    failed: false,
    logs: "[]",
    duration: 1_234,
    memoryBytes: 5_678
  },
  transformed: {
    id: "edt_1",
    method: "PUT",
    path: "/changed",
    query: "a=b",
    headers: `{"a":"b"}`,
    values: {},
    body: Buffer.from("changed"),
    bodySize: 7
  }
}

const results = (routes: ReadonlyArray<DecidedJob>, given: Partial<RoutingResults> = {}): RoutingResults => ({
  connectionId: "connection-0",
  destinationId: "destination-0",
  isTunnel: false,
  shard: 11,
  now: at + 100,
  basis: null,
  inOrder: false,
  decided: routes,
  ...given
})

const basis: Basis = { sourceId: "source-0", version: 6, transformation: { id: "transformation", mark: "77" } }

const exchange = (i: number, given: Partial<ProxyExchangeRecord> = {}): ProxyExchangeRecord => ({
  requestId: requestId(i),
  teamId: "team-0",
  sourceId: "source-0",
  targetUrl: `http://192.0.2.1/${i}`,
  httpMethod: "POST",
  responseStatus: 200,
  responseHeaders: "{}",
  responseBody: Buffer.from("answer"),
  responseBodyTruncated: false,
  errorCode: null,
  errorText: null,
  startedAt: at,
  respondedAt: at + 20,
  responseLatency: 20,
  createdAt: at + 21,
  ...given
})

interface Commit {
  readonly statement: string
  readonly parameters: ReadonlyArray<unknown>
}

const batches: Readonly<Record<string, Commit>> = {
  "a request that becomes an event": acceptCommit([request(0)]),
  "a request that becomes nothing": acceptCommit([request(0, { events: [], body: null, bodySize: 0 })]),
  "a request that becomes everything": acceptCommit([request(1, everything(1))]),
  "a request that becomes two events": acceptCommit([
    request(0, { events: [plainEvent(0), { ...plainEvent(0), id: eventId(1) }] })
  ]),
  "requests that are alike": acceptCommit(upTo(3).map((i) => request(i))),
  "requests of one source": acceptCommit([0, 2, 4].map((i) => request(i, { path: "/" }))),
  "requests that are unlike": acceptCommit(upTo(4).map((i) => request(i, unusual(i)))),
  "requests that are alike and become everything": acceptCommit(upTo(3).map((i) => request(i, everything(i)))),
  "requests that are unlike and become everything": acceptCommit(
    upTo(4).map((i) => request(i, { ...unusual(i), ...everything(i) }))
  ),
  "which requests are stored": storedLookup([requestId(2), requestId(0), requestId(1)]),
  "an attempt that succeeds": attemptCommit([attempt(0)]),
  "an attempt that is retried": attemptCommit([attempt(0, failure)]),
  "an attempt of a retry that succeeds": attemptCommit([attempt(0, { rootEventId: eventId(9), cliId: "cli_1" })]),
  "attempts that are alike": attemptCommit(upTo(3).map((i) => attempt(i))),
  "attempts that are alike and are retried": attemptCommit(upTo(3).map((i) => attempt(i, failure))),
  "attempts that are unlike": attemptCommit([
    attempt(0),
    attempt(1, { ...failure, attemptNumber: 2, trigger: "AUTOMATIC", respondedAt: null, body: null }),
    attempt(2, { rootEventId: eventId(9), bulkRetryId: "bch_1", httpMethod: "PUT" })
  ]),
  "marks of deliveries": markCommit(upTo(2).map((i) => ({ eventId: eventId(i), startedAt: at + i }))),
  "a run that goes on": runCommit([run(0)]),
  "a run that goes on at the same time": runCommit([run(0, { moves: false })]),
  "a run that has failed": runCommit([run(0, failedRun)]),
  "a run that has failed and is alone": runCommit([run(0, { ...failedRun, alone: true })]),
  "runs that are alike": runCommit(upTo(3).map((i) => run(i))),
  "runs that are unlike": runCommit([run(0, { moves: false }), run(1, { ...failedRun, moves: false })]),
  "a route that becomes an event": routingCommit([results([decided(0)])]),
  "a route of each kind, in order": routingCommit([
    results([decided(0), decided(1, ignoring), decided(2, transforming), decided(3, { fate: { kind: "dropped" } })], {
      inOrder: true,
      basis
    })
  ]),
  "a route that is transformed": routingCommit([results([decided(0, transforming)], { basis })]),
  "routes of several connections": routingCommit([
    results([decided(0), decided(1), decided(0)], { basis }),
    results([decided(2, { ...transforming, counted: false })], {
      connectionId: "connection-1",
      destinationId: "destination-1",
      isTunnel: true,
      basis: { ...basis, transformation: null }
    }),
    results([decided(3, ignoring)], { connectionId: "connection-2", basis })
  ]),
  "an exchange with an upstream": exchangeCommit([exchange(0)]),
  "exchanges with an upstream": exchangeCommit([
    exchange(0),
    exchange(1, { responseStatus: null, responseBody: null, errorCode: "TIMEOUT", errorText: "too late" })
  ]),
  "adding up counts": addUpCommit(12)
}

/** The statement without its white space, each of its parts on a line. */
const words = (statement: string): string =>
  statement
    .trim()
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\( | (?=[),])/g, (found) => found.trim())
    .replaceAll(/, (?=\w+ as (?:materialized )?\()/g, ",\n")

const shown = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`
  if (typeof value === "bigint") return `${value}n`
  return Array.isArray(value) ? value.map(shown) : value
}

const typeNames = new Map<number, string>(Object.entries(PgTypes.OID).map(([name, oid]) => [oid, name]))

const described = (name: string, { parameters, statement }: Commit): string => {
  const lines = parameters.map((parameter, index) => {
    const [type, value] = PgTypes.isParameter(parameter)
      ? [typeNames.get(parameter.oid), parameter.value]
      : ["untyped", parameter]
    return `-- $${index + 1} ${type}: ${JSON.stringify(shown(value))}`
  })
  return [`-- ${name}`, words(statement), ...lines, ""].join("\n")
}

it("The journal sends exactly the recorded statements and parameters", async () => {
  const text = Object.entries(batches)
    .map(([name, commit]) => described(name, commit))
    .join("\n")
  await expect(text).toMatchFileSnapshot("fixtures/journalStatements.sql")
})

/** A client that sends nothing: it keeps what it is given, and answers what `rowsOf` says. */
const recording = Effect.fnUntraced(function* (
  sent: Array<Commit>,
  rowsOf: (statement: string) => ReadonlyArray<object> = () => []
) {
  const execute = (statement: string, parameters: ReadonlyArray<unknown>) =>
    Effect.sync(() => {
      sent.push({ statement, parameters })
      return rowsOf(statement)
    })
  const refused = () => Effect.die("not used")
  const sql = yield* SqlClient.make({
    acquirer: Effect.succeed({
      execute,
      executeRaw: refused,
      executeStream: () => Stream.die("not used"),
      executeValues: refused,
      executeValuesUnprepared: refused,
      executeUnprepared: execute
    }),
    compiler: PgClient.makeCompiler(),
    spanAttributes: [],
    driver: "none"
  })
  return Layer.mergeAll(Layer.succeed(SqlClient.SqlClient, sql), Layer.succeed(HotSql, sql as PgClient.PgClient))
}, Effect.provide(Reactivity.layer))

const source = { id: "source-0", team_id: "team-0" }
const routes = [
  { id: "connection-0", source_id: "source-0", ordering: null },
  { id: "connection-1", source_id: "source-0", ordering: { key: "body.id" } }
]
const workflows = [{ id: "workflow-0", source_id: "source-0", version: 2, steps: 3 }]

const replayAnswers = (statement: string): ReadonlyArray<object> => {
  if (statement.includes("from sources where")) return [source]
  if (statement.includes("from connections c join")) return routes
  return statement.includes("from workflows") ? workflows : []
}

const replay = (i: number): Replay => ({
  ...source,
  source_id: source.id,
  id: requestId(i),
  message: {
    method: "POST",
    path: `/${i}`,
    query: "",
    headers: { a: "b" },
    body: Buffer.from(`body-${i}`)
  },
  presented: null,
  presentedOf: requestId(9),
  verified: i === 0,
  original_ip: "192.0.2.1",
  external_id: i === 1 ? "external" : null,
  retry: i === 0 ? null : { kind: "bulk", parent_request_id: requestId(9), operation_id: "bch_1" },
  ...(i === 0 ? { fixture_id: "fix_1" } : {})
})

/** An event as it is read before it is retried. */
const parent = (i: number) => ({
  id: eventId(i),
  status: "FAILED",
  connection_id: "connection-0",
  destination_id: `destination-${i}`,
  source_off: false,
  connection_off: false,
  paused: false,
  destination_off: false,
  payload_stored: true,
  in_order: i === 1,
  resolved: false,
  succeeded: null
})

it.effect("Writes beside the journal send exactly the recorded statements and parameters", () =>
  Effect.gen(function* () {
    const sent: Array<Commit> = []
    yield* Effect.gen(function* () {
      yield* noteStarts([
        [eventId(0), at],
        [eventId(1), at + 1]
      ])
      yield* readDedupeWindows([
        { connectionId: "connection-0", keys: ["a", "b"] },
        { connectionId: "connection-1", keys: ["c"] }
      ])
      yield* countLimited([{ source_id: "source-0", team_id: "team-0", minute: at, count: 3 }])
    }).pipe(Effect.provide(yield* recording(sent)))
    yield* storeReplays([replay(0), replay(1)], {
      shardOf: (id) => id.length,
      orderingKeyOf: () => "key"
    }).pipe(
      Effect.provide(yield* recording(sent, replayAnswers)),
      Effect.provide(Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("ab".repeat(32))) }))
    )
    const retried = retryEvents({
      team_id: "team-0",
      event_ids: [eventId(0), eventId(1)],
      operation_id: "bch_1",
      overMs: 1_000,
      unresolved: false,
      shardOf: (id) => id.length
    })
    const parents = (statement: string) => (statement.includes("as payload_stored") ? [parent(0), parent(1)] : [])
    yield* Effect.provide(retried, yield* recording(sent, parents))
    const text = sent
      .map((commit, i) =>
        described(String(i), commit).replaceAll(/(?<=evt_0{10})\w{16}|(?<=untyped: )\d{5}/g, "<random>")
      )
      .join("\n")
    yield* Effect.promise(() => expect(text).toMatchFileSnapshot("fixtures/besideTheJournal.sql"))
  })
)
