import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Prefix } from "@tidegate/model/Ids"
import { resources } from "@tidegate/resources/Resources"
import { type Table, type TableName, tables } from "../Tables.ts"

/*
 * Where data of requests and of workflow runs is. A deletion selects requests and runs, and deletes all that came of them. A table
 * of the schema is either a place here or listed with the reason why it is none: a test compares both with `Tables.ts`.
 */

/** How rows of a table belong to a selected request or run. */
export interface PlaceOf {
  /** The column with the id of the request or run; null: none, such a row is deleted if the text is in it. */
  readonly root: string | null
  /** Other columns with such an id. */
  readonly also?: ReadonlyArray<string>
  /** If the first (SQL) is selected, so is the second: it was made of it. */
  readonly links?: ReadonlyArray<readonly [of: string, made: string]>
  /** Whether the row is a copy, or a value: then it is deleted alone if the text is in it, and selects nothing. */
  readonly isCopy?: boolean
  /** For compressed bodies: the columns with the headers and the body. */
  readonly coded?: readonly [headers: string, body: string]
  /** Waiting rows that go with the row, and their column with its id. */
  readonly waiting?: readonly [table: TableName, column: string]
  /** Instead of a deletion: what is written, and which rows have it not yet. */
  readonly clears?: readonly [set: string, unless: string]
}

/** The tables are searched in this order, so that most links are found in one pass. Rows are deleted from the end to the beginning. */
export const placesOf = {
  requests: {
    root: "id",
    links: [["retry_parent_request_id", "id"]],
    coded: ["headers", "body"],
    waiting: ["pending_routes", "request_id"]
  },
  events: { root: "request_id", waiting: ["deliveries", "event_id"] },
  event_data: { root: "request_id", coded: ["headers", "body"] },
  attempts: { root: "request_id", coded: ["response_headers", "body"] },
  ignored_events: { root: "request_id" },
  executions: { root: "request_id" },
  proxy_exchanges: { root: "request_id", coded: ["response_headers", "response_body"] },
  pending_routes: { root: "request_id" },
  dedupe_keys: { root: "request_id" },
  // An item whose request is not yet stored. The row stays, because by it the item is not taken for a new one.
  channel_items: { root: "request_id", isCopy: true, clears: ["body = null", "body is not null"] },
  workflow_runs: {
    root: "id",
    links: [
      ["request_id", "id"],
      ["rerun_of", "id"],
      ["batch_id", "id"],
      ["id", "on_failure ->> 'run_id'"]
    ],
    waiting: ["workflow_queue", "run_id"]
  },
  workflow_steps: { root: "run_id" },
  workflow_inputs: { root: "run_id", coded: ["headers", "body"] },
  workflow_queue: { root: "run_id" },
  workflow_turns: { root: "run_id" },
  workflow_windows: { root: "run_id" },
  workflow_keys: { root: "run_id" },
  workflow_batched: {
    root: "run_id",
    also: ["member_id", "request_id"],
    links: [
      ["member_id", "run_id"],
      ["request_id", "run_id"]
    ]
  },
  workflow_waits: { root: "run_id" },
  workflow_children: { root: "child_run_id", also: ["parent_run_id"], links: [["parent_run_id", "child_run_id"]] },
  workflow_arrivals: { root: "about" },
  request_fixtures: { root: "original_request_id", isCopy: true, coded: ["headers", "body"] },
  request_shares: { root: "request_id", isCopy: true },
  step_results: { root: null, isCopy: true },
  workflow_values: { root: null, isCopy: true },
  team_values: { root: null, isCopy: true },
  // Its filter may have the text. The targets that wait go with it.
  bulk_operations: { root: null, isCopy: true },
  // Answers of calls are encrypted, so it is not known what they contain. A repeated call learns that its answer is no longer kept.
  idempotency_keys: { root: null, isCopy: true, clears: ["answer = null, bytes = 0", "answer is not null"] }
} as const satisfies Partial<Record<TableName, PlaceOf>>

