import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { type ErrorCode, fail, type GatewayError } from "@tidegate/model/GatewayError"

/** The id by which an answer of 5xx is found in the log: `err_` and 24 hexadecimal digits. */
export const newErrorId = (): string => `err_${randomBytes(12).toString("hex")}`

/**
 * A fault of the gateway: `cause` goes to the log and nowhere else, the caller gets `message`, and both get one id.
 */
export const fault = (options: {
  readonly code: ErrorCode
  readonly message: string
  /** What the log says. */
  readonly log: string
  readonly cause: unknown
  readonly level?: "Error" | "Warn"
}): Effect.Effect<GatewayError> =>
  Effect.suspend(() => {
    const error_id = newErrorId()
    return Effect.logWithLevel(options.level ?? "Error")(options.log, options.cause).pipe(
      Effect.annotateLogs({ error_id }),
      Effect.as(fail(options.code, options.message, { error_id }))
    )
  })
