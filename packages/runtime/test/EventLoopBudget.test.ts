import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { isBudgetSpent, inLaterTurn, yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
/** Holds the loop for longer than long work may. */
const workLong = (): void => {
  const end = performance.now() + 10
  while (performance.now() < end);
}
/** Until nobody's work counts any more. */
const rest = async (): Promise<void> => {
  await turn()
  await turn()
}

describe("a turn of the loop", () => {
  it("is over for all when somebody has worked for long, and not in the next", async () => {
    await rest()
    expect(isBudgetSpent()).toBe(false)
    const since = performance.now()
    expect(isBudgetSpent(since)).toBe(false)
    workLong()
    expect(isBudgetSpent()).toBe(true)
    await rest()
    expect(isBudgetSpent()).toBe(false)
  })

  it("is not counted by who only asks", async () => {
    await rest()
    isBudgetSpent()
    workLong()
    expect(isBudgetSpent()).toBe(false)
  })

  it("lets those that wait go on in their order, each in a turn of its own when it is long, with others between", async () => {
    await rest()
    const order: Array<string> = []
    const parts = (name: string, left: number): void => {
      order.push(name)
      workLong()
      if (left > 1) inLaterTurn(() => parts(name, left - 1))
    }
    const between = (): void => {
      order.push("-")
      if (order.length < 14) setImmediate(between)
    }
    for (const name of ["a", "b", "c"]) inLaterTurn(() => parts(name, 2))
    setImmediate(between)
    while (order.length < 14) await turn()
    expect(order.filter((name) => name !== "-").join("")).toBe("abcabc")
    expect(order.join("")).not.toMatch(/[abc]{2}/)
  })

  it("is not waited for by short work", async () => {
    await rest()
    let done = 0
    for (let i = 0; i < 3_000; i++) inLaterTurn(() => done++)
    await rest()
    expect(done).toBe(3_000)
  })

  it.live("is waited for by an effect when it is over; one that is interrupted does not go on", () =>
    Effect.gen(function* () {
      yield* Effect.promise(rest)
      const since = performance.now()
      yield* yieldIfSpent(since)
      workLong()
      let isOn = false
      const waiting = yield* Effect.forkChild(
        Effect.andThen(
          yieldIfSpent(since),
          Effect.sync(() => (isOn = true))
        ),
        {
          startImmediately: true
        }
      )
      yield* Fiber.interrupt(waiting)
      yield* Effect.promise(rest)
      expect(isOn).toBe(false)
      yield* yieldIfSpent(performance.now())
    })
  )
})
