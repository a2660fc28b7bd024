import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { type Connector, connector, judgeStatus, type Sender } from "@tidegate/connectors/Connector"
import { type Failure, SessionFailure } from "@tidegate/connectors/Failure"
import * as Connectors from "@tidegate/connectors/Connectors"
import { pacing } from "@tidegate/connectors/Settings"
import { answered, type Line, lineConnector, makeLine } from "../../connectors/test/TestConnectors.ts"
import { linear, logged, recorded, released, turn, waiting, worldWith } from "./DestinationWorld.ts"

/** The loop runs what any connector makes: what one throws costs an attempt, and what one holds is given back. */

const fault = new Error("a fault of the connector")
const breaks = (): never => {
  throw fault
}
const request = { method: "POST", url: "http://h/", shownUrl: "http://h/", headers: [], body: new Uint8Array(0) }
const local = (change: Partial<Extract<Sender, { kind: "local" }>>): Sender => ({
  kind: "local",
  prepare: () => request,
  answer: () => answered,
  judge: judgeStatus,
  ...change
})

const senders: Readonly<Record<string, () => Sender>> = {
  BREAKS_OPEN: breaks,
  BREAKS_PREPARE: () => local({ prepare: breaks }),
  BREAKS_ANSWER: () => local({ answer: breaks }),
  BREAKS_JUDGE: () => local({ judge: breaks }),
  BREAKS_HTTP_PREPARE: () => ({ kind: "http", prepare: breaks, judge: judgeStatus }),
  BREAKS_HTTP_JUDGE: () => ({ kind: "http", prepare: () => request, judge: breaks }),
  SAYS_NO: () => local({ judge: () => ({ code: "BAD_RESPONSE", message: "not ok", final: false }) }),
  SAYS_NEVER: () => local({ judge: () => ({ code: "BAD_RESPONSE", message: "no such channel", final: true }) })
}

const row = (type: string, open: () => Sender): Connector =>
  connector({
    type,
    name: type,
    description: "A test's.",
    settings: { ...pacing },
    auths: ["NO_AUTH"],
    credentials: "omit",
    example: { name: "a", type },
    open
  })

/** What the session of the running test is. */
let line: Line = makeLine()
const lineRow = lineConnector({
  get opened() {
    return line.opened
  },
  set opened(count) {
    line.opened = count
  },
  get closed() {
    return line.closed
  },
  set closed(count) {
    line.closed = count
  },
  connect: Effect.suspend(() => line.connect),
  send: (message, facts, mayStart) => line.send(message, facts, mayStart)
})

const rows = new Map(
  [lineRow, ...Object.entries(senders).map(([type, open]) => row(type, open))].map((row) => [row.type, row])
)
const world = worldWith((type) => rows.get(type) ?? Connectors.connectorOf(type))

const overLine = { type: lineRow.type, config: { line: "a" } }

/** What is recorded of an event's last attempt. */
const shown = Effect.fnUntraced(function* (event: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ failure_message: string | null; requested_url: string; http_method: string }>`
    select e.failure_message, a.requested_url, a.http_method from attempts a join events e on e.id = a.event_id
    where a.event_id = ${event} order by a.attempt_number desc limit 1`
  return row!
})

