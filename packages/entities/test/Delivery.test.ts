import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Queue } from "effect"
import { MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Egress, type Outbound } from "@tidegate/egress/Egress"
import type { Answer } from "../../egress/src/Exchange.ts"
import { newId, prefixes } from "@tidegate/model/Ids"
import { next } from "@tidegate/runtime/TestSignal"
import type { Rule } from "@tidegate/model/Rule"
import { Connections } from "@tidegate/storage/control/Connections"
import { Journal } from "@tidegate/storage/Journal"
import { noServers } from "../../connectors/test/TestConnectors.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { Cancellations } from "../src/Cancellations.ts"
import { Batch } from "../src/dispatch/Batch.ts"
import { newItem } from "../src/Destination/queue/DeliveryItem.ts"
import { DeliveryRuntime } from "../src/Destination/sending/DeliveryRuntime.ts"
import * as DestinationBehaviour from "../src/Destination/DestinationBehaviour.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import { Handover } from "../src/dispatch/Handover.ts"
import * as HandoverBehaviour from "../src/dispatch/HandoverBehaviour.ts"
import { HandoverEntity } from "../src/dispatch/HandoverProtocol.ts"
import { Lease } from "../src/Lease.ts"
import { shardOf, shardsPerGroup } from "../src/Shards.ts"
import { pollOnce } from "../src/dispatch/Poller.ts"

const { createConnection, createDestination, insertEvent, team } = ControlPlane

interface Arrival {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly answer: (status: number, headers?: Record<string, string>) => void
}

/** The network: every delivery arrives here and waits for the test's answer. */
class Arrivals extends Context.Service<Arrivals, Queue.Queue<Arrival>>()("Arrivals") {}

/** Answers what is on the wire, and from then on everything at once. */
class HangUp extends Context.Service<HangUp, () => void>()("HangUp") {}

const network = Layer.effectContext(
  Effect.gen(function* () {
    const arrivals = yield* Queue.unbounded<Arrival>()
    const clock = yield* Clock.Clock
    const onTheWire = new Set<() => void>()
    let hungUp = false
    const deliver = (outbound: Outbound): Promise<Answer> =>
      new Promise((resolve) => {
        const flat = outbound.headers ?? []
        const headers: Record<string, string> = {}
        for (let i = 0; i < flat.length; i += 2) headers[flat[i]!] = flat[i + 1]!
        const arrival: Arrival = {
          url: outbound.url,
          headers,
          answer: (status, answered = {}) => {
            onTheWire.delete(end)
            resolve({
              status,
              headers: answered,
              body: Buffer.alloc(0),
              bodyTruncated: false,
              errorCode: null,
              errorMessage: null,
              sentAt: clock.currentTimeMillisUnsafe(),
              respondedAt: clock.currentTimeMillisUnsafe()
            })
          }
        }
        const end = () => arrival.answer(204)
        if (hungUp) return end()
        onTheWire.add(end)
        Queue.offerUnsafe(arrivals, arrival)
      })
    const hangUp = () => {
      hungUp = true
      for (const end of onTheWire) end()
    }
    return Context.make(Arrivals, arrivals).pipe(
      Context.add(HangUp, hangUp),
      Context.add(Egress, { deliver } as unknown as Egress["Service"])
    )
  })
)

/** A test that fails leaves deliveries on the wire, and actors that are told to end wait for them: by a clock that stands still. */
const hangingUp = Layer.effectDiscard(
  Effect.flatMap(HangUp, (hangUp) => Effect.addFinalizer(() => Effect.sync(hangUp)))
)

