import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Config } from "@tidegate/connectors/Settings"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import type { BatchLimits } from "@tidegate/runtime/Batcher"
import { type Inserting, insertingSession } from "../src/SqlBatch.ts"
import { factsOf } from "./Facts.ts"
import { event, faultsOf } from "./Opened.ts"

/** Rows that wait for others: when they are inserted, and what each of them hears of it. */

const refused = (message: string) => new SessionFailure({ code: "DB_CONSTRAINT", message, final: true, broken: false })
const down = new SessionFailure({ code: "SOCKET_CLOSED", message: "gone", final: false, broken: true })

interface Server {
  /** Rows that the server refuses, and any statement with them. */
  readonly bad?: ReadonlyArray<string>
  readonly failing?: SessionFailure
  /** What a statement waits for. */
  readonly after?: Effect.Effect<void>
}

/** A session into a table, and the statements that it has got. */
const world = Effect.fnUntraced(function* (
  { after = Effect.void, bad = [], failing }: Server,
  change: Partial<BatchLimits> = {}
) {
  const statements: Array<ReadonlyArray<string>> = []
  let interrupted = 0
  const inserting: Inserting<SessionFailure> = {
    limits: { maxCount: 4, maxBytes: 100, maxWaitMs: 50, ...change },
    rowOf: ({ body }) => {
      const value = Buffer.from(body).toString()
      return value === "none"
        ? Effect.fail(refused("no row"))
        : Effect.succeed({ values: [value], isLarge: value === "large" })
    },
    insert: (rows, mayStart) =>
      Effect.suspend(() => {
        if (!mayStart()) return Effect.fail(cancelled)
        const values = rows.map(({ values: [value] }) => value!)
        statements.push(values)
        const found = values.find((value) => bad.includes(value))
        if (failing !== undefined) return Effect.fail(failing)
        return found === undefined ? Effect.as(after, values.length) : Effect.fail(refused(`refused: ${found}`))
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => void interrupted++))),
    judge: (failure) => ({ failure, isOfRow: failure.code === "DB_CONSTRAINT" })
  }
  const { send } = yield* insertingSession(inserting)
  const sending = (value: string, change: { readonly isStep?: true } = {}, mayStart = () => true) =>
    Effect.forkChild(send(event(value), factsOf(event(value), change), mayStart), { startImmediately: true })
  const sent = (...values: ReadonlyArray<string>) => Effect.forEach(values, (value) => sending(value))
  return { interrupted: () => interrupted, sending, sent, statements }
})

/** What each row hears. */
const heard = (fibers: ReadonlyArray<Fiber.Fiber<{ readonly body: Buffer }, SessionFailure>>) =>
  Effect.forEach(fibers, (fiber) =>
    Effect.map(Fiber.await(fiber), (exit) => {
      if (Exit.isSuccess(exit)) return exit.value.body.toString()
      const [reason] = exit.cause.reasons
      return reason?._tag === "Fail" ? reason.error.message : reason?._tag
    })
  )

