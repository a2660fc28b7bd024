import { Effect } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { fault } from "@tidegate/telemetry/Faults"

/**
 * A command's handler. A defect becomes 500 and a log line, because an entity restarts on one and is sent the same
 * message again, for ever if the message is what it dies of. Once begun it is carried through, also when its caller has
 * gone away: what is stored has to reach everyone it concerns.
 */
export const carryThrough = <A, R>(effect: Effect.Effect<A, GatewayError, R>): Effect.Effect<A, GatewayError, R> =>
  effect.pipe(
    Effect.catchDefect((cause) =>
      Effect.flip(
        fault({
          code: "INTERNAL_ERROR",
          message: "the request could not be carried out",
          log: "a command failed",
          cause
        })
      )
    ),
    Effect.uninterruptible
  )
