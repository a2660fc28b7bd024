import { expect, it as test, layer } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer } from "effect"
import { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Egress, type Outbound } from "@tidegate/egress/Egress"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import { noServers } from "../../connectors/test/TestConnectors.ts"
import type { Answer } from "../../egress/src/Exchange.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { ActionHolds, Holds } from "../src/holds/ActionHolds.ts"
import { TargetGate } from "../src/holds/TargetGate.ts"
import { Effects } from "../src/Workflow/RunWork.ts"
import * as StepEffects from "../src/Workflow/effects/StepEffects.ts"
import { answer, turn } from "./DestinationWorld.ts"

/** A target that says that it takes nothing more holds the action, and not the one step: over a real database, by a clock of the test's. */

const { otherTeam, team } = ControlPlane
const nothing = {} as never

type Act = (outbound: Outbound) => Promise<Answer>

/** What reached the network, and what comes of the next calls there; one that nothing is said about is answered 200. */
class Network extends Context.Service<Network, { readonly calls: Array<Outbound>; readonly acts: Array<Act> }>()(
  "ActionHolds/Network"
) {}

const network = Layer.effectContext(
  Effect.sync(() => {
    const calls: Array<Outbound> = []
    const acts: Array<Act> = []
    const deliver: Act = (outbound) => {
      calls.push(outbound)
      return acts.shift()?.(outbound) ?? Promise.resolve(answer())
    }
    return Context.make(Network, { calls, acts }).pipe(Context.add(Egress, { deliver } as never))
  })
)

/** Steps that wait for their turn to call an action with a rate, by how each is given it. */
const turns: Array<() => void> = []
const Turn = () => Effect.callback<boolean>((resume) => void turns.push(() => resume(Effect.succeed(true))))

const world = Layer.mergeAll(
  network,
  noServers,
  Layer.succeed(Sandbox, nothing),
  Layer.succeed(Sharding.Sharding, { makeClient: () => Effect.succeed(() => ({ Turn })) } as never)
).pipe(
  Layer.provideMerge(ControlPlane.layer),
  Layer.provideMerge(Layer.effectDiscard(Effect.suspend(() => TestClock.setTime(Date.now()))))
)

const refuse =
  (headers: Answer["headers"], status = 429): Act =>
  () =>
    Promise.resolve(answer({ status, headers }))

/** A process: what it knows of holds is its own. */
const process = Effect.gen(function* () {
  const holds = new ActionHolds()
  const context = yield* Layer.build(Layer.provide(StepEffects.layer, Layer.succeed(Holds, holds)))
  return { holds, carryOut: Context.get(context, Effects).carryOut }
})

type Process = Effect.Success<typeof process>

let steps = 0

interface Step {
  readonly action?: string
  readonly url?: string
  readonly team_id?: string
  readonly workflow?: string
}

/** Carries a step out that calls a saved action, or one that is written into it. */
const call = (
  { carryOut }: Process,
  { action, team_id = team, url = "https://api.example.com/a", workflow = "wfl_1" }: Step
) => {
  const written = { provider_key: "http", action_key: "request", version: "1.0.0", provider_account_id: null }
  const effect = {
    start: { step: 0, attempt: 1, iteration: null },
    step: {
      step: { id: "call", kind: "action", resource_id: action ?? null, action: action === undefined ? written : null },
      timeoutMs: 5_000
    },
    inputs: { values: { url }, warnings: [] },
    context: { workflow: { id: workflow, name: "flow" } }
  }
  const run = { id: "wfr_1", team_id, request_id: "req_1", source_id: "src_1", source_name: "shop", headers: "{}" }
  return carryOut(effect as unknown as StepEffect, run as DueRun, `wse_${++steps}`)
}

const many = (count: number, one: Effect.Effect<unknown>) =>
  Effect.forEach(Array.from({ length: count }), () => Effect.forkChild(one))

const savedWith = Effect.fnUntraced(function* (rate_limit: number | null) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.action, yield* Clock.currentTimeMillis)
  const config = { auth_mode: "none", schema_version: "1.0.0", inputs: {}, rate_limit }
  yield* sql`insert into actions (id, team_id, name, provider_key, action_key, config, version, created_at, updated_at)
    values (${id}, ${team}, ${id}, 'http', 'request', ${JSON.stringify(config)}, 1, now(), now())`
  return id
})

