import type { PgTypes } from "@effect/sql-pg"
import type { StoredHead } from "@tidegate/model/Message"
import { inLine, nextPlace } from "../delivery/OrderingKeys.ts"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"
import { writeFeed } from "./FeedStatement.ts"
import { type Column, type ColumnValues, type Given, Rows } from "./Rows.ts"

/** An event that a request becomes on one connection. */
export interface RoutedEvent {
  readonly id: string
  readonly connectionId: string
  readonly destinationId: string
  readonly shard: number
  /** Unix ms; later than the request's time when a delay rule says so. */
  readonly dueAt: number
  /** Whose line it waits in; null: nobody's. */
  readonly orderingKey: string | null
}

export interface IgnoredEvent {
  readonly id: string
  readonly connectionId: string
  readonly cause: "FILTERED" | "HANDSHAKE"
  /** JSON. */
  readonly meta: string
}

/** A connection whose slow rules decide later, and the shard its actor lives on. */
export interface RoutingJob {
  readonly connectionId: string
  readonly shard: number
  /** Null: its connection keeps no order. Else the line that its event will wait in; without a key in none. */
  readonly line: { readonly key: string | null } | null
}

/** A run of a workflow that a request begins, and the shard that its actor lives on. */
export interface RoutedRun {
  readonly id: string
  readonly workflowId: string
  readonly shard: number
  /** The version of the workflow that it runs by to its end. */
  readonly version: number
  readonly steps: number
}

/** A request as its door wants it stored, with all that its routing made of it. Times are Unix milliseconds. */
export interface RequestRecord extends StoredHead {
  readonly id: string
  readonly teamId: string
  readonly sourceId: string
  /** The version of the source's snapshot that this routing was decided by. */
  readonly version: number
  readonly status: "accepted" | "rejected"
  readonly verified: boolean
  readonly rejectionCause: string | null
  /** The credentials that its sender presented, sealed: headers and query have masks in their place. Null: none. */
  readonly presented: string | null
  readonly body: Uint8Array | null
  readonly bodySize: number
  readonly externalId: string | null
  readonly originalIp: string | null
  readonly ingestedAt: number
  readonly events: ReadonlyArray<RoutedEvent>
  readonly ignored: ReadonlyArray<IgnoredEvent>
  readonly pending: ReadonlyArray<RoutingJob>
  readonly runs: ReadonlyArray<RoutedRun>
  /** How many of the events go through a tunnel. */
  readonly cliEvents: number
}

/** A request of a batch. `pair`: the place of its (source, version) pair, from 1. */
interface Accepting {
  readonly pair: number
  readonly item: RequestRecord
}

/** What one of them becomes on a connection or a workflow. */
interface Becoming<A> extends Accepting {
  readonly of: A
}

/** How often something is counted under a key. */
interface Count {
  readonly pair: number
  readonly key: string
  readonly source: string | null
  readonly destination: string | null
  readonly measure: string
  readonly minute: number
  readonly team: string
  n: bigint
}

type Lined = RoutingJob & { readonly line: { readonly key: string | null } }

/** What rows of different groups have of their request. */
const v: Column<Accepting> = ["v", "int4", ({ pair }) => pair]
const team: Column<Accepting> = ["team_id", "text", ({ item }) => item.teamId]
const request: Column<Accepting> = ["request_id", "text", ({ item }) => item.id]
const source: Column<Accepting> = ["source_id", "text", ({ item }) => item.sourceId]
const at: Column<Accepting> = ["at", "timestamptz", ({ item }) => item.ingestedAt]
const connection: Column<Becoming<{ readonly connectionId: string }>> = [
  "connection_id",
  "text",
  ({ of }) => of.connectionId
]

const eventColumns: ReadonlyArray<Column<Becoming<RoutedEvent>>> = [
  v,
  ["id", "text", ({ of }) => of.id],
  team,
  request,
  connection,
  source,
  ["destination_id", "text", ({ of }) => of.destinationId],
  ["shard", "int2", ({ of }) => of.shard],
  ["due_at", "timestamptz", ({ of }) => of.dueAt],
  at
]

