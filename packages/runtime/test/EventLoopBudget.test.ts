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

describe("Event-loop budget", () => {
  it("The event-loop budget is spent for all work after long work, and is new in the next turn", async () => {
    await rest()
    expect(isBudgetSpent()).toBe(false)
    const since = performance.now()
    expect(isBudgetSpent(since)).toBe(false)
    workLong()
    expect(isBudgetSpent()).toBe(true)
    await rest()
    expect(isBudgetSpent()).toBe(false)
  })

  it("Asking for the event-loop budget does not count as work", async () => {
    await rest()
    isBudgetSpent()
    workLong()
    expect(isBudgetSpent()).toBe(false)
  })

  it("Waiting work continues in its order, long work gets a turn each, and other work runs between the turns", async () => {
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

  it("Short work does not wait for the next turn of the event loop", async () => {
    await rest()
    let done = 0
    for (let i = 0; i < 3_000; i++) inLaterTurn(() => done++)
    await rest()
    expect(done).toBe(3_000)
  })

  it.live("An effect waits until the event-loop budget is new, and an interrupted effect does not continue", () =>
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
