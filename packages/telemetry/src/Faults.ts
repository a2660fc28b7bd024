import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { type ErrorCode, fail, type GatewayError } from "@tidegate/model/GatewayError"

/** The id that links a 5xx answer to its log line: `err_` and 24 hexadecimal digits. */
export const newErrorId = (): string => `err_${randomBytes(12).toString("hex")}`

/** An internal error: `cause` is only logged, the caller gets `message`, and both have the same id. */
export const fault = (options: {
  readonly code: ErrorCode
  readonly message: string
  /** The text of the log line. */
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
