import { Effect } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { fault } from "@tidegate/telemetry/Faults"

/**
 * The handler of a message that is answered. A defect becomes 500 and a log line, because an entity restarts on one and is sent the same
 * message again, for ever if the message is what it dies of.
 */
export const withoutDefects = <A, R>(effect: Effect.Effect<A, GatewayError, R>): Effect.Effect<A, GatewayError, R> =>
  Effect.catchDefect(effect, (cause) =>
    Effect.flip(
      fault({
        code: "INTERNAL_ERROR",
        message: "the request could not be carried out",
        log: "a command failed",
        cause
      })
    )
  )

/**
 * A command's handler. Once begun it is carried through, also when its caller has gone away: what is stored has to reach everyone it concerns.
 */
export const carryThrough = <A, R>(effect: Effect.Effect<A, GatewayError, R>): Effect.Effect<A, GatewayError, R> =>
  Effect.uninterruptible(withoutDefects(effect))
