import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { dayMs } from "@tidegate/channels/machine/Times"
import { type Definition, definitionsOf, sourceProviders } from "@tidegate/channels/SourceProviders"
import type { ChannelHistory, ChannelMetrics, ChannelSource, ChannelStatus, SourceRun } from "@tidegate/model/Channel"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { type Listed, listed } from "@tidegate/model/Lists"
import * as Columns from "../journal/Columns.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "../reads/Paging.ts"
import { dateOf } from "./ChannelMetrics.ts"
import { channelsOf, iso, isoOrNull, type SourceOf } from "./ChannelView.ts"

/* What is read of provider sources, their channels and their runs. */

/** Rows of the list of channels. */
const maxChannels = 250
/** Sources that are read at once: a channel may have a hundred subscriptions, and all of 250 would hold the event loop. */
const readAtOnce = 50
/** Subscriptions and alert messages that are shown with the events of a channel. */
const maxShown = 100

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
    where ${sql.and(conditions)} order by s.name, s.id limit ${readAtOnce}`
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
    if (sources.length < readAtOnce) break
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
    events: events.map(eventOf),
    channels: subscriptions.map(subscriptionOf),
    deliveries: deliveries.map(deliveryOf)
  }
})

const eventOf = ({ created_at, ...event }: EventRow): ChannelHistory["events"][number] => ({
  ...event,
  created_at: iso(created_at)
})

const subscriptionOf = (row: SubscriptionRow): ChannelHistory["channels"][number] => ({
  ...row,
  verified_at: isoOrNull(row.verified_at),
  expires_at: isoOrNull(row.expires_at),
  last_renewed_at: isoOrNull(row.last_renewed_at),
  last_notification_at: isoOrNull(row.last_notification_at),
  stopped_at: isoOrNull(row.stopped_at),
  created_at: iso(row.created_at)
})

const deliveryOf = ({ created_at, sent_at, ...delivery }: DeliveryRow): ChannelHistory["deliveries"][number] => ({
  ...delivery,
  created_at: iso(created_at),
  sent_at: isoOrNull(sent_at)
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

const runOf = (row: RunRow): SourceRun => ({
  ...row,
  scheduled_at: iso(row.scheduled_at),
  started_at: isoOrNull(row.started_at),
  finished_at: isoOrNull(row.finished_at)
})

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
  return listed(shown.map(runOf), cursorAfter(page.key, last === null ? null : { id: last.id }))
})