/** As much of what was asked for as happens at once. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 20; i++) yield* turn
})

layer(world)("Connector that throws", (it) => {
  for (const type of Object.keys(senders).filter((type) => type.startsWith("BREAKS"))) {
    it.effect(`A connector that throws (${type}) costs one logged attempt, and no permit`, () =>
      Effect.gen(function* () {
        logged.length = 0
        const { event, wake } = yield* waiting([linear(1_000, 1)], { type, config: {} })
        yield* wake
        expect(yield* recorded(event, 1)).toEqual({ state: "PENDING", codes: ["INTERNAL_ERROR"] })
        yield* released
        expect(logged.some(({ cause }) => cause.includes(fault.message))).toBe(true)
        expect((yield* shown(event)).failure_message).not.toContain(fault.message)
        yield* TestClock.adjust("1 second")
        expect((yield* recorded(event, 2)).state).toBe("FAILED")
        yield* released
        const other = yield* waiting()
        yield* other.wake
        expect((yield* recorded(other.event, 1)).state).toBe("SUCCESSFUL")
        yield* released
      })
    )
  }

  it.effect("An event for an unknown destination type fails and waits for its retry rule", () =>
    Effect.gen(function* () {
      const { event, wake } = yield* waiting([linear(1_000, 1)], { type: "FAX", config: {} })
      yield* wake
      expect(yield* recorded(event, 1)).toEqual({ state: "PENDING", codes: ["INTERNAL_ERROR"] })
      yield* released
    })
  )
})

layer(world)("Verdict of a sender", (it) => {
  it.effect("A sender can turn a 200 into a failure, which is retried", () =>
    Effect.gen(function* () {
      const rule = { ...linear(1_000, 1), response_status_codes: ["500-599"] }
      const { event, wake } = yield* waiting([rule], { type: "SAYS_NO", config: {} })
      yield* wake
      expect(yield* recorded(event, 1)).toEqual({ state: "PENDING", codes: ["BAD_RESPONSE"] })
      expect((yield* shown(event)).failure_message).toBe("not ok")
      yield* released
    })
  )

  it.effect("A final verdict of a sender overrides the retry rule", () =>
    Effect.gen(function* () {
      const { event, wake } = yield* waiting([linear(1_000, 9)], { type: "SAYS_NEVER", config: {} })
      yield* wake
      expect((yield* recorded(event, 1)).state).toBe("FAILED")
      yield* released
    })
  )
})

const failing = (change: Partial<Failure & { readonly broken: boolean; readonly unsent: true }>) =>
  Effect.fail(
    new SessionFailure({ code: "CONNECTION_RESET", message: "it hung up", final: false, broken: true, ...change })
  )

layer(world)("Sender with a session", (it) => {
  it.effect("A session is opened once for all events, describes itself, and is closed when unused", () =>
    Effect.gen(function* () {
      line = makeLine()
      const { event, wake } = yield* waiting([], overLine)
      yield* wake
      expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
      expect(yield* shown(event)).toEqual({ failure_message: null, requested_url: "line:a", http_method: "SEND" })
      yield* released
      expect([line.opened, line.closed]).toEqual([1, 0])
      yield* TestClock.adjust("31 seconds")
      yield* settled
      expect(line.closed).toBe(1)
    })
  )

  it.effect("A session is opened again after it broke, but not after a rejection", () =>
    Effect.gen(function* () {
      line = makeLine()
      const outcomes = [failing({ broken: false, code: "INVALID_CHARACTER" }), failing({}), Effect.succeed(answered)]
      line.send = () => outcomes.shift() ?? Effect.succeed(answered)
      const { event, wake } = yield* waiting([linear(1_000, 5)], overLine)
      yield* wake
      expect((yield* recorded(event, 1)).codes).toEqual(["INVALID_CHARACTER"])
      yield* released
      expect([line.opened, line.closed]).toEqual([1, 0])
      yield* TestClock.adjust("1 second")
      yield* recorded(event, 2)
      yield* released
      expect([line.opened, line.closed]).toEqual([1, 1])
      yield* TestClock.adjust("1 second")
      expect(yield* recorded(event, 3)).toEqual({
        state: "SUCCESSFUL",
        codes: ["INVALID_CHARACTER", "CONNECTION_RESET", null]
      })
      yield* released
      expect(line.opened).toBe(2)
    })
  )

  it.effect("A send for which the gateway has no room is repeated and costs no attempt", () =>
    Effect.gen(function* () {
      line = makeLine()
      const sends: Array<number> = []
      line.send = () => (sends.push(1) < 3 ? failing({ broken: false, unsent: true }) : Effect.succeed(answered))
      const { event, wake } = yield* waiting([], overLine)
      yield* wake
      while (sends.length === 0) yield* turn
      yield* released
      while (sends.length < 3) {
        yield* TestClock.adjust("50 millis")
        yield* turn
      }
      expect(yield* recorded(event, 1)).toEqual({ state: "SUCCESSFUL", codes: [null] })
      expect(sends.length).toBe(3)
      yield* released
    })
  )

  it.effect("A session that cannot be opened fails each attempt, and a final failure is the last one", () =>
    Effect.gen(function* () {
      line = makeLine()
      line.connect = failing({ code: "CONNECTION_REFUSED", final: true })
      const { event, wake } = yield* waiting([linear(1_000, 5)], overLine)
      yield* wake
      expect(yield* recorded(event, 1)).toEqual({ state: "FAILED", codes: ["CONNECTION_REFUSED"] })
      yield* released
    })
  )

  const endless = [
    ["that is never answered", Effect.never],
    ["that cannot be interrupted", Effect.uninterruptible(Effect.never)]
  ] as const
  for (const [name, send] of endless) {
    it.effect(`A send ${name} ends after 30 seconds and frees its permit`, () =>
      Effect.gen(function* () {
        line = makeLine()
        line.send = () => send
        const { event, wake } = yield* waiting([], overLine)
        yield* wake
        while (line.opened === 0) yield* turn
        yield* TestClock.adjust("30 seconds")
        expect(yield* recorded(event, 1)).toEqual({ state: "FAILED", codes: ["TIMEOUT"] })
        yield* released
      })
    )
  }

  it.effect("A send that throws costs an attempt but no permit", () =>
    Effect.gen(function* () {
      line = makeLine()
      logged.length = 0
      line.send = () => Effect.die(fault)
      const { event, wake } = yield* waiting([], overLine)
      yield* wake
      expect(yield* recorded(event, 1)).toEqual({ state: "FAILED", codes: ["INTERNAL_ERROR"] })
      yield* released
      expect(logged.some(({ cause }) => cause.includes(fault.message))).toBe(true)
      expect(line.closed).toBe(1)
    })
  )
})
