import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { AlertCode } from "@tidegate/channels/machine/Facts"
import { consecutiveFailures, stateOf } from "@tidegate/channels/machine/State"
import { statusOf, type SubscriptionLife } from "@tidegate/channels/machine/Status"
import { renewalAt } from "@tidegate/channels/machine/Times"
import {
  type Definition,
  definitionOf,
  definitionsOf,
  pairOf,
  sourceProviders
} from "@tidegate/channels/SourceProviders"
import type {
  Channel,
  ChannelHistory,
  ChannelMetrics,
  ChannelSource,
  ChannelStatus,
  SourceRun
} from "@tidegate/model/Channel"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { type Listed, listed } from "@tidegate/model/Lists"
import { type AccountState, accountStateOf, type ProviderSettings } from "@tidegate/model/ProviderSource"
import * as Columns from "../journal/Columns.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "../reads/Paging.ts"

/* How provider sources, their channels and their runs are shown. Nothing here is written. */

/** Rows of the list of channels. */
const maxChannels = 250
/** Subscriptions and alert messages that are shown with the events of a channel. */
const maxShown = 100

const iso = (at: Date): string => at.toISOString()
const isoOrNull = (at: Date | null): string | null => at?.toISOString() ?? null
const isoOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())
const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
const dayMs = 86_400_000

/** A source as far as its channel depends on it. */
interface SourceOf {
  readonly id: string
  readonly team_id: string
  readonly config: { readonly provider?: ProviderSettings }
  readonly disabled_at: Date | null
}

/** What is read of a channel beside its source. Times inside JSON are Unix ms. */
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
      select json_strip_nulls(json_build_object(${sql.literal(shownState)})) from channels c where c.source_id = s.id
    ), '{}') as state,
    (
      select json_build_object('id', a.id, 'connection', a.connection, 'failed', ${sql.literal(msOf("a.failed_at"))},
        'disabled', ${sql.literal(msOf("a.disabled_at"))}, 'revoked', ${sql.literal(msOf("a.revoked_at"))})
      from provider_accounts a where a.id = s.account_id and a.team_id = s.team_id
    ) as account,
    coalesce((
      select json_agg(json_build_object('id', u.id, 'target', u.target, 'state', u.state,
        'created_at', ${sql.literal(msOf("u.created_at"))}, 'verified_at', ${sql.literal(msOf("u.verified_at"))},
        'last_renewed_at', ${sql.literal(msOf("u.last_renewed_at"))}, 'expires_at', ${sql.literal(msOf("u.expires_at"))}))
      from channel_subscriptions u where u.source_id = s.id and u.forgotten_at is null
    ), '[]') as subscriptions,
    (select max(u.last_renewed_at) from channel_subscriptions u where u.source_id = s.id) as last_renewed_at,
    (select max(u.last_notification_at) from channel_subscriptions u where u.source_id = s.id) as last_notification_at,
    coalesce((
      select json_agg(json_build_object('id', l.id, 'code', l.code, 'message', l.message, 'occurrences', l.occurrences,
        'first_seen', ${sql.literal(msOf("l.first_seen_at"))}, 'last_seen', ${sql.literal(msOf("l.last_seen_at"))}) order by l.id)
      from channel_alerts l where l.source_id = s.id and l.status = 'active'
    ), '[]') as alerts,
    coalesce((
      select json_agg(json_build_object('date', m.metric_date::text, 'metric', m.metric, 'value', m.value) order by m.metric)
      from channel_metrics m
      where m.source_id = s.id and m.metric_date between ${dateOf(now - dayMs)}::date and ${dateOf(now)}::date and m.value <> 0
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

interface NamedSource extends SourceOf {
  readonly name: string
}

/** A page of the team's sources with instant delivery, by name. */
const instantSources = Effect.fnUntraced(function* (
  team_id: string,
  after: NamedSource | undefined
): Effect.fn.Return<ReadonlyArray<NamedSource>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const instant = sourceProviders.flatMap(definitionsOf).filter(({ mode }) => mode === "instant")
  const keys = (of: (one: Definition) => string) => Columns.text(instant.map(of))
  const conditions: Array<Statement.Fragment> = [
    sql`s.team_id = ${team_id} and s.deleted_at is null and s.config -> 'provider' is not null`,
    sql`exists (
      select from unnest(${keys(({ provider }) => provider.key)}, ${keys(({ key }) => key)}) as d (provider_key, key)
      where d.provider_key = s.config -> 'provider' ->> 'provider_key' and d.key = s.config -> 'provider' ->> 'definition_key'
    )`
  ]
  if (after !== undefined) conditions.push(sql`(s.name, s.id) > (${after.name}, ${after.id})`)
  return yield* sql<NamedSource>`
    select s.id, s.team_id, s.name, s.config, s.disabled_at from sources s
    where ${sql.and(conditions)} order by s.name, s.id limit ${maxChannels}`
})

/**
 * The team's sources with instant delivery, by name, at most 250. The status is derived, so sources are read until enough of the
 * `statuses` are found; an empty list: any.
 */
export const listChannels = Effect.fnUntraced(function* (
  team_id: string,
  statuses: ReadonlyArray<ChannelStatus>
): Effect.fn.Return<Listed<ChannelSource>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const found: Array<ChannelSource> = []
  let last: NamedSource | undefined
  while (found.length < maxChannels) {
    const sources: ReadonlyArray<NamedSource> = yield* instantSources(team_id, last)
    const channels = yield* channelsOf(sql, sources)
    for (const source of sources) {
      const channel = channels.get(source.id)
      if (channel === undefined || (statuses.length > 0 && !statuses.includes(channel.status))) continue
      const { definition_key, provider_key } = source.config.provider!
      found.push({
        id: source.id,
        source_id: source.id,
        name: source.name,
        provider_key,
        definition_key,
        status: source.disabled_at === null ? "enabled" : "disabled",
        delivery_mode: "instant",
        channel
      })
    }
    if (sources.length < maxChannels) break
    last = sources.at(-1)
  }
  return listed(found.slice(0, maxChannels), null)
})

