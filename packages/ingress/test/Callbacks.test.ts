import { expect, layer, vi } from "@effect/vitest"
import { connect } from "node:net"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Adapter, Notification } from "@tidegate/channels/Adapter"
import { channelPath } from "@tidegate/model/Ingress"
import { newId, prefixes } from "@tidegate/model/Ids"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { metrics } from "@tidegate/telemetry/Metrics"
import { sealedColumn } from "../../storage/src/secrets/SealedColumn.ts"
import type { CalledSubscription } from "../../storage/src/channels/Notifications.ts"
import { hashToken, Secrets } from "../../storage/src/secrets/Secrets.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { leastMs, timesSlower } from "../../../test/support/LoopHeld.ts"
import { requestBytes, talk } from "../../../test/support/RawHttp.ts"
import { Bodies } from "../src/Bodies.ts"
import { Callbacks } from "../src/channels/Callbacks.ts"
import { CallbackTelemetry } from "../src/channels/CallbackTelemetry.ts"
import { readCallbackTarget } from "../src/channels/CallbackTarget.ts"
import { CalledSubscriptions } from "../src/channels/CalledSubscriptions.ts"
import { Refusals } from "../src/handler/Refusals.ts"
import { IngressTelemetry } from "../src/IngressTelemetry.ts"
import { listening } from "./listening.ts"

const { team } = ControlPlane

/**
 * An adapter of this suite: the body says what it means, and is genuine when the header `x-secret` is the subscription's secret. A GET
 * is a handshake for the target that its query names.
 */
const spoken: Adapter = {
  key: "spoken",
  targets: () => [],
  provision: () => Effect.die("not here"),
  renew: null,
  stop: () => Effect.void,
  receive: ({ ended, secret, target }, _, { body, headers, method, query }) => {
    const reply = { status: 202, contentType: "text/plain", body: "taken" }
    if (method === "GET") {
      const asked = new URLSearchParams(query)
      const accepted = asked.get("target") === target
      if (ended === true && accepted && asked.has("end")) {
        return { kind: "ping", reply: { status: 200, contentType: "text/plain", body: asked.get("challenge")! } }
      }
      const lease = asked.get("expires")
      return {
        kind: "handshake",
        accepted,
        reason: accepted ? null : "another target",
        ...(lease === null ? {} : { expiresAt: Number(lease) }),
        reply: {
          status: accepted ? 200 : 404,
          contentType: "text/plain",
          body: accepted ? asked.get("challenge")! : ""
        }
      }
    }
    const text = Buffer.from(body).toString()
    if (text === "broken") throw new Error("the adapter is broken")
    if (headers["x-secret"] !== secret) return { kind: "rejected", reason: "wrong secret", reply }
    if (!text.startsWith("feed")) return { reply, ...JSON.parse(text) }
    return (function* (): Generator<void, Notification, void> {
      // A long list is read in parts, of which 1,000 items are taken.
      let entries = 0
      for (let at = text.indexOf("<"); at >= 0; at = text.indexOf("<", at + 1)) {
        if (++entries % 1_000 === 0) yield
      }
      const items = Array.from({ length: Math.min(entries, 1_000) }, (_, n) => item(`entry-${n}`))
      return { kind: "items", items, occurredAt: null, reply }
    })()
  }
}

const item = (id: string) => ({ id, body: JSON.stringify({ id }), occurredAt: null })

interface Door {
  readonly port: number
  /** The bodies that are being read. */
  readonly bodies: Bodies
  /** The sources whose channels were woken. */
  readonly woken: Array<string>
}

