import { type Prefix, prefixes } from "@tidegate/model/Ids"
import type { AnyResource } from "@tidegate/resources/Resource"
import { resources } from "@tidegate/resources/Resources"

/*
 * Every table of the schema, one row each. All code that needs all tables, or all of a kind, reads this: partitions, retention,
 * the isolation of teams, the tests of plans. A new table is a migration and a row here; for a resource it is a migration only. A
 * test compares the rows with the database's own catalogue.
 */

interface Declared {
  /** The column with the row's team; null: the row belongs to no team. */
  readonly team: "team_id" | "id" | null
  /** Columns that contain hashes of secrets. */
  readonly hashed?: ReadonlyArray<string>
  /** Columns that contain encrypted values. No other column can (`Secrets` refuses), so a key rotation finds all values. */
  readonly sealed?: Readonly<Record<string, Sealed>>
}

/** The row that an encrypted value belongs to. */
export interface Sealed {
  /** The column of the primary key. */
  readonly row: string
  /**
   * For a copy: the table that the value is encrypted for, and the column with that row's id. Absent: it is encrypted for its own
   * place.
   */
  readonly of?: readonly [table: string, id: string]
}

/** Grows without bound: partitioned by the day in an id, and kept for as many days as its team has set. */
export interface Grows extends Declared {
  readonly kind: "grows"
  readonly team: "team_id"
  /** The id whose day selects the partition. */
  readonly by: readonly [column: string, prefix: Prefix]
  /** The primary key; it begins with that id. */
  readonly key: ReadonlyArray<string>
  /** Whether it is kept as long as payloads, or as long as records, which are kept longer. */
  readonly keptAs: "payload" | "record"
  /** For a record: the columns that hold payload, and their values (SQL) once it is removed. */
  readonly payload?: Readonly<Record<string, string>>
  /** Per cent of a page that inserts fill. */
  readonly fillFactor?: number
}

/** Pending work: a row is deleted when the work is done. Without the record that it is about, it would wait for ever. */
export interface Waits extends Declared {
  readonly kind: "waits"
  readonly team: "team_id"
  /** The column with the id of that record, and the record's table. */
  readonly about: readonly [
    column: string,
    table: "events" | "requests" | "bulk_operations" | "workflow_runs" | "data_deletions"
  ]
  readonly key: ReadonlyArray<string>
}

/** A team's own settings. With "deleted_at" a deleted row stays, because records name it. */
export interface Owned extends Declared {
  readonly kind: "owned"
  readonly team: "team_id" | "id"
  readonly softDeleted: boolean
}

/** Minute counts, which are merged into hour counts, which are deleted later. Older minute counts are no longer needed. */
export interface Compacted extends Declared {
  readonly kind: "compacted"
  readonly team: "team_id"
  readonly minutesForHours: number
  readonly hoursForDays: number
}

/** Counts of batches, until they are added up: for some seconds, or until some process does that. */
export interface Gathered extends Declared {
  readonly kind: "gathered"
  readonly team: "team_id"
}

/** Expires at a time that is in the row. */
export interface Expires extends Declared {
  readonly kind: "expires"
  readonly team: "team_id"
  readonly at: string
}

/** Belongs to the whole installation. */
export interface Global extends Declared {
  readonly kind: "global"
  readonly team: null
}

export type Table = Grows | Waits | Owned | Compacted | Gathered | Expires | Global

const team = { team: "team_id" } as const
const owned = { ...team, kind: "owned", softDeleted: true } as const
const grows = { ...team, kind: "grows" } as const
const ofAll = { kind: "global", team: null } as const

type ResourceTables = { readonly [R in (typeof resources)[number] as R["plural"]]: Owned }

/** The tables of the resources, from their declarations. */
const ofResources = Object.fromEntries(
  (resources as ReadonlyArray<AnyResource>).map(({ columns, plural }) => {
    const sealed = Object.keys(columns).flatMap((name) => (columns[name] === "sealed" ? [[name, { row: "id" }]] : []))
    return [plural, sealed.length === 0 ? owned : { ...owned, sealed: Object.fromEntries(sealed) }]
  })
) as unknown as ResourceTables

/** Headers that are no JSON object: the payload is removed. */
export const payloadGone = ""