const pendingColumns: ReadonlyArray<Column<Becoming<RoutingJob>>> = [
  v,
  ["shard", "int2", ({ of }) => of.shard],
  connection,
  request,
  team,
  source,
  at
]

/** The rows of a batch, by what they become. `v` is the place of the row's (source, version) pair. */
const groups = {
  sources: new Rows<{ readonly pair: number; readonly id: string; readonly version: number }>([
    ["v", "int4", ({ pair }) => pair],
    ["id", "text", ({ id }) => id],
    ["version", "int8", ({ version }) => BigInt(version)]
  ]),
  // Most batches say the same in the last six columns: posts that are accepted, presented no credentials, and go through no tunnel.
  requests: new Rows<Accepting>(
    [
      v,
      ["id", "text", ({ item }) => item.id],
      team,
      source,
      ["verified", "bool", ({ item }) => item.verified],
      ["path", "text", ({ item }) => item.path],
      ["query", "text", ({ item }) => item.query],
      ["headers", "text", ({ item }) => item.headers],
      ["body", "bytea", ({ item }) => item.body],
      ["body_size", "int4", ({ item }) => item.bodySize],
      ["ip", "text", ({ item }) => item.originalIp],
      // Most pending routes become events: see `SettleStatement.ts`.
      ["events_count", "int4", ({ item }) => item.events.length + item.pending.length],
      ["ignored_count", "int4", ({ item }) => item.ignored.length],
      at,
      ["method", "text", ({ item }) => item.method],
      ["external_id", "text", ({ item }) => item.externalId],
      ["presented", "text", ({ item }) => item.presented],
      ["status", "text", ({ item }) => item.status],
      ["cause", "text", ({ item }) => item.rejectionCause],
      ["cli_events_count", "int4", ({ item }) => item.cliEvents]
    ],
    6
  ),
  events: new Rows(eventColumns),
  ignored: new Rows<Becoming<IgnoredEvent>>([
    v,
    ["id", "text", ({ of }) => of.id],
    team,
    request,
    connection,
    source,
    ["cause", "text", ({ of }) => of.cause],
    ["meta", "text", ({ of }) => of.meta],
    at
  ]),
  pending: new Rows(pendingColumns),
  linedEvents: new Rows<Becoming<RoutedEvent>>([...eventColumns, ["key", "text", ({ of }) => of.orderingKey]]),
  linedPending: new Rows<Becoming<Lined>>([...pendingColumns, ["key", "text", ({ of }) => of.line.key]]),
  runs: new Rows<Becoming<RoutedRun>>([
    v,
    ["id", "text", ({ of }) => of.id],
    team,
    ["workflow_id", "text", ({ of }) => of.workflowId],
    request,
    source,
    ["shard", "int2", ({ of }) => of.shard],
    ["version", "int4", ({ of }) => of.version],
    ["steps", "int2", ({ of }) => of.steps],
    at
  ]),
  counts: new Rows<Count>([
    ["v", "int4", ({ pair }) => pair],
    ["key_id", "text", ({ key }) => key],
    ["source_id", "text", ({ source }) => source],
    ["destination_id", "text", ({ destination }) => destination],
    ["measure", "text", ({ measure }) => measure],
    ["minute", "timestamptz", ({ minute }) => minute],
    ["team_id", "text", ({ team }) => team],
    ["n", "int8", ({ n }) => n]
  ])
}

type Group = keyof typeof groups

/** The groups that not every batch has rows for. */
const optional = ["events", "ignored", "pending", "linedEvents", "linedPending", "runs"] as const

