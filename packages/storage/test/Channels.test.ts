import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { ProviderSettings } from "@tidegate/model/ProviderSource"
import { changeDelivery } from "@tidegate/resources/Delivery"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { requestRetry, requestRun } from "../src/channels/ChannelChanges.ts"
import { channelHistory, channelMetrics, listChannels, sourceRuns } from "../src/channels/ChannelReads.ts"
import { Sources } from "../src/control/Sources.ts"
import { weighRoutedSource } from "../src/delivery/RoutedSource.ts"
import { filterKey } from "../src/reads/Cursor.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createSource, otherTeam, sourceFields, team, unique } = ControlPlane

const day = 86_400_000

const feed: ProviderSettings = {
  provider_key: "websub",
  definition_key: "entry.added",
  provider_account_id: null,
  inputs: { url: "https://blog.test/feed", require_sha256: false },
  schedule: { interval_minutes: 5 },
  auto_fallback: true,
  max_failures: 3,
  restore_after_minutes: 30
}
const but = (settings: ProviderSettings, other: Partial<ProviderSettings>): ProviderSettings =>
  Object.assign({}, settings, other)
const calendar = (provider_account_id: string): ProviderSettings =>
  but(feed, {
    provider_key: "watch",
    definition_key: "calendar.event.changed",
    provider_account_id,
    inputs: { calendar_ids: ["primary", "team"] }
  })

const provided = (provider: ProviderSettings, name = unique("items")) => {
  const fields = sourceFields({ name, type: "PROVIDER" })
  return { ...fields, config: { ...fields.config, provider } }
}
const createItems = (provider: ProviderSettings, name?: string) => createSource(provided(provider, name))

/** An account of a team, connected unless a time says otherwise. */
const account = Effect.fnUntraced(function* (
  of = team,
  { failed_at = null, provider_key = "watch" }: { failed_at?: Date | null; provider_key?: string } = {}
) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.providerAccount, Date.now())
  yield* sql`insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, failed_at, created_at, updated_at)
    values (${id}, ${of}, ${provider_key}, ${id}, 'oauth2', 'https://api.test', ${failed_at}::timestamptz, now(), now())`
  return id
})

interface ChannelRow {
  readonly due: boolean
  readonly version: string
  readonly run_id: string | null
}
const channelRow = Effect.fnUntraced(function* (source_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<ChannelRow>`
    select due_at <= now() as due, version::text as version, run_id from channels where source_id = ${source_id}`
  return row ?? null
})

/** As its actor leaves it: nothing is due. */
const settle = (source_id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`update channels set due_at = null where source_id = ${source_id}`)

const subscription = Effect.fnUntraced(function* (
  source_id: string,
  about: {
    target: string
    state: string
    expires_at?: Date | null
    forgotten_at?: Date | null
    last_notification_at?: Date
  }
) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.channelSubscription, Date.now())
  yield* sql`insert into channel_subscriptions (id, team_id, source_id, adapter, definition_key, target, token_hash, secrets,
      state, expires_at, last_notification_at, created_at, forgotten_at)
    values (${id}, ${team}, ${source_id}, 'watch', 'calendar.event.changed', ${about.target}, ${id}, 'sealed-secrets',
      ${about.state}, ${about.expires_at ?? null}::timestamptz, ${about.last_notification_at ?? null}::timestamptz, now(),
      ${about.forgotten_at ?? null}::timestamptz)`
  return id
})

const codeOf = <A, R>(effect: Effect.Effect<A, GatewayError, R>) => Effect.map(Effect.flip(effect), ({ code }) => code)

