import { describe, expect, it, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { Verdict } from "@tidegate/connectors/Connector"
import { connectorOf } from "@tidegate/connectors/Connectors"
import type { Outcome } from "../src/Destination/sending/Attempt.ts"
import { heldUntil, isRefusedForNow, longestHoldMs } from "../src/holds/TargetHold.ts"
import type { Act } from "./DestinationWorld.ts"
import { Acts, answer, linear, recorded, turn, waiting, worldWith } from "./DestinationWorld.ts"
import { QueueWorld } from "./QueueWorld.ts"

/** A target that says that it takes nothing more holds the destination, and not the one event. */

const at = Date.UTC(2026, 0, 2)
const margin = 25

const outcome = (status: number | null, headers: Outcome["headers"] = {}): Outcome => ({
  status,
  headers,
  body: Buffer.alloc(0),
  bodyTruncated: false,
  errorCode: null,
  errorMessage: null,
  sentAt: at,
  respondedAt: at
})
const no = (change: Partial<Exclude<Verdict, "successful">> = {}): Verdict => ({
  code: "BAD_RESPONSE",
  message: "no",
  final: false,
  ...change
})

/** For how long (ms), without the margin. */
const holds = (status: number, headers: Outcome["headers"], verdict?: Verdict): number | null => {
  const until = heldUntil(outcome(status, headers), verdict ?? (status < 300 ? "successful" : no()), at)
  return until === null ? null : until - at - margin
}

describe("Target that says when it accepts more", () => {
  it.each([
    [429, { "retry-after": "10" }, 10_000],
    [503, { "retry-after": "10" }, 10_000],
    [429, { "retry-after": "0.5" }, 500],
    [429, { "retry-after": "Fri, 02 Jan 2026 00:00:30 GMT" }, 30_000],
    // GitHub and kin: a moment in Unix seconds, told by the clock of the answer.
    [200, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(at / 1_000 + 60) }, 60_000],
    [
      200,
      {
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": String(at / 1_000 + 3_660),
        date: "Fri, 02 Jan 2026 01:00:00 GMT"
      },
      60_000
    ],
    [403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(at / 1_000 + 60) }, 60_000],
    // In milliseconds, and as a time to wait.
    [200, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(at + 7_000) }, 7_000],
    [200, { "x-rate-limit-remaining": "0", "x-rate-limit-reset": "12" }, 12_000],
    // Discord: both, the first is exact.
    [
      200,
      { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767312001.5", "x-ratelimit-reset-after": "1.337" },
      1_337
    ],
    // The IETF's drafts, old and new.
    [200, { "ratelimit-remaining": "0", "ratelimit-reset": "5" }, 5_000],
    [200, { ratelimit: "limit=100, remaining=0, reset=30" }, 30_000],
    [200, { ratelimit: '"burst";r=0;t=30, "day";r=900;t=3600' }, 30_000],
    [200, { ratelimit: ['"burst";r=0;t=30', '"day";r=900;t=3600'] }, 30_000],
    [429, { "x-ratelimit-reset": "9" }, 9_000]
  ])("Status %i with %j holds the target for %i ms", (status, headers, ms) => {
    expect(holds(status, headers)).toBe(ms)
  })

  it.each([
    [429, {}],
    [429, { "retry-after": "soon" }],
    [429, { "retry-after": "0" }],
    [429, { "retry-after": "-1" }],
    [500, { "retry-after": "10" }],
    [200, { "retry-after": "10" }],
    [200, { "x-ratelimit-remaining": "1", "x-ratelimit-reset-after": "5" }],
    [200, { "x-ratelimit-remaining": "unlimited", "x-ratelimit-reset-after": "5" }],
    [200, { "x-ratelimit-remaining": "0" }],
    [200, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "never" }],
    [200, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(at / 1_000 - 60) }],
    [200, { ratelimit: '"burst";r=10;t=30' }],
    [200, { ratelimit: "limit=100, remaining=10, reset=30" }]
  ])("Status %i with %j does not hold the target", (status, headers) => {
    expect(holds(status, headers)).toBeNull()
  })

  it("A hold can be in the body, or in the header of a 2xx that is a failure", () => {
    expect(holds(429, {}, no({ retryAfter: 3 }))).toBe(3_000)
    expect(holds(403, {}, no({ retryAfter: 3 }))).toBe(3_000)
    expect(holds(200, { "retry-after": "4" }, no())).toBe(4_000)
    expect(holds(429, { "retry-after": "4" }, no({ final: true }))).toBeNull()
  })

  it("A hold lasts at most ten minutes, even if the target says ten years", () => {
    for (const headers of [
      { "retry-after": "315360000" },
      { "retry-after": "999999999999999" },
      { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "999999999999" }
    ]) {
      expect(heldUntil(outcome(429, headers), no(), at)).toBe(at + longestHoldMs)
    }
  })

  it("An incomplete answer or a missing token holds nothing", () => {
    const headers = { "retry-after": "10" }
    expect(heldUntil({ ...outcome(429, headers), errorCode: "TIMEOUT" }, no({ code: "TIMEOUT" }), at)).toBeNull()
    const noToken = no({ code: "OAUTH2_HANDSHAKE_FAILED", retryAfter: 60 })
    expect([heldUntil(outcome(401), noToken, at), isRefusedForNow(outcome(401), noToken, at)]).toEqual([null, false])
  })

  it("A temporary rejection differs from a failure whose answer used up the limit", () => {
    const usedUp = { "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "5" }
    expect(isRefusedForNow(outcome(429, usedUp), no(), at)).toBe(true)
    expect(isRefusedForNow(outcome(403, usedUp), no(), at)).toBe(true)
    expect(isRefusedForNow(outcome(500, usedUp), no(), at)).toBe(false)
    expect(isRefusedForNow(outcome(200, usedUp), "successful", at)).toBe(false)
    expect(isRefusedForNow(outcome(429), no(), at)).toBe(false)
  })
})