/** What each group's rows become. */
const writes: {
  readonly [group in Exclude<Group, "sources">]: (rows: string, single: boolean) => ReadonlyArray<string>
} = {
  requests: (rows) => [
    `insert into requests (id, team_id, source_id, status, verified, rejection_cause, method, path, query, headers,
      presented, body, body_size, external_id, original_ip, events_count, ignored_count, cli_events_count, ingested_at, created_at, updated_at)
    select id, team_id, source_id, status, verified, cause, method, path, query, headers, presented, body,
      body_size, external_id, ip, events_count, ignored_count, cli_events_count, at, at, at
    from ${rows}`
  ],
  events: (rows, single) => [
    `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, trigger, due_at,
      ingested_at, created_at, updated_at)
    select id, team_id, request_id, connection_id, source_id, destination_id, 'PENDING', 'INITIAL', due_at, at, at, at
    from ${rows}`,
    `insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
    select id, team_id, shard, destination_id, connection_id, due_at
    from ${rows}`,
    writeFeed(rows, single)
  ],
  ignored: (rows) => [
    `insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
    select id, team_id, request_id, connection_id, source_id, cause, meta::jsonb, at
    from ${rows}`
  ],
  pending: (rows) => [
    `insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at, counted)
    select shard, connection_id, request_id, team_id, source_id, at, true
    from ${rows}`
  ],
  linedEvents: (rows, single) => [
    `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, trigger, due_at,
      ordering_key, ingested_at, created_at, updated_at)
    select id, team_id, request_id, connection_id, source_id, destination_id, 'PENDING', 'INITIAL', due_at, key, at, at, at
    from ${rows}`,
    `insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at, ordering_key, place, ready_at)
    select id, team_id, shard, destination_id, connection_id, ${inLine}, key, ${nextPlace}, due_at
    from ${rows}`,
    writeFeed(rows, single)
  ],
  linedPending: (rows) => [
    `insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at, counted, ordering_key, place)
    select shard, connection_id, request_id, team_id, source_id, at, true, key, ${nextPlace}
    from ${rows}`
  ],
  runs: (rows) => [
    `insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, created_at, updated_at)
    select id, team_id, workflow_id, request_id, source_id, version, 'queued', steps, at, at
    from ${rows}`,
    `insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
    select id, team_id, shard, workflow_id, at
    from ${rows}`
  ],
  counts: (rows) => [writeCounts(rows)]
}

/** Which groups a batch has rows of, and how these are given. */
type Shape = ReadonlyArray<readonly [group: Group, given: Given]>

/** Rows whose (source, version) pair is not current are left out, and answered. */
const current = "v <> all ((select ords from stale)::int4[])"

/**
 * One statement, hence one transaction: the requests with their events, queue rows, ignored events, pending routes and
 * counts, as far as the batch has any. Its snapshot is taken after every configuration change that has returned, so a
 * row whose version is still current was routed by what holds now.
 */
const buildStatement = (shape: Shape): string => {
  let parameter = 1
  const parts: Array<string> = []
  let sources = ""
  for (const [group, given] of shape) {
    const from = groups[group].from(parameter, given, group === "sources" ? "s" : "r")
    parameter += groups[group].width
    if (group === "sources") {
      sources = from
      continue
    }
    const rows = `${from} where ${current}`
    // Arrays are taken apart once, whatever their rows are written to.
    const isShared = !given.single && writes[group]("", given.single).length > 1
    if (isShared) parts.push(`rows_${group} as materialized (select * from ${rows})`)
    for (const write of writes[group](isShared ? `rows_${group}` : rows, given.single))
      parts.push(`write_${parts.length} as (${write})`)
  }
  return `
with stale as materialized (
  select coalesce(array_agg(s.v), '{}'::int4[]) as ords
  from ${sources}
  where (select case when deleted_at is null then sources.version end from sources where sources.id = s.id)
    is distinct from s.version
), ${parts.join(", ")}
select ords from stale`
}

const statements = new Map<string, string>()

const statementFor = (shape: Shape): string => {
  const name = shape.map(([group, { single, uniform }]) => `${group} ${single} ${uniform}`).join()
  let statement = statements.get(name)
  if (statement === undefined) {
    statement = buildStatement(shape)
    statements.set(name, statement)
  }
  return statement
}

/** Counts by (pair, key, measure, minute), gathered over a batch. */
class Counts {
  readonly #byKey = new Map<string, Count>()

