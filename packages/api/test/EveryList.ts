import type { World } from "./ListWorld.ts"

/** What is known of every list of the contract: one row each. */

export interface Row {
  readonly [member: string]: unknown
}

/** A value of a filter, and which rows of the whole list it leaves. */
type Filter = (world: World, rows: ReadonlyArray<Row>) => readonly [value: string, holds: (row: Row) => boolean]

export interface List {
  readonly path: string
  /** What the path's id is. */
  readonly id?: (world: World) => string
  /** Where its rows are, of a list that has pages. */
  readonly table?: string
  /** What makes a row the first of the list, where its id does not. */
  readonly first?: (id: string, at: Date) => object
  /** Whether its rows can be deleted, although their ids do not order them. */
  readonly deletes?: true
  /** What it takes to be whole: it is narrowed by default. */
  readonly whole?: string
  readonly filters: Readonly<Record<string, Filter>>
  /** What it takes beside, and what narrows nothing. */
  readonly also?: ReadonlyArray<string>
  readonly orders: ReadonlyArray<string>
  readonly dir: boolean
  /** Its order when none is asked for; newest first unless told. */
  readonly byDefault?: "asc"
  /** The largest limit; null: it has none. */
  readonly most: number | null
  /** A limit that is less than one is taken as one: so are those of document 2. */
  readonly clamps?: true
  readonly cursors: "none" | "onward" | "both"
  readonly envelope: ReadonlyArray<string>
}

/** Rows whose member is the one of the row at a place. */
const as =
  (member: string, place = 0): Filter =>
  (_, rows) => {
    const value = rows.at(place)?.[member]
    return [String(value), (row) => row[member] === value]
  }

/** Rows whose member is one of these, separated by commas. */
const among =
  (member: string, of: (world: World) => ReadonlyArray<string>): Filter =>
  (world) => {
    const values = of(world)
    return [values.join(","), (row) => values.includes(String(row[member]))]
  }

const is =
  (member: string, value: string): Filter =>
  () => [value, (row) => String(row[member]) === value]

const since: Filter = ({ middle }) => [middle, (row) => String(row["created_at"]) >= middle]
const until: Filter = ({ middle }) => [middle, (row) => String(row["created_at"]) <= middle]

const window = { from: since, start: since, to: until, end: until }
const searched = (filter: Filter) => ({ q: filter, search: filter, search_term: filter })
const connections = (filter: Filter) => ({ connection_id: filter, webhook_id: filter })
const operations = (filter: Filter) => ({ batch_operation_id: filter, bulk_operation_id: filter })

const firstAndThird =
  (member: string): Filter =>
  (_, rows) => {
    const values = [rows[0]?.[member], rows[2]?.[member]]
    return [values.join(","), (row) => values.includes(row[member])]
  }

const every = ["count", "next_cursor", "has_more", "models"]

const resource = {
  orders: ["name", "created_at", "updated_at"],
  dir: true,
  most: 255,
  cursors: "onward",
  envelope: [...every, "pagination"],
  first: (id: string, at: Date) => ({ name: `!${id}`, created_at: at, updated_at: at })
} as const

const listed = { id: firstAndThird("id"), ids: firstAndThird("id"), name: as("name", 1) }
const enabled: Filter = () => ["false", (row) => row["disabled_at"] === null]

const totalled = [...every, "total", "total_exact", "applied_range"]
const sub = [...every, "pagination", "next", "prev"]
const paged = [...totalled, "limit", "next", "prev", "pagination"]

/** The place of a request's row tells what it went to: the n-th of the history went to the n-th connection. */
const routed: Filter = ({ connections, request }, rows) => {
  // The request that became more than the others went to this connection too.
  const connection = connections[4]!
  const expected = new Set([
    ...rows.filter((row) => String(row["external_id"]).match(/^ext-(?:4|24|44)$/)).map(({ id }) => id),
    request
  ])
  return [connection, (row) => expected.has(row["id"])]
}

/** Runs by the sources that their requests came to. */
const ofSources: Filter = ({ sources }) => {
  const values = sources.slice(1, 3)
  return [values.join(","), (row) => values.includes((row["source"] as { readonly id: string }).id)]
}

/** What lists of runs take beside their states. */
const ofRuns = {
  outcome: is("outcome", "filtered"),
  error_code: is("error_code", "TIMEOUT"),
  error_step_id: is("error_step_id", "step_1"),
  started_from: since,
  started_to: until,
  label: as("label", 2),
  label_prefix: (): ReturnType<Filter> => ["odd", (row) => String(row["label"]).startsWith("odd")],
  text: as("request_id", 3)
}

