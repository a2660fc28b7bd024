import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Latch, Layer } from "effect"
import { Sharding, TestRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import type { Call, Poller } from "@tidegate/channels/Adapter"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { Channel, Step } from "@tidegate/channels/machine/Channel"
import { advanceChannel } from "@tidegate/storage/channels/ChannelWork"
import { storeItems } from "@tidegate/storage/channels/Items"
import { type CalledSubscription, storeNotification } from "@tidegate/storage/channels/Notifications"
import { dueWork } from "@tidegate/storage/delivery/DeliveryRows"
import { storedHeaders } from "@tidegate/model/Message"
import { nextMs } from "../../../test/support/NextMs.ts"
import { SqlStatements } from "../../../test/support/SqlStatements.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { ProviderCalls } from "../src/accounts/ProviderCalls.ts"
import * as ChannelBehaviour from "../src/Channel/ChannelBehaviour.ts"
import { ChannelEntity } from "../src/Channel/ChannelProtocol.ts"
import { type CallingStep, makeChannelSteps } from "../src/Channel/ChannelSteps.ts"
import { ConnectionEntity } from "../src/Connection/ConnectionProtocol.ts"
import { Lease } from "../src/Lease.ts"
import { shardOf } from "../src/Shards.ts"
import { ChannelProvider } from "./ChannelProvider.ts"

/** The actor of a channel over the real database. A process that ends is one that does not store what it has done. */

const { team: team_id } = ControlPlane

const provider = new ChannelProvider()

const statements = new SqlStatements()

const unused = () => Effect.die("not part of this suite")

/** Connections that only take wake-up notifications. */
const connections = ConnectionEntity.toLayer(
  Effect.succeed(
    ConnectionEntity.of({
      Create: unused,
      Update: unused,
      Replace: unused,
      Upsert: unused,
      Disable: unused,
      Enable: unused,
      Pause: unused,
      Unpause: unused,
      Delete: unused,
      Route: unused,
      Wake: () => Effect.void
    })
  )
)

const world = Layer.merge(ChannelBehaviour.layer, connections).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      TestRunner.layer,
      Lease.layerAlways,
      Layer.succeed(KnownProviders, [provider.row]),
      Layer.succeed(ProviderCalls, {
        of: () => () => Effect.die("the provider is in memory"),
        baseUrl: () => Effect.succeed("http://memory.test")
      })
    )
  ),
  Layer.provideMerge(ControlPlane.layerOf({ connections: 6, link: { reader: statements.reader } }))
)

/** A provider source, whose channel nobody has woken, and a connection of it. */
const created = Effect.fnUntraced(function* (definition_key = "item.added") {
  provider.hooks.clear()
  provider.asked.length = 0
  provider.items.length = 0
  provider.fails = null
  provider.during = Effect.void
  const sql = yield* SqlClient.SqlClient
  const { id: connection_id, source_id } = yield* ControlPlane.createConnection()
  const settings = {
    provider_key: "memory",
    definition_key,
    provider_account_id: null,
    inputs: {},
    schedule: { interval_minutes: 5 },
    auto_fallback: true,
    max_failures: 3,
    restore_after_minutes: 30
  }
  yield* sql`
    update sources set type = 'PROVIDER', config = config || ${JSON.stringify({ provider: settings })}::jsonb where id = ${source_id}`
  const now = new Date()
  yield* sql`
    insert into channels (source_id, team_id, due_at, created_at, updated_at) values (${source_id}, ${team_id}, ${now}, ${now}, ${now})`
  return { source_id, connection_id, actor: (yield* ChannelEntity.client)(source_id) }
})

const requestsOf = Effect.fnUntraced(function* (source_id: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ id: string; body: Uint8Array; headers: string; verified: boolean; events_count: number }>`
    select id, body, headers, verified, events_count from requests where source_id = ${source_id} order by id`
})

const bodies = (rows: ReadonlyArray<{ readonly body: Uint8Array }>) =>
  rows.map(({ body }) => Buffer.from(body).toString())
const bodyOf = (id: string) => `{"id":"${id}","number":12345678901234567890.5}`

const rowOf = Effect.fnUntraced(function* (source_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ due_at: Date | null; shard: number; state: { cursor: unknown; primed: boolean } }>`
    select due_at, shard, state from channels where source_id = ${source_id}`
  return row
})

const subscriptionsOf = Effect.fnUntraced(function* (source_id: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ id: string; state: string; stopped_at: Date | null }>`
    select id, state, stopped_at from channel_subscriptions where source_id = ${source_id} order by id`
})

