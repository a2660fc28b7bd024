import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { definitionOf } from "@tidegate/channels/SourceProviders"
import type { ChannelRetry, ScheduledRun } from "@tidegate/model/Channel"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { ProviderSettings } from "@tidegate/model/ProviderSource"
import { transaction } from "../Transaction.ts"
import { channelEvent } from "./ChannelEvents.ts"
import { runsKeptMs } from "./SourceRuns.ts"
import { needConnected } from "./SourceChannel.ts"

/* What operators request of a channel beside changes of its source. Each request is one transaction that makes the channel due. */

/** Within this time (ms) a repeated retry is the same one. */
const sameRetryMs = 10_000

interface SourceRow {
  readonly id: string
  readonly team_id: string
  readonly config: { readonly provider?: ProviderSettings }
  readonly disabled_at: Date | null
}

/** The source, locked until the commit: it is neither disabled nor changed before that. */
const heldSource = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  id: string
): Effect.fn.Return<SourceRow, GatewayError | SqlError.SqlError> {
  const [row] = yield* sql<SourceRow>`
    select id, team_id, config, disabled_at from sources
    where id = ${id} and team_id = ${team_id} and deleted_at is null for share`
  return row ?? (yield* notFound("source", id))
})

const refuseDisabled = ({ disabled_at, id }: SourceRow): Effect.Effect<void, GatewayError> =>
  disabled_at === null
    ? Effect.void
    : Effect.fail(fail("SOURCE_DISABLED", "the source is disabled: enable it first", { source_id: id }))

/**
 * Requests that the channel is reconciled now: waits after failures end, and a fallback tries to restore instant delivery.
 */
export const requestRetry = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string
): Effect.fn.Return<ChannelRetry, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const source = yield* heldSource(sql, team_id, source_id)
      const { provider } = source.config
      if (provider === undefined || definitionOf(provider.provider_key, provider.definition_key)?.mode !== "instant") {
        return yield* fail("CHANNEL_POLLING_SOURCE", "only a source with instant delivery has a channel", { source_id })
      }
      yield* refuseDisabled(source)
      yield* needConnected(sql, source, provider)
      const now = yield* Clock.currentTimeMillis
      const at = new Date(now)
      const [changed] = yield* sql`
        update channels set retry_requested_at = ${at}, due_at = ${at}, version = version + 1, updated_at = ${at}
        where source_id = ${source_id}
          and (retry_requested_at is null or retry_requested_at <= ${new Date(now - sameRetryMs)}) returning 1`
      const [channel] = yield* sql<{ retry_requested_at: Date | null }>`
        select retry_requested_at from channels where source_id = ${source_id}`
      if (changed !== undefined) {
        const message = "A retry was requested"
        const about = { message, severity: "info" as const, error_code: null, subscription_id: null, details: {} }
        yield* channelEvent({ team_id, source_id, kind: "retry_requested", ...about }, now)
      }
      const requested = channel?.retry_requested_at ?? at
      return { source_id, status: "connecting" as const, retry_requested_at: requested.toISOString() }
    })
  )
})

/**
 * Requests a poll now. While one that was requested has not begun, that one is returned: it will find the same items.
 */
export const requestRun = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string
): Effect.fn.Return<ScheduledRun, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const source = yield* heldSource(sql, team_id, source_id)
      if (source.config.provider === undefined) {
        const message = "only a source of type PROVIDER can be run: others wait for their senders"
        return yield* fail("DELIVERY_DEFINITION_UNAVAILABLE", message, { source_id })
      }
      yield* refuseDisabled(source)
      yield* sql`select from channels where source_id = ${source_id} for no key update`
      const [waiting] = yield* sql<{ id: string; scheduled_at: Date }>`
        select r.id, r.scheduled_at from channels c join source_runs r on r.id = c.run_id
        where c.source_id = ${source_id} and r.status = 'scheduled'`
      const now = yield* Clock.currentTimeMillis
      const { id, scheduled_at } = waiting ?? { id: newId(prefixes.sourceRun, now), scheduled_at: new Date(now) }
      if (waiting === undefined) {
        yield* sql`
          insert into source_runs (id, team_id, source_id, status, reason, scheduled_at, expires_at)
          values (${id}, ${team_id}, ${source_id}, 'scheduled', 'manual', ${scheduled_at}, ${new Date(now + runsKeptMs)})`
        yield* sql`
          update channels set run_id = ${id}, due_at = ${scheduled_at}, version = version + 1, updated_at = ${scheduled_at}
          where source_id = ${source_id}`
      }
      return {
        id,
        source_id,
        status: "scheduled" as const,
        reason: "manual" as const,
        scheduled_at: scheduled_at.toISOString()
      }
    })
  )
})
