import { Effect } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { fault } from "@tidegate/telemetry/Faults"

/**
 * The handler of a message that is answered. A defect becomes a 500 and a log line. Otherwise the entity would restart and get
 * the same message again, for ever if that message causes the defect.
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
 * A command's handler. Once begun it runs to its end, even when its caller has gone: a stored change has to reach everyone it
 * concerns.
 */
export const carryThrough = <A, R>(effect: Effect.Effect<A, GatewayError, R>): Effect.Effect<A, GatewayError, R> =>
  Effect.uninterruptible(withoutDefects(effect))