/** Referenced tables come before those that refer to them: days are dropped from the end of this list to its beginning. */
export const tables = {
  // One encrypted value lets a process check its keys; the others are the peppers of project keys.
  settings: { ...ofAll, sealed: { value: { row: "name" } } },
  migrations: ofAll,
  cluster_runners: ofAll,
  cluster_runner_migrations: ofAll,
  cluster_locks: ofAll,
  processes: ofAll,
  runner_loads: ofAll,
  // The proof of a deleted team: how many rows were deleted. It outlives the team, so it belongs to no team.
  team_deletions: ofAll,

  teams: { kind: "owned", team: "id", softDeleted: false },
  project_secrets: {
    ...owned,
    softDeleted: false,
    hashed: ["api_key_hash", "configured_key_hash"],
    sealed: { signing_secret: { row: "team_id" }, previous_signing_secret: { row: "team_id" } }
  },
  project_api_keys: { ...owned, softDeleted: false, hashed: ["key_hmac"] },
  key_audit: { ...team, kind: "expires", at: "expires_at" },
  users: ofAll,
  memberships: { ...owned, softDeleted: false },
  sessions: { ...team, kind: "expires", at: "expires_at", hashed: ["token_hash"] },
  ...ofResources,
  team_counts: { ...owned, softDeleted: false },
  request_fixtures: {
    ...owned,
    softDeleted: false,
    sealed: { presented: { row: "id", of: ["requests", "original_request_id"] } }
  },
  source_periods: { ...owned, softDeleted: false },
  connection_links: { ...owned, softDeleted: false },
  destination_tokens: {
    ...owned,
    softDeleted: false,
    hashed: ["state_hash"],
    sealed: { held: { row: "destination_id" }, consent: { row: "destination_id" } }
  },
  public_bins: { ...owned, softDeleted: false, hashed: ["token_hash"] },
  workflow_versions: { ...owned, softDeleted: false },
  workflow_drafts: { ...owned, softDeleted: false },
  workflow_templates: { ...owned, softDeleted: false },
  workflow_schedules: { ...owned, softDeleted: false },
  source_schedules: { ...owned, softDeleted: false },
  source_subscriptions: { ...owned, softDeleted: false },
  action_versions: { ...owned, softDeleted: false },
  transformation_versions: { ...owned, softDeleted: false },
  team_values: { ...owned, softDeleted: false },
  provider_accounts: {
    ...owned,
    softDeleted: false,
    sealed: { credentials: { row: "id" }, held: { row: "id" } }
  },
  provider_consents: {
    ...team,
    kind: "expires",
    at: "expires_at",
    hashed: ["state_hash"],
    sealed: { consent: { row: "state_hash" } }
  },
  channels: { ...owned, softDeleted: false },
  channel_subscriptions: {
    ...team,
    kind: "expires",
    at: "forgotten_at",
    hashed: ["token_hash"],
    sealed: { secrets: { row: "id" } }
  },
  channel_items: { ...team, kind: "expires", at: "expires_at" },
  source_messages: { ...team, kind: "expires", at: "expires_at" },
  channel_events: { ...team, kind: "expires", at: "expires_at" },
  channel_alerts: { ...team, kind: "expires", at: "expires_at" },
  channel_alert_deliveries: { ...team, kind: "expires", at: "expires_at" },
  channel_settings: { ...owned, softDeleted: false, sealed: { chat_webhook_url: { row: "team_id" } } },
  channel_metrics: { ...team, kind: "expires", at: "expires_at" },
  source_runs: { ...team, kind: "expires", at: "expires_at" },

  requests: {
    ...grows,
    by: ["id", prefixes.request],
    key: ["id"],
    keptAs: "record",
    payload: { path: "''", query: "''", headers: `'${payloadGone}'`, presented: "null", body: "null" },
    sealed: { presented: { row: "id" } }
  },
  // Half of a page is kept free for the updates by deliveries: then 94 % of them stay in their page, with a quarter free only 51
  // %.
  events: { ...grows, by: ["id", prefixes.event], key: ["id"], keptAs: "record", fillFactor: 50 },
  event_feed: { ...grows, by: ["id", prefixes.feedEntry], key: ["id"], keptAs: "record" },
  attempts: {
    ...grows,
    by: ["event_id", prefixes.event],
    key: ["event_id", "attempt_number"],
    keptAs: "record",
    payload: { body: "null", response_headers: "null" }
  },
  ignored_events: { ...grows, by: ["id", prefixes.ignoredEvent], key: ["id"], keptAs: "payload" },
  event_data: { ...grows, by: ["id", prefixes.eventData], key: ["id"], keptAs: "payload" },
  executions: {
    ...grows,
    by: ["id", prefixes.execution],
    key: ["id"],
    keptAs: "record",
    payload: { logs: "'[]'" }
  },
  proxy_exchanges: { ...grows, by: ["id", prefixes.proxyExchange], key: ["id"], keptAs: "payload" },
  // Half of a page is kept free, as in `events`: each run is updated at least once.
  workflow_runs: { ...grows, by: ["id", prefixes.workflowRun], key: ["id"], keptAs: "record", fillFactor: 50 },
  // Partitioned by the day on which an entry was written, not by the day of its run, so that nothing is inserted into an old day.
  workflow_steps: {
    ...grows,
    by: ["id", prefixes.workflowPart],
    key: ["id"],
    keptAs: "record",
    payload: { outputs: "null", previews: "null" }
  },

  deliveries: { ...team, kind: "waits", about: ["event_id", "events"], key: ["event_id"] },
  pending_routes: { ...team, kind: "waits", about: ["request_id", "requests"], key: ["connection_id", "request_id"] },
  workflow_queue: { ...team, kind: "waits", about: ["run_id", "workflow_runs"], key: ["run_id"] },
  workflow_turns: { ...team, kind: "waits", about: ["run_id", "workflow_runs"], key: ["run_id"] },
  request_shares: { ...team, kind: "expires", at: "forgotten_at", hashed: ["token_hash"] },
  workflow_inputs: { ...team, kind: "expires", at: "expires_at" },
  step_results: { ...team, kind: "expires", at: "expires_at" },
  idempotency_keys: { ...team, kind: "expires", at: "expires_at", sealed: { answer: { row: "id" } } },
  work_in_hand: { ...team, kind: "expires", at: "expires_at" },
  action_holds: { ...team, kind: "expires", at: "held_until" },
  workflow_values: { ...team, kind: "expires", at: "expires_at" },
  workflow_windows: { ...team, kind: "expires", at: "expires_at" },
  workflow_batched: { ...team, kind: "expires", at: "expires_at" },
  workflow_waits: { ...team, kind: "expires", at: "expires_at" },
  workflow_awaited: { ...team, kind: "expires", at: "expires_at" },
  workflow_children: { ...team, kind: "expires", at: "expires_at" },
  workflow_arrivals: { ...team, kind: "expires", at: "expires_at" },
  workflow_keys: { ...team, kind: "expires", at: "expires_at" },
  dedupe_keys: { ...team, kind: "expires", at: "expires_at" },
  bulk_operations: { ...team, kind: "expires", at: "expires_at" },
  bulk_targets: {
    ...team,
    kind: "waits",
    about: ["operation_id", "bulk_operations"],
    key: ["operation_id", "target_id"]
  },
  // The row of a finished deletion is the proof of what was deleted. The oldest proofs are removed (`DataDeletions.ts`).
  data_deletions: { ...owned, softDeleted: false, sealed: { text: { row: "id" } } },
  data_deletion_targets: {
    ...team,
    kind: "waits",
    about: ["deletion_id", "data_deletions"],
    key: ["deletion_id", "target_id"]
  },
  // More than a series of 3,000 minutes needs, and more than 30 days, with one hour for retention to run in.
  rollups: { ...team, kind: "compacted", minutesForHours: 52, hoursForDays: 31 },
  rollup_batches: { ...team, kind: "gathered" },
  occurrences: { ...team, kind: "gathered" },
  issues: { ...team, kind: "expires", at: "expires_at" },
  system_notices: { ...team, kind: "expires", at: "expires_at" }
} as const satisfies Readonly<Record<string, Table>>

export type TableName = keyof typeof tables

type OfKind<Kind extends Table["kind"]> = Extract<Table, { readonly kind: Kind }>

/** The tables of a kind, in the order above. */
export const tablesThat = <Kind extends Table["kind"]>(
  kind: Kind
): ReadonlyArray<OfKind<Kind> & { readonly name: TableName }> =>
  Object.entries<Table>(tables).flatMap(([name, table]) =>
    table.kind === kind ? [{ ...(table as OfKind<Kind>), name: name as TableName }] : []
  )

/**
 * Every column with encrypted values, and the row that they belong to. Copies come after the column that they are copied from.
 */
export const sealedColumns: ReadonlyArray<
  Required<Sealed> & { readonly table: TableName; readonly column: string; readonly team: string | null }
> = Object.entries<Table>(tables)
  .toReversed()
  .flatMap(([name, { sealed = {}, team }]) =>
    Object.entries(sealed).map(([column, { of, row }]) => {
      const table = name as TableName
      return { table, column, row, team, of: of ?? [table, row] }
    })
  )

export type GrowingTable = Grows & { readonly name: TableName }

/** The tables that are partitioned by day. */
export const growing: ReadonlyArray<GrowingTable> = tablesThat("grows")
