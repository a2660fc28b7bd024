import { hash, randomBytes } from "node:crypto"
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

/** The same of things whose ids are so many hexadecimal digits, without a time. */
export const hexIdOfCall = (prefix: Prefix, digits: number): Effect.Effect<string> =>
  Effect.map(
    Seed,
    (seed) =>
      prefix +
      (seed === null
        ? randomBytes(digits / 2).toString("hex")
        : hash("sha256", `${prefix}${seed.text}`).slice(0, digits))
  )
