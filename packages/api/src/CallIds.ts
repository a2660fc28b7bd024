import { Clock, Context, Effect } from "effect"
import { newId, type Prefix, seededId } from "@tidegate/model/Ids"

/** What a call with an idempotency key makes its ids of: carried out again after a process has died over it, it makes the same things. */
export const Seed = Context.Reference<{ readonly at: number; readonly text: string } | null>("@tidegate/api/Seed", {
  defaultValue: () => null
})

/** The id of what a call makes, one of a kind. */
export const idOfCall = (prefix: Prefix): Effect.Effect<string> =>
  Effect.flatMap(Seed, (seed) =>
    seed === null
      ? Effect.map(Clock.currentTimeMillis, (now) => newId(prefix, now))
      : Effect.succeed(seededId(prefix, seed.at, seed.text))
  )