/** One runner, in this process, with the shards of a real one. */
const runner = Sharding.layer.pipe(
  Layer.provide([Runners.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide([MessageStorage.layerNoop, ShardingConfig.layer({ shardsPerGroup })])
)

const worldUnder = (lease: Layer.Layer<Lease>) =>
  hangingUp.pipe(
    Layer.provideMerge(Layer.mergeAll(DestinationBehaviour.layer, HandoverBehaviour.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        network,
        lease,
        DeliveryRuntime.layer({ deliveries: 1_000, windowBytes: 1e7 }),
        noServers,
        Cancellations.layer,
        Journal.layer,
        runner
      )
    ),
    Layer.provideMerge(ControlPlane.layer),
    // Ids hold the time, and partitions are made for the days around it.
    Layer.provide(Layer.effectDiscard(TestClock.setTime(Date.now())))
  )

const world = worldUnder(Lease.layerAlways)

const arrival = Effect.flatMap(Arrivals, Queue.take)
const noArrival = Effect.flatMap(Arrivals, (arrivals) =>
  Effect.map(Queue.size(arrivals), (size) => expect(size).toBe(0))
)

const destination = (id: string) => Effect.map(DestinationEntity.client, (client) => client(id))

/** A connection with these rules, and one event waiting on it since now. */
const waiting = Effect.fnUntraced(function* (rules: ReadonlyArray<Rule> = [], destination_id?: string) {
  const sql = yield* SqlClient.SqlClient
  const sharding = yield* Sharding.Sharding
  const connection = yield* createConnection({
    rules,
    destination_id: destination_id ?? (yield* createDestination()).id
  })
  const createdAt = new Date((yield* Clock.Clock).currentTimeMillisUnsafe())
  const add = Effect.fnUntraced(function* () {
    const event = yield* insertEvent(connection, { createdAt })
    yield* sql`update deliveries set shard = ${shardOf(sharding, connection.destination_id)} where event_id = ${event}`
    return event
  })
  const event = yield* add()
  const actor = yield* destination(connection.destination_id)
  return { connection, event, add, actor }
})

interface EventRow {
  readonly state: string
  readonly attempts: number
  readonly error_code: string | null
}

/** Waits until the event has that many attempts recorded, and answers its row. */
const recorded = Effect.fnUntraced(function* (event: string, attempts: number) {
  const sql = yield* SqlClient.SqlClient
  for (;;) {
    const committed = next("commit")
    const [row] = yield* sql<EventRow>`select state, attempts, error_code from events where id = ${event}`
    if (row!.attempts >= attempts) return row!
    yield* Effect.promise(() => committed)
  }
})

const triggers = Effect.fnUntraced(function* (event: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    trigger: string
  }>`select trigger from attempts where event_id = ${event} order by attempt_number`
  return rows.map((row) => row.trigger)
})

const wake = (actor: Effect.Success<ReturnType<typeof destination>>) => actor.Wake(undefined, { discard: true })

const linear = (interval: number, count: number): Rule => ({ type: "retry", strategy: "linear", interval, count })

layer(world)("Deliveries of a destination", (it) => {
  it.effect("A destination retries on schedule from memory until the rule's count is used up", () =>
    Effect.gen(function* () {
      const { actor, event } = yield* waiting([linear(2_000, 2)])
      yield* wake(actor)
      ;(yield* arrival).answer(500)
      yield* recorded(event, 1)
      for (const number of [2, 3]) {
        yield* TestClock.adjust("1999 millis")
        yield* noArrival
        yield* TestClock.adjust("1 millis")
        const next = yield* arrival
        expect(next.headers["x-gateway-attempt-count"]).toBe(String(number))
        expect(next.headers["idempotency-key"]).toBe(event)
        next.answer(503)
        yield* recorded(event, number)
      }
      expect(yield* recorded(event, 3)).toStrictEqual({ state: "FAILED", attempts: 3, error_code: "BAD_RESPONSE" })
      expect(yield* triggers(event)).toStrictEqual(["INITIAL", "AUTOMATIC", "AUTOMATIC"])
    })
  )

  it.effect("The poller finds a retry that left the memory, and Retry-After overrides the rule", () =>
    Effect.gen(function* () {
      const { actor, event } = yield* waiting([linear(60_000, 5)])
      yield* wake(actor)
      ;(yield* arrival).answer(429, { "retry-after": "600" })
      yield* recorded(event, 1)
      yield* TestClock.adjust("599 seconds")
      yield* pollOnce
      yield* noArrival
      yield* TestClock.adjust("2 seconds")
      yield* pollOnce
      ;(yield* arrival).answer(200)
      expect((yield* recorded(event, 2)).state).toBe("SUCCESSFUL")
    })
  )

  it.effect("A paused connection delivers nothing and continues with the trigger UNPAUSE", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { actor, connection, event } = yield* waiting()
      yield* connections.switch(team, connection.id, "pause")
      yield* actor.Reload()
      yield* wake(actor)
      yield* actor.Reload()
      yield* noArrival
      yield* TestClock.adjust("1 second")
      yield* connections.switch(team, connection.id, "unpause")
      yield* actor.Reload()
      const first = yield* arrival
      expect(first.headers["x-gateway-attempt-trigger"]).toBe("UNPAUSE")
      first.answer(200)
      expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
    })
  )

  it.effect("A delivery in progress ends when its connection is paused, and its retry waits", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { actor, connection, event } = yield* waiting([linear(1_000, 3)])
      yield* wake(actor)
      const onTheWire = yield* arrival
      yield* connections.switch(team, connection.id, "pause")
      yield* actor.Reload()
      onTheWire.answer(500)
      expect((yield* recorded(event, 1)).state).toBe("PENDING")
      yield* TestClock.adjust("10 seconds")
      yield* pollOnce
      yield* actor.Reload()
      yield* noArrival
      yield* TestClock.adjust("1 second")
      yield* connections.switch(team, connection.id, "unpause")
      yield* actor.Reload()
      ;(yield* arrival).answer(204)
      expect((yield* recorded(event, 2)).state).toBe("SUCCESSFUL")
      expect(yield* triggers(event)).toStrictEqual(["INITIAL", "UNPAUSE"])
    })
  )

  it.effect("Disabling cancels waiting events, and the result of a delivery in progress is kept", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connections = yield* Connections
      const { actor, add, connection, event } = yield* waiting()
      yield* wake(actor)
      const onTheWire = yield* arrival
      yield* connections.switch(team, connection.id, "disable")
      yield* actor.Reload()
      const late = yield* add()
      onTheWire.answer(200)
      expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
      yield* TestClock.adjust("1 second")
      yield* pollOnce
      for (;;) {
        const [row] = yield* sql<EventRow>`select state, attempts, error_code from events where id = ${late}`
        if (row!.state === "PENDING") {
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          continue
        }
        expect(row).toStrictEqual({ state: "CANCELLED", attempts: 0, error_code: "CANCELLED" })
        break
      }
      yield* noArrival
    })
  )

  it.effect("Concurrent deliveries grow with a healthy target, and fall when it is overloaded", () =>
    Effect.gen(function* () {
      const { actor, add, event } = yield* waiting([linear(60_000, 5)])
      const events = [event]
      while (events.length < 50 + 100 + 4 + 8) events.push(yield* add())
      yield* wake(actor)
      const arrivals = yield* Arrivals
      const take = (count: number) => Queue.takeN(arrivals, count)
      const first = yield* take(50)
      yield* noArrival
      yield* TestClock.adjust("1 second")
      for (const { answer } of first) answer(200)
      const second = yield* take(100)
      yield* noArrival
      yield* TestClock.adjust("1 second")
      // It does not say until when: what it takes is found out.
      for (const { answer } of second) answer(429)
      const third = yield* take(4)
      yield* actor.Reload()
      yield* noArrival
      // Each answer brings it one more.
      for (const { answer } of third) answer(200)
      const last = yield* take(8)
      for (const { answer } of last) answer(200)
      for (const id of events) yield* recorded(id, 1)
      yield* noArrival
    })
  )

  it.effect("A destination follows a changed setting before and after its first delivery", () =>
    Effect.gen(function* () {
      const { actor, add, event } = yield* waiting()
      const move = (path: string) =>
        actor.Update({ team_id: team, input: { config: { url: `https://moved.test/${path}` } } })
      yield* move("before")
      yield* noArrival
      yield* wake(actor)
      const first = yield* arrival
      expect(first.url).toContain("moved.test/before")
      yield* move("after")
      first.answer(200)
      expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
      const later = yield* add()
      yield* wake(actor)
      const second = yield* arrival
      expect(second.url).toContain("moved.test/after")
      second.answer(200)
      expect((yield* recorded(later, 1)).state).toBe("SUCCESSFUL")
    })
  )

  it.effect("A destination asks for each unknown connection at once", () =>
    Effect.gen(function* () {
      const { actor, connection, event } = yield* waiting()
      yield* wake(actor)
      ;(yield* arrival).answer(200)
      expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
      for (let n = 0; n < 2; n++) {
        const { event: other } = yield* waiting([], connection.destination_id)
        yield* wake(actor)
        ;(yield* arrival).answer(200)
        expect((yield* recorded(other, 1)).state).toBe("SUCCESSFUL")
      }
    })
  )

  it.effect("A manual retry creates a separate event that names the root event", () =>
    Effect.gen(function* () {
      const { actor, event } = yield* waiting()
      yield* wake(actor)
      ;(yield* arrival).answer(400)
      expect((yield* recorded(event, 1)).state).toBe("FAILED")
      const retry = { team_id: team, event_id: event, id: newId(prefixes.event, yield* Clock.currentTimeMillis) }
      const retried = yield* actor.RetryEvent(retry)
      const again = yield* arrival
      expect(again.headers["x-gateway-event-id"]).toBe(retried.replay_event_id)
      expect(again.headers["x-gateway-attempt-trigger"]).toBe("MANUAL")
      again.answer(200)
      expect((yield* recorded(retried.replay_event_id, 1)).state).toBe("SUCCESSFUL")
      expect((yield* recorded(event, 1)).state).toBe("FAILED")
      // Its answer may have been lost: sent again, it is still the one event.
      expect(yield* actor.RetryEvent(retry)).toStrictEqual(retried)
      const sql = yield* SqlClient.SqlClient
      const made = yield* sql`select id from events where retry_parent_event_id = ${event}`
      expect(made).toStrictEqual([{ id: retried.replay_event_id }])
      yield* noArrival
    })
  )
})

