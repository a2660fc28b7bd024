import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { connectorOf } from "@tidegate/connectors/Connectors"
import { dueWork } from "@tidegate/storage/delivery/DeliveryRows"
import { nextPosition, waitsForKey } from "@tidegate/storage/delivery/OrderingKeys"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { DeliveryRuntime } from "../src/Destination/sending/DeliveryRuntime.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import type { Pulled } from "../src/Destination/pull/PullProtocol.ts"
import { pollOnce } from "../src/dispatch/Poller.ts"
import { linear, recorded, turn, waiting, worldWith } from "./DestinationWorld.ts"

/** Events whose destination is fetched from, from SQL to the recorded attempt. */

const pulled = { type: "PULL", config: { lease_seconds: 60 } }

const actorOf = (id: string) => Effect.map(DestinationEntity.client, (client) => client(id))

const pulling = { max: 10, room: 1_000_000, wait_ms: 20_000 }

/** Messages for a consumer that asks until it has some: calls without any are repeated, as consumers do. */
const fetched = Effect.fnUntraced(function* (destination: string, max = 10) {
  const actor = yield* actorOf(destination)
  for (;;) {
    const call = yield* Effect.forkChild(actor.Pull({ ...pulling, max }))
    const answers: Array<Pulled> = []
    call.addObserver((exit) => {
      answers.push(exit._tag === "Success" ? exit.value : { messages: [], leased_until: 0, refused: "gone" })
    })
    while (answers.length === 0) {
      yield* TestClock.adjust("100 millis")
      yield* turn
    }
    const { messages, refused } = answers[0]!
    expect(refused).toBeNull()
    if (messages.length > 0) return messages
  }
})

const headOf = ({ head }: Pulled["messages"][number]) =>
  JSON.parse(head) as { readonly event_id: string; readonly attempt_number: number; readonly headers: object }

const settled = Effect.fnUntraced(function* (
  destination: string,
  messages: Pulled["messages"],
  refusal: string | null = null
) {
  const actor = yield* actorOf(destination)
  return yield* actor.Settle({ receipts: messages.map(({ receipt }) => receipt), refusal })
})

