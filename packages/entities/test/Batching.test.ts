import { expect, it, layer } from "@effect/vitest"
import { Effect, Queue, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as Connectors from "@tidegate/connectors/Connectors"
import type { Outbound } from "@tidegate/egress/Egress"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Values } from "@tidegate/model/Message"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { DeliveryRuntime } from "../src/Destination/sending/DeliveryRuntime.ts"
import { makeLoops } from "../src/Loops.ts"
import {
  type Act,
  Acts,
  answer,
  Calls,
  linear,
  recorded,
  released,
  turn,
  waiting,
  worldWith
} from "./DestinationWorld.ts"

/** Several events with one call: each has its own attempts, and the result that the answer has for it. */

const world = worldWith(Connectors.connectorOf, 100)

/** A connection to a stream that takes batches, without signatures. */
const connection = Effect.fnUntraced(function* (
  batch: Schema.JsonObject,
  config: Readonly<Record<string, Schema.Json>> = {}
) {
  const { id: destination_id } = yield* ControlPlane.createDestination({
    type: "AWS_KINESIS",
    config: {
      region: "eu-central-1",
      endpoint: "http://kinesis.test",
      stream: "orders",
      include_metadata: false,
      batch,
      auth_type: "AWS_ACCESS_KEY",
      ...config
    },
    auth: { disabled: true }
  })
  return yield* ControlPlane.createConnection({ destination_id, rules: [linear(1_000, 3)] })
})

interface Call {
  readonly Records: ReadonlyArray<{ readonly Data: string }>
}

/** The payloads of a call. */
const sentIn = ({ body }: Outbound): ReadonlyArray<string> =>
  (JSON.parse(Buffer.from(body!).toString()) as Call).Records.map(({ Data }) => Buffer.from(Data, "base64").toString())

/** The stream refuses the records of these payloads, each with a code. */
const refusing =
  (codes: Readonly<Record<string, string>> = {}): Act =>
  async (outbound) =>
    answer({
      body: Buffer.from(
        JSON.stringify({
          Records: sentIn(outbound).map((payload) => ({ SequenceNumber: payload, ErrorCode: codes[payload] }))
        })
      )
    })

const acting = Effect.fnUntraced(function* (...acts: ReadonlyArray<Act>) {
  const queue = yield* Acts
  queue.splice(0, queue.length, ...acts)
})

const call = Effect.flatMap(Calls, (calls) => Effect.map(Queue.take(calls), (outbound) => sentIn(outbound).toSorted()))
const noCall = Effect.flatMap(Calls, (calls) => Effect.map(Queue.size(calls), (size) => expect(size).toBe(0)))

/** Events with these payloads. */
const events = Effect.fnUntraced(function* (
  known: Effect.Success<ReturnType<typeof connection>>,
  ...payloads: ReadonlyArray<string>
) {
  const made = yield* Effect.forEach(payloads, (payload) => waiting([], undefined, payload, known))
  return { events: made.map(({ event }) => event), wake: made[0]!.wake }
})

/** All of these events are under way: in a call, or waiting for it. */
const underWay = Effect.fnUntraced(function* (count: number) {
  const { permits } = yield* DeliveryRuntime
  while (permits.taken < count) yield* turn
})

/** What is recorded of the last attempt of an event. */
const response = Effect.fnUntraced(function* (event: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ body: Uint8Array }>`
    select body from attempts where event_id = ${event} order by attempt_number desc limit 1`
  return JSON.parse(Buffer.from(row!.body).toString()) as unknown
})

