import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type Signal, Signals } from "../src/Workflow/Signals.ts"

const due = (step: number): Signal => ({ occurrence: { type: "due", step }, endsEffect: false })

it.effect("Signals are taken in the order in which they came", () =>
  Effect.gen(function* () {
    const signals = new Signals()
    signals.offer(due(1))
    signals.offer(due(2))
    expect(signals.size).toBe(2)
    expect([yield* signals.take, yield* signals.take]).toEqual([due(1), due(2)])
    expect(signals.size).toBe(0)
  })
)

it.effect("A fiber that waits for a signal gets the next one, and only that", () =>
  Effect.gen(function* () {
    const signals = new Signals()
    const waiting = yield* Effect.forkChild(signals.take, { startImmediately: true })
    signals.offer(due(1))
    signals.offer(due(2))
    expect(yield* Fiber.join(waiting)).toEqual(due(1))
    expect(yield* signals.take).toEqual(due(2))
  })
)

it.effect("A signal that comes after its taker was interrupted is kept", () =>
  Effect.gen(function* () {
    const signals = new Signals()
    const waiting = yield* Effect.forkChild(signals.take, { startImmediately: true })
    yield* Fiber.interrupt(waiting)
    signals.offer(due(1))
    expect(signals.size).toBe(1)
    expect(yield* signals.take).toEqual(due(1))
  })
)
