import type { PgTypes } from "@effect/sql-pg"
import { nextPosition, waitsForKey } from "../delivery/OrderingKeys.ts"
import { type Count, Counts, type Tally } from "./AcceptCounts.ts"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"
import { writeFeed } from "./FeedStatement.ts"
import { Groups, type Present } from "./Groups.ts"
import type {
  AwaitingWorkflow,
  IgnoredEvent,
  RequestRecord,
  RoutedEvent,
  RoutedRun,
  RoutingJob
} from "./RequestRecord.ts"
import { type Column, type Fields, insertInto, type Made, Rows, texts } from "./Rows.ts"
import { unverified } from "./OccurrenceStatement.ts"

/** A request of a batch. `pair`: the number of its (source, version) pair, from 1. */
interface Accepting {
  readonly pair: number
  readonly item: RequestRecord
}

/** An event, ignored event, routing job or run of such a request. */
interface Becoming<A> extends Accepting {
  readonly of: A
}

/** The requests of a source in a batch that could not be verified. */
interface Unverified {
  readonly pair: number
  readonly source: string
  readonly team: string
  readonly samples: Array<string>
  n: number
  first: number
  last: number
}

type Ordered = RoutingJob & { readonly ordering: { readonly key: string | null } }

/** Columns of the request that rows of several groups have. */
const v: Column<Accepting> = ["v", "int4", ({ pair }) => pair, []]
const team: Column<Accepting> = ["team_id", "text", ({ item }) => item.teamId]
const request: Column<Accepting> = ["request_id", "text", ({ item }) => item.id]
const source: Column<Accepting> = ["source_id", "text", ({ item }) => item.sourceId]
const atIn = (...to: ReadonlyArray<string>): Column<Accepting> => [
  "at",
  "timestamptz",
  ({ item }) => item.ingestedAt,
  to
]
const connection: Column<Becoming<{ readonly connectionId: string }>> = [
  "connection_id",
  "text",
  ({ of }) => of.connectionId
]

const eventFields = (...ordering: ReadonlyArray<Made>): Fields<Becoming<RoutedEvent>> => [
  v,
  ["id", "text", ({ of }) => of.id],
  team,
  request,
  connection,
  source,
  ["destination_id", "text", ({ of }) => of.destinationId],
  ["shard", "int2", ({ of }) => of.shard, []],
  { state: "'PENDING'", trigger: "'INITIAL'" },
  ["due_at", "timestamptz", ({ of }) => of.dueAt],
  ...ordering,
  atIn("ingested_at", "created_at", "updated_at")
]

const pendingFields: Fields<Becoming<RoutingJob>> = [
  v,
  ["shard", "int2", ({ of }) => of.shard],
  connection,
  request,
  team,
  source,
  atIn("created_at"),
  { counted: "true" }
]

/** Columns that all rows of one source have in common, and those that its rows for one connection have as well. */
const ofSource = ["v", "team_id", "source_id"]
const ofConnection = ["connection_id", "destination_id", "shard"]

