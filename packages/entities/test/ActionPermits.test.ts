import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Latch, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { type RatePeriod, ratePeriodMs } from "@tidegate/model/Destination"
import { newId, prefixes } from "@tidegate/model/Ids"
import { HotSql } from "@tidegate/storage/Database"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { makeActionPermits } from "../src/Action/ActionPermits.ts"

/** The turns of saved actions: given out by one owner, noted in a real database, by a clock of the test's. */

const { team } = ControlPlane

/** Statements that the database has not answered yet: meanwhile no time passes. */
let underWay = 0
/** Keeps the answers of the database back; how many have come. */
const answers = Latch.makeUnsafe(true)
let answered = 0
const counted = Layer.effect(
  HotSql,
  Effect.map(
    HotSql,
    (sql) =>
      new Proxy(sql, {
        apply: (target, _self, parts) =>
          Effect.suspend(() => {
            underWay++
            const ended = Effect.sync(() => void underWay--)
            const asked = Reflect.apply(target, undefined, parts) as Effect.Effect<unknown>
            const heard = Effect.andThen(
              Effect.sync(() => void answered++),
              answers.await
            )
            return Effect.ensuring(Effect.tap(asked, heard), ended)
          })
      })
  )
)

const world = counted.pipe(
  Layer.provideMerge(ControlPlane.layer),
  Layer.provideMerge(Layer.effectDiscard(TestClock.setTime(Date.now())))
)

const configOf = (rate_limit: number | null, rate_limit_period: RatePeriod) =>
  JSON.stringify({ auth_mode: "none", schema_version: "1.0.0", inputs: {}, rate_limit, rate_limit_period })

const saved = Effect.fnUntraced(function* (limit: number | null, period: RatePeriod) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.action, yield* Clock.currentTimeMillis)
  yield* sql`insert into actions (id, team_id, name, provider_key, action_key, config, version, created_at, updated_at)
    values (${id}, ${team}, ${id}, 'http', 'request', ${configOf(limit, period)}, 1, now(), now())`
  return id
})

/** An owner of an action: one that leaves in order, or is killed, and then hears of nothing any more. */
const owner = Effect.fnUntraced(function* (id: string, mayGive: () => boolean = () => true) {
  const scope = yield* Scope.make()
  const { changed, take: turn } = yield* Scope.provide(makeActionPermits(id, mayGive), scope)
  const ask = (line = "wfl_1", since = 0) => turn({ team_id: team, line, since })
  return { ask, changed, turn, leave: Scope.close(scope, Exit.void) }
})

const beat = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** Until nobody waits for the database, and nobody begins to. */
const settled = Effect.gen(function* () {
  for (let idle = 0; idle < 3; idle++) {
    yield* beat
    if (underWay > 0) idle = 0
  }
})

/** Lets the time pass, in steps. */
const pass = Effect.fnUntraced(function* (ms: number, step = 20) {
  yield* settled
  for (let passed = 0; passed < ms; passed += step) {
    yield* TestClock.adjust(step)
    yield* settled
  }
})

/** Waits for a fiber, as the time passes that it waits for. */
const passing = Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>, step = 20) {
  while (fiber.pollUnsafe() === undefined) yield* pass(step, step)
  return yield* Fiber.join(fiber)
})

interface Given {
  readonly line: string
  readonly at: number
}

/** Asks until it has its turn, as steps do. */
const asking = (
  to: { readonly ask: (line: string, since: number) => Effect.Effect<boolean, unknown> },
  line: string,
  given: Array<Given>
) =>
  Effect.gen(function* () {
    const since = yield* Clock.currentTimeMillis
    while (!(yield* to.ask(line, since))) yield* Effect.sleep("500 millis")
    given.push({ line, at: yield* Clock.currentTimeMillis })
  })

/** The most that any window of one period has. */
const maxIn = (given: ReadonlyArray<Given>, period: RatePeriod): number => {
  const times = given.map(({ at }) => at).toSorted((a, b) => a - b)
  return Math.max(
    0,
    ...times.map((from) => times.filter((at) => at >= from && at < from + ratePeriodMs[period]).length)
  )
}

const many = <A, E>(count: number, one: (i: number) => Effect.Effect<A, E>) =>
  Effect.forEach(Array.from({ length: count }), (_, i) => Effect.forkChild(one(i)))