layer(worldUnder(Layer.succeed(Lease, { isHeld: () => true, heldMs: () => 4_000 })))(
  "Shard that was just taken over",
  (it) => {
    it.effect("A new owner only reads SQL after a message that the last owner may have had", () =>
      Effect.gen(function* () {
        const { actor, add, connection, event } = yield* waiting()
        yield* wake(actor)
        const first = yield* arrival
        // The last owner has delivered one, and did not come to say that it had the message.
        // One transaction, because the actor may still look for due deliveries.
        const sql = yield* SqlClient.SqlClient
        const done = yield* sql.withTransaction(
          Effect.gen(function* () {
            const done = yield* add()
            yield* sql`delete from deliveries where event_id = ${done}`
            yield* sql`update events set state = 'SUCCESSFUL', attempts = 1, due_at = null where id = ${done}`
            return done
          })
        )
        const other = yield* add()
        const now = yield* Clock.currentTimeMillis
        const items = [done, other].map((id) =>
          newItem(
            { id, connectionId: connection.id, dueAt: now, orderingKey: null },
            { teamId: team, sourceId: connection.source_id },
            now,
            {
              requestId: newId(prefixes.request, now),
              dataId: null,
              method: "POST",
              path: "/",
              query: "",
              headers: {},
              presented: null,
              body: Buffer.from("{}"),
              verified: false,
              originalIp: null
            }
          )
        )
        const handover = new Handover(new Map([[connection.destination_id, new Batch(items)]]))
        yield* (yield* HandoverEntity.client)(connection.destination_id).Take({ handover })
        const second = yield* arrival
        expect(second.headers["x-gateway-event-id"]).toBe(other)
        second.answer(200)
        first.answer(200)
        expect((yield* recorded(other, 1)).state).toBe("SUCCESSFUL")
        expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
        yield* noArrival
      })
    )
  }
)
