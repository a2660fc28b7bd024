import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { idTime, newId, prefixes } from "@tidegate/model/Ids"
import { TeamLimits } from "@tidegate/resources/TeamLimits"
import { Connections } from "../src/control/Connections.ts"
import { Destinations } from "../src/control/Destinations.ts"
import { Sources } from "../src/control/Sources.ts"
import { weighRoutedSource } from "../src/delivery/RoutedSource.ts"
import { rememberedMs, type Storable, storeMessages } from "../src/subscriptions/Messages.ts"
import {
  enabledSubscriptions,
  markConnected,
  markFailed,
  readCredentials,
  readSubscription
} from "../src/subscriptions/SubscriptionWork.ts"
import * as ControlPlane from "./controlPlane.ts"

/** Subscriptions and their messages, over real rows. Who stores knows what was stored from the database only. */

const { connectionFields, destinationFields, sourceFields, team } = ControlPlane

const routing = { shardOf: () => 1, orderingKeyOf: () => null }
const auth = { username: "tidegate", password: "a-long-password" }
const subscription = { host: "rabbit.example.com", port: 5_671, queue: "orders" }
const config = { ...sourceFields().config, auth_type: "BASIC_AUTH" as const, subscription }

const make = Effect.gen(function* () {
  const fields = sourceFields({ type: "RABBITMQ", config, auth })
  return yield* (yield* Sources).create(team, newId(prefixes.source, Date.now()), fields)
})

const held = (id: string) => Effect.map(readSubscription(id), (found) => found!)

const message = (id: string | null, body = "{}", headers: Record<string, string> = {}): Storable => ({
  id,
  message: { method: "POST", path: "/", query: "", headers, body: Buffer.from(body) }
})

const bodiesOf = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ body: Uint8Array }>`select body from requests where source_id = ${source} order by id`
  return rows.map(({ body }) => Buffer.from(body).toString())
})

const stateOf = (id: string) =>
  Effect.flatMap(Sources, (sources) => Effect.map(sources.get(team, id), (source) => source.subscription_state!))

