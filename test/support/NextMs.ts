import { Effect } from "effect"

let last = 0

/** The time (Unix ms), once it is later than any that this was asked for before: ids of one millisecond have no order. */
export const nextMs: Effect.Effect<number> = Effect.gen(function* () {
  while (Date.now() <= last) yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1)))
  last = Date.now()
  return last
})