layer(world)("Rate permits of a saved action", (it) => {
  it.effect("An action gives as many permits as its limit allows, and workflows take turns", () =>
    Effect.gen(function* () {
      const actor = yield* owner(yield* saved(5, "second"))
      const given: Array<Given> = []
      const first = yield* many(30, () => asking(actor, "wfl_1", given))
      yield* pass(20)
      const second = yield* many(10, () => asking(actor, "wfl_2", given))
      for (const fiber of [...first, ...second]) yield* passing(fiber)
      expect(given.length).toBe(40)
      expect(maxIn(given, "second")).toBeLessThanOrEqual(5)
      expect(given.at(-1)!.at - given[0]!.at).toBeLessThan(12_000)
      // Whoever came later has not waited for all of the others.
      const lastOfSecond = given.findLastIndex(({ line }) => line === "wfl_2")
      expect(lastOfSecond).toBeLessThan(30)
    })
  )

  it.effect("The next owner of an action knows the permits of the period and gives only the rest", () =>
    Effect.gen(function* () {
      const id = yield* saved(10, "hour")
      const given: Array<Given> = []
      const first = yield* owner(id)
      for (let i = 0; i < 6; i++) {
        yield* passing(yield* Effect.forkChild(asking(first, "wfl_1", given)), 10_000)
        yield* pass(60_000, 10_000)
      }
      // Killed: nothing is written any more.
      const second = yield* owner(id)
      const waiting = yield* many(8, () => asking(second, "wfl_1", given))
      yield* pass(1_600_000, 10_000)
      expect(given.length).toBe(10)
      for (const fiber of waiting) yield* passing(fiber, 10_000)
      expect(given.length).toBe(14)
      expect(maxIn(given, "hour")).toBeLessThanOrEqual(10)
      yield* second.leave
    })
  )

  it.effect("The next owner gets unused stored permits if the previous owner left in order", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = yield* saved(6_400, "hour")
      const noted = Effect.map(sql<{ result: string }>`select result from step_results where key = ${id}`, ([row]) =>
        row!.result.split("\n").reduce((sum, line) => sum + Number(line.split(" ")[2]), 0)
      )
      const given: Array<Given> = []
      const first = yield* owner(id)
      for (let i = 0; i < 8; i++) yield* passing(yield* Effect.forkChild(asking(first, "wfl_1", given)), 1_000)
      // 1, 2, 4 and 8: twice as many as were used up.
      expect(yield* noted).toBe(15)
      yield* first.leave
      expect(yield* noted).toBe(8)
      expect(yield* passing(yield* Effect.forkChild(Effect.exit(first.ask())))).toMatchObject({ value: false })
    })
  )

  it.effect("Two owners together stay within the limit, although one does not know that it is outdated", () =>
    Effect.gen(function* () {
      const id = yield* saved(20, "minute")
      const given: Array<Given> = []
      const [one, other] = [yield* owner(id), yield* owner(id)]
      const waiting = [
        ...(yield* many(15, () => asking(one, "wfl_1", given))),
        ...(yield* many(15, () => asking(other, "wfl_2", given)))
      ]
      for (const fiber of waiting) yield* passing(fiber, 100)
      expect(given.length).toBe(30)
      expect(maxIn(given, "minute")).toBeLessThanOrEqual(20)
    })
  )

  it.effect("A process that has lost an action gives no permits for it", () =>
    Effect.gen(function* () {
      let isOwner = false
      const actor = yield* owner(yield* saved(5, "second"), () => isOwner)
      expect(yield* passing(yield* Effect.forkChild(actor.ask()), 250)).toBe(false)
      isOwner = true
      expect(yield* passing(yield* Effect.forkChild(actor.ask()), 250)).toBe(true)
    })
  )

  it.effect("A changed limit applies at once, and permits used before it count", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = yield* saved(2, "minute")
      const actor = yield* owner(id)
      const set = (limit: number | null, period: RatePeriod) =>
        Effect.andThen(
          sql`update actions set config = ${configOf(limit, period)} where id = ${id}`,
          Effect.sync(actor.changed)
        )
      const given: Array<Given> = []
      yield* Effect.forEach(yield* many(2, () => asking(actor, "wfl_1", given)), (fiber) => passing(fiber, 100))
      const waiting = yield* many(4, () => asking(actor, "wfl_1", given))
      yield* pass(1_000, 100)
      expect(given.length).toBe(2)
      yield* set(4, "minute")
      yield* pass(10_000, 100)
      expect(given.length).toBe(2)
      yield* pass(10_000, 100)
      expect(given.length).toBe(3)
      yield* set(null, "minute")
      yield* pass(2_000, 100)
      expect(given.length).toBe(6)
      for (const fiber of waiting) yield* Fiber.join(fiber)
    })
  )

  it.effect("A limit that is changed while the old one is read applies as well", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = yield* saved(null, "minute")
      const actor = yield* owner(id)
      answers.closeUnsafe()
      const before = answered
      const isAnswered = () => answered > before
      const first = yield* Effect.forkChild(actor.ask())
      while (!isAnswered()) yield* beat
      // By the time that the answer is heard, another limit is stored.
      yield* sql`update actions set config = ${configOf(1, "minute")} where id = ${id}`
      actor.changed()
      answers.openUnsafe()
      expect(yield* passing(first)).toBe(false)
      const given: Array<Given> = []
      const waiting = yield* many(5, () => asking(actor, "wfl_1", given))
      yield* pass(5_000, 100)
      expect(given.length).toBe(1)
      for (const fiber of waiting) yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("The number of waiters for permits is limited, and a waiter asks again after a while", () =>
    Effect.gen(function* () {
      const actor = yield* owner(yield* saved(1, "day"))
      expect(yield* passing(yield* Effect.forkChild(actor.ask()))).toBe(true)
      let told = 0
      const fibers = yield* many(1_100, () =>
        Effect.tap(actor.ask(), (had) => Effect.sync(() => (told += had ? 0 : 1)))
      )
      yield* pass(200)
      expect(told).toBe(100)
      yield* pass(30_000, 1_000)
      expect(told).toBe(1_100)
      for (const fiber of fibers) expect(yield* Fiber.join(fiber)).toBe(false)
    })
  )

  it.effect("No permit is given while permits cannot be stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const actor = yield* owner(yield* saved(5, "second"))
      const given: Array<Given> = []
      yield* passing(yield* Effect.forkChild(asking(actor, "wfl_1", given)))
      yield* sql`alter table step_results rename to out_of_reach`
      const waiting = yield* Effect.forkChild(asking(actor, "wfl_1", given))
      yield* pass(40_000, 500)
      expect(given.length).toBe(1)
      yield* sql`alter table out_of_reach rename to step_results`
      yield* passing(waiting, 100)
      expect(given.length).toBe(2)
    })
  )
})