export const lists: ReadonlyArray<List> = [
  {
    path: "/sources",
    table: "sources",
    ...resource,
    filters: { ...listed, type: is("type", "STRIPE"), include_disabled: enabled }
  },
  {
    path: "/destinations",
    table: "destinations",
    ...resource,
    filters: { ...listed, type: is("type", "MOCK_API"), include_disabled: enabled }
  },
  {
    path: "/transformations",
    table: "transformations",
    ...resource,
    filters: listed,
    also: ["include_counts", "include_metrics"]
  },
  { path: "/actions", table: "actions", ...resource, clamps: true, filters: { ...listed, include_disabled: enabled } },
  { path: "/filters", table: "filters", ...resource, clamps: true, byDefault: "asc", filters: listed },
  {
    path: "/workflows",
    table: "workflows",
    clamps: true,
    ...resource,
    filters: {
      ...listed,
      ...searched(() => ["FLOW 2", (row) => row["name"] === "flow 2"]),
      status: is("status", "paused"),
      source_id: among("source_id", ({ sources }) => sources.slice(1, 3))
    }
  },
  {
    path: "/workflows/{id}/runs",
    clamps: true,
    id: ({ workflow }) => workflow,
    table: "workflow_runs",
    filters: { ...window, ...ofRuns, status: is("status", "failed") },
    orders: [],
    dir: false,
    most: 255,
    cursors: "onward",
    envelope: totalled
  },
  {
    path: "/workflow-activity",
    clamps: true,
    filters: {
      ...window,
      q: as("request_id", 20),
      search: as("request_id", 5),
      source_id: ofSources,
      source: ofSources,
      ...ofRuns,
      status: is("status", "failed")
    },
    orders: [],
    dir: false,
    most: 100,
    table: "workflow_runs",
    cursors: "onward",
    envelope: totalled
  },
  {
    path: "/workflow-templates",
    filters: {},
    orders: [],
    dir: false,
    most: null,
    cursors: "none",
    envelope: every
  },
  {
    path: "/connections",
    table: "connections",
    ...resource,
    filters: {
      ...listed,
      include_disabled: enabled,
      source_id: among("source_id", ({ sources }) => sources.slice(0, 2)),
      destination_id: among("destination_id", ({ destinations }) => destinations.slice(3, 5)),
      paused: () => ["true", (row) => row["paused_at"] !== null]
    },
    also: ["type"]
  },
  {
    path: "/requests",
    table: "requests",
    filters: {
      ...window,
      ...searched(as("external_id", 20)),
      ...connections(routed),
      ...operations(({ operation }) => [operation, (row) => row["retry_operation_id"] === operation]),
      status: is("status", "rejected"),
      verified: is("verified", "true"),
      source_id: among("source_id", ({ sources }) => sources.slice(1, 3)),
      rejection_cause: is("rejection_cause", "SOURCE_AUTH_FAILED"),
      is_retry: is("is_retry", "true"),
      retry_kind: is("retry_kind", "single")
    },
    also: ["include"],
    orders: [],
    dir: false,
    most: 100,
    cursors: "onward",
    envelope: [...paged, "partial", "unavailable_shard_count"]
  },
  {
    path: "/events",
    table: "events",
    filters: {
      ...window,
      ...searched(as("id", 20)),
      ...connections(among("connection_id", ({ connections }) => connections.slice(6, 8))),
      ...operations(({ operation }) => [operation, (row) => row["retry_operation_id"] === operation]),
      status: among("status", () => ["FAILED", "CANCELLED"]),
      request_id: as("request_id", 5),
      source_id: among("source_id", ({ sources }) => sources.slice(1, 3)),
      destination_id: among("destination_id", ({ destinations }) => destinations.slice(3, 5)),
      is_retry: is("is_retry", "true"),
      retry_kind: is("retry_kind", "bulk"),
      error_code: is("error_code", "BAD_RESPONSE"),
      response_status: is("response_status", "500"),
      resolved: () => ["true", (row) => row["resolved_at"] !== null]
    },
    also: ["include", "batch_operation_scope", "after"],
    orders: [],
    dir: false,
    most: 100,
    cursors: "onward",
    envelope: paged
  },
  {
    path: "/ignored_events",
    table: "ignored_events",
    filters: {
      ...window,
      ...connections(among("connection_id", ({ connections }) => connections.slice(10, 12))),
      source_id: among("source_id", ({ sources }) => sources.slice(4, 5)),
      request_id: as("request_id"),
      cause: is("cause", "DEDUPLICATED")
    },
    orders: [],
    dir: false,
    most: 100,
    cursors: "onward",
    envelope: paged
  },
  {
    path: "/attempts",
    table: "attempts",
    filters: {
      ...window,
      ...searched(is("error_code", "BAD_RESPONSE")),
      event_id: firstAndThird("event_id"),
      request_id: as("request_id", 3),
      ...connections(among("connection_id", ({ connections }) => connections.slice(10, 12))),
      destination_id: among("destination_id", ({ destinations }) => destinations.slice(6, 8)),
      status: is("status", "FAILED"),
      error_code: is("error_code", "BAD_RESPONSE"),
      response_status: is("response_status", "200")
    },
    orders: ["created_at"],
    dir: true,
    most: 255,
    cursors: "both",
    envelope: [...every, "pagination"]
  },
  {
    path: "/transformations/{id}/executions",
    id: ({ transformation }) => transformation,
    table: "executions",
    filters: { ...window, log_level: is("log_level", "error") },
    orders: [],
    dir: false,
    most: 255,
    cursors: "onward",
    envelope: paged
  },
  {
    path: "/requests/{id}/events",
    id: ({ request }) => request,
    table: "events",
    filters: {
      ...connections(among("connection_id", ({ connections }) => connections.slice(3, 5))),
      id: firstAndThird("id"),
      status: is("status", "FAILED"),
      source_id: among("source_id", ({ sources }) => sources.slice(3, 4)),
      destination_id: among("destination_id", ({ destinations }) => destinations.slice(0, 1))
    },
    orders: [],
    dir: false,
    most: 255,
    cursors: "onward",
    envelope: sub
  },
  {
    path: "/requests/{id}/ignored_events",
    id: ({ request }) => request,
    table: "ignored_events",
    filters: {
      ...connections(among("connection_id", ({ connections }) => connections.slice(10, 12))),
      id: firstAndThird("id")
    },
    orders: [],
    dir: false,
    most: 255,
    cursors: "onward",
    envelope: sub
  },
  ...["requests", "events", "ignored_events", "workflow_runs"].map((of): List => ({
    path: `/${of}/bulk_operations`,
    filters: {
      bucket: () => ["ongoing", (row) => row["finished_at"] === null],
      view: () => ["history", (row) => row["finished_at"] !== null]
    },
    orders: [],
    dir: false,
    table: "bulk_operations",
    most: 255,
    cursors: "onward",
    envelope: every
  })),
  {
    path: "/request-fixtures",
    filters: { ...searched(as("name", 1)), source_id: among("source_id", ({ sources }) => [sources[4]!]) },
    orders: [],
    dir: false,
    table: "request_fixtures",
    most: 255,
    cursors: "onward",
    envelope: every
  },
  {
    path: "/sources/channel-alerts",
    table: "channel_alerts",
    first: (id, at) => ({ last_seen_at: at, source_id: id }),
    deletes: true,
    whole: "status=all",
    filters: { status: is("status", "active") },
    orders: [],
    dir: false,
    most: 100,
    clamps: true,
    cursors: "onward",
    envelope: every
  },
  {
    path: "/shares",
    table: "request_shares",
    filters: { request_id: firstAndThird("request_id"), status: is("status", "revoked") },
    orders: [],
    dir: false,
    most: 255,
    cursors: "onward",
    envelope: every
  },
  {
    path: "/issues",
    table: "issues",
    first: (id, at) => ({ last_seen_at: at, error_code: id }),
    deletes: true,
    filters: { destination_id: firstAndThird("destination_id"), status: is("status", "resolved") },
    orders: [],
    dir: false,
    most: 255,
    cursors: "onward",
    envelope: every
  },
  {
    path: "/sources/channels",
    filters: {
      status: () => ["error", ({ channel }) => (channel as { readonly status: string }).status === "error"]
    },
    orders: [],
    dir: false,
    most: null,
    cursors: "none",
    envelope: every
  },
  ...["/sources/{id}/runs", "/sources/{id}/activity"].map((path): List => ({
    path,
    id: ({ itemSource }) => itemSource,
    filters: {},
    orders: [],
    dir: false,
    table: "source_runs",
    most: 100,
    clamps: true,
    cursors: "onward",
    envelope: every
  })),
  {
    path: "/provider-accounts",
    table: "provider_accounts",
    filters: {},
    orders: [],
    dir: false,
    most: 255,
    cursors: "onward",
    envelope: every
  },
  {
    path: "/request-fixtures/{id}/targets",
    id: ({ fixture }) => fixture,
    filters: {},
    orders: [],
    dir: false,
    most: null,
    cursors: "none",
    envelope: every
  }
]
