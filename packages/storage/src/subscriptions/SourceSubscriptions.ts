import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { brokerTypes, type SubscriptionState, type SubscriptionStatus } from "@tidegate/model/BrokerSource"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"
import * as Columns from "../journal/Columns.ts"
import type { Owner } from "../secrets/SealedColumn.ts"

/* The subscriptions of sources as their owners see and change them. A row lives as long as its source. */

/** The part of a source's row that its subscription depends on. */
export interface SubscribedRow extends Owner {
  readonly config: { readonly subscription?: Schema.JsonObject }
  /** Encrypted. */
  readonly auth: string | null
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
}

const isActive = ({ deleted_at, disabled_at }: SubscribedRow): boolean => disabled_at === null && deleted_at === null

/** Whether the connection of the one serves the other. */
const isSame = (one: SubscribedRow, other: SubscribedRow): boolean =>
  one.auth === other.auth &&
  isActive(one) === isActive(other) &&
  JSON.stringify(one.config.subscription) === JSON.stringify(other.config.subscription)

/**
 * Brings the row in line with a changed source, in its transaction. Returns whether the actor has to look: the old connection stores nothing
 * more, because the version has changed.
 */
export const keepSubscription = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: SubscribedRow | null,
  after: SubscribedRow,
  at: Date
): Effect.fn.Return<boolean, SqlError.SqlError> {
  const { deleted_at, id, team_id } = after
  if (after.config.subscription === undefined) return false
  if (deleted_at !== null) {
    yield* sql`delete from source_subscriptions where source_id = ${id}`
    return true
  }
  if (before !== null && isSame(before, after)) return false
  const due_at = isActive(after) ? at : null
  const status: SubscriptionStatus = isActive(after) ? "connecting" : "disabled"
  yield* sql`
    insert into source_subscriptions (source_id, team_id, due_at, status) values (${id}, ${team_id}, ${due_at}, ${status})
    on conflict (source_id) do update set version = source_subscriptions.version + 1, due_at = excluded.due_at,
      status = excluded.status, failures = 0, connected_at = null, last_error = null, last_error_at = null`
  return true
})

interface StateRow {
  readonly source_id: string
  readonly status: SubscriptionStatus
  readonly connected_at: Date | null
  readonly last_error: string | null
  readonly last_error_at: Date | null
  readonly last_message_at: Date | null
  readonly stored_count: bigint
  readonly duplicate_count: bigint
  readonly rejected_count: bigint
  readonly last_rejection: string | null
}

const shownTime = (time: Date | null): string | null => time?.toISOString() ?? null

/** How the subscriptions of these sources are doing, by the sources' ids. */
export const subscriptionsOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  rows: ReadonlyArray<SubscribedRow>
): Effect.fn.Return<ReadonlyMap<string, SubscriptionState>, SqlError.SqlError> {
  const ids = rows.filter(({ config }) => config.subscription !== undefined).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const found = yield* sql<StateRow>`
    select source_id, status, connected_at, last_error, last_error_at, last_message_at, stored_count, duplicate_count, rejected_count,
      last_rejection
    from source_subscriptions where source_id = any(${Columns.text(ids)})`
  return new Map(
    found.map(({ source_id, ...row }) => [
      source_id,
      {
        ...row,
        connected_at: shownTime(row.connected_at),
        last_error_at: shownTime(row.last_error_at),
        last_message_at: shownTime(row.last_message_at),
        stored_count: Number(row.stored_count),
        duplicate_count: Number(row.duplicate_count),
        rejected_count: Number(row.rejected_count)
      }
    ])
  )
})

/** A source that was just deleted has none any more. */
export const noSubscription: SubscriptionState = {
  status: "disabled",
  connected_at: null,
  last_error: null,
  last_error_at: null,
  last_message_at: null,
  stored_count: 0,
  duplicate_count: 0,
  rejected_count: 0,
  last_rejection: null
}

/** Fails when the team has as many of these sources as it may. The lock keeps creates at once apart. */
export const claimSubscription = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id, team_id }: Owner
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const limit = (yield* TeamLimits)["subscribed_sources"]!
  yield* sql`select pg_advisory_xact_lock(hashtextextended(${`subscribed_sources/${team_id}`}, 0))`
  const others = yield* sql`
    select from sources
    where team_id = ${team_id} and type = any(${Columns.text(brokerTypes)}) and deleted_at is null and id <> ${id} limit ${limit}`
  if (others.length >= limit) yield* beyondLimit("subscribed_sources", limit, "delete one first")
})