  /** A pair's source and its team are always the same, and so is a connection's destination. */
  add(
    { item, pair }: Accepting,
    key: string,
    source: string | null,
    destination: string | null,
    measure: string
  ): void {
    const minute = item.ingestedAt - (item.ingestedAt % 60_000)
    const name = `${pair}/${measure}/${key}/${minute}`
    const count = this.#byKey.get(name)
    if (count !== undefined) count.n++
    else this.#byKey.set(name, { pair, key, source, destination, measure, minute, team: item.teamId, n: 1n })
  }

  get rows(): ReadonlyArray<Count> {
    return [...this.#byKey.values()]
  }
}

/** The commit of a batch: its statement, and for each item the pair (1-based) that the answer names when it was stale. */
export const acceptCommit = (
  items: ReadonlyArray<RequestRecord>
): {
  readonly statement: string
  readonly parameters: ReadonlyArray<PgTypes.Parameter>
  readonly pairs: ReadonlyArray<number>
} => {
  const pairOf = new Map<string, number>()
  const sources: Array<{ readonly pair: number; readonly id: string; readonly version: number }> = []
  const requests: Array<Accepting> = []
  const events: Array<Becoming<RoutedEvent>> = []
  const linedEvents: Array<Becoming<RoutedEvent>> = []
  const ignored: Array<Becoming<IgnoredEvent>> = []
  const pending: Array<Becoming<RoutingJob>> = []
  const linedPending: Array<Becoming<Lined>> = []
  const runs: Array<Becoming<RoutedRun>> = []
  const counts = new Counts()

  for (const item of items) {
    const name = `${item.sourceId}/${item.version}`
    let pair = pairOf.get(name)
    if (pair === undefined) {
      pair = sources.length + 1
      sources.push({ pair, id: item.sourceId, version: item.version })
      pairOf.set(name, pair)
    }
    const accepting = { pair, item }
    requests.push(accepting)
    counts.add(accepting, item.sourceId, null, null, item.status)
    for (const of of item.events) {
      const row = { pair, item, of }
      if (of.orderingKey === null) events.push(row)
      else linedEvents.push(row)
      counts.add(accepting, of.connectionId, item.sourceId, of.destinationId, "created")
    }
    for (const of of item.ignored) {
      ignored.push({ pair, item, of })
      counts.add(accepting, of.connectionId, item.sourceId, null, "ignored")
    }
    for (const of of item.pending) {
      if (isLined(of)) linedPending.push({ pair, item, of })
      else pending.push({ pair, item, of })
    }
    for (const of of item.runs) runs.push({ pair, item, of })
  }

  const values: { readonly [group in Group]: ColumnValues } = {
    sources: groups.sources.valuesOf(sources),
    requests: groups.requests.valuesOf(requests),
    events: groups.events.valuesOf(events),
    ignored: groups.ignored.valuesOf(ignored),
    pending: groups.pending.valuesOf(pending),
    linedEvents: groups.linedEvents.valuesOf(linedEvents),
    linedPending: groups.linedPending.valuesOf(linedPending),
    runs: groups.runs.valuesOf(runs),
    counts: groups.counts.valuesOf(counts.rows)
  }
  const present: ReadonlyArray<Group> = [
    "sources",
    "requests",
    ...optional.filter((group) => values[group][0]!.length > 0),
    "counts"
  ]
  const single = items.length === 1 && optional.every((group) => values[group][0]!.length <= 1)
  // One request is counted under several keys.
  const shape = present.map((group) => {
    return [group, groups[group].given(values[group], single && group !== "counts")] as const
  })
  return {
    pairs: requests.map(({ pair }) => pair),
    statement: statementFor(shape),
    parameters: shape.flatMap(([group, given]) => groups[group].bind(values[group], given))
  }
}

const isLined = (route: RoutingJob): route is Lined => route.line !== null

/** Which of these requests are stored. */
export const storedLookup = (
  ids: ReadonlyArray<string>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => ({
  statement: "select id from requests where id = any($1::text[]) and id >= $2 and id <= $3",
  parameters: [Columns.text(ids), ...Columns.bounds(ids)]
})