/** Fails when the team has no such source. */
const needSource = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<void, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`select from sources where id = ${id} and team_id = ${team_id} and deleted_at is null`
  if (row === undefined) yield* notFound("source", id)
})

type EventRow = Omit<ChannelHistory["events"][number], "created_at"> & { readonly created_at: Date }

interface SubscriptionRow extends Omit<
  ChannelHistory["channels"][number],
  "verified_at" | "expires_at" | "last_renewed_at" | "last_notification_at" | "stopped_at" | "created_at"
> {
  readonly verified_at: Date | null
  readonly expires_at: Date | null
  readonly last_renewed_at: Date | null
  readonly last_notification_at: Date | null
  readonly stopped_at: Date | null
  readonly created_at: Date
}

type DeliveryRow = Omit<ChannelHistory["deliveries"][number], "created_at" | "sent_at"> & {
  readonly created_at: Date
  readonly sent_at: Date | null
}

/** What happened to the channel of a source. Tokens and secrets are not among the columns that are read. */
export const channelHistory = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string,
  limit: number
): Effect.fn.Return<ChannelHistory, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* needSource(team_id, source_id)
  const ofSource = sql`team_id = ${team_id} and source_id = ${source_id}`
  const events = yield* sql<EventRow>`
    select id, source_id, kind, severity, message, error_code, subscription_id, details, created_at
    from channel_events where ${ofSource} order by id desc limit ${limit}`
  const subscriptions = yield* sql<SubscriptionRow>`
    select id, adapter, target, external_channel_id, external_resource_id, state, verified_at, expires_at, last_renewed_at,
      last_notification_at, last_message_number::float8 as last_message_number, stopped_at, created_at
    from channel_subscriptions where ${ofSource} order by created_at desc, id desc limit ${maxShown}`
  const deliveries = yield* sql<DeliveryRow>`
    select id, alert_id, code, kind, transport, recipient, status, response_status, error_code, attempts, suppressed_reason,
      created_at, sent_at
    from channel_alert_deliveries where ${ofSource} order by id desc limit ${maxShown}`
  return {
    events: events.map((event) => ({ ...event, created_at: iso(event.created_at) })),
    channels: subscriptions.map((subscription) => ({
      ...subscription,
      verified_at: isoOrNull(subscription.verified_at),
      expires_at: isoOrNull(subscription.expires_at),
      last_renewed_at: isoOrNull(subscription.last_renewed_at),
      last_notification_at: isoOrNull(subscription.last_notification_at),
      stopped_at: isoOrNull(subscription.stopped_at),
      created_at: iso(subscription.created_at)
    })),
    deliveries: deliveries.map((delivery) => ({
      ...delivery,
      created_at: iso(delivery.created_at),
      sent_at: isoOrNull(delivery.sent_at)
    }))
  }
})

/** The counts of all channels of a team, for each of the last `days` dates in UTC. */
export const channelMetrics = Effect.fnUntraced(function* (
  team_id: string,
  days: number
): Effect.fn.Return<ChannelMetrics, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const [from, to] = [dateOf(now - (days - 1) * dayMs), dateOf(now)]
  const series = yield* sql<ChannelMetrics["series"][number]>`
    select metric_date::text as metric_date, metric, sum(value)::float8 as value from channel_metrics
    where team_id = ${team_id} and metric_date between ${from}::date and ${to}::date
    group by metric_date, metric having sum(value) <> 0 order by metric_date desc, metric`
  return { days, from, to, series }
})

interface RunRow extends Omit<SourceRun, "scheduled_at" | "started_at" | "finished_at"> {
  readonly scheduled_at: Date
  readonly started_at: Date | null
  readonly finished_at: Date | null
}

/**
 * The runs of a source, newest first. `eventful`: only those that found something new or failed, because a source that polls
 * every minute has many others.
 */
export const sourceRuns = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string,
  which: "all" | "eventful",
  page: PageRequest
): Effect.fn.Return<Listed<SourceRun>, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const position = yield* Effect.fromResult(positionOf(page))
  yield* needSource(team_id, source_id)
  const conditions = [sql`team_id = ${team_id} and source_id = ${source_id}`]
  if (position !== null) conditions.push(sql`id < ${position.id}`)
  if (which === "eventful") conditions.push(sql`(items_new > 0 or status = 'failed')`)
  const rows = yield* sql<RunRow>`
    select id, source_id, status, reason, items_found, items_new, error_code, scheduled_at, started_at, finished_at
    from source_runs where ${sql.and(conditions)} order by id desc limit ${page.limit + 1}`
  const { last, page: shown } = cutToLimit(rows, page.limit)
  const runs = shown.map((row): SourceRun => ({
    ...row,
    scheduled_at: iso(row.scheduled_at),
    started_at: isoOrNull(row.started_at),
    finished_at: isoOrNull(row.finished_at)
  }))
  return listed(runs, cursorAfter(page.key, last === null ? null : { id: last.id }))
})