class Served extends Context.Service<Served, Door>()("Served") {
  static readonly layer = Layer.effect(
    Served,
    Effect.gen(function* () {
      const woken: Array<string> = []
      const run = Effect.runForkWith(yield* Effect.context())
      const proxies = new TrustedProxies([])
      const bodies = new Bodies(proxies)
      const callbacks = new Callbacks({
        adapterOf: ({ adapter }) => (adapter === "other" ? null : { adapter: spoken, pairKey: "spoken.item" }),
        bodies,
        clock: yield* Clock.Clock,
        dispatcher: { channel: (id) => void woken.push(id) },
        refusals: new Refusals(yield* IngressTelemetry.make(() => bodies.heldBytes)),
        run,
        subscriptions: yield* CalledSubscriptions,
        telemetry: yield* CallbackTelemetry.make()
      })
      const port = yield* listening(channelPath, (message, response) => callbacks.admit(message, response))
      return Served.of({ port, bodies, woken })
    })
  )
}

/** How many statements have looked subscriptions up, and how many have stored refusals. */
const reads = { count: 0 }
const writes = { count: 0 }
const counting = Layer.effect(
  SqlClient.SqlClient,
  Effect.map(
    SqlClient.SqlClient,
    (sql) =>
      new Proxy(sql, {
        apply: (client, self, given: [TemplateStringsArray]) => {
          if (String(given[0]).includes("from channel_subscriptions c join")) reads.count++
          if (String(given[0]).includes("with refused as")) writes.count++
          return Reflect.apply(client as never, self, given)
        }
      })
  )
)

const world = Served.layer.pipe(
  Layer.provideMerge(Layer.provide(CalledSubscriptions.layer, counting)),
  Layer.provideMerge(ControlPlane.layer),
  Layer.orDie
)

let made = 0

interface Made {
  readonly id: string
  readonly source: string
  readonly token: string
  readonly secret: string
}

/** A source with a channel and a subscription of it. */
const subscription = Effect.fnUntraced(function* (
  state = "active",
  { adapter = "spoken", owner = team }: { readonly adapter?: string; readonly owner?: string } = {}
) {
  const sql = yield* SqlClient.SqlClient
  const now = Date.now()
  const own = newId(prefixes.source, now)
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    values (${own}, ${owner}, ${own}, 'WEBHOOK', '{}', now(), now())`
  yield* sql`insert into channels (source_id, team_id, created_at, updated_at) values (${own}, ${owner}, now(), now())`
  const id = newId(prefixes.channelSubscription, now)
  const token = `T${String(++made).padStart(42, "0")}`
  const secret = `secret-of-${made}`
  const sealed = yield* sealedColumn(yield* Secrets, "channel_subscriptions", "secrets").seal(
    { team_id: owner, id },
    { token, secret }
  )
  yield* sql`
    insert into channel_subscriptions (id, team_id, source_id, adapter, definition_key, target, token_hash, secrets, state, created_at)
    values (${id}, ${owner}, ${own}, ${adapter}, 'item', 'one', ${hashToken(token)}, ${sealed}, ${state}, now())`
  const subscribed: Made = { id, source: own, token, secret }
  return subscribed
})

const call = Effect.fnUntraced(function* (
  token: string,
  {
    body,
    headers = {},
    method = "POST",
    query = ""
  }: {
    readonly body?: string
    readonly headers?: Record<string, string>
    readonly method?: string
    readonly query?: string
  }
) {
  const { port } = yield* Served
  return yield* Effect.promise(async () => {
    const response = await fetch(`http://127.0.0.1:${port}/channels/${token}${query}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body })
    })
    return { status: response.status, text: await response.text(), headers: response.headers }
  })
})

const post = (of: Made, message: object | string) =>
  call(of.token, {
    body: typeof message === "string" ? message : JSON.stringify(message),
    headers: { "x-secret": of.secret }
  })

interface SubscriptionRow {
  readonly state: string
  readonly verified_at: Date | null
  readonly expires_at: Date | null
  readonly renew_at: Date | null
  readonly last_notification_at: Date | null
  readonly forgotten_at: Date | null
  readonly last_message_number: bigint | null
}

interface ChannelRow {
  readonly version: bigint
  readonly due_at: Date | null
  readonly dirty_at: Date | null
}

const rowOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<SubscriptionRow>`select * from channel_subscriptions where id = ${id}`
  return row!
})
const channelOf = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<ChannelRow>`select * from channels where source_id = ${source}`
  return row!
})
const eventsOf = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    kind: string
  }>`select kind, details, error_code from channel_events where source_id = ${source} order by created_at, id`
  return rows.map(({ kind }) => kind)
})
const metricsOf = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    metric: string
    value: number
  }>`select metric, value::int4 as value from channel_metrics where source_id = ${source} order by metric`
  return Object.fromEntries(rows.map(({ metric, value }) => [metric, value]))
})
const itemsOf = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ body: string }>`select * from channel_items where source_id = ${source} order by request_id`
})

layer(world, { excludeTestServices: true })("Callback of a channel", (it) => {
  it.effect("A callback's URL has a token of 43 characters", () =>
    Effect.sync(() => {
      const token = "a".repeat(43)
      expect(readCallbackTarget(`/channels/${token}`)).toEqual({ token, query: "" })
      expect(readCallbackTarget(`/channels/${token}?a=1?`)).toEqual({ token, query: "a=1?" })
      for (const wrong of ["", "a".repeat(42), "a".repeat(44), `${"a".repeat(42)}-`, `${token}/x`, `x/${token}`]) {
        expect(readCallbackTarget(`/channels/${wrong}`)).toBeNull()
      }
    })
  )

  it.effect("Items of a notification are stored before the answer, and wake the channel", () =>
    Effect.gen(function* () {
      const of = yield* subscription()
      const { woken } = yield* Served
      const now = Date.now()
      const answer = yield* post(of, { kind: "items", items: [item("b"), item("a")], occurredAt: now - 5_000 })
      expect(answer).toMatchObject({ status: 202, text: "taken" })
      expect(answer.headers.get("content-security-policy")).not.toBeNull()
      const items = yield* itemsOf(of.source)
      expect(items.map(({ body }) => body)).toEqual(['{"id":"b"}', '{"id":"a"}'])
      expect(items[0]).toMatchObject({ team_id: team, subscription_id: of.id, mode: "instant" })
      expect(yield* channelOf(of.source)).toMatchObject({ version: 2n, dirty_at: null, due_at: expect.any(Date) })
      expect((yield* rowOf(of.id)).last_notification_at!.getTime()).toBeGreaterThanOrEqual(now)
      expect(woken).toContain(of.source)
      // The same again, with one more.
      yield* post(of, { kind: "items", items: [item("a"), item("b")], occurredAt: null })
      yield* post(of, { kind: "items", items: [item("a"), item("c")], occurredAt: null })
      expect((yield* itemsOf(of.source)).length).toBe(3)
      const counts = yield* metricsOf(of.source)
      expect(counts).toMatchObject({
        notifications_received: 3,
        notifications_accepted: 3,
        notifications_duplicate: 1,
        notification_latency_samples: 1
      })
      expect(counts["notification_latency_ms"]).toBeGreaterThanOrEqual(5_000)
      expect(yield* eventsOf(of.source)).toEqual(["first_notification"])
    })
  )

  it.effect("A handshake activates the subscription once, and a refused one changes nothing", () =>
    Effect.gen(function* () {
      const of = yield* subscription("verifying")
      const expires = Date.now() + 3_600_000
      const shake = (target: string) =>
        call(of.token, { method: "GET", query: `?target=${target}&challenge=abc&expires=${expires}` })
      expect(yield* shake("another")).toMatchObject({ status: 404 })
      expect(yield* rowOf(of.id)).toMatchObject({ state: "verifying", verified_at: null, expires_at: null })
      expect(yield* shake("one")).toMatchObject({ status: 200, text: "abc" })
      const verified = yield* rowOf(of.id)
      expect(verified).toMatchObject({ state: "active", verified_at: expect.any(Date), expires_at: new Date(expires) })
      // Anybody who has seen the handshake may replay it.
      for (let n = 0; n < 5; n++) expect((yield* shake("one")).status).toBe(200)
      for (let n = 0; n < 5; n++) expect((yield* shake("another")).status).toBe(404)
      expect((yield* rowOf(of.id)).verified_at).toEqual(verified.verified_at)
      expect(yield* eventsOf(of.source)).toEqual(["handshake_rejected", "handshake_verified"])
      expect(yield* metricsOf(of.source)).toEqual({ handshakes: 6 })
    })
  )

  it.effect("Forged notifications are counted, and make one event a minute", () =>
    Effect.gen(function* () {
      const of = yield* subscription()
      const sql = yield* SqlClient.SqlClient
      const forged = { ...of, secret: "guessed" }
      const { version } = yield* channelOf(of.source)
      for (let n = 0; n < 3; n++) expect((yield* post(forged, { kind: "items", items: [item("x")] })).status).toBe(202)
      expect(yield* itemsOf(of.source)).toEqual([])
      const details = () =>
        Effect.map(
          sql<{
            details: { count: number }
          }>`select details from channel_events where source_id = ${of.source} order by id`,
          (rows) => rows.map(({ details }) => details.count)
        )
      expect(yield* details()).toEqual([3])
      yield* sql`update channel_events set created_at = created_at - interval '61 seconds' where source_id = ${of.source}`
      yield* post(forged, { kind: "ping" })
      expect(new Set(yield* details())).toEqual(new Set([1, 3]))
      expect(yield* metricsOf(of.source)).toEqual({ notifications_received: 4, notifications_rejected: 4 })
      expect(yield* channelOf(of.source)).toMatchObject({ version, due_at: null })
      expect((yield* rowOf(of.id)).last_notification_at).toBeNull()
    })
  )

  it.effect("A dirty notification asks for a poll, unless a later message has come already", () =>
    Effect.gen(function* () {
      const of = yield* subscription()
      const sql = yield* SqlClient.SqlClient
      const dirty = (messageNumber: number | null) => post(of, { kind: "dirty", messageNumber, occurredAt: null })
      yield* dirty(5)
      expect((yield* channelOf(of.source)).dirty_at).toBeInstanceOf(Date)
      yield* sql`update channels set dirty_at = null where source_id = ${of.source}`
      yield* dirty(4)
      expect((yield* channelOf(of.source)).dirty_at).toBeNull()
      yield* dirty(null)
      expect((yield* channelOf(of.source)).dirty_at).toBeInstanceOf(Date)
      expect((yield* rowOf(of.id)).last_message_number).toBe(5n)
      expect(yield* metricsOf(of.source)).toMatchObject({ notifications_accepted: 3, notifications_duplicate: 1 })
    })
  )

  it.effect("What the provider says about the subscription ends it, renews it or asks for a poll", () =>
    Effect.gen(function* () {
      const lifecycle = Effect.fnUntraced(function* (what: string) {
        const of = yield* subscription()
        const sql = yield* SqlClient.SqlClient
        yield* sql`update channel_subscriptions set expires_at = now() + interval '30 days' where id = ${of.id}`
        yield* post(of, { kind: "lifecycle", what, reason: `because of ${what}` })
        return {
          of,
          row: yield* rowOf(of.id),
          channel: yield* channelOf(of.source),
          events: yield* eventsOf(of.source)
        }
      })
      const revoked = yield* lifecycle("revoked")
      expect(revoked.row).toMatchObject({
        state: "revoked",
        last_error: "because of revoked",
        stopped_at: expect.any(Date)
      })
      expect(revoked.row.forgotten_at!.getTime()).toBeGreaterThan(Date.now() + 29 * 86_400_000)
      expect(revoked.events).toEqual(["subscription_revoked"])
      expect(revoked.channel.due_at).toBeInstanceOf(Date)
      const denied = yield* lifecycle("denied")
      expect(denied.row.state).toBe("revoked")
      expect(denied.events).toEqual(["subscription_revoked"])
      const asked = yield* lifecycle("reauthorize")
      expect(asked.row.state).toBe("active")
      expect(asked.row.renew_at!.getTime()).toBeLessThanOrEqual(Date.now())
      expect(asked.row.expires_at!.getTime()).toBeGreaterThan(Date.now() + 29 * 86_400_000)
      const missed = yield* lifecycle("missed")
      expect(missed.channel.dirty_at).toBeInstanceOf(Date)
      expect(missed.row.state).toBe("active")
    })
  )

  it.effect("Ended subscriptions take nothing, and superseded ones do until they are stopped", () =>
    Effect.gen(function* () {
      const ping = { kind: "dirty", messageNumber: null, occurredAt: null }
      for (const state of ["expired", "stopped", "failed", "revoked"]) {
        const of = yield* subscription(state)
        expect((yield* post(of, ping)).status).toBe(404)
        expect(yield* metricsOf(of.source)).toEqual({})
        expect((yield* post(yield* subscription(state, { adapter: "websub" }), ping)).status).toBe(410)
      }
      expect((yield* post(yield* subscription("superseded"), ping)).status).toBe(202)
      expect((yield* post(yield* subscription("active", { adapter: "other" }), ping)).status).toBe(404)
      // The provider asks whether to end it.
      for (const state of ["superseded", "stopped"]) {
        const of = yield* subscription(state)
        yield* (yield* SqlClient.SqlClient)`update channel_subscriptions set stop_at = now() where id = ${of.id}`
        const query = "?target=one&challenge=bye&end"
        expect(yield* call(of.token, { method: "GET", query })).toMatchObject({ status: 200, text: "bye" })
        expect((yield* call(of.token, { method: "GET", query: "?target=two" })).status).toBe(404)
      }
      // It ends while its callback is still remembered as alive.
      const sql = yield* SqlClient.SqlClient
      const of = yield* subscription()
      expect((yield* post(of, ping)).status).toBe(202)
      yield* sql`update channel_subscriptions set state = 'stopped' where id = ${of.id}`
      expect((yield* post(of, ping)).status).toBe(404)
    })
  )

  it.effect("Other methods, long bodies and broken adapters are answered, and leave nothing", () =>
    Effect.gen(function* () {
      const of = yield* subscription()
      const { port } = yield* Served
      for (const method of ["HEAD", "PUT", "DELETE", "OPTIONS"]) {
        const answer = yield* call(of.token, { method })
        expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 405, "GET, POST"])
      }
      const long = yield* Effect.promise(() =>
        talk(
          port,
          [requestBytes({ path: `/channels/${of.token}`, headers: [["content-length", String(11 * 1_048_576)]] })],
          {
            answers: 1
          }
        )
      )
      expect(long.final.status).toBe(413)
      const broken = yield* post(of, "broken")
      expect(broken.status).toBe(500)
      expect(broken.text).not.toContain("the adapter is broken")
      expect((yield* post(of, { kind: "ping" })).status).toBe(202)
      expect(yield* metricsOf(of.source)).toEqual({})
      expect(yield* eventsOf(of.source)).toEqual([])
    })
  )

  it.effect("A flood of unknown tokens costs few reads, and impossible tokens none", () =>
    Effect.gen(function* () {
      const of = yield* subscription()
      const unknown = metrics.callbacks.at("unknown").value
      const tokens = Array.from({ length: 400 }, (_, n) => `X${String(n).padStart(42, "0")}`)
      const flood = Effect.forEach([...tokens, ...tokens], (token) => call(token, { method: "GET" }), {
        concurrency: 100
      })
      const before = reads.count
      const answers = yield* flood
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
      expect(reads.count - before).toBeLessThan(100)
      // All are remembered now.
      const after = reads.count
      yield* flood
      yield* call("x".repeat(42), { method: "GET" })
      expect(reads.count).toBe(after)
      expect(metrics.callbacks.at("unknown").value - unknown).toBe(1_601)
      expect((yield* post(of, { kind: "ping" })).status).toBe(202)
    })
  )

  it.effect("A burst of wrong callbacks takes one look-up and one statement more than a single one", () =>
    Effect.gen(function* () {
      const subscriptions = yield* CalledSubscriptions
      const some = yield* Effect.forEach(Array.from({ length: 3 }), () => subscription())
      const called = yield* Effect.forEach(some, ({ token }) => subscriptions.load(token))
      const burst = Array.from({ length: 150 }, (_, n) => called[n % 3] as CalledSubscription)
      const [readBefore, wroteBefore] = [reads.count, writes.count]
      const receivedAt = Date.now()
      yield* Effect.forEach(
        burst,
        (of, n) =>
          Effect.andThen(
            subscriptions.load(some[n % 3]!.token),
            subscriptions.refuse({ called: of, kind: "notification_rejected", reason: "wrong secret", receivedAt })
          ),
        { concurrency: "unbounded" }
      )
      expect(reads.count - readBefore).toBeLessThanOrEqual(2)
      // Those of the first look-up may be stored before those of the second.
      expect(writes.count - wroteBefore).toBeLessThanOrEqual(3)
      for (const { source } of some) {
        expect(yield* metricsOf(source)).toEqual({ notifications_received: 50, notifications_rejected: 50 })
        expect(yield* eventsOf(source)).toEqual(["notification_rejected"])
      }
    })
  )

  it.effect(
    "Refusals of subscriptions that have ended or are gone are stored for nobody, and beside them others are",
    () =>
      Effect.gen(function* () {
        const subscriptions = yield* CalledSubscriptions
        const sql = yield* SqlClient.SqlClient
        const [living, ended, gone] = yield* Effect.all([subscription(), subscription(), subscription()])
        const called = yield* Effect.forEach([living, ended, gone], ({ token }) => subscriptions.load(token))
        yield* sql`update channel_subscriptions set state = 'stopped' where id = ${ended.id}`
        yield* sql`delete from channel_subscriptions where id = ${gone.id}`
        const refuse = (kind: "handshake_rejected" | "notification_rejected") =>
          Effect.forEach(
            called,
            (of) =>
              subscriptions.refuse({ called: of as CalledSubscription, kind, reason: "no", receivedAt: Date.now() }),
            { concurrency: "unbounded", discard: true }
          )
        yield* refuse("handshake_rejected")
        yield* refuse("notification_rejected")
        for (const { source } of [ended, gone]) {
          expect(yield* eventsOf(source)).toEqual([])
          expect(yield* metricsOf(source)).toEqual({})
        }
        expect(yield* eventsOf(living.source)).toEqual(["handshake_rejected", "notification_rejected"])
        expect(yield* metricsOf(living.source)).toEqual({ notifications_received: 1, notifications_rejected: 1 })
      })
  )

  it.effect("A feed of 100,000 entries is read in parts", () =>
    Effect.gen(function* () {
      const longestTurn = Effect.gen(function* () {
        const of = yield* subscription()
        const held: Array<number> = []
        let isOver = false
        const watch = (): void => {
          if (isOver) return
          const { system, user } = process.threadCpuUsage()
          setImmediate(() => {
            const now = process.threadCpuUsage()
            held.push((now.system + now.user - system - user) / 1_000)
            watch()
          })
        }
        watch()
        const posted = post(of, `feed${"<entry/>".repeat(100_000)}`)
        const { status } = yield* Effect.ensuring(
          posted,
          Effect.sync(() => (isOver = true))
        )
        expect(status).toBe(202)
        expect((yield* itemsOf(of.source)).length).toBe(1_000)
        return Math.max(...held)
      })
      const boundMs = (): number => 50 * timesSlower()
      expect(yield* leastMs(boundMs, longestTurn)).toBeLessThan(boundMs())
    })
  )

  it.effect("A flood of one team's callbacks is refused or bounded, and callbacks of another team are all taken", () =>
    Effect.gen(function* () {
      const attacked = yield* subscription()
      const plain = yield* subscription("active", { owner: ControlPlane.otherTeam })
      const expires = Date.now() + 3_600_000
      const shake = (lease: number) =>
        call(attacked.token, { method: "GET", query: `?target=one&challenge=abc&expires=${lease}` })
      yield* (yield* SqlClient.SqlClient)`update channel_subscriptions set state = 'verifying' where id = ${attacked.id}`
      expect((yield* shake(expires)).status).toBe(200)
      const verified = yield* rowOf(attacked.id)

      const entries = `feed${"<entry/>".repeat(1_300_000)}`
      const strangers = Array.from({ length: 100 }, (_, n) => [
        call(`S${String(n % 20).padStart(42, "0")}`, { body: "who" }),
        post({ ...attacked, secret: "guessed" }, { kind: "items", items: [item(`forged-${n}`)] }),
        shake(expires - n),
        ...(n % 50 === 0 ? [post({ ...attacked, secret: "guessed" }, entries)] : [])
      ]).flat()
      const before = reads.count
      const began = Date.now()
      const [answers, served] = yield* Effect.all(
        [
          Effect.forEach(strangers, (stranger) => stranger, { concurrency: 100 }),
          Effect.forEach(
            Array.from({ length: 100 }, (_, n) => n),
            (n) => post(plain, { kind: "items", items: [item(`plain-${n}`)], occurredAt: null }),
            { concurrency: 4 }
          )
        ],
        { concurrency: 2 }
      )
      expect(new Set(served.map(({ status }) => status))).toEqual(new Set([202]))
      expect((yield* itemsOf(plain.source)).length).toBe(100)
      // 503: as many of the team wait to be stored as may.
      const statuses = answers.map(({ status }) => status)
      expect(new Set(statuses)).toEqual(new Set([200, 202, 404, ...(statuses.includes(503) ? [503] : [])]))
      expect(statuses.filter((status) => status === 404).length).toBe(100)
      expect(yield* itemsOf(attacked.source)).toEqual([])
      expect(yield* rowOf(attacked.id)).toMatchObject({ state: "active", verified_at: verified.verified_at })
      const told = yield* eventsOf(attacked.source)
      expect(told.filter((kind) => kind === "handshake_verified").length).toBe(1)
      // One event for each minute.
      const minutes = Math.ceil((Date.now() - began) / 60_000)
      expect(told.filter((kind) => kind === "notification_rejected").length).toBeLessThanOrEqual(1 + minutes)
      const counts = yield* metricsOf(attacked.source)
      const taken = (status: number, least: number) =>
        expect(statuses.filter((one) => one === status).length).toBe(least)
      taken(202, counts["notifications_rejected"]!)
      taken(200, counts["handshakes"]! - 1)
      expect(reads.count - before).toBeLessThan(100)
    })
  )

  it.effect("A sender that writes a body a byte at a time is ended, and others are served meanwhile", () =>
    Effect.gen(function* () {
      const of = yield* subscription()
      const { bodies, port } = yield* Served
      const realNow = performance.now.bind(performance)
      // A body has ten seconds for its first 10 KiB: the server's clock runs faster, so that they pass at once.
      const clock = vi.spyOn(performance, "now").mockImplementation(() => realNow() * 50)
      const socket = connect({ port, host: "127.0.0.1" })
      socket.write(`POST /channels/${of.token} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`)
      const dripping = setInterval(() => socket.writable && socket.write("x"), 50)
      const answer = yield* Effect.promise(async () => {
        try {
          const said: Array<Buffer> = []
          for await (const part of socket) {
            said.push(part as Buffer)
            clock.mockRestore()
          }
          return Buffer.concat(said).toString()
        } finally {
          clearInterval(dripping)
          clock.mockRestore()
        }
      })
      expect(answer).toContain("HTTP/1.1 408")
      expect(bodies.heldBytes).toBe(0)
      expect(yield* itemsOf(of.source)).toEqual([])
      expect(yield* metricsOf(of.source)).toEqual({})
      expect((yield* post(of, { kind: "ping" })).status).toBe(202)
    })
  )
})
