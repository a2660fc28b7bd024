import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { resources } from "@tidegate/resources/Resources"
import * as Columns from "../journal/Columns.ts"
import { day } from "./Partitions.ts"
import type { TableName } from "../Tables.ts"

type Plural = (typeof resources)[number]["plural"]

/** When the deleted rows of a resource's table are removed. */
export interface Removal {
  /** Days from the deletion on. */
  readonly days: number
  /**
   * Whether requests, events and other records name such rows. Then the days begin when the records of the day of the deletion are due by
   * the team's retention. Later records do not name a deleted row.
   */
  readonly inRecords: boolean
  /** The column by which the tables below name such a row. */
  readonly by: string
  /** Tables that must have no row that names it. */
  readonly free: ReadonlyArray<TableName>
  /** Tables whose rows go with it. */
  readonly goes: ReadonlyArray<TableName>
}

/** Longer than a day is kept for what waits in it (`waitingGraceDays`), and than counts are kept that name the row (`rollups`). */
const graceDays = 30

/**
 * The resources; those whose rows name others come first. A day is enough for a command that is repeated. A run of an older version of a
 * workflow may name a filter as long as it lives. `free` and `goes` name every table with a foreign key to the row: a test compares
 * them with the catalogue.
 */
export const removals: Readonly<Record<Plural, Removal>> = {
  workflows: {
    days: 1,
    inRecords: false,
    by: "workflow_id",
    free: ["workflow_runs", "workflow_queue", "workflow_versions"],
    goes: ["workflow_drafts", "workflow_schedules", "workflow_values"]
  },
  actions: { days: 1, inRecords: false, by: "action_id", free: ["action_versions"], goes: [] },
  filters: { days: 61, inRecords: false, by: "filter_id", free: [], goes: [] },
  connections: {
    days: graceDays,
    inRecords: true,
    by: "connection_id",
    free: ["deliveries", "pending_routes", "dedupe_keys"],
    goes: ["connection_links"]
  },
  sources: {
    days: graceDays,
    inRecords: true,
    by: "source_id",
    // A fixture stays until a person deletes it, and a channel until it has unsubscribed at its provider.
    free: [
      "connections",
      "workflows",
      "request_fixtures",
      "channels",
      "channel_subscriptions",
      "workflow_waits",
      "workflow_awaited"
    ],
    goes: ["connection_links", "source_periods", "source_schedules", "source_subscriptions", "public_bins"]
  },
  destinations: {
    days: graceDays,
    inRecords: true,
    by: "destination_id",
    free: ["connections"],
    goes: ["connection_links", "destination_tokens"]
  },
  transformations: {
    days: graceDays,
    inRecords: true,
    by: "transformation_id",
    free: [],
    goes: ["transformation_versions"]
  }
}

/** Rows of one table and run; the next run does the rest. */
const maxRows = 50_000
/** Rows of one statement. For each source the database looks through all connections, which have no complete index by source. */
const batch = 50

/** Removes deleted rows of resources that nothing refers to any more. Returns their number. */
export const removeDeleted = Effect.fnUntraced(function* (
  now: number,
  recordDays: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  let removed = 0
  for (const [table, removal] of Object.entries(removals)) removed += yield* removeOf(table, removal, now, recordDays)
  return removed
})

const removeOf = Effect.fnUntraced(function* (
  table: string,
  { by, days, free, goes, inRecords }: Removal,
  now: number,
  recordDays: number
) {
  const sql = yield* SqlClient.SqlClient
  // The comparison with '' lets the index of deliveries by connection be used, which is partial.
  const isFree = sql.literal(
    free.map((of) => `and not exists (select from ${of} o where o.${by} = t.id and o.${by} <> '')`).join(" ")
  )
  const kept = inRecords
    ? sql`coalesce((select record_retention_days from teams where teams.id = t.team_id), ${recordDays}::int4)`
    : sql`0`
  // Found at once, so that the table is read once and not for each batch.
  const due = yield* sql<{ id: string }>`
    select t.id from ${sql(table)} t
    where t.deleted_at < ${new Date(now - days * day)}::timestamptz - ${kept} * interval '1 day' ${isFree}
    limit ${maxRows}`
  const withIt = goes
    .map((of, index) => `, with_${index} as (delete from ${of} where ${by} = any(array(select id from gone)))`)
    .join("")
  let removed = 0
  for (let at = 0; at < due.length; at += batch) {
    const ids = due.slice(at, at + batch).map(({ id }) => id)
    const rows = yield* sql`
      with gone as (
        delete from ${sql(table)} where id = any(array(
          select t.id from ${sql(table)} t where t.id = any(${Columns.text(ids)}) and t.deleted_at is not null ${isFree}
          for update skip locked))
        returning id
      )${sql.literal(withIt)}
      select id from gone`
    removed += rows.length
  }
  return removed
})
