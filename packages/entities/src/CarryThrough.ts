import { Effect } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"

/**
 * A command's handler. A defect becomes 500 and a log line, because an entity restarts on one and is sent the same
 * message again, for ever if the message is what it dies of. Once begun it is carried through, also when its caller has
 * gone away: what is stored has to reach everyone it concerns.
 */
export const carryThrough = <A, R>(effect: Effect.Effect<A, GatewayError, R>): Effect.Effect<A, GatewayError, R> =>
  effect.pipe(
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("a command failed", defect),
        fail("INTERNAL_ERROR", "the request could not be carried out")
      )
    ),
    Effect.uninterruptible
  )