layer(world)("Batch of a destination", (it) => {
  it.effect("A full batch is one call at once, and a smaller one is sent when its first event has waited", () =>
    Effect.gen(function* () {
      yield* acting(refusing(), refusing())
      const made = yield* events(yield* connection({ max_count: 2, max_wait_ms: 500 }), "1", "2", "3")
      yield* made.wake
      expect(yield* call).toHaveLength(2)
      yield* underWay(1)
      yield* TestClock.adjust("499 millis")
      yield* noCall
      yield* TestClock.adjust("1 millis")
      expect(yield* call).toHaveLength(1)
      for (const event of made.events) expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
      yield* released
    })
  )

  it.effect("Each event has its own part of the answer, and a refused one is tried again without the others", () =>
    Effect.gen(function* () {
      yield* acting(refusing({ "2": "InternalFailure" }), refusing())
      const made = yield* events(yield* connection({ max_count: 3 }), "1", "2", "3")
      yield* made.wake
      expect(yield* call).toEqual(["1", "2", "3"])
      const [first, second, third] = made.events as [string, string, string]
      expect(yield* recorded(second, 1)).toEqual({ state: "PENDING", codes: ["BAD_RESPONSE"] })
      for (const event of [first, third]) expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
      expect(yield* response(first)).toEqual({ SequenceNumber: "1" })
      expect(yield* response(second)).toEqual({ SequenceNumber: "2", ErrorCode: "InternalFailure" })
      yield* released
      yield* TestClock.adjust("1 second")
      yield* underWay(1)
      yield* TestClock.adjust("50 millis")
      expect(yield* call).toEqual(["2"])
      expect(yield* recorded(second, 2)).toEqual({ state: "SUCCESSFUL", codes: ["BAD_RESPONSE", null] })
      yield* released
    })
  )

  it.effect("A call that is refused for one of its events arrives for the others", () =>
    Effect.gen(function* () {
      const refused = answer({ status: 400, body: Buffer.from('{"__type":"x#ValidationException"}') })
      const poison: Act = (outbound) =>
        sentIn(outbound).includes("2") ? Promise.resolve(refused) : refusing()(outbound)
      yield* acting(poison, poison, poison, poison)
      const made = yield* events(yield* connection({ max_count: 3 }), "1", "2", "3")
      yield* made.wake
      expect(yield* call).toEqual(["1", "2", "3"])
      const alone = [yield* call, yield* call, yield* call]
      expect(alone.flat().toSorted()).toEqual(["1", "2", "3"])
      const ends = yield* Effect.forEach(made.events, (event) => recorded(event, 1))
      expect(ends.map(({ state }) => state)).toEqual(["SUCCESSFUL", "FAILED", "SUCCESSFUL"])
      yield* released
    })
  )

  it.effect("All events of a call that is cut off, or whose answer is none of the service's, are tried again", () =>
    Effect.gen(function* () {
      const cut = answer({ status: null, errorCode: "CONNECTION_RESET", errorMessage: "reset" } as never)
      const other = answer({ body: Buffer.from("<html>") })
      yield* acting(
        () => Promise.resolve(cut),
        () => Promise.resolve(other),
        () => Promise.reject(new Error("a fault of the way out")),
        refusing()
      )
      const made = yield* events(yield* connection({ max_count: 2 }), "1", "2")
      yield* made.wake
      for (const attempt of [1, 2, 3]) {
        for (const event of made.events) expect((yield* recorded(event, attempt)).state).toBe("PENDING")
        yield* released
        expect(yield* call).toEqual(["1", "2"])
        yield* TestClock.adjust("1 second")
      }
      const codes = ["CONNECTION_RESET", "BAD_RESPONSE", "INTERNAL_ERROR", null]
      for (const event of made.events) expect(yield* recorded(event, 4)).toEqual({ state: "SUCCESSFUL", codes })
      expect(yield* call).toEqual(["1", "2"])
      yield* released
    })
  )

  it.effect("A large answer is recorded in part by each event of its call", () =>
    Effect.gen(function* () {
      const page = answer({ status: 503, body: Buffer.alloc(1024 * 1024, "x") })
      const long: Act = async (outbound) =>
        answer({
          body: Buffer.from(
            JSON.stringify({ Records: sentIn(outbound).map(() => ({ SequenceNumber: "1".repeat(200_000) })) })
          )
        })
      yield* acting(() => Promise.resolve(page), long)
      const made = yield* events(yield* connection({ max_count: 2 }), "1", "2")
      const sql = yield* SqlClient.SqlClient
      const sizes = (attempt: number) =>
        Effect.map(
          sql<{ size: number }>`select length(body) as size from attempts
            where event_id in ${sql.in(made.events)} and attempt_number = ${attempt}`,
          (rows) => rows.map(({ size }) => size)
        )
      yield* made.wake
      yield* call
      for (const event of made.events) expect((yield* recorded(event, 1)).codes).toEqual(["BAD_RESPONSE"])
      yield* released
      yield* TestClock.adjust("2 seconds")
      yield* call
      for (const event of made.events) expect((yield* recorded(event, 2)).state).toBe("SUCCESSFUL")
      for (const attempt of [1, 2]) expect(yield* sizes(attempt)).toEqual([32_768, 32_768])
      yield* released
    })
  )

  it.effect("An event that does not fit with the others begins the next call", () =>
    Effect.gen(function* () {
      yield* acting(refusing(), refusing(), refusing())
      const long = (letter: string) => `"${letter.repeat(900)}"`
      const made = yield* events(yield* connection({ max_bytes: 1_024 }), long("a"), long("b"), long("c"))
      yield* made.wake
      yield* underWay(1)
      expect((yield* call).length + (yield* call).length).toBe(2)
      yield* TestClock.adjust("50 millis")
      expect(yield* call).toHaveLength(1)
      for (const event of made.events) yield* recorded(event, 1)
      yield* released
    })
  )

  it.effect("An event of which nothing can be made fails alone", () =>
    Effect.gen(function* () {
      yield* acting(refusing())
      const templates = { body_template: "{{payload.a}}", partition_key: "{{payload.a}}" }
      const made = yield* events(yield* connection({ max_count: 2 }, templates), "1", '{"a":"7"}')
      yield* made.wake
      expect(yield* recorded(made.events[0]!, 1)).toEqual({ state: "FAILED", codes: ["TEMPLATE_ERROR"] })
      yield* underWay(1)
      yield* TestClock.adjust("50 millis")
      expect(yield* call).toEqual(["7"])
      expect((yield* recorded(made.events[1]!, 1)).state).toBe("SUCCESSFUL")
      yield* released
    })
  )
})

it("Loop mark of a call is that of the request that is the deepest in its chain", () => {
  const loops = makeLoops(["a key"], { hops: 2, descendants: 10 })
  const fresh = { headers: {}, requestId: newId(prefixes.request, 1) }
  const after = (headers: Values): Values => ({ [loopHeader]: loops.next(headers, fresh.requestId) })
  const [once, twice] = [after({}), after(after({}))]
  const mark = loops.nextOfAll([fresh, { ...fresh, headers: twice }, { ...fresh, headers: once }])
  expect(mark).toBe(loops.next(twice, fresh.requestId))
  expect(loops.admits({ [loopHeader]: mark })).toBe(false)
  expect(loops.admits({ [loopHeader]: loops.nextOfAll([fresh, { ...fresh, headers: once }]) })).toBe(true)
})