const settings = "settings that people wrote, which deletions of data leave to them"
const identifiers = "ids, counts and codes only"
const accounts = "people who use the gateway, and credentials: they are deleted as members and as keys"

const ofResources = Object.fromEntries(resources.map(({ plural }) => [plural, settings])) as {
  readonly [plural in (typeof resources)[number]["plural"]]: string
}

/** Tables with rows of teams that are no places, and why. */
export const noPlaces = {
  ...ofResources,
  teams: settings,
  connection_links: identifiers,
  workflow_versions: settings,
  workflow_drafts: settings,
  workflow_templates: settings,
  workflow_schedules: settings,
  source_schedules: settings,
  source_subscriptions: settings,
  action_versions: settings,
  transformation_versions: settings,
  channel_settings: settings,
  channels: settings,
  channel_subscriptions: settings,
  project_secrets: accounts,
  project_api_keys: accounts,
  memberships: accounts,
  sessions: accounts,
  provider_accounts: accounts,
  provider_consents: accounts,
  destination_tokens: accounts,
  key_audit: identifiers,
  team_counts: identifiers,
  source_periods: identifiers,
  public_bins: identifiers,
  channel_events: "messages of the gateway about a channel",
  channel_alerts: "messages of the gateway about a channel",
  channel_alert_deliveries: "messages of the gateway about a channel",
  channel_metrics: identifiers,
  source_runs: identifiers,
  source_messages: identifiers,
  event_feed: identifiers,
  deliveries: "deleted with their events",
  work_in_hand: identifiers,
  action_holds: identifiers,
  workflow_awaited: identifiers,
  bulk_targets: identifiers,
  rollups: identifiers,
  rollup_batches: identifiers,
  occurrences: identifiers,
  issues: identifiers,
  system_notices: identifiers,
  data_deletions: "the deletions themselves: their text is encrypted, and removed at their end",
  data_deletion_targets: identifiers
} as const satisfies Partial<Record<TableName, string>>

interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
  /** The place in the primary key; null: not in it. */
  readonly key: number | null
}

/** A searched table with its columns from the database's own catalogue, so that a new column is searched without any code. */
export interface Place extends PlaceOf {
  readonly table: TableName
  /** The primary key. */
  readonly key: ReadonlyArray<{ readonly name: string; readonly type: string }>
  /** Columns that can have a text in them, and columns of bytes. */
  readonly texts: ReadonlyArray<string>
  readonly bytes: ReadonlyArray<string>
  /** For rows with a day: the prefix of the ids that select it. */
  readonly prefix: Prefix | null
}

const textual = new Set(["text", "json", "jsonb", "text[]"])

/** The gateway's own ids are not searched, because a text that is part of an id could be in every row of the team. */
const isOwnId = (name: string): boolean => /(?:^|_)id$/.test(name) && name !== "external_id"

/** All tables, in the order in which they are searched. */
export const readPlaces = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const names = Object.keys(placesOf) as ReadonlyArray<keyof typeof placesOf>
  const columns = yield* sql<Column>`
    select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
      array_position(i.indkey::int2[], a.attnum)::int4 as key
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      join pg_index i on i.indrelid = c.oid and i.indisprimary
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname, a.attnum`
  const byTable = Map.groupBy(columns, ({ table }) => table)
  return names.map((table): Place => {
    const own = byTable.get(table) ?? []
    const declared: Table = tables[table]
    const { hashed = [], sealed = {} } = declared
    const isReadable = ({ name }: Column) => !hashed.includes(name) && !Object.hasOwn(sealed, name)
    return Object.assign({}, placesOf[table] as PlaceOf, {
      table,
      key: own.filter(({ key }) => key !== null).toSorted((a, b) => a.key! - b.key!),
      texts: own.flatMap((column) =>
        textual.has(column.type) && isReadable(column) && !isOwnId(column.name) ? [column.name] : []
      ),
      bytes: own.flatMap((column) => (column.type === "bytea" && isReadable(column) ? [column.name] : [])),
      prefix: declared.kind === "grows" ? declared.by[1] : null
    })
  })
})
