import { hash, randomBytes } from "node:crypto"
import { Clock, Context, Effect } from "effect"
import { newId, type Prefix, seededId } from "@tidegate/model/Ids"

/**
 * The seed for the ids that a call with an idempotency key makes: when the call is carried out again after a process has died, it
 * makes the same ids.
 */
export const Seed = Context.Reference<{ readonly at: number; readonly text: string } | null>("@tidegate/api/Seed", {
  defaultValue: () => null
})

/** The id of the call's new record of a kind; each call makes one per kind. */
export const idOfCall = (prefix: Prefix): Effect.Effect<string> =>
  Effect.flatMap(Seed, (seed) =>
    seed === null
      ? Effect.map(Clock.currentTimeMillis, (now) => newId(prefix, now))
      : Effect.succeed(seededId(prefix, seed.at, seed.text))
  )

/** The same for ids of hexadecimal digits, which contain no time. */
export const hexIdOfCall = (prefix: Prefix, digits: number): Effect.Effect<string> =>
  Effect.map(
    Seed,
    (seed) =>
      prefix +
      (seed === null
        ? randomBytes(digits / 2).toString("hex")
        : hash("sha256", `${prefix}${seed.text}`).slice(0, digits))
  )
