import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { isTurnOver, nextTurn, takeTurn } from "@tidegate/model/LoopTurn"

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
    expect(isTurnOver()).toBe(false)
    const since = performance.now()
    expect(isTurnOver(since)).toBe(false)
    workLong()
    expect(isTurnOver()).toBe(true)
    await rest()
    expect(isTurnOver()).toBe(false)
  })

  it("is not counted by who only asks", async () => {
    await rest()
    isTurnOver()
    workLong()
    expect(isTurnOver()).toBe(false)
  })

  it("lets those that wait go on in their order, each in a turn of its own when it is long, with others between", async () => {
    await rest()
    const order: Array<string> = []
    const parts = (name: string, left: number): void => {
      order.push(name)
      workLong()
      if (left > 1) nextTurn(() => parts(name, left - 1))
    }
    const between = (): void => {
      order.push("-")
      if (order.length < 14) setImmediate(between)
    }
    for (const name of ["a", "b", "c"]) nextTurn(() => parts(name, 2))
    setImmediate(between)
    while (order.length < 14) await turn()
    expect(order.filter((name) => name !== "-").join("")).toBe("abcabc")
    expect(order.join("")).not.toMatch(/[abc]{2}/)
  })

  it("is not waited for by short work", async () => {
    await rest()
    let done = 0
    for (let i = 0; i < 3_000; i++) nextTurn(() => done++)
    await rest()
    expect(done).toBe(3_000)
  })

  it.live("is waited for by an effect when it is over; one that is interrupted does not go on", () =>
    Effect.gen(function* () {
      yield* Effect.promise(rest)
      const since = performance.now()
      yield* takeTurn(since)
      workLong()
      let isOn = false
      const waiting = yield* Effect.forkChild(
        Effect.andThen(
          takeTurn(since),
          Effect.sync(() => (isOn = true))
        ),
        {
          startImmediately: true
        }
      )
      yield* Fiber.interrupt(waiting)
      yield* Effect.promise(rest)
      expect(isOn).toBe(false)
      yield* takeTurn(performance.now())
    })
  )
})