layer(ControlPlane.layerOf({ connections: 6 }), { excludeTestServices: true })("Subscriptions of sources", (it) => {
  it.effect("Messages become accepted requests in their order, for the source's connections", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* make
      const at = Date.now()
      const destination = yield* (yield* Destinations).create(
        team,
        newId(prefixes.destination, at),
        destinationFields()
      )
      const fields = connectionFields({ source_id: source.id, destination_id: destination.id })
      const connection = yield* (yield* Connections).create(team, newId(prefixes.connection, at), fields)
      const messages = [message("a", "1", { "x-kind": "k" }), message(null, "2"), message("b", "3")]
      const done = yield* storeMessages(yield* held(source.id), messages, ["too large"], routing, at)
      expect(done).toMatchObject({ stored: 3, duplicates: 0, connections: [connection.id] })
      expect(yield* bodiesOf(source.id)).toEqual(["1", "2", "3"])
      const [first] = yield* sql<{ id: string; headers: string; status: string }>`
        select id, headers, status from requests where source_id = ${source.id} order by id limit 1`
      expect(first).toMatchObject({ status: "accepted", headers: '{"x-kind":"k"}' })
      expect(idTime(first!.id)).toBe(at)
      const waiting = yield* sql`select from pending_routes where connection_id = ${connection.id}`
      expect(waiting).toHaveLength(3)
      expect(yield* stateOf(source.id)).toMatchObject({
        stored_count: 3,
        duplicate_count: 0,
        rejected_count: 1,
        last_rejection: "too large",
        last_message_at: new Date(at).toISOString()
      })
    })
  )

  it.effect("A message that comes again makes no second request, and another one with its id makes its own", () =>
    Effect.gen(function* () {
      const { id } = yield* make
      const subscribed = yield* held(id)
      const now = Date.now()
      const store = (...messages: ReadonlyArray<Storable>) => storeMessages(subscribed, messages, [], routing, now)
      // Twice in one batch, by two processes at once, and later: the broker counts deliveries in a header.
      const both = yield* Effect.all([store(message("a"), message("a")), store(message("a"))], { concurrency: 2 })
      expect(both.map((one) => one!.stored).toSorted((a, b) => a - b)).toEqual([0, 1])
      yield* store(message("a", "{}", { "x-delivery-count": "3" }))
      yield* store(message("a", "another"))
      // Without an id, equal messages are two.
      yield* store(message(null), message(null))
      expect((yield* bodiesOf(id)).toSorted()).toEqual(["another", "{}", "{}", "{}"].toSorted())
      expect(yield* stateOf(id)).toMatchObject({ stored_count: 4, duplicate_count: 3 })
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ expires_at: Date }>`select expires_at from source_messages where source_id = ${id}`
      expect(rows.map(({ expires_at }) => expires_at.getTime())).toEqual([now + rememberedMs, now + rememberedMs])
    })
  )

  it.effect("Nothing is stored by what was read before a change, while disabled, or after a delete", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const { id } = yield* make
      const store = (by: Parameters<typeof storeMessages>[0]) =>
        storeMessages(by, [message(null)], [], routing, Date.now())
      const first = yield* held(id)
      yield* sources.update(team, id, (stored) =>
        Result.succeed({
          ...stored,
          config: { ...stored.config, subscription: { ...subscription, queue: "others" } },
          auth: "unchanged" as const
        })
      )
      expect(yield* store(first)).toBe(null)
      const second = yield* held(id)
      expect(second.settings).toMatchObject({ queue: "others" })
      // A change of something else leaves the connection as it is.
      yield* sources.update(team, id, (stored) =>
        Result.succeed({ ...stored, name: `${stored.name} 2`, auth: "unchanged" as const })
      )
      expect(yield* store(second)).toMatchObject({ stored: 1 })
      yield* sources.switch(team, id, "disable")
      expect(yield* store(second)).toBe(null)
      expect(yield* readSubscription(id)).toBe(null)
      expect(yield* stateOf(id)).toMatchObject({ status: "disabled", stored_count: 1 })
      yield* sources.switch(team, id, "enable")
      expect(yield* stateOf(id)).toMatchObject({ status: "connecting", stored_count: 1 })
      const third = yield* held(id)
      yield* sources.delete(team, id)
      expect(yield* store(third)).toBe(null)
      expect(yield* bodiesOf(id)).toHaveLength(1)
      expect((yield* enabledSubscriptions).map(({ source_id }) => source_id)).not.toContain(id)
    })
  )

  it.effect("How the connection is doing is shown until the source changes, and an outdated actor writes nothing", () =>
    Effect.gen(function* () {
      const { id } = yield* make
      const subscribed = yield* held(id)
      expect(yield* readCredentials(subscribed)).toEqual(auth)
      const now = Date.now()
      expect(yield* markConnected(subscribed, now)).toBe(true)
      expect(yield* stateOf(id)).toMatchObject({ status: "connected", connected_at: new Date(now).toISOString() })
      yield* markFailed(subscribed, { message: "no such queue", failures: 2, now, again: now + 2_000 })
      const failing = { status: "failing", connected_at: null, last_error: "no such queue" }
      expect(yield* stateOf(id)).toMatchObject({ ...failing, last_error_at: new Date(now).toISOString() })
      expect(yield* held(id)).toMatchObject({ failures: 2, due_at: now + 2_000 })
      const other = { ...auth, password: "another-password" }
      yield* (yield* Sources).update(team, id, (stored) => Result.succeed({ ...stored, auth: other }))
      expect(yield* stateOf(id)).toMatchObject({ status: "connecting", last_error: null })
      expect(yield* markConnected(subscribed, now)).toBe(false)
      yield* markFailed(subscribed, { message: "late", failures: 1, now, again: now })
      expect(yield* stateOf(id)).toMatchObject({ status: "connecting", last_error: null })
    })
  )

  it.effect("Nobody can post to the URL of such a source, and a team has a limited number of them", () =>
    Effect.gen(function* () {
      const { id } = yield* make
      expect(yield* weighRoutedSource(id)).toBe(null)
      const limits = yield* TeamLimits
      const refused = yield* Effect.flip(Effect.provideService(make, TeamLimits, { ...limits, subscribed_sources: 1 }))
      expect(refused).toMatchObject({ code: "LIMIT_EXCEEDED", data: { limit: 1, resource: "subscribed_sources" } })
    })
  )
})
