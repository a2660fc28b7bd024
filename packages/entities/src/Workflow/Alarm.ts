import { Clock, Effect, type Fiber } from "effect"

/** Runs an effect at the earliest of the times that were set (Unix ms). The effect has to set the next time. */
export const makeAlarm = Effect.fnUntraced(function* (ring: Effect.Effect<void>) {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  let armed: { readonly at: number; readonly fiber: Fiber.Fiber<unknown> } | null = null
  yield* Effect.addFinalizer(() => Effect.sync(() => armed?.fiber.interruptUnsafe()))
  return (at: number): void => {
    if (armed !== null && armed.at <= at) return
    armed?.fiber.interruptUnsafe()
    const disarm = Effect.sync(() => {
      armed = null
    })
    const ringing = Effect.andThen(
      Effect.andThen(Effect.sleep(Math.max(0, at - clock.currentTimeMillisUnsafe())), disarm),
      ring
    )
    armed = { at, fiber: run(ringing) }
  }
})