layer(worldWith(connectorOf))("Event that a consumer fetches", (it) => {
  it.effect("A fetched event takes no permit, and is successful when its consumer acknowledges it", () =>
    Effect.gen(function* () {
      const { connection, event } = yield* waiting([], pulled, '{"id":7}')
      const { permits } = yield* DeliveryRuntime
      const [message] = yield* fetched(connection.destination_id)
      expect(Buffer.from(message!.body).toString()).toBe('{"id":7}')
      expect(message!.receipt).toBe(`${event}.1`)
      expect(headOf(message!)).toMatchObject({
        receipt: `${event}.1`,
        event_id: event,
        attempt_number: 1,
        ordering_key: null,
        method: "POST",
        path: "/",
        headers: { "idempotency-key": event, "x-gateway-attempt-count": "1" }
      })
      expect(permits.taken).toBe(0)
      expect(yield* settled(connection.destination_id, [message!])).toEqual([`${event}.1`])
      expect(yield* recorded(event, 1)).toEqual({ state: "SUCCESSFUL", codes: [null] })
      expect(yield* settled(connection.destination_id, [message!])).toEqual([`${event}.1`])
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select response_status, requested_url from attempts where event_id = ${event}`).toEqual([
        { response_status: 204, requested_url: "https://consumer.invalid/" }
      ])
    })
  )

  it.effect("A lease that ends is a failed attempt, and the retry rule hands the event out again", () =>
    Effect.gen(function* () {
      const { connection, event } = yield* waiting([linear(1_000, 1)], pulled)
      const first = yield* fetched(connection.destination_id)
      yield* TestClock.adjust("60 seconds")
      expect(yield* recorded(event, 1)).toEqual({ state: "PENDING", codes: ["TIMEOUT"] })
      const second = yield* fetched(connection.destination_id)
      expect([...first, ...second].map(({ receipt }) => receipt)).toEqual([`${event}.1`, `${event}.2`])
      expect(headOf(second[0]!).headers).toMatchObject({ "idempotency-key": event })
      // The body was read again.
      expect(second[0]!.body).toEqual(first[0]!.body)
      expect(yield* settled(connection.destination_id, first)).toEqual([])
      expect(yield* settled(connection.destination_id, second)).toEqual([`${event}.2`])
      expect(yield* recorded(event, 2)).toEqual({ state: "SUCCESSFUL", codes: ["TIMEOUT", null] })
    })
  )

  it.effect("A delayed event is handed out when it is due, to calls that came before", () =>
    Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      const { connection, event } = yield* waiting([], pulled)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update events set due_at = due_at + interval '50 seconds' where id = ${event}`
      yield* sql`update deliveries set due_at = due_at + interval '50 seconds' where event_id = ${event}`
      const messages = yield* fetched(connection.destination_id)
      expect(messages.map(({ receipt }) => receipt)).toEqual([`${event}.1`])
      expect((yield* Clock.currentTimeMillis) - before).toBeGreaterThanOrEqual(50_000)
      yield* settled(connection.destination_id, messages)
      expect(yield* recorded(event, 1)).toEqual({ state: "SUCCESSFUL", codes: [null] })
    })
  )

  it.effect("A refused event has failed", () =>
    Effect.gen(function* () {
      const { connection, event } = yield* waiting([], pulled)
      const messages = yield* fetched(connection.destination_id)
      expect(yield* settled(connection.destination_id, messages, "closed")).toEqual([`${event}.1`])
      expect(yield* recorded(event, 1)).toEqual({ state: "FAILED", codes: ["BAD_RESPONSE"] })
    })
  )

  it.effect("Without a consumer an event is not due, and takes no memory soon after the last call", () =>
    Effect.gen(function* () {
      const { connection, event, wake } = yield* waiting([], pulled)
      const { windowBytes } = yield* DeliveryRuntime
      const free = windowBytes.free
      yield* pollOnce
      yield* wake
      for (let turns = 0; turns < 50; turns++) yield* turn
      expect(windowBytes.free).toBe(free)
      const due = yield* dueWork(
        Array.from({ length: 64 }, (_, shard) => shard + 1),
        Date.now() + 1e9
      )
      expect(due.destinations).not.toContain(connection.destination_id)
      // A consumer that takes one of two leaves the other one in memory for a while.
      yield* waiting([], undefined, undefined, connection)
      const [message] = yield* fetched(connection.destination_id, 1)
      expect(windowBytes.free).toBeLessThan(free)
      yield* settled(connection.destination_id, [message!])
      yield* TestClock.adjust("10 seconds")
      while (windowBytes.free < free) yield* turn
      expect((yield* recorded(event, 0)).codes.length).toBeLessThanOrEqual(1)
    })
  )

  it.effect("Events of one ordering key are fetched one after the other, also when one is refused", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* ControlPlane.createConnection({
        rules: [linear(1_000, 1)],
        ordering: { key: "body.key", on_failure: "block" }
      })
      const events: Array<string> = []
      for (let i = 0; i < 3; i++) events.push((yield* waiting([], pulled, undefined, connection)).event)
      for (const event of events) {
        yield* sql`update events set ordering_key = 'x' where id = ${event}`
        yield* sql`update deliveries set ordering_key = 'x', place = ${sql.literal(nextPosition)}, ready_at = due_at,
          due_at = ${sql.literal(waitsForKey)} where event_id = ${event}`
      }
      const ids: Array<string> = []
      for (const refusal of [null, "again", null, null]) {
        const messages = yield* fetched(connection.destination_id)
        ids.push(...messages.map(({ receipt }) => receipt))
        yield* settled(connection.destination_id, messages, refusal)
      }
      expect(ids).toEqual([`${events[0]}.1`, `${events[1]}.1`, `${events[1]}.2`, `${events[2]}.1`])
    })
  )

  it.effect("A disabled destination hands out nothing, and what is leased may still be acknowledged", () =>
    Effect.gen(function* () {
      const { connection, event } = yield* waiting([], pulled)
      const messages = yield* fetched(connection.destination_id)
      const sql = yield* SqlClient.SqlClient
      const later = yield* waiting([], undefined, undefined, connection)
      yield* sql`update destinations set disabled_at = now() where id = ${connection.destination_id}`
      const actor = yield* actorOf(connection.destination_id)
      yield* actor.Reload()
      const call = yield* Effect.forkChild(actor.Pull(pulling))
      yield* TestClock.adjust("20 seconds")
      expect((yield* Fiber.join(call)).messages).toEqual([])
      expect(yield* settled(connection.destination_id, messages)).toEqual([`${event}.1`])
      expect(yield* recorded(event, 1)).toEqual({ state: "SUCCESSFUL", codes: [null] })
      expect((yield* recorded(later.event, 0)).codes).toEqual([])
    })
  )

  it.effect("A destination of another type has no messages", () =>
    Effect.gen(function* () {
      const { connection } = yield* waiting([], { type: "CLI", config: { path: "/" } })
      const actor = yield* actorOf(connection.destination_id)
      expect((yield* actor.Pull(pulling)).refused).toBe("gone")
      expect(yield* actor.Settle({ receipts: ["evt_1.1"], refusal: null })).toEqual([])
    })
  )

  it.effect("A call that is given up leaves its messages to the next one", () =>
    Effect.gen(function* () {
      const { connection, event } = yield* waiting([], pulled)
      const actor = yield* actorOf(connection.destination_id)
      const call = yield* Effect.forkChild(actor.Pull(pulling))
      yield* Fiber.interrupt(call)
      const messages = yield* fetched(connection.destination_id)
      expect(messages.map(({ receipt }) => receipt)).toEqual([`${event}.1`])
      yield* settled(connection.destination_id, messages)
    })
  )
})
