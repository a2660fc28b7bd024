import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { definitionOf } from "@tidegate/channels/SourceProviders"
import { brokerTypes, type SubscriptionState } from "@tidegate/model/BrokerSource"
import type { Channel } from "@tidegate/model/Channel"
import { Ingress, sourceUrl } from "@tidegate/model/Ingress"
import { type ProviderSettings, providerType } from "@tidegate/model/ProviderSource"
import { scheduledType } from "@tidegate/model/ScheduledSource"
import type { Source } from "@tidegate/model/Source"
import { systemType } from "@tidegate/model/SystemSource"
import { source, type SourceConfig } from "@tidegate/resources/Source"
import { showAuth } from "../secrets/AuthColumn.ts"
import type { Owner } from "../secrets/SealedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { makeStore } from "./MakeStore.ts"
import { nobody, noRows, type Store, type StoredRow, type Values } from "./Store.ts"
import { loseSource, refuseUsedBySteps } from "../workflows/WorkflowLinks.ts"
import { channelsOf } from "../channels/ChannelView.ts"
import { checkAccount, followChannel } from "../channels/SourceChannel.ts"
import {
  claimSubscription,
  keepSubscription,
  noSubscription,
  subscriptionsOf
} from "../subscriptions/SourceSubscriptions.ts"
import { claimSchedule, keepSchedule, nextTimesOf } from "../schedules/SourceSchedules.ts"

type Later = "chat_defer_ephemeral" | "rate_limit" | "rate_limit_period"

export type StoredConfig = Omit<SourceConfig, Later> & Partial<Pick<SourceConfig, Later>>

/** The settings of a row, completed with defaults: an older row may lack some. */
export const configOf = (config: StoredConfig): SourceConfig => ({
  ...config,
  chat_defer_ephemeral: config.chat_defer_ephemeral ?? false,
  rate_limit: config.rate_limit ?? null,
  rate_limit_period: config.rate_limit_period ?? null
})

/** A row of `sources`. */
export interface SourceRow extends StoredRow {
  readonly description: string | null
  readonly type: string
  readonly slug: string | null
  /** A row of an older version lacks later members: `configOf` reads it. */
  readonly config: StoredConfig
  /** Encrypted. */
  readonly auth: string | null
  readonly disabled_at: Date | null
}

/** Names the source that has the URL only to its own team. */
const urlTaken = (holder: SlugHolder, team_id: string): GatewayError =>
  fail("RESOURCE_ALREADY_EXISTS", "another source has this url", {
    ...(holder.team_id === team_id ? { id: holder.id } : {}),
    resource_type: "source",
    fields: [{ path: "url", message: "is another source's already" }]
  })

interface SlugHolder {
  readonly id: string
  readonly team_id: string
}

/** The members that only a provider source has. `channel`: null for one that polls. */
const shownProvider = (settings: ProviderSettings, channel: Channel | null) => {
  const { definition_key, provider_account_id, provider_key, schedule } = settings
  const definition = definitionOf(provider_key, definition_key)
  return {
    provider_key,
    definition_key,
    // A provider that this version does not know any more.
    delivery_mode: definition?.mode ?? "polling",
    schedule,
    provider_account_id,
    channel
  } as const
}

const ofBroker: ReadonlySet<unknown> = new Set(brokerTypes)

/** For the actor of its channel, if it has one. */
const channelOf = ({ config, id }: SourceRow) => (config.provider === undefined ? undefined : { channel: id })

/** For the actor of its subscription, if it has one. */
const subscriptionOf = ({ config, id }: SourceRow) => (config.subscription === undefined ? {} : { subscription: id })

/**
 * The sources of teams. Every change raises the row's version, so that ingress stops using the old settings. Disabling a source
 * disables its enabled connections, and enabling it enables exactly those again. A delete also deletes its connections; their
 * requests and events stay. Rows are locked in the order destinations, sources, connections.
 */