const saved = savedWith(null)

/** Whatever began before this has read its action, and has called it if it may: one connection answers in order. */
const caughtUp = Effect.fnUntraced(function* (of: Process) {
  yield* call(of, { action: yield* saved })
  yield* turn
})

const until = (isSo: () => boolean) =>
  Effect.gen(function* () {
    while (!isSo()) yield* turn
  })

const stored = Effect.fnUntraced(function* (target: string, of = team) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ held_until: Date }>`
    select held_until from action_holds where team_id = ${of} and target = ${target}`
  return row?.held_until.getTime() ?? null
})

/** Until it is in SQL. */
const storedAt = Effect.fnUntraced(function* (target: string, of = team) {
  let until: number | null = null
  while ((until = yield* stored(target, of)) === null) yield* turn
  return until
})

layer(world)("Action whose target rejects calls", (it) => {
  const callsTo = Effect.fnUntraced(function* (url: string) {
    const { calls } = yield* Network
    return () => calls.filter(({ url: called }) => called === url).length
  })

  it.effect("A held action gets no calls until its time, and then one, two, four and more at once", () =>
    Effect.gen(function* () {
      const url = "https://waves.example.com/"
      const [one, action, sent] = [yield* process, yield* saved, yield* callsTo(url)]
      const { acts } = yield* Network
      acts.push(refuse({ "retry-after": "60" }))
      expect(yield* call(one, { action, url })).toMatchObject({
        kind: "failed",
        error: { code: "BAD_RESPONSE", status: 429, retry_after_ms: 60_000 }
      })
      const now = yield* Clock.currentTimeMillis
      expect(yield* storedAt(action)).toBe(now + 60_025)
      const begun = yield* many(30, call(one, { action, url }))
      yield* caughtUp(one)
      yield* TestClock.adjust("60 seconds")
      yield* caughtUp(one)
      expect(sent()).toBe(1)

      // Each is on the wire until it is let go.
      const onWire: Array<() => void> = []
      const hang: Act = () => new Promise((resolve) => onWire.push(() => resolve(answer())))
      acts.push(...Array.from({ length: 30 }, () => hang))
      yield* TestClock.adjust("1 second")
      for (const size of [1, 2, 4, 8, 15]) {
        yield* until(() => onWire.length >= size)
        expect(onWire).toHaveLength(size)
        for (const go of onWire.splice(0)) go()
      }
      for (const fiber of begun) expect(yield* Fiber.join(fiber)).toMatchObject({ kind: "succeeded" })
      expect(sent()).toBe(31)
      expect(one.holds.isOpen({ team_id: team, name: action })).toBe(true)
    })
  )

  it.effect("A hold on an action applies to every process through SQL, until it is changed", () =>
    Effect.gen(function* () {
      const url = "https://shared.example.com/"
      const [one, other, action, sent] = [yield* process, yield* process, yield* saved, yield* callsTo(url)]
      const { acts } = yield* Network
      acts.push(refuse({ "retry-after": "500" }, 503))
      yield* call(one, { action, url })
      yield* storedAt(action)
      const begun = [
        ...(yield* many(5, call(other, { action, url }))),
        ...(yield* many(5, call(yield* process, { action, url })))
      ]
      yield* caughtUp(other)
      expect(sent()).toBe(1)
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from action_holds where target = ${action}`
      // One of those that wait looks, now and then.
      yield* TestClock.adjust("5 seconds")
      for (const fiber of begun) expect(yield* Fiber.join(fiber)).toMatchObject({ kind: "succeeded" })
      expect(sent()).toBe(11)
    })
  )

  it.effect("Steps that wait for a held action fail without a call when the action is disabled", () =>
    Effect.gen(function* () {
      const url = "https://disabled.example.com/"
      const [one, action, sent] = [yield* process, yield* saved, yield* callsTo(url)]
      const { acts } = yield* Network
      acts.push(refuse({ "retry-after": "500" }))
      yield* call(one, { action, url })
      yield* storedAt(action)
      const begun = yield* many(3, call(one, { action, url }))
      yield* caughtUp(one)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update actions set disabled_at = now() where id = ${action}`
      yield* sql`delete from action_holds where target = ${action}`
      yield* TestClock.adjust("5 seconds")
      for (const fiber of begun) {
        expect(yield* Fiber.join(fiber)).toMatchObject({ kind: "failed", error: { code: "RESOURCE_DISABLED" } })
      }
      expect(sent()).toBe(1)
    })
  )

  it.effect("An inline action is held by provider and origin, and only for its team", () =>
    Effect.gen(function* () {
      const [url, elsewhere] = ["https://inline.example.com/a", "https://elsewhere.example.com/"]
      const [one, sent] = [yield* process, yield* callsTo("https://inline.example.com/b")]
      const { acts } = yield* Network
      acts.push(refuse({ "retry-after": "60" }))
      yield* call(one, { url })
      yield* storedAt("http https://inline.example.com")
      const waits = yield* Effect.forkChild(call(one, { url: "https://inline.example.com/b", workflow: "wfl_2" }))
      yield* caughtUp(one)
      expect(yield* call(one, { url: elsewhere })).toMatchObject({ kind: "succeeded" })
      expect(yield* call(one, { url, team_id: otherTeam })).toMatchObject({ kind: "succeeded" })
      expect(yield* call(one, { url, action: yield* saved })).toMatchObject({ kind: "succeeded" })
      expect(sent()).toBe(0)
      yield* TestClock.adjust("61 seconds")
      expect(yield* Fiber.join(waits)).toMatchObject({ kind: "succeeded" })
    })
  )

  it.effect("An answer that uses up the limit also holds the action, for at most ten minutes", () =>
    Effect.gen(function* () {
      const url = "https://used-up.example.com/"
      const [one, action, sent] = [yield* process, yield* saved, yield* callsTo(url)]
      const { acts } = yield* Network
      acts.push(refuse({ "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "999999999" }, 200))
      expect(yield* call(one, { action, url })).toMatchObject({ kind: "succeeded" })
      const waits = yield* Effect.forkChild(call(one, { action, url }))
      yield* caughtUp(one)
      yield* TestClock.adjust("599 seconds")
      yield* caughtUp(one)
      expect(sent()).toBe(1)
      // A refusal by the same words is one that comes again when the limit is renewed.
      acts.push(refuse({ "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "2" }))
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(waits)).toMatchObject({ error: { status: 429, retry_after_ms: 2_025 } })
      expect(sent()).toBe(2)
    })
  )

  it.effect("A step of a held action with a rate limit does not use its permit and asks for another one", () =>
    Effect.gen(function* () {
      const url = "https://paced.example.com/"
      const [one, action, sent] = [yield* process, yield* savedWith(5), yield* callsTo(url)]
      const { acts } = yield* Network
      acts.push(refuse({ "retry-after": "60" }))
      const refused = yield* Effect.forkChild(call(one, { action, url }))
      const waits = yield* Effect.forkChild(call(one, { action, url }))
      yield* until(() => turns.length === 2)
      turns.shift()!()
      expect(yield* Fiber.join(refused)).toMatchObject({ error: { status: 429 } })
      turns.shift()!()
      yield* caughtUp(one)
      yield* TestClock.adjust("59 seconds")
      yield* caughtUp(one)
      expect([sent(), turns.length]).toEqual([1, 0])
      yield* TestClock.adjust("2 seconds")
      yield* until(() => turns.length === 1)
      turns.shift()!()
      expect(yield* Fiber.join(waits)).toMatchObject({ kind: "succeeded" })
      expect(sent()).toBe(2)
    })
  )

  it.effect("A hold that exceeds the team's number of stored holds still applies to its own process", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const url = "https://one-too-many.example.com/"
      const [one, action, sent] = [yield* process, yield* saved, yield* callsTo(url)]
      const { acts } = yield* Network
      const until = new Date((yield* Clock.currentTimeMillis) + 600_000)
      yield* sql`insert into action_holds (team_id, target, held_until)
        select ${team}, 't' || n, ${until} from generate_series(1, 1000) n`
      acts.push(refuse({ "retry-after": "60" }))
      yield* call(one, { action, url })
      const waits = yield* Effect.forkChild(call(one, { action, url }))
      yield* caughtUp(one)
      yield* TestClock.adjust("5 seconds")
      yield* caughtUp(one)
      expect([yield* stored(action), sent()]).toEqual([null, 1])
      yield* sql`delete from action_holds where target like 't%'`
      yield* TestClock.adjust("56 seconds")
      expect(yield* Fiber.join(waits)).toMatchObject({ kind: "succeeded" })
    })
  )

  it.effect("A rejection without a time holds nothing and stores no row", () =>
    Effect.gen(function* () {
      const [one, action] = [yield* process, yield* saved]
      const { acts } = yield* Network
      for (const headers of [{}, { "retry-after": "0" }, { "retry-after": "-1" }, { "retry-after": "soon" }]) {
        acts.push(refuse(headers))
        yield* call(one, { action })
        expect(one.holds.isOpen({ team_id: team, name: action })).toBe(true)
      }
      // Over before anybody could read it.
      acts.push(refuse({ "retry-after": "4" }))
      yield* call(one, { action })
      expect(one.holds.isHeld({ team_id: team, name: action })).toBe(true)
      yield* caughtUp(one)
      expect(yield* stored(action)).toBeNull()
    })
  )
})

/** Time and timers of a gate alone. */
const gateWorld = () => {
  const timers = new Set<{ readonly at: number; readonly ring: () => void }>()
  const world = {
    now: 1_000,
    told: [] as Array<string>,
    timers,
    gate: null as unknown as TargetGate,
    enter: (name: string) =>
      world.gate.enter({
        group: name[0]!,
        since: world.now,
        ready: (permit) => world.told.push(permit === "look" ? `${name} looks` : name)
      })!,
    pass: (ms: number) => {
      world.now += ms
      for (const timer of timers) {
        if (timer.at > world.now) continue
        timers.delete(timer)
        timer.ring()
      }
    }
  }
  world.gate = new TargetGate({
    now: () => world.now,
    after: (ms, then) => {
      const timer = { at: world.now + ms, ring: then }
      timers.add(timer)
      return () => timers.delete(timer)
    }
  })
  return world
}

test("The calls of different workflows take turns at a gate", () => {
  const { enter, gate, pass, told } = gateWorld()
  gate.hold(2_000)
  const calls = ["a1", "a2", "a3", "b1", "b2"].map(enter)
  pass(1_000)
  for (const call of [calls[0]!, calls[3]!, calls[1]!]) gate.left(call, "answered")
  expect(told).toEqual(["a1", "b1", "a2", "b2", "a3"])
})

test("A cancelled call makes room at a gate, whether it was let through or still waits", () => {
  const { enter, gate, pass, timers, told } = gateWorld()
  gate.hold(2_000)
  const [first, second] = [enter("a1"), enter("a2")]
  enter("a3")
  gate.withdraw(second)
  pass(1_000)
  expect(told).toEqual(["a1"])
  gate.withdraw(first)
  expect(told).toEqual(["a1", "a3"])
  gate.hold(0)
  expect([timers.size, gate.isOver]).toEqual([0, false])
})

test("A gate without waiting calls has no timer, and lets only one call through after its hold", () => {
  const { enter, gate, pass, timers, told } = gateWorld()
  gate.hold(2_000)
  expect(timers.size).toBe(0)
  pass(10_000)
  const first = enter("a1")
  enter("b1")
  expect(told).toEqual(["a1"])
  gate.left(first, "answered")
  expect(told).toEqual(["a1", "b1"])
})

test("The calls that wait at a gate check one after the other whether it is still held", () => {
  const { enter, gate, pass, told } = gateWorld()
  gate.hold(60_000)
  enter("a1")
  enter("b1")
  pass(5_000)
  expect(told).toEqual(["a1 looks"])
  enter("a1")
  pass(5_000)
  expect(told).toEqual(["a1 looks", "b1 looks"])
})