/** The rows of a batch by group. `v` is the number of the row's (source, version) pair. */
const declared = {
  sources: new Rows<{ readonly pair: number; readonly id: string; readonly version: number }>("s", [
    ["v", "int4", ({ pair }) => pair],
    ["id", "text", ({ id }) => id],
    ["version", "int8", ({ version }) => BigInt(version)]
  ]),
  requests: new Rows<Accepting>(
    "r",
    [
      v,
      ["id", "text", ({ item }) => item.id],
      team,
      source,
      ["status", "text", ({ item }) => item.status],
      ["verified", "bool", ({ item }) => item.verified],
      ["cause", "text", ({ item }) => item.rejectionCause, ["rejection_cause"]],
      ["method", "text", ({ item }) => item.method],
      ["path", "text", ({ item }) => item.path],
      ["query", "text", ({ item }) => item.query],
      ["headers", "text", ({ item }) => item.headers],
      ["presented", "text", ({ item }) => item.presented],
      ["body", "bytea", ({ item }) => item.body],
      ["body_size", "int4", ({ item }) => item.bodySize],
      ["external_id", "text", ({ item }) => item.externalId],
      ["ip", "text", ({ item }) => item.originalIp, ["original_ip"]],
      // Most routing jobs become events: see `RoutingStatement.ts`.
      ["events_count", "int4", ({ item }) => item.events.length + item.pending.length],
      ["ignored_count", "int4", ({ item }) => item.ignored.length],
      ["cli_events_count", "int4", ({ item }) => item.cliEvents],
      atIn("ingested_at", "created_at", "updated_at")
    ],
    // Most batches are of posts that are accepted, presented no credentials, and go through no tunnel.
    ["method", "external_id", "presented", "status", "cause", "cli_events_count"],
    // Under load many are of one source.
    [...ofSource, "verified", "path", "query", "events_count", "ignored_count"]
  ),
  events: new Rows("r", eventFields(), ofSource, ofConnection),
  ignored: new Rows<Becoming<IgnoredEvent>>("r", [
    v,
    ["id", "text", ({ of }) => of.id],
    team,
    request,
    connection,
    source,
    ["cause", "text", ({ of }) => of.cause],
    ["meta", "text", ({ of }) => of.meta, []],
    { meta: "meta::jsonb" },
    atIn("created_at")
  ]),
  pending: new Rows("r", pendingFields),
  linedEvents: new Rows<Becoming<RoutedEvent>>(
    "r",
    [...eventFields({ ordering_key: "key" }), ["key", "text", ({ of }) => of.orderingKey, []]],
    ofSource,
    ofConnection
  ),
  linedPending: new Rows<Becoming<Ordered>>("r", [
    ...pendingFields,
    ["key", "text", ({ of }) => of.ordering.key, ["ordering_key"]],
    { place: nextPosition }
  ]),
  runs: new Rows<Becoming<RoutedRun>>("r", [
    v,
    ["id", "text", ({ of }) => of.id],
    team,
    ["workflow_id", "text", ({ of }) => of.workflowId],
    request,
    source,
    ["shard", "int2", ({ of }) => of.shard, []],
    ["version", "int4", ({ of }) => of.version],
    { status: "'queued'" },
    ["steps", "int2", ({ of }) => of.steps, ["steps_count"]],
    atIn("created_at", "updated_at")
  ]),
  unverified: new Rows<Unverified>("r", [
    ["v", "int4", ({ pair }) => pair, []],
    ["team_id", "text", ({ team }) => team],
    { kind: "'unverified'", code: `'${unverified}'` },
    ["subject_id", "text", ({ source }) => source],
    ["count", "int4", ({ n }) => n],
    ["ids", "text", ({ samples }) => samples.join(","), []],
    { samples: "string_to_array(ids, ',')" },
    ["first_at", "timestamptz", ({ first }) => first],
    ["last_at", "timestamptz", ({ last }) => last]
  ]),
  arrivals: new Rows<Becoming<AwaitingWorkflow>>("r", [
    v,
    ["workflow_id", "text", ({ of }) => of.workflowId],
    ["request_id", "text", ({ item }) => item.id, ["about"]],
    team,
    ["shard", "int2", ({ of }) => of.shard],
    atIn("due_at"),
    { expires_at: "at + interval '31 days'" }
  ]),
  counts: new Rows<Count>("r", [
    ["v", "int4", ({ pair }) => pair],
    ["key_id", "text", ({ key }) => key],
    ["source_id", "text", ({ source }) => source],
    ["destination_id", "text", ({ destination }) => destination],
    ["measure", "text", ({ measure }) => measure],
    ["minute", "timestamptz", ({ minute }) => minute],
    ["team_id", "text", ({ team }) => team],
    ["n", "int8", ({ n }) => n]
  ]),
  tally: new Rows<Tally>("r", [
    ["v", "int4", ({ pair }) => pair, []],
    ["team_id", "text", ({ team }) => team],
    ["key_ids", "text[]", ({ counts }) => counts.map(({ key }) => key)],
    ["source_ids", "text[]", ({ counts }) => counts.map(({ source }) => source)],
    ["destination_ids", "text[]", ({ counts }) => counts.map(({ destination }) => destination)],
    ["measures", "text[]", ({ counts }) => counts.map(({ measure }) => measure)],
    ["minutes", "timestamptz[]", ({ counts }) => counts.map(({ minute }) => minute)],
    ["counts", "int8[]", ({ counts }) => counts.map(({ n }) => n)]
  ])
}

const groups = new Groups(declared)

type Group = keyof typeof declared

/** The row of a delivery queue that each event has. */
const delivery = ["team_id", "shard", "destination_id", "connection_id"]

/** The inserts for the rows of each group. */
const writes: {
  readonly [group in Exclude<Group, "sources">]: (rows: string, single: boolean) => ReadonlyArray<string>
} = {
  requests: (rows) => [declared.requests.insertInto("requests", rows)],
  events: (rows, single) => [
    declared.events.insertInto("events", rows),
    insertInto("deliveries", [{ event_id: "id" }, ...delivery, "due_at"], rows),
    writeFeed(rows, single)
  ],
  ignored: (rows) => [declared.ignored.insertInto("ignored_events", rows)],
  pending: (rows) => [declared.pending.insertInto("pending_routes", rows)],
  linedEvents: (rows, single) => [
    declared.linedEvents.insertInto("events", rows),
    insertInto(
      "deliveries",
      [
        { event_id: "id" },
        ...delivery,
        { due_at: waitsForKey, ordering_key: "key", place: nextPosition, ready_at: "due_at" }
      ],
      rows
    ),
    writeFeed(rows, single)
  ],
  linedPending: (rows) => [declared.linedPending.insertInto("pending_routes", rows)],
  runs: (rows) => [
    declared.runs.insertInto("workflow_runs", rows),
    insertInto("workflow_queue", [{ run_id: "id" }, "team_id", "shard", "workflow_id", { due_at: "at" }], rows)
  ],
  unverified: (rows) => [declared.unverified.insertInto("occurrences", rows)],
  arrivals: (rows) => [declared.arrivals.insertInto("workflow_arrivals", rows)],
  counts: (rows) => [writeCounts(rows)],
  // Written as it is given: taking the counts apart and together again is a tenth of what a small commit costs the server.
  tally: (rows) => [declared.tally.insertInto("rollup_batches", rows)]
}

