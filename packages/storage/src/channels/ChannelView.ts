import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { AlertCode } from "@tidegate/channels/machine/Facts"
import { consecutiveFailures, stateOf } from "@tidegate/channels/machine/State"
import { statusOf, type SubscriptionLife } from "@tidegate/channels/machine/Status"
import { dayMs, renewalAt } from "@tidegate/channels/machine/Times"
import { type Definition, definitionOf, pairOf } from "@tidegate/channels/SourceProviders"
import type { Channel } from "@tidegate/model/Channel"
import { type AccountState, accountStateOf, type ProviderSettings } from "@tidegate/model/ProviderSource"
import * as Columns from "../journal/Columns.ts"
import { dateOf } from "./ChannelMetrics.ts"

/* How the channels of sources are shown. */

export const iso = (at: Date): string => at.toISOString()
export const isoOrNull = (at: Date | null): string | null => at?.toISOString() ?? null
const isoOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** A source as far as its channel depends on it. */
export interface SourceOf {
  readonly id: string
  readonly team_id: string
  readonly config: { readonly provider?: ProviderSettings }
  readonly disabled_at: Date | null
}

/** The columns that are read of a channel, in addition to its source. Times inside JSON are Unix ms. */
interface ChannelRow {
  readonly id: string
  readonly state: object
  readonly account: {
    readonly id: string
    readonly connection: string
    readonly failed: number | null
    readonly disabled: number | null
    readonly revoked: number | null
  } | null
  readonly subscriptions: ReadonlyArray<SubscriptionLife>
  readonly last_renewed_at: Date | null
  readonly last_notification_at: Date | null
  readonly alerts: ReadonlyArray<{
    readonly id: string
    readonly code: AlertCode
    readonly message: string
    readonly occurrences: number
    readonly first_seen: number
    readonly last_seen: number
  }>
  readonly counts: ReadonlyArray<{ readonly date: string; readonly metric: string; readonly value: number }>
}

/** An SQL expression for a time as Unix ms. */
const msOf = (column: string): string => `floor(extract(epoch from ${column}) * 1000)::int8`

/** The parts of a channel's state that are shown: the cursor may be large, and is not. */
const shownState = ["fallback", "expired", "last_error", "targets", "subscriptions"]
  .map((name) => `'${name}', c.state -> '${name}'`)
  .join(", ")

/** The rows of the channels of these sources. Their subscriptions are those that live: at most two for each target. */
const channelRows = (sql: SqlClient.SqlClient, sources: ReadonlyArray<SourceOf>, now: number) => sql<ChannelRow>`
  select s.id, coalesce((
      select json_strip_nulls(json_build_object(${sql.literal(shownState)})) from channels c where c.source_id = s.id and c.team_id = s.team_id
    ), '{}') as state,
    (
      select json_build_object('id', a.id, 'connection', a.connection, 'failed', ${sql.literal(msOf("a.failed_at"))},
        'disabled', ${sql.literal(msOf("a.disabled_at"))}, 'revoked', ${sql.literal(msOf("a.revoked_at"))})
      from provider_accounts a where a.id = s.account_id and a.team_id = s.team_id
    ) as account,
    coalesce((
      select json_agg(json_build_object('id', u.id, 'target', u.target, 'state', u.state,
        'created_at', ${sql.literal(msOf("u.created_at"))}, 'verified_at', ${sql.literal(msOf("u.verified_at"))},
        'last_renewed_at', ${sql.literal(msOf("u.last_renewed_at"))}, 'renew_at', ${sql.literal(msOf("u.renew_at"))},
        'expires_at', ${sql.literal(msOf("u.expires_at"))}))
      from channel_subscriptions u where u.source_id = s.id and u.team_id = s.team_id and u.forgotten_at is null
    ), '[]') as subscriptions,
    (select max(u.last_renewed_at) from channel_subscriptions u where u.source_id = s.id and u.team_id = s.team_id) as last_renewed_at,
    (select max(u.last_notification_at) from channel_subscriptions u where u.source_id = s.id and u.team_id = s.team_id) as last_notification_at,
    coalesce((
      select json_agg(json_build_object('id', l.id, 'code', l.code, 'message', l.message, 'occurrences', l.occurrences,
        'first_seen', ${sql.literal(msOf("l.first_seen_at"))}, 'last_seen', ${sql.literal(msOf("l.last_seen_at"))}) order by l.id)
      from channel_alerts l where l.source_id = s.id and l.team_id = s.team_id and l.status = 'active'
    ), '[]') as alerts,
    coalesce((
      select json_agg(json_build_object('date', m.metric_date::text, 'metric', m.metric, 'value', m.value) order by m.metric)
      from channel_metrics m
      where m.source_id = s.id and m.team_id = s.team_id and m.metric_date between ${dateOf(now - dayMs)}::date and ${dateOf(now)}::date and m.value <> 0
    ), '[]') as counts
  from unnest(${Columns.text(sources.map(({ id }) => id))}, ${Columns.text(sources.map(({ team_id }) => team_id))},
    ${Columns.text(sources.map(({ config }) => config.provider?.provider_account_id ?? null))}) as s (id, team_id, account_id)`