describe("Rows that wait for others", () => {
  it.effect("A full batch is one statement at once, and a smaller one when its first row has waited", () =>
    Effect.gen(function* () {
      const { sent, statements } = yield* world({})
      const full = yield* sent("a", "b", "c", "d")
      expect(yield* heard(full)).toEqual(Array.from({ length: 4 }, () => '{"inserted":4,"rows":4}'))
      const first = yield* sent("e")
      yield* TestClock.adjust("30 millis")
      const second = yield* sent("f")
      yield* TestClock.adjust("19 millis")
      expect(statements).toEqual([["a", "b", "c", "d"]])
      yield* TestClock.adjust("1 millis")
      expect(statements[1]).toEqual(["e", "f"])
      yield* heard([...first, ...second])
      const alone = yield* sent("g")
      yield* TestClock.adjust("50 millis")
      expect(yield* heard(alone)).toEqual(['{"inserted":1}'])
    })
  )

  it.effect("A row that does not fit with the others begins the next statement, and a larger one has its own", () =>
    Effect.gen(function* () {
      const { sent, statements } = yield* world({})
      const [a, b, c] = ["a".repeat(40), "b".repeat(40), "c".repeat(40)]
      const huge = "h".repeat(101)
      const fibers = yield* sent(a, b, huge, c, "large")
      expect(statements).toEqual([[huge], [a, b], ["large"]])
      yield* TestClock.adjust("50 millis")
      expect(statements.at(-1)).toEqual([c])
      yield* heard(fibers)
    })
  )

  it.effect("A statement that is refused because of its rows is halved until each bad row is alone", () =>
    Effect.gen(function* () {
      const { sent, statements } = yield* world({ bad: ["3", "6"] }, { maxCount: 8 })
      expect(yield* heard(yield* sent("1", "2", "3", "4", "5", "6", "7", "8"))).toEqual([
        '{"inserted":2,"rows":2}',
        '{"inserted":2,"rows":2}',
        "refused: 3",
        '{"inserted":1}',
        '{"inserted":1}',
        "refused: 6",
        '{"inserted":2,"rows":2}',
        '{"inserted":2,"rows":2}'
      ])
      expect(statements.map((values) => values.join(""))).toEqual([
        "12345678",
        "1234",
        "12",
        "34",
        "3",
        "4",
        "5678",
        "56",
        "5",
        "6",
        "78"
      ])
    })
  )

  it.effect("A failure of the server is that of all rows of the statement, and nothing is sent again", () =>
    Effect.gen(function* () {
      const { sent, statements } = yield* world({ failing: down })
      expect(yield* heard(yield* sent("a", "b", "c", "d"))).toEqual(["gone", "gone", "gone", "gone"])
      expect(statements).toHaveLength(1)
    })
  )

  it.effect("A defect of a statement is reported to each of its rows", () =>
    Effect.gen(function* () {
      const { sent } = yield* world({ after: Effect.die("a fault") })
      expect(yield* heard(yield* sent("a", "b", "c", "d"))).toEqual(["Die", "Die", "Die", "Die"])
    })
  )

  it.effect("An event of which no row can be made fails alone, and a workflow step waits for nothing", () =>
    Effect.gen(function* () {
      const { sending, sent, statements } = yield* world({})
      const waiting = yield* sent("a")
      expect(yield* heard(yield* sent("none"))).toEqual(["no row"])
      expect(yield* heard([yield* sending("step", { isStep: true })])).toEqual(['{"inserted":1}'])
      expect(statements).toEqual([["step"]])
      yield* TestClock.adjust("50 millis")
      expect(yield* heard(waiting)).toEqual(['{"inserted":1}'])
    })
  )

  it.effect("A row that is withdrawn before its statement is not in it", () =>
    Effect.gen(function* () {
      const { sent, statements } = yield* world({})
      const [a, b] = yield* sent("a", "b")
      yield* Fiber.interrupt(a!)
      yield* TestClock.adjust("50 millis")
      yield* heard([b!])
      expect(statements).toEqual([["b"]])
      const last = yield* sent("c")
      yield* Fiber.interrupt(last[0]!)
      yield* TestClock.adjust("1 second")
      expect(statements).toHaveLength(1)
    })
  )

  it.effect("A statement is stopped when nobody waits for any of its rows, and not before", () =>
    Effect.gen(function* () {
      const { interrupted, sent } = yield* world({ after: Deferred.await(Deferred.makeUnsafe<void>()) })
      const [first, ...others] = yield* sent("a", "b", "c", "d")
      yield* Fiber.interrupt(first!)
      expect(interrupted()).toBe(0)
      yield* Fiber.interruptAll(others)
      yield* Effect.yieldNow
      expect(interrupted()).toBe(1)
    })
  )

  it.effect("Nothing is sent after the lease has ended", () =>
    Effect.gen(function* () {
      const { sending, statements } = yield* world({})
      const fibers = yield* Effect.forEach(["a", "b", "c", "d"], (value) => sending(value, {}, () => value !== "c"))
      expect(yield* heard(fibers)).toEqual(Array.from({ length: 4 }, () => cancelled.message))
      expect(statements).toEqual([])
    })
  )
})

describe("Batches of SQL destinations", () => {
  const place: Config = { host: "db.example.com", database: "shop", table: "orders" }

  it.each(["SQL_DATABASE", "MYSQL"])("Batch of %s has at most 500 rows and 1 MiB", (type) => {
    expect(faultsOf(type, { ...place, batch: {} })).toEqual([])
    expect(faultsOf(type, { ...place, batch: { max_count: 500, max_bytes: 2 * 1024 * 1024 } })).toEqual([
      "config.batch.max_bytes must be at most 1048576: the service takes no more in one call"
    ])
  })

  it("Batch of SQL_DATABASE is under way as a whole", () => {
    expect(faultsOf("SQL_DATABASE", { ...place, max_concurrency: 9, batch: { max_count: 10 } })).toEqual([
      "config.max_concurrency must be null or at least 10, the events of a batch: they are under way together"
    ])
  })
})