/** Rows whose (source, version) pair is not current are left out and returned. */
const current = "v <> all ((select ords from stale)::int4[])"

/**
 * One statement, so one transaction: the requests with their events, queue rows, ignored events, routing jobs and counts, as
 * far as the batch has any. Its snapshot is taken after every configuration change that has returned. So a row whose version is
 * still current was routed by the current configuration.
 */
const statementFor = texts((present: Present<Group>): string => {
  const parts: Array<string> = []
  const { rows } = groups.from(present)
  for (const [group, { single }] of present) {
    if (group === "sources") continue
    const from = `${rows.get(group)!} where ${current}`
    // Arrays are taken apart once, whatever their rows are written to.
    const isShared = !single && writes[group]("", single).length > 1
    if (isShared) parts.push(`rows_${group} as materialized (select * from ${from})`)
    for (const write of writes[group](isShared ? `rows_${group}` : from, single))
      parts.push(`write_${parts.length} as (${write})`)
  }
  return `
with stale as materialized (
  select coalesce(array_agg(s.v), '{}'::int4[]) as ords
  from ${rows.get("sources")!}
  where (select case when deleted_at is null then sources.version end from sources where sources.id = s.id)
    is distinct from s.version
), ${parts.join(", ")}
select ords from stale`
})

/** The commit of a batch: its statement, and for each item the number of its pair, which the answer contains if it is stale. */
export const acceptCommit = (
  items: ReadonlyArray<RequestRecord>
): {
  readonly statement: string
  readonly parameters: ReadonlyArray<PgTypes.Parameter>
  readonly pairs: ReadonlyArray<number>
} => {
  const pairOf = new Map<string, number>()
  const rows = groups.lists()
  const pairs: Array<number> = []
  const counts = new Counts()
  const refused = new Map<number, Unverified>()

  for (const item of items) {
    const name = `${item.sourceId}/${item.version}`
    let pair = pairOf.get(name)
    if (pair === undefined) {
      pair = rows.sources.length + 1
      rows.sources.push({ pair, id: item.sourceId, version: item.version })
      pairOf.set(name, pair)
    }
    const accepting = { pair, item }
    pairs.push(pair)
    rows.requests.push(accepting)
    counts.add(accepting, item.sourceId, null, null, item.status)
    if (item.rejectionCause === unverified && item.silent !== true) refuse(refused, accepting)
    for (const of of item.events) {
      const row = { pair, item, of }
      if (of.orderingKey === null) rows.events.push(row)
      else rows.linedEvents.push(row)
      counts.add(accepting, of.connectionId, item.sourceId, of.destinationId, "created")
    }
    for (const of of item.ignored) {
      rows.ignored.push({ pair, item, of })
      counts.add(accepting, of.connectionId, item.sourceId, null, "ignored")
    }
    for (const of of item.pending) {
      if (isOrdered(of)) rows.linedPending.push({ pair, item, of })
      else rows.pending.push({ pair, item, of })
    }
    for (const of of item.runs) rows.runs.push({ pair, item, of })
    for (const of of item.awaiting ?? []) rows.arrivals.push({ pair, item, of })
  }

  const single = items.length === 1 && becoming.every((group) => rows[group].length <= 1)
  const all = [...counts.all]
  if (rows.sources.length > 1) rows.counts.push(...all)
  else rows.tally.push({ pair: 1, team: items[0]!.teamId, counts: all })
  rows.unverified.push(...refused.values())
  const { name, parameters, present } = groups.bind(rows, (group) => group === "tally" || single)
  return { pairs, statement: statementFor(name, present), parameters }
}

/** Ids of requests that are kept of a batch and source. */
const maxSamples = 5

const refuse = (refused: Map<number, Unverified>, { item, pair }: Accepting): void => {
  const known = refused.get(pair)
  const { id, ingestedAt: at, sourceId: source, teamId: team } = item
  if (known === undefined) {
    refused.set(pair, { pair, source, team, samples: [id], n: 1, first: at, last: at })
    return
  }
  known.n++
  known.first = Math.min(known.first, at)
  known.last = Math.max(known.last, at)
  if (known.samples.length < maxSamples) known.samples.push(id)
}

/** Groups in which one request may have several rows. */
const becoming = ["events", "ignored", "pending", "linedEvents", "linedPending", "runs", "arrivals"] as const

const isOrdered = (route: RoutingJob): route is Ordered => route.ordering !== null

/** Which of these requests are stored. */
export const storedLookup = (
  ids: ReadonlyArray<string>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => ({
  statement: "select id from requests where id = any($1::text[]) and id >= $2 and id <= $3",
  parameters: [Columns.text(ids), ...Columns.bounds(ids)]
})
