import type { PgTypes } from "@effect/sql-pg"
import type { StoredHead } from "@tidegate/model/Message"
import { inLine, nextPlace } from "../Lines.ts"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"

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
export interface PendingRoute {
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
  readonly pending: ReadonlyArray<PendingRoute>
  readonly runs: ReadonlyArray<RoutedRun>
  /** How many of the events go through a tunnel. */
  readonly cliEvents: number
}

const groups = {
  sources: ["int4", "text", "int8"],
  requests: [
    "int4", // which (source, version) pair
    "text", // id
    "text", // team_id
    "text", // source_id
    "bool", // verified
    "text", // path
    "text", // query
    "text", // headers
    "bytea", // body
    "int4", // body_size
    "text", // original_ip
    "int4", // events_count
    "int4", // ignored_count
    "timestamptz", // ingested_at
    "text", // method
    "text", // external_id
    "text", // presented
    "text", // status
    "text", // rejection_cause
    "int4" // cli_events_count
  ],
  events: ["int4", "text", "text", "text", "text", "text", "text", "int2", "timestamptz", "timestamptz"],
  ignored: ["int4", "text", "text", "text", "text", "text", "text", "text", "timestamptz"],
  pending: ["int4", "int2", "text", "text", "text", "text", "timestamptz"],
  // The same in line: with an ordering key more.
  linedEvents: ["int4", "text", "text", "text", "text", "text", "text", "int2", "timestamptz", "timestamptz", "text"],
  linedPending: ["int4", "int2", "text", "text", "text", "text", "timestamptz", "text"],
  runs: ["int4", "text", "text", "text", "text", "text", "int2", "int4", "int2", "timestamptz"],
  counts: ["int4", "text", "text", "text", "text", "timestamptz", "text", "int8"]
} as const

type Group = keyof typeof groups

/** The groups that not every batch has rows for. */
const optional = ["events", "ignored", "pending", "linedEvents", "linedPending", "runs"] as const

/** So many columns of requests, the last ones, say the same of most: accepted posts that presented no credentials, and go through no tunnel. */
const mostlyUniform = 6

/** The names of a group's columns. `v` is the place of the row's (source, version) pair. */
const columns: { readonly [group in Exclude<Group, "sources">]: string } = {
  requests: `v, id, team_id, source_id, verified, path, query, headers, body, body_size, ip, events_count, ignored_count, at,
    method, external_id, presented, status, cause, cli_events_count`,
  events: "v, id, team_id, request_id, connection_id, source_id, destination_id, shard, due_at, at",
  ignored: "v, id, team_id, request_id, connection_id, source_id, cause, meta, at",
  pending: "v, shard, connection_id, request_id, team_id, source_id, at",
  linedEvents: "v, id, team_id, request_id, connection_id, source_id, destination_id, shard, due_at, at, key",
  linedPending: "v, shard, connection_id, request_id, team_id, source_id, at, key",
  runs: "v, id, team_id, workflow_id, request_id, source_id, shard, version, steps, at",
  counts: "v, key_id, source_id, destination_id, measure, minute, team_id, n"
}