const accountOf = (row: ChannelRow["account"]): Channel["provider_account"] => {
  if (row === null) return null
  const at = (ms: number | null) => (ms === null ? null : new Date(ms))
  const state: AccountState = accountStateOf({
    connection: row.connection,
    disabled_at: at(row.disabled),
    revoked_at: at(row.revoked),
    failed_at: at(row.failed)
  })
  const isOff = row.disabled !== null || row.revoked !== null
  return { id: row.id, state, status: isOff ? "disabled" : state === "active" ? "enabled" : "error" }
}

/** The smallest of some times; null: there is none. */
const earliest = (times: ReadonlyArray<number | null>): number | null => {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

const countsOf = ({ counts }: ChannelRow, date: string) => ({
  metric_date: date,
  metrics: Object.fromEntries(counts.filter((one) => one.date === date).map(({ metric, value }) => [metric, value]))
})

const channelOf = (
  definition: Definition,
  settings: ProviderSettings,
  disabled: boolean,
  row: ChannelRow,
  now: number
): Channel => {
  const state = stateOf(row.state)
  const provider_account = accountOf(row.account)
  const active = row.subscriptions.filter((one) => one.state === "active")
  const { activated_at, active: isFallback, next_restore_at, reason } = state.fallback
  return {
    ...statusOf({
      settings,
      disabled,
      account: provider_account,
      state,
      subscriptions: row.subscriptions,
      alerts: row.alerts.map(({ code }) => code),
      now
    }),
    adapter: definition.trigger.adapter?.key ?? "",
    expires_at: isoOf(earliest(active.map(({ expires_at }) => expires_at))),
    next_renewal_at: isoOf(earliest(active.map(renewalAt))),
    last_renewed_at: isoOrNull(row.last_renewed_at),
    last_notification_at: isoOrNull(row.last_notification_at),
    last_error: state.last_error,
    provider_account,
    fallback: {
      auto_fallback: settings.auto_fallback,
      active: isFallback,
      definition_key: pairOf(definition)?.key ?? null,
      schedule: settings.schedule,
      max_failures: settings.max_failures,
      consecutive_failures: consecutiveFailures(state),
      activated_at: isoOf(activated_at),
      reason,
      restore_after_minutes: settings.restore_after_minutes,
      next_restore_at: isoOf(next_restore_at)
    },
    alerts: row.alerts.map(({ first_seen, last_seen, ...alert }) => ({
      ...alert,
      first_seen_at: iso(new Date(first_seen)),
      last_seen_at: iso(new Date(last_seen))
    })),
    metrics_48h: { current: countsOf(row, dateOf(now)), previous: countsOf(row, dateOf(now - dayMs)) }
  }
}

/** The definition that a source runs, if it is instant: others have no channel. */
const instantOf = ({ config: { provider } }: SourceOf): Definition | undefined => {
  const definition = provider === undefined ? undefined : definitionOf(provider.provider_key, provider.definition_key)
  return definition?.mode === "instant" ? definition : undefined
}

/** The channels of those of the sources that have one, by the source's id. */
export const channelsOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  sources: ReadonlyArray<SourceOf>
): Effect.fn.Return<ReadonlyMap<string, Channel>, SqlError.SqlError> {
  const instant = sources.filter((source) => instantOf(source) !== undefined)
  if (instant.length === 0) return new Map()
  const now = yield* Clock.currentTimeMillis
  const rows = new Map((yield* channelRows(sql, instant, now)).map((row) => [row.id, row]))
  return new Map(
    instant.map((source) => {
      const disabled = source.disabled_at !== null
      const shown = channelOf(instantOf(source)!, source.config.provider!, disabled, rows.get(source.id)!, now)
      return [source.id, shown]
    })
  )
})