/** Something has changed at the provider, and it has said so. */
const notified = Effect.fnUntraced(function* (source_id: string) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* nextMs)
  yield* sql`update channels set dirty_at = ${now}, due_at = ${now} where source_id = ${source_id}`
})

/** How many statements something takes. */
const sent = Effect.fnUntraced(function* <A, E, R>(step: Effect.Effect<A, E, R>) {
  statements.restart()
  yield* step
  return [...statements.counts.values()].reduce((sum, count) => sum + count, 0)
})

/** Another process, which goes on with the channel until it makes such a step. */
const another = Effect.fnUntraced(function* (source_id: string, until: Step["do"]) {
  const { definitionOf, perform } = yield* makeChannelSteps
  const shard = shardOf(yield* Sharding.Sharding, source_id)
  const advance = (outcome: Parameters<typeof advanceChannel>[2]) =>
    advanceChannel(source_id, shard, outcome, definitionOf)
  let advanced = yield* advance(null)
  while (advanced !== null && advanced.next.do !== until) {
    advanced = yield* advance(yield* perform(advanced.channel, advanced.next as CallingStep))
  }
  const { channel, next } = advanced!
  return { advance, perform: perform(channel, next as CallingStep) }
})

layer(world, { excludeTestServices: true })("Actor of a channel", (it) => {
  it.effect("A channel makes its first poll, then subscribes, and is due again when the next safety poll is", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      provider.add("before")
      yield* actor.Wake()
      const [subscription, ...others] = yield* subscriptionsOf(source_id)
      expect(others).toEqual([])
      expect(subscription?.state).toBe("active")
      expect(provider.asked).toEqual(["poll null", `provision ${subscription?.id}`, "poll 1"])
      expect(provider.hooks.get(subscription!.id)).toMatch(/^http:\/\/ingress\.test\/channels\/[0-9A-Za-z]{43}$/)
      const row = yield* rowOf(source_id)
      expect(row?.state).toMatchObject({ primed: true, cursor: 1 })
      expect(row!.due_at!.getTime()).toBeGreaterThan(Date.now() + 5 * 3_600_000)
      // What is older than the source is not delivered.
      expect(yield* requestsOf(source_id)).toEqual([])
    })
  )

  it.effect("Items become requests once, in their order, with all digits, and routed to the connections", () =>
    Effect.gen(function* () {
      const { actor, connection_id, source_id } = yield* created()
      const sql = yield* SqlClient.SqlClient
      yield* actor.Wake()
      for (const id of ["a", "b", "c", "d", "e"]) provider.add(id)
      yield* notified(source_id)
      yield* actor.Wake()
      yield* notified(source_id)
      yield* actor.Wake()
      const requests = yield* requestsOf(source_id)
      expect(bodies(requests)).toEqual(["a", "b", "c", "d", "e"].map(bodyOf))
      expect(storedHeaders({ method: "", path: "", query: "", headers: requests[0]!.headers })).toEqual({
        "content-type": "application/json",
        "x-gateway-channel-id": source_id,
        "x-gateway-delivery-mode": "instant"
      })
      expect(requests.every(({ events_count, verified }) => verified && events_count === 1)).toBe(true)
      const routes = yield* sql`select 1 from pending_routes where connection_id = ${connection_id}`
      expect(routes.length).toBe(5)
      const runs = yield* sql`
        select status, reason, items_found, items_new from source_runs where source_id = ${source_id} and items_found > 0`
      expect(runs).toEqual([{ status: "succeeded", reason: "notification", items_found: 5, items_new: 5 }])
    })
  )

  it.effect("An item that was notified and polled becomes one request, and another trigger's is another item", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      const sql = yield* SqlClient.SqlClient
      yield* actor.Wake()
      const [subscription] = yield* subscriptionsOf(source_id)
      provider.add("a")
      const of = { team_id, source_id, subscription_id: subscription!.id, mode: "instant", now: Date.now() } as const
      const store = (pair_key: string) => sql.withTransaction(storeItems({ ...of, pair_key }, provider.items))
      expect(yield* store("item.added")).toBe(1)
      expect(yield* store("item.added")).toBe(0)
      expect(yield* store("another")).toBe(1)
      yield* notified(source_id)
      yield* actor.Wake()
      const requests = yield* requestsOf(source_id)
      expect(requests.length).toBe(2)
      expect(requests[0]!.headers).toContain(subscription!.id)
    })
  )

  it.effect("A process that ends before it calls the provider leaves a row, and the next one uses it", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      yield* another(source_id, "provision")
      const [left] = yield* subscriptionsOf(source_id)
      expect(left?.state).toBe("requested")
      expect(provider.hooks.size).toBe(0)
      yield* actor.Wake()
      expect(yield* subscriptionsOf(source_id)).toMatchObject([{ id: left!.id, state: "active" }])
      expect([...provider.hooks.keys()]).toEqual([left!.id])
    })
  )

  it.effect(
    "A process that ends between a call and its commit leaves no unknown subscription, and no item is lost",
    () =>
      Effect.gen(function* () {
        const { actor, source_id } = yield* created()
        const first = yield* another(source_id, "provision")
        yield* first.perform
        yield* actor.Wake()
        expect((yield* subscriptionsOf(source_id)).map(({ id }) => id)).toEqual([...provider.hooks.keys()])

        provider.add("a")
        yield* notified(source_id)
        const second = yield* another(source_id, "poll")
        yield* second.perform
        expect(yield* requestsOf(source_id)).toEqual([])
        yield* actor.Wake()
        expect(bodies(yield* requestsOf(source_id))).toEqual([bodyOf("a")])
      })
  )

  it.effect("Two owners of a channel at once store an item once, and the cursor ends after it", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      yield* actor.Wake()
      provider.add("a")
      provider.add("b")
      yield* notified(source_id)
      const owners = yield* Effect.all([another(source_id, "poll"), another(source_id, "poll")])
      const outcomes = yield* Effect.all([owners[0].perform, owners[1].perform])
      // What happened after the first owner's commit is known to the second one only by a poll of its own.
      yield* owners[0].advance(outcomes[0])
      provider.add("c")
      yield* notified(source_id)
      yield* owners[1].advance(outcomes[1])
      yield* actor.Wake()
      expect(bodies(yield* requestsOf(source_id))).toEqual(["a", "b", "c"].map(bodyOf))
      expect((yield* rowOf(source_id))?.state).toMatchObject({ cursor: 3 })
      expect(provider.hooks.size).toBe(1)
    })
  )

  it.effect("A disabled source is unsubscribed and its items wait; a deleted one leaves no channel", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      const sql = yield* SqlClient.SqlClient
      yield* actor.Wake()
      provider.add("a")
      const of = { team_id, source_id, pair_key: "item.added", subscription_id: null, mode: "instant" } as const
      yield* sql.withTransaction(storeItems({ ...of, now: Date.now() }, provider.items))
      yield* sql`update sources set disabled_at = now() where id = ${source_id}`
      yield* actor.Wake()
      expect(provider.hooks.size).toBe(0)
      expect(yield* subscriptionsOf(source_id)).toMatchObject([{ state: "stopped" }])
      expect(yield* requestsOf(source_id)).toEqual([])
      expect((yield* rowOf(source_id))?.due_at).toBe(null)

      yield* sql`update sources set disabled_at = null where id = ${source_id}`
      yield* actor.Wake()
      expect(bodies(yield* requestsOf(source_id))).toEqual([bodyOf("a")])
      expect(provider.hooks.size).toBe(1)

      // The provider does not let go at once.
      provider.fails = "stop"
      yield* sql`update sources set deleted_at = now() where id = ${source_id}`
      yield* actor.Wake()
      expect(yield* rowOf(source_id)).toBeDefined()
      provider.fails = null
      yield* sql`update channels set retry_requested_at = now() where source_id = ${source_id}`
      yield* actor.Wake()
      expect(provider.hooks.size).toBe(0)
      expect(yield* rowOf(source_id)).toBeUndefined()
    })
  )

  it.effect("Failures raise one alert with its events and counts, and success resolves it", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      const sql = yield* SqlClient.SqlClient
      provider.fails = "provision"
      for (let tries = 0; tries < 3; tries++) {
        yield* sql`update channels set state = jsonb_set(state::jsonb, '{targets,all,retry_at}', '0', false)::json where source_id = ${source_id}`
        yield* actor.Wake()
      }
      const alerts = sql`select code, status, occurrences from channel_alerts where source_id = ${source_id}`
      expect(yield* alerts).toEqual([{ code: "channel_provision_failed", status: "active", occurrences: 1 }])
      expect((yield* rowOf(source_id))?.state).toMatchObject({ fallback: { active: true, reason: "provision_failed" } })
      provider.fails = null
      yield* sql`update channels set retry_requested_at = now() where source_id = ${source_id}`
      yield* actor.Wake()
      expect(yield* alerts).toEqual([{ code: "channel_provision_failed", status: "resolved", occurrences: 1 }])
      const kinds = yield* sql<{ kind: string }>`
        select kind from channel_events where source_id = ${source_id} order by id`
      expect(new Set(kinds.map(({ kind }) => kind))).toEqual(
        new Set([
          "provision_started",
          "provision_failed",
          "alert_opened",
          "fallback_activated",
          "restore_attempted",
          "provision_succeeded",
          "alert_resolved",
          "fallback_restored"
        ])
      )
      const counts = yield* sql<{ metric: string; value: bigint }>`
        select metric, value from channel_metrics where source_id = ${source_id}`
      expect(Object.fromEntries(counts.map(({ metric, value }) => [metric, Number(value)]))).toMatchObject({
        provision_attempts: 4,
        provision_failures: 3,
        fallback_activations: 1,
        fallback_restores: 1
      })
    })
  )

  it.effect("A provider whose id of a subscription is too long to be one has created none", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      const usual = provider.externalId
      provider.externalId = () => "x".repeat(1_025)
      yield* Effect.ensuring(
        actor.Wake(),
        Effect.sync(() => {
          provider.externalId = usual
        })
      )
      const sql = yield* SqlClient.SqlClient
      expect(
        yield* sql`select state, external_channel_id, last_error from channel_subscriptions where source_id = ${source_id}`
      ).toEqual([
        { state: "requested", external_channel_id: null, last_error: "The id of the subscription is too long" }
      ])
    })
  )

  it.effect("Large answers are read by two steps at a time and by one of a team, and small ones by any number", () =>
    Effect.gen(function* () {
      const mayEnd = yield* Latch.make()
      const twoRead = yield* Latch.make()
      let [reading, most] = [0, 0]
      const read: Array<string> = []
      const call: Call = ({ maxAnswerBytes = 0, url }) => {
        const isLarge = url === "large"
        const answer = {
          status: 200,
          headers: {},
          body: Buffer.from(url),
          truncated: isLarge && maxAnswerBytes <= 1_048_576
        }
        if (!isLarge || answer.truncated) return Effect.succeed(answer)
        most = Math.max(most, ++reading)
        if (reading === 2) twoRead.openUnsafe()
        return Effect.as(
          Effect.ensuring(
            mayEnd.await,
            Effect.sync(() => reading--)
          ),
          answer
        )
      }
      const poller: Poller = {
        key: "sized",
        poll: (context) => {
          const url = context.inputs["url"] as string
          return Effect.map(
            context.call({ method: "GET", url, authorized: false, maxAnswerBytes: 10_485_760 }),
            ({ truncated }) => {
              expect(truncated).toBe(false)
              return { items: [], cursor: url, more: false, cursorReset: false }
            }
          )
        }
      }
      const { perform } = yield* Effect.provideService(makeChannelSteps, ProviderCalls, {
        of: () => call,
        baseUrl: () => Effect.succeed("")
      })
      const trigger = { ...provider.row.triggers[0]!, adapter: null, poller }
      const definition = { key: "sized", mode: "polling" as const, provider: provider.row, trigger }
      const polled = (team_id: string, url: string) =>
        Effect.tap(
          perform(
            { account: null, definition, settings: { inputs: { url } }, team_id } as unknown as Channel,
            { do: "poll", cursor: null } as unknown as CallingStep
          ),
          (outcome) => Effect.sync(() => read.push(`${team_id} ${url} ${outcome.did}`))
        )
      const large = yield* Effect.forEach(["one", "one", "two", "three"], (team) =>
        Effect.forkChild(polled(team, "large"))
      )
      yield* twoRead.await
      yield* Effect.all(
        ["one", "two", "three"].map((team) => polled(team, "small")),
        { concurrency: "unbounded" }
      )
      expect(read).toHaveLength(3)
      yield* mayEnd.open
      yield* Effect.forEach(large, Fiber.join)
      expect(read.filter((line) => line.endsWith("large poll"))).toHaveLength(4)
      expect(most).toBe(2)
    })
  )

  it.effect("A channel is found by the runner of its shard when it is due, and by every runner before it has one", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created("item.added_polling")
      const dueOn = (shards: ReadonlyArray<number>, at: number) =>
        Effect.map(dueWork(shards, at), ({ channels }) => channels.includes(source_id))
      expect(yield* dueOn([1], Date.now() + 1)).toBe(true)
      yield* actor.Wake()
      const { due_at, shard } = (yield* rowOf(source_id))!
      expect(yield* dueOn([shard], Date.now())).toBe(false)
      expect(yield* dueOn([shard], due_at!.getTime())).toBe(true)
      const { channels } = yield* dueWork([shard], due_at!.getTime(), [], undefined, [source_id])
      expect(channels).not.toContain(source_id)
      expect(yield* dueOn([shard === 1 ? 2 : 1], due_at!.getTime())).toBe(false)
      expect((yield* dueWork([shard], Date.now())).next).toBeLessThanOrEqual(due_at!.getTime())
      // Polling: no subscription, and the next poll is on the grid of the source.
      expect(provider.hooks.size).toBe(0)
    })
  )

  it.effect("A change during a call decides about its end, and what the call has done is stored once", () =>
    Effect.gen(function* () {
      const { actor, source_id } = yield* created()
      const sql = yield* SqlClient.SqlClient
      yield* actor.Wake()
      yield* notified(source_id)
      provider.during = Effect.orDie(
        Effect.andThen(
          sql`update sources set disabled_at = coalesce(disabled_at, now()) where id = ${source_id}`,
          sql`update channels set version = version + 1, due_at = now() - interval '1 second' where source_id = ${source_id}`
        )
      )
      yield* actor.Wake()
      expect(yield* subscriptionsOf(source_id)).toMatchObject([{ state: "stopped" }])
      const counts = yield* sql<{ metric: string; value: bigint }>`
        select metric, value from channel_metrics where source_id = ${source_id} and metric in ('polls', 'stops')`
      expect(Object.fromEntries(counts.map(({ metric, value }) => [metric, Number(value)]))).toEqual({
        polls: 3,
        stops: 1
      })
    })
  )

  it.effect(
    "A renewal, its handshake and an empty poll take few statements each, and a wake-up for nothing takes one",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { actor, source_id } = yield* created("item.leased")
        yield* actor.Wake()
        const [subscription] = yield* subscriptionsOf(source_id)
        yield* sql`update channel_subscriptions set renew_at = now() - interval '1 second' where source_id = ${source_id}`
        yield* sql`update channels set due_at = now() - interval '1 second', version = version + 1 where source_id = ${source_id}`
        // Read the channel, store that a step is under way, read the secrets, and store what the provider has agreed to.
        expect(yield* sent(actor.Wake())).toBeLessThanOrEqual(4)
        expect(provider.asked.at(-1)).toBe(`renew ${subscription!.id}`)
        const called = { id: subscription!.id, team_id, source_id } as CalledSubscription
        const receivedAt = yield* Clock.currentTimeMillis
        const notification = {
          kind: "handshake" as const,
          accepted: true,
          reason: null,
          expiresAt: receivedAt + 2 * 86_400_000,
          reply: { status: 200, contentType: null, body: "" }
        }
        expect(yield* sent(storeNotification(called, { notification, pairKey: "", receivedAt }))).toBeLessThanOrEqual(4)
        // The renewal is stored with the beginning of the poll that follows it.
        expect(yield* sent(actor.Wake())).toBeLessThanOrEqual(3)
        expect(provider.asked.at(-1)).toBe("poll 0")
        const renewals = yield* sql<{ value: bigint }>`
        select value from channel_metrics where source_id = ${source_id} and metric = 'renewals'`
        expect(renewals.map(({ value }) => Number(value))).toEqual([1])

        yield* notified(source_id)
        expect(yield* sent(actor.Wake())).toBeLessThanOrEqual(3)
        expect(provider.asked.slice(-2)).toEqual(["poll 0", "poll 0"])
        expect(yield* sent(actor.Wake())).toBe(1)
      })
  )

  it.effect("Channels that are due at the same moment share their statements", () =>
    Effect.gen(function* () {
      const channels = yield* Effect.forEach(Array.from({ length: 12 }), () => created("item.added_polling"))
      const wakeAll = Effect.forEach(channels, ({ actor }) => actor.Wake(), { concurrency: "unbounded" })
      yield* wakeAll
      yield* Effect.forEach(channels, ({ source_id }) => notified(source_id))
      provider.asked.length = 0
      // Alone, each takes two.
      expect(yield* sent(wakeAll)).toBeLessThanOrEqual(12)
      expect(provider.asked).toHaveLength(12)
    })
  )
})