describe("Held delivery queue", () => {
  it("A held queue starts nothing before its time, and then finds the limit from one delivery up", () => {
    const world = new QueueWorld(["a", "b"])
    world.send("a", 1)
    world.end(0, false, "overloaded")
    world.queue.hold(world.now + 10_000)
    world.send("a", 30)
    world.send("b", 30)
    expect([world.starts.length, world.queue.nextAt]).toEqual([1, world.now + 10_000])
    world.now += 9_999
    world.queue.tick()
    expect(world.starts).toHaveLength(1)
    world.now += 1
    world.queue.tick()
    expect(world.wire).toHaveLength(1)
    const sizes = [1, 2, 4, 8].map(() => {
      const size = world.wire.length
      for (let i = 0; i < size; i++) world.end()
      return size
    })
    expect(sizes).toEqual([1, 2, 4, 8])
    world.settle()
    expect(world.pending).toBe(0)
  })

  it("A held queue continues at once when the hold is lifted", () => {
    const world = new QueueWorld(["a"])
    world.queue.hold(world.now + 600_000)
    world.send("a", 3)
    expect(world.starts).toHaveLength(0)
    world.queue.hold(0)
    expect(world.starts).toHaveLength(3)
  })

  it("A held queue does not read SQL while it has waiting events", () => {
    const world = new QueueWorld(["a"])
    world.queue.hold(world.now + 600_000)
    world.send("a", 3)
    const before = world.refills
    for (let i = 0; i < 100; i++) world.queue.wake()
    expect(world.refills).toBe(before)
  })
})

/** Refuses the next deliveries. */
const refusing = Effect.fnUntraced(function* (headers: Outcome["headers"], status: number, times = 1) {
  const acts = yield* Acts
  const refuse: Act = () => Promise.resolve(answer({ status, headers, body: Buffer.from("slow down") }))
  for (let i = 0; i < times; i++) acts.push(refuse)
})

const url = "http://127.0.0.1:1/"
const toHttp = { type: "HTTP", config: { url } }

const heldInSql = Effect.fnUntraced(function* (destination: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ held_until: Date | null }>`select held_until from destinations where id = ${destination}`
  return row!.held_until?.getTime() ?? null
})

layer(worldWith(connectorOf))("Destination whose target rejects events", (it) => {
  it.effect("A destination waits as long as its target said, stores that, and delivers the event again", () =>
    Effect.gen(function* () {
      yield* refusing({ "retry-after": "60" }, 429)
      const { connection, event, wake } = yield* waiting([linear(1_000, 1)], toHttp)
      yield* wake
      expect(yield* recorded(event, 1)).toEqual({ state: "PENDING", codes: ["BAD_RESPONSE"] })
      const now = yield* Clock.currentTimeMillis
      let until: number | null = null
      while ((until = yield* heldInSql(connection.destination_id)) === null) yield* turn
      expect(until - now).toBeGreaterThan(59_000)
      expect(until - now).toBeLessThanOrEqual(60_025)
      yield* TestClock.adjust("61 seconds")
      yield* wake
      expect((yield* recorded(event, 2)).state).toBe("SUCCESSFUL")
    })
  )

  it.effect("A temporarily rejected event is retried even if the count of its rule is used up", () =>
    Effect.gen(function* () {
      yield* refusing({ "retry-after": "2" }, 503, 4)
      const { event, wake } = yield* waiting([linear(1_000, 1)], toHttp)
      yield* wake
      for (let attempt = 1; attempt <= 4; attempt++) {
        yield* recorded(event, attempt)
        yield* TestClock.adjust("3 seconds")
      }
      const refused = Array<string>(4).fill("BAD_RESPONSE")
      expect(yield* recorded(event, 5)).toEqual({ state: "SUCCESSFUL", codes: [...refused, null] })
    })
  )

  it.effect("A stored hold applies to the next owner of the destination", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { connection, event, wake } = yield* waiting([], toHttp)
      const until = new Date((yield* Clock.currentTimeMillis) + 30_000)
      yield* sql`update destinations set held_until = ${until} where id = ${connection.destination_id}`
      yield* wake
      for (let i = 0; i < 20; i++) yield* turn
      yield* TestClock.adjust("29 seconds")
      for (let i = 0; i < 20; i++) yield* turn
      const [row] = yield* sql<{ attempts: number }>`select attempts from events where id = ${event}`
      expect(row!.attempts).toBe(0)
      yield* TestClock.adjust("2 seconds")
      expect((yield* recorded(event, 1)).state).toBe("SUCCESSFUL")
    })
  )
})