layer(ControlPlane.layer, { excludeTestServices: true })("Provider sources in SQL", (it) => {
  it.effect(
    "A provider source is created with its channel, which is due with each change and kept after a delete",
    () =>
      Effect.gen(function* () {
        const sources = yield* Sources
        const source = yield* createItems(feed)
        expect(source).toMatchObject({
          input_type: "provider",
          config: { provider: feed },
          provider_key: "websub",
          definition_key: "entry.added",
          delivery_mode: "instant",
          schedule: { interval_minutes: 5 },
          provider_account_id: null,
          channel: { status: "connecting", status_reason: "provisioning", expected_targets: 1, active_subscriptions: 0 }
        })
        expect(yield* channelRow(source.id)).toEqual({ due: true, version: "1", run_id: null })
        let version = 1
        const makesDue = Effect.fnUntraced(function* <A>(change: Effect.Effect<A, GatewayError>) {
          yield* settle(source.id)
          yield* change
          version++
          expect(yield* channelRow(source.id)).toMatchObject({ due: true, version: String(version) })
        })
        yield* makesDue(
          sources.update(team, source.id, (stored) =>
            Result.succeed({ ...stored, name: unique("renamed"), auth: "unchanged" })
          )
        )
        yield* makesDue(sources.switch(team, source.id, "disable"))
        expect((yield* sources.get(team, source.id)).channel).toMatchObject({ status_reason: "source_disabled" })
        yield* makesDue(sources.switch(team, source.id, "enable"))
        yield* makesDue(sources.delete(team, source.id))
        const plain = yield* createSource()
        expect(plain).not.toHaveProperty("channel")
        expect(yield* channelRow(plain.id)).toBeNull()
      })
  )

  it.effect("A change concerns the channel of a provider source only", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const told = Effect.fnUntraced(function* (id: string) {
        const seen: Array<string | undefined> = []
        yield* sources.switch(team, id, "disable", {
          afterCommit: ({ channel }) => Effect.sync(() => void seen.push(channel))
        })
        return seen
      })
      const source = yield* createItems(feed)
      expect(yield* told(source.id)).toEqual([source.id])
      expect(yield* told((yield* createSource()).id)).toEqual([undefined])
    })
  )

  it.effect("Nobody can send to the URL of a provider source", () =>
    Effect.gen(function* () {
      expect(yield* weighRoutedSource((yield* createItems(feed)).id)).toBeNull()
      expect(yield* weighRoutedSource((yield* createSource()).id)).not.toBeNull()
    })
  )

  it.effect("The account of a source must be one of its team at its provider", () =>
    Effect.gen(function* () {
      const foreign = [
        yield* account(otherTeam),
        yield* account(team, { provider_key: "graph" }),
        newId(prefixes.providerAccount, 1)
      ]
      for (const id of foreign) {
        const error = yield* Effect.flip(createItems(calendar(id)))
        expect(error).toMatchObject({
          code: "VALIDATION_ERROR",
          data: {
            fields: [{ path: "config.provider.provider_account_id", message: "is no account of the team at watch" }]
          }
        })
      }
      const own = yield* account()
      expect((yield* createItems(calendar(own))).provider_account_id).toBe(own)
    })
  )

  it.effect("A change from polling to instant delivery needs a connected account and is recorded as an event", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const id = yield* account(team, { failed_at: new Date() })
      const source = yield* createItems(but(calendar(id), { definition_key: "calendar.event.changed_polling" }))
      expect(source).toMatchObject({ delivery_mode: "polling", channel: null })
      const deliver = (delivery_mode: string) =>
        sources.update(team, source.id, changeDelivery({ delivery_mode }, source.id))
      expect(yield* Effect.flip(deliver("instant"))).toMatchObject({
        code: "PROVIDER_ACCOUNT_NOT_CONNECTED",
        data: { source_id: source.id }
      })
      expect((yield* deliver("polling")).delivery_mode).toBe("polling")
      yield* sql`update provider_accounts set failed_at = null where id = ${id}`
      expect((yield* deliver("instant")).delivery_mode).toBe("instant")
      yield* deliver("instant")
      const { events } = yield* channelHistory(team, source.id, 10)
      expect(events).toHaveLength(1)
      expect(events[0]).toMatchObject({
        source_id: source.id,
        kind: "delivery_changed",
        severity: "info",
        message: "Delivery is instant from now on",
        details: { from: "calendar.event.changed_polling", to: "calendar.event.changed" }
      })
    })
  )

  it.effect("A channel is shown with its subscriptions, account, fallback, alerts and counts of two days", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const account_id = yield* account()
      const source = yield* createItems(calendar(account_id), "a calendar")
      const now = Date.now()
      const expires = [new Date(now + 7 * day), new Date(now + 6 * day)]
      const notified = new Date(now - 5_000)
      yield* subscription(source.id, { target: "calendar:primary", state: "active", expires_at: expires[0]! })
      yield* subscription(source.id, { target: "calendar:team", state: "active", expires_at: expires[1]! })
      yield* subscription(source.id, {
        target: "calendar:team",
        state: "superseded",
        forgotten_at: new Date(now + 30 * day),
        last_notification_at: notified
      })
      yield* sql`insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at)
        values ('cal_1', ${team}, ${source.id}, 'channel_stop_failed', 'active', 'The stop failed', 2, now(), now()),
          ('cal_2', ${team}, ${source.id}, 'channel_renewal_failed', 'resolved', 'over', 1, now(), now())`
      const dates = [now, now - day, now - 2 * day].map((ms) => new Date(ms).toISOString().slice(0, 10))
      for (const [index, date] of dates.entries()) {
        yield* sql`insert into channel_metrics values (${team}, ${source.id}, ${date}::date, 'renewals', ${index + 1}, now())`
      }
      yield* sql`update channels set state = ${JSON.stringify({ cursor: "secret", last_error: "HTTP 500" })}::json
        where source_id = ${source.id}`
      const { channel } = yield* (yield* Sources).get(team, source.id)
      expect(channel).toMatchObject({
        status: "active",
        status_reason: null,
        adapter: "watch",
        expected_targets: 2,
        active_subscriptions: 2,
        expires_at: expires[1]!.toISOString(),
        last_notification_at: notified.toISOString(),
        last_error: "HTTP 500",
        provider_account: { id: account_id, status: "enabled", state: "active" },
        fallback: {
          auto_fallback: true,
          active: false,
          definition_key: "calendar.event.changed_polling",
          schedule: { interval_minutes: 5 },
          max_failures: 3,
          consecutive_failures: 0,
          restore_after_minutes: 30
        },
        alerts: [{ id: "cal_1", code: "channel_stop_failed", message: "The stop failed", occurrences: 2 }],
        metrics_48h: {
          current: { metric_date: dates[0], metrics: { renewals: 1 } },
          previous: { metric_date: dates[1], metrics: { renewals: 2 } }
        }
      })
      const renewal = Date.parse(channel!.next_renewal_at!)
      expect(renewal).toBeGreaterThan(now)
      expect(renewal).toBeLessThan(expires[1]!.getTime())

      const fallback = { active: true, reason: "provision_failed", activated_at: now, next_restore_at: now + 60_000 }
      yield* sql`update channels set state = ${JSON.stringify({ fallback })}::json where source_id = ${source.id}`
      yield* sql`update provider_accounts set revoked_at = now() where id = ${account_id}`
      expect((yield* (yield* Sources).get(team, source.id)).channel).toMatchObject({
        status: "fallback",
        status_reason: "provision_failed",
        provider_account: { status: "disabled", state: "revoked" },
        fallback: { active: true, next_restore_at: new Date(now + 60_000).toISOString() }
      })
    })
  )

  it.effect("Channels of sources with instant delivery are listed by name, and narrowed to statuses", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // A team of its own, so that other tests' sources are not listed.
      const alone = "tm_channels"
      yield* sql`insert into teams (id, name) values (${alone}, 'Channels')`
      const sources = yield* Sources
      const make = (name: string, provider: ProviderSettings) =>
        sources.create(alone, newId(prefixes.source, Date.now()), provided(provider, name))
      const failing = yield* make("b", feed)
      yield* make("a", feed)
      yield* make("c", but(feed, { definition_key: "entry.added_polling" }))
      yield* sources.create(alone, newId(prefixes.source, Date.now()), sourceFields({ name: "d" }))
      yield* sql`insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at)
        values ('cal_9', ${alone}, ${failing.id}, 'channel_provision_failed', 'active', '', 1, now(), now())`
      const names = (list: { readonly models: ReadonlyArray<{ readonly name: string }> }) =>
        list.models.map(({ name }) => name)
      const all = yield* listChannels(alone, [])
      expect(all).toMatchObject({ count: 2, next_cursor: null, has_more: false })
      expect(all.models[1]).toMatchObject({
        id: failing.id,
        source_id: failing.id,
        name: "b",
        provider_key: "websub",
        definition_key: "entry.added",
        status: "enabled",
        delivery_mode: "instant",
        channel: { status: "error", status_reason: "provision_failed" }
      })
      expect(names(all)).toEqual(["a", "b"])
      expect(names(yield* listChannels(alone, ["error", "active"]))).toEqual(["b"])
      expect(names(yield* listChannels(alone, ["fallback"]))).toEqual([])

      // More than a page of others lies before the one that is looked for.
      yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
        select 'src_' || i, team_id, 'a' || i, type, config, now(), now() from sources, generate_series(1, 260) as i
        where id = ${failing.id}`
      expect(names(yield* listChannels(alone, ["error"]))).toEqual(["b"])
      expect((yield* listChannels(alone, [])).count).toBe(250)
    })
  )

  it.effect("What happened to a channel is shown without tokens and secrets, the newest first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* createItems(feed)
      const kept = yield* subscription(source.id, { target: "calendar:a", state: "active" })
      yield* sql`insert into channel_events (id, team_id, source_id, kind, severity, message, created_at, expires_at)
        select 'cev_' || lpad(i::text, 3, '0'), ${team}, ${source.id}, 'provision_started', 'info', '', now(), now()
        from generate_series(1, 5) as i`
      yield* sql`insert into channel_alert_deliveries (id, team_id, source_id, alert_id, code, kind, transport, recipient, status,
          created_at, expires_at)
        values ('cad_1', ${team}, ${source.id}, 'cal_1', 'channel_stop_failed', 'opened', 'email', 'a***@example.com', 'sent', now(), now())`
      const history = yield* channelHistory(team, source.id, 3)
      expect(history.events.map(({ id }) => id)).toEqual(["cev_005", "cev_004", "cev_003"])
      expect(history.channels).toMatchObject([{ id: kept, target: "calendar:a", state: "active", expires_at: null }])
      expect(history.deliveries).toMatchObject([{ id: "cad_1", status: "sent", recipient: "a***@example.com" }])
      expect(JSON.stringify(history)).not.toMatch(/sealed-secrets|token/)
      const plain = yield* createSource()
      expect(yield* channelHistory(team, plain.id, 3)).toEqual({ events: [], channels: [], deliveries: [] })
      expect(yield* Effect.flip(channelHistory(otherTeam, source.id, 3))).toMatchObject({ code: "NOT_FOUND" })
    })
  )

  it.effect("Counts of channels are summed for each date and name of a team", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const counting = "tm_counts"
      yield* sql`insert into teams (id, name) values (${counting}, 'Counts')`
      const date = (ago: number) => new Date(Date.now() - ago * day).toISOString().slice(0, 10)
      for (const [source, ago, metric, value] of [
        ["src_a", 0, "polls", 2],
        ["src_b", 0, "polls", 3],
        ["src_a", 0, "renewals", 0],
        ["src_a", 1, "stops", 1],
        ["src_a", 2, "polls", 9]
      ] as const) {
        yield* sql`insert into channel_metrics values (${counting}, ${source}, ${date(ago)}::date, ${metric}, ${value}, now())`
      }
      expect(yield* channelMetrics(counting, 2)).toEqual({
        days: 2,
        from: date(1),
        to: date(0),
        series: [
          { metric_date: date(0), metric: "polls", value: 5 },
          { metric_date: date(1), metric: "stops", value: 1 }
        ]
      })
    })
  )

  it.effect(
    "A retry makes the channel due once within ten seconds and is refused where there is nothing to retry",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const sources = yield* Sources
        const source = yield* createItems(feed)
        yield* settle(source.id)
        const first = yield* requestRetry(team, source.id)
        expect(first).toMatchObject({ source_id: source.id, status: "connecting" })
        expect(yield* channelRow(source.id)).toMatchObject({ due: true, version: "2" })
        expect(yield* requestRetry(team, source.id)).toEqual(first)
        expect(yield* channelRow(source.id)).toMatchObject({ version: "2" })
        yield* sql`update channels set retry_requested_at = now() - interval '11 seconds' where source_id = ${source.id}`
        expect((yield* requestRetry(team, source.id)).retry_requested_at).not.toBe(first.retry_requested_at)
        const kinds = (yield* channelHistory(team, source.id, 10)).events.map(({ kind }) => kind)
        expect(kinds).toEqual(["retry_requested", "retry_requested"])

        // The order of the checks: the mode, then the source's state, then its account.
        const polling = yield* createItems(but(feed, { definition_key: "entry.added_polling" }))
        yield* sources.switch(team, polling.id, "disable")
        const expired = yield* createItems(calendar(yield* account(team, { failed_at: new Date() })))
        expect(yield* codeOf(requestRetry(team, (yield* createSource()).id))).toBe("CHANNEL_POLLING_SOURCE")
        expect(yield* codeOf(requestRetry(team, polling.id))).toBe("CHANNEL_POLLING_SOURCE")
        expect(yield* codeOf(requestRetry(team, expired.id))).toBe("PROVIDER_ACCOUNT_NOT_CONNECTED")
        yield* sources.switch(team, expired.id, "disable")
        expect(yield* codeOf(requestRetry(team, expired.id))).toBe("SOURCE_DISABLED")
        expect(yield* codeOf(requestRetry(otherTeam, source.id))).toBe("NOT_FOUND")
        yield* sources.delete(team, source.id)
        expect(yield* codeOf(requestRetry(team, source.id))).toBe("NOT_FOUND")
      })
  )

  it.effect("A requested run is the same one until it begins, and is refused where there is nothing to poll", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const source = yield* createItems(feed)
      yield* settle(source.id)
      const run = yield* requestRun(team, source.id)
      expect(run).toMatchObject({ source_id: source.id, status: "scheduled", reason: "manual" })
      expect(yield* channelRow(source.id)).toEqual({ due: true, version: "2", run_id: run.id })
      expect(yield* requestRun(team, source.id)).toEqual(run)
      yield* sql`update source_runs set status = 'running', started_at = now() where id = ${run.id}`
      const second = yield* requestRun(team, source.id)
      expect(second.id).not.toBe(run.id)
      expect(yield* channelRow(source.id)).toEqual({ due: true, version: "3", run_id: second.id })

      expect(yield* codeOf(requestRun(team, (yield* createSource()).id))).toBe("DELIVERY_DEFINITION_UNAVAILABLE")
      yield* sources.switch(team, source.id, "disable")
      expect(yield* codeOf(requestRun(team, source.id))).toBe("SOURCE_DISABLED")
      expect(yield* codeOf(requestRun(otherTeam, source.id))).toBe("NOT_FOUND")
    })
  )

  it.effect("Runs are listed in pages, the newest first, and those that matter on their own", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* createItems(feed)
      const ids = [1, 2, 3, 4].map((at) => newId(prefixes.sourceRun, at))
      for (const [index, [status, found, added]] of (
        [
          ["succeeded", 10, 2],
          ["succeeded", 10, 0],
          ["failed", 0, 0],
          ["running", 0, 0]
        ] as const
      ).entries()) {
        yield* sql`insert into source_runs (id, team_id, source_id, status, reason, items_found, items_new, error_code,
            scheduled_at, started_at, expires_at)
          values (${ids[index]!}, ${team}, ${source.id}, ${status}, 'schedule', ${found}, ${added},
            ${status === "failed" ? "PROVIDER_UNREACHABLE" : null}::text, ${new Date(index)}, ${new Date(index)}, now())`
      }
      const key = filterKey("source_runs", { source: source.id })
      const page = (cursor: string | undefined, which: "all" | "eventful" = "all") =>
        sourceRuns(team, source.id, which, { key, cursor, limit: 3 })
      const first = yield* page(undefined)
      expect(first).toMatchObject({ count: 3, has_more: true })
      expect(first.models.map(({ id }) => id)).toEqual([ids[3], ids[2], ids[1]])
      expect(yield* page(first.next_cursor!)).toEqual({
        count: 1,
        next_cursor: null,
        has_more: false,
        models: [
          {
            id: ids[0],
            source_id: source.id,
            status: "succeeded",
            reason: "schedule",
            items_found: 10,
            items_new: 2,
            error_code: null,
            scheduled_at: "1970-01-01T00:00:00.000Z",
            started_at: "1970-01-01T00:00:00.000Z",
            finished_at: null
          }
        ]
      })
      expect((yield* page(undefined, "eventful")).models.map(({ id }) => id)).toEqual([ids[2], ids[0]])
      const foreign = sourceRuns(otherTeam, source.id, "all", { key, cursor: undefined, limit: 3 })
      expect(yield* Effect.flip(foreign)).toMatchObject({ code: "NOT_FOUND" })
    })
  )
})