export class Sources extends Context.Service<Sources, Store<typeof source>>()("@tidegate/storage/Sources") {
  static readonly layer: Layer.Layer<Sources, never, SqlClient.SqlClient | Secrets | Ingress> = Layer.effect(
    Sources,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const ingress = yield* Ingress

  const record = Effect.fnUntraced(function* (
    row: SourceRow,
    {
      channel,
      nextTime,
      subscription
    }: {
      readonly channel: Channel | null
      readonly nextTime: Date | null
      readonly subscription: SubscriptionState
    }
  ): Effect.fn.Return<Source> {
    const { provider, schedule } = row.config
    return {
      id: row.id,
      team_id: row.team_id,
      name: row.name,
      description: row.description,
      type: row.type,
      input_type: provider === undefined ? "webhook" : "provider",
      status: row.disabled_at === null ? "enabled" : "disabled",
      url: sourceUrl(ingress, row.slug ?? row.id),
      config: { ...configOf(row.config), auth: yield* showAuth(secrets, "sources", row) },
      ...(provider === undefined ? {} : shownProvider(provider, channel)),
      ...(schedule === undefined ? {} : { next_due_at: nextTime?.toISOString() ?? null }),
      ...(row.config.subscription === undefined ? {} : { subscription_state: subscription }),
      disabled_at: row.disabled_at?.toISOString() ?? null,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString()
    }
  })

  /** Fails when another source of any team has the slug. When the name is taken too, the store reports that instead. */
  const claimSlug = Effect.fnUntraced(function* ({ id, team_id }: Owner, { name, slug }: Values) {
    if (slug === null) return
    const [holder] = yield* sql<SlugHolder>`
      select id, team_id from sources where slug = ${slug} and deleted_at is null
        and not exists (select from sources n where n.team_id = ${team_id} and n.name = ${name} and n.id <> ${id}
          and n.deleted_at is null)`
    if (holder !== undefined && holder.id !== id) yield* urlTaken(holder, team_id)
  })

  /** Fails when the team has a system source already. The lock keeps two creates at once apart. */
  const claimSystem = Effect.fnUntraced(function* ({ id, team_id }: Owner) {
    yield* sql`select pg_advisory_xact_lock(hashtextextended(${`system_source/${team_id}`}, 0))`
    const [other] = yield* sql<{ id: string }>`
      select id from sources where team_id = ${team_id} and type = ${systemType} and deleted_at is null and id <> ${id}`
    if (other === undefined) return
    const fields = [{ path: "type", message: "is another source's already: a team has one" }]
    yield* fail("RESOURCE_ALREADY_EXISTS", "the team has a system source", {
      id: other.id,
      resource_type: "source",
      fields
    })
  })

  /** The destinations of its connections; for a deleted source, of the connections that it had until then. */
  const destinationsOf = Effect.fnUntraced(function* ({ deleted_at, id }: SourceRow) {
    const rows = yield* sql<{ destination_id: string }>`
      select distinct destination_id from connections
      where source_id = ${id} and deleted_at is not distinct from ${deleted_at}::timestamptz`
    return rows.map((row) => row.destination_id)
  })

  /**
   * Disables, enables or deletes the connections of a source together with it. Returns those whose pending events are cancelled
   * by that.
   */
  const followed = Effect.fnUntraced(function* (
    before: SourceRow,
    { deleted_at, disabled_at, id }: SourceRow,
    at: Date,
    by: string | null
  ) {
    if (deleted_at !== null) {
      yield* loseSource(sql, id, at, by)
      return yield* sql<{ id: string }>`
        update connections set deleted_at = ${at}, cancel_before = ${at}, updated_at = ${at}
        where source_id = ${id} and deleted_at is null returning id`
    }
    if ((disabled_at === null) === (before.disabled_at === null)) return []
    return disabled_at === null
      ? yield* sql<{ id: string }>`
          update connections
          set disabled_at = null, disabled_by = null, cancel_before = ${at}, updated_at = ${at}
          where source_id = ${id} and deleted_at is null and disabled_by = 'source' returning id`
      : yield* sql<{ id: string }>`
          update connections
          set disabled_at = ${at}, disabled_by = 'source', paused_at = null, cancel_before = ${at}, updated_at = ${at}
          where source_id = ${id} and deleted_at is null and disabled_at is null returning id`
  })

  return yield* makeStore<SourceRow, typeof source>(source, {
    show: Effect.fnUntraced(function* (rows) {
      const channels = yield* channelsOf(sql, rows)
      const nextTimes = yield* nextTimesOf(sql, rows)
      const subscriptions = yield* subscriptionsOf(sql, rows)
      return yield* Effect.forEach(rows, (row) =>
        record(row, {
          channel: channels.get(row.id) ?? null,
          nextTime: nextTimes.get(row.id) ?? null,
          subscription: subscriptions.get(row.id) ?? noSubscription
        })
      )
    }),
    fields: (fields) => ({ ...fields, config: configOf(fields.config) }),
    // The checks of a slug and of a system source read other rows; a channel, a schedule and a subscription are other rows: they take a transaction.
    alone: (_team_id, { slug, type }) =>
      slug === null && type !== providerType && type !== systemType && type !== scheduledType && !ofBroker.has(type)
        ? noRows
        : null,
    prepare: Effect.fnUntraced(function* (owner, before, next) {
      if (before === null && next["type"] === systemType) yield* claimSystem(owner)
      if (before === null && next["type"] === scheduledType) yield* claimSchedule(sql, owner)
      if (before === null && ofBroker.has(next["type"])) yield* claimSubscription(sql, owner)
      if (next["slug"] !== undefined && next["slug"] !== before?.slug) yield* claimSlug(owner, next)
      yield* checkAccount(sql, owner, before, next)
      return before === null ? next : { ...next, version: sql.literal("version + 1") }
    }),
    remove: (row) =>
      row.type === systemType
        ? fail("RESOURCE_IN_USE", "a system source cannot be deleted: disable it, and it gets no more events")
        : Effect.as(refuseUsedBySteps(sql, "source", row), {}),
    follow: Effect.fnUntraced(function* (before, after, at, by) {
      const channel = channelOf(after)
      yield* keepSchedule(sql, before, after, at)
      const subscription = (yield* keepSubscription(sql, before, after, at)) ? { subscription: after.id } : {}
      if (before === null) {
        if (channel === undefined) return { ...nobody, ...subscription }
        yield* followChannel(sql, null, after, at)
        return { ...nobody, ...channel }
      }
      const cancelled = yield* followed(before, after, at, by)
      if (channel !== undefined) yield* followChannel(sql, before, after, at)
      return {
        cancelled: cancelled.map(({ id }) => ({ connection_id: id })),
        destinations: yield* destinationsOf(after),
        ...channel,
        ...subscription
      }
    }),
    concerns: (row) =>
      Effect.map(destinationsOf(row), (destinations) => ({
        destinations,
        cancelled: [],
        ...channelOf(row),
        ...subscriptionOf(row)
      })),
    narrow: (_team_id, { type }) => (type === undefined ? [] : [sql`t.type = ${type}`])
  })
})
