import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AlertCode } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"
import type { ChannelAlert } from "@tidegate/model/ChannelAlert"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { noteChannelFailure } from "../alarms/Occurrences.ts"
import { channelEvent } from "./ChannelEvents.ts"
import * as Columns from "../journal/Columns.ts"
import { alertOf } from "../reads/AlertReads.ts"

/** The time (ms) for which a resolved alert is kept. */
const keptMs = 90 * dayMs

interface OfSource {
  readonly team_id: string
  readonly source_id: string
}

/**
 * Opens an alert, or counts one more occurrence of the one that is active. Returns whether it was opened. To be called in a
 * transaction. The delivery of alerts decides from `notify_at` what is sent.
 */
export const raiseAlert = Effect.fnUntraced(function* (
  { code, message, source_id, team_id }: OfSource & { readonly code: AlertCode; readonly message: string },
  now: number
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const id = newId(prefixes.channelAlert, now)
  const [row] = yield* sql<{ id: string }>`
    insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at, notify_at)
    values (${id}, ${team_id}, ${source_id}, ${code}, 'active', ${message}, 1, ${at}, ${at}, ${at})
    on conflict (source_id, code) where status = 'active'
    do update set occurrences = channel_alerts.occurrences + 1, last_seen_at = ${at}, message = excluded.message
    returning id`
  const isOpened = row?.id === id
  if (isOpened) {
    yield* noteChannelFailure({ code, source_id, team_id }, at)
    yield* channelEvent(
      {
        team_id,
        source_id,
        kind: "alert_opened",
        severity: "error",
        message,
        error_code: code,
        subscription_id: null,
        details: { alert_id: id }
      },
      now
    )
  }
  return isOpened
})

/** Resolves the active alerts with these codes. To be called in a transaction. */
export const resolveAlerts = Effect.fnUntraced(function* (
  { codes, source_id, team_id }: OfSource & { readonly codes: ReadonlyArray<AlertCode> },
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  if (codes.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const resolved = yield* sql<{ id: string; code: string; message: string }>`
    update channel_alerts
    set status = 'resolved', resolved_at = ${at}, notify_at = ${at}, expires_at = ${new Date(now + keptMs)}
    where team_id = ${team_id} and source_id = ${source_id} and code = any(${Columns.text(codes)}) and status = 'active'
    returning id, code, message`
  for (const { code, id, message } of resolved) {
    yield* channelEvent(
      {
        team_id,
        source_id,
        kind: "alert_resolved",
        severity: "info",
        message: `Resolved: ${message}`,
        error_code: code,
        subscription_id: null,
        details: { alert_id: id }
      },
      now
    )
  }
})

/**
 * Records that somebody deals with an alert. No further message is decided until it is resolved. The first acknowledgement stays, and
 * a resolved alert stays as it is. Returns the alert as it is stored.
 */
export const acknowledgeAlert = Effect.fnUntraced(function* ({
  by,
  id,
  team_id
}: {
  readonly team_id: string
  readonly id: string
  readonly by: string | null
}): Effect.fn.Return<ChannelAlert, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(yield* Clock.currentTimeMillis)
  yield* sql`update channel_alerts set acknowledged_at = ${at}, acknowledged_by = ${by}, notify_at = null
    where id = ${id} and team_id = ${team_id} and status = 'active' and acknowledged_at is null`
  return yield* alertOf(team_id, id)
})