/** What each group's rows become. */
const writes: { readonly [group in Exclude<Group, "sources">]: (rows: string) => ReadonlyArray<string> } = {
  requests: (rows) => [
    `insert into requests (id, team_id, source_id, status, verified, rejection_cause, method, path, query, headers,
      presented, body, body_size, external_id, original_ip, events_count, ignored_count, cli_events_count, ingested_at, created_at, updated_at)
    select id, team_id, source_id, status, verified, cause, method, path, query, headers, presented, body,
      body_size, external_id, ip, events_count, ignored_count, cli_events_count, at, at, at
    from ${rows}`
  ],
  events: (rows) => [
    `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, trigger, due_at,
      ingested_at, created_at, updated_at)
    select id, team_id, request_id, connection_id, source_id, destination_id, 'PENDING', 'INITIAL', due_at, at, at, at
    from ${rows}`,
    `insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
    select id, team_id, shard, destination_id, connection_id, due_at
    from ${rows}`
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
  linedEvents: (rows) => [
    `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, trigger, due_at,
      ordering_key, ingested_at, created_at, updated_at)
    select id, team_id, request_id, connection_id, source_id, destination_id, 'PENDING', 'INITIAL', due_at, key, at, at, at
    from ${rows}`,
    `insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at, ordering_key, place, ready_at)
    select id, team_id, shard, destination_id, connection_id, ${inLine}, key, ${nextPlace}, due_at
    from ${rows}`
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

/** Which groups a batch has rows of, whether it is of one request, and whether the last columns of its requests are uniform. */
interface Shape {
  readonly present: ReadonlyArray<Group>
  readonly single: boolean
  readonly uniform: boolean
}

const uniformIn = (group: Group, { uniform }: Shape): number => (uniform && group === "requests" ? mostlyUniform : 0)

/** Whether a group's row is given by itself. One request is counted under several keys. */
const isSingle = (group: Group, single: boolean): boolean => single && group !== "counts"

/** Rows whose (source, version) pair is not current are left out, and answered. */
const current = "v <> all ((select ords from stale)::int4[])"

/**
 * One statement, hence one transaction: the requests with their events, queue rows, ignored events, pending routes and
 * counts, as far as the batch has any. Its snapshot is taken after every configuration change that has returned, so a
 * row whose version is still current was routed by what holds now.
 */
const buildStatement = (shape: Shape): string => {
  const { present, single } = shape
  let parameter = 1
  const parts: Array<string> = []
  let sources = ""
  for (const group of present) {
    const given = Columns.rowsFrom(groups[group], parameter, isSingle(group, single), uniformIn(group, shape))
    parameter += groups[group].length
    if (group === "sources") {
      sources = given
      continue
    }
    const rows = `${given} as r (${columns[group]}) where ${current}`
    // Arrays are taken apart once, whatever their rows are written to.
    const isShared = !isSingle(group, single) && writes[group]("").length > 1
    if (isShared) parts.push(`rows_${group} as materialized (select * from ${rows})`)
    for (const write of writes[group](isShared ? `rows_${group}` : rows))
      parts.push(`write_${parts.length} as (${write})`)
  }
  return `
with stale as materialized (
  select coalesce(array_agg(s.v), '{}'::int4[]) as ords
  from ${sources} as s (v, id, version)
  where (select case when deleted_at is null then sources.version end from sources where sources.id = s.id)
    is distinct from s.version
), ${parts.join(", ")}
select ords from stale`
}

const statements = new Map<string, string>()

const statementFor = (shape: Shape): string => {
  const name = `${shape.present.join()} ${shape.single} ${shape.uniform}`
  let statement = statements.get(name)
  if (statement === undefined) {
    statement = buildStatement(shape)
    statements.set(name, statement)
  }
  return statement
}

/** Counts by (pair, key, measure, minute), gathered over a batch. */
class Counts {
  readonly #byKey = new Map<
    string,
    [
      pair: number,
      key: string,
      source: string | null,
      destination: string | null,
      measure: string,
      minute: number,
      team: string,
      n: bigint
    ]
  >()

  /** A pair's source and its team are always the same, and so is a connection's destination. */
  add(
    pair: number,
    key: string,
    source: string | null,
    destination: string | null,
    measure: string,
    at: number,
    team: string
  ): void {
    const minute = at - (at % 60_000)
    const name = `${pair}/${measure}/${key}/${minute}`
    const row = this.#byKey.get(name)
    if (row === undefined) this.#byKey.set(name, [pair, key, source, destination, measure, minute, team, 1n])
    else row[7]++
  }

  columns(): ReadonlyArray<ReadonlyArray<unknown>> {
    const rows = [...this.#byKey.values()]
    return ([0, 1, 2, 3, 4, 5, 6, 7] as const).map((index) => rows.map((row) => row[index]))
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
  const sourceIds: Array<string> = []
  const versions: Array<bigint> = []
  const pairs: Array<number> = []
  const r: Array<Array<unknown>> = groups.requests.map(() => [])
  const e: Array<Array<unknown>> = groups.events.map(() => [])
  const g: Array<Array<unknown>> = groups.ignored.map(() => [])
  const p: Array<Array<unknown>> = groups.pending.map(() => [])
  const le: Array<Array<unknown>> = groups.linedEvents.map(() => [])
  const lp: Array<Array<unknown>> = groups.linedPending.map(() => [])
  const w: Array<Array<unknown>> = groups.runs.map(() => [])
  const counts = new Counts()

  for (const item of items) {
    const name = `${item.sourceId}/${item.version}`
    let pair = pairOf.get(name)
    if (pair === undefined) {
      sourceIds.push(item.sourceId)
      versions.push(BigInt(item.version))
      pair = sourceIds.length
      pairOf.set(name, pair)
    }
    pairs.push(pair)
    const at = item.ingestedAt
    push(
      r,
      pair,
      item.id,
      item.teamId,
      item.sourceId,
      item.verified,
      item.path,
      item.query,
      item.headers,
      item.body,
      item.bodySize,
      item.originalIp,
      // Most pending routes become events: see `SettleStatement.ts`.
      item.events.length + item.pending.length,
      item.ignored.length,
      at,
      item.method,
      item.externalId,
      item.presented,
      item.status,
      item.rejectionCause,
      item.cliEvents
    )
    counts.add(pair, item.sourceId, null, null, item.status, at, item.teamId)
    for (const event of item.events) {
      const { id, connectionId, destinationId, shard, dueAt, orderingKey: key } = event
      if (key === null)
        push(e, pair, id, item.teamId, item.id, connectionId, item.sourceId, destinationId, shard, dueAt, at)
      else push(le, pair, id, item.teamId, item.id, connectionId, item.sourceId, destinationId, shard, dueAt, at, key)
      counts.add(pair, connectionId, item.sourceId, destinationId, "created", at, item.teamId)
    }
    for (const { id, connectionId, cause, meta } of item.ignored) {
      push(g, pair, id, item.teamId, item.id, connectionId, item.sourceId, cause, meta, at)
      counts.add(pair, connectionId, item.sourceId, null, "ignored", at, item.teamId)
    }
    for (const { connectionId, line, shard } of item.pending) {
      if (line === null) push(p, pair, shard, connectionId, item.id, item.teamId, item.sourceId, at)
      else push(lp, pair, shard, connectionId, item.id, item.teamId, item.sourceId, at, line.key)
    }
    for (const { id, shard, steps, version, workflowId } of item.runs) {
      push(w, pair, id, item.teamId, workflowId, item.id, item.sourceId, shard, version, steps, at)
    }
  }

  const rows = {
    sources: [[...pairOf.values()], sourceIds, versions],
    requests: r,
    events: e,
    ignored: g,
    pending: p,
    linedEvents: le,
    linedPending: lp,
    runs: w,
    counts: counts.columns()
  }
  const present: ReadonlyArray<Group> = [
    "sources",
    "requests",
    ...optional.filter((group) => rows[group][0]!.length > 0),
    "counts"
  ]
  const single = items.length === 1 && optional.every((group) => rows[group][0]!.length <= 1)
  const shape = { present, single, uniform: !single && Columns.areUniform(r, mostlyUniform) }
  return {
    pairs,
    statement: statementFor(shape),
    parameters: present.flatMap((group) =>
      Columns.bind(groups[group], rows[group], isSingle(group, single), uniformIn(group, shape))
    )
  }
}

const push = (columns: ReadonlyArray<Array<unknown>>, ...values: ReadonlyArray<unknown>): void => {
  for (let i = 0; i < values.length; i++) columns[i]!.push(values[i])
}

/** Which of these requests are stored. */
export const storedLookup = (
  ids: ReadonlyArray<string>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => ({
  statement: "select id from requests where id = any($1::text[]) and id >= $2 and id <= $3",
  parameters: [Columns.text(ids), ...Columns.bounds(ids)]
})
