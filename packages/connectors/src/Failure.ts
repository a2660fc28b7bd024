import { Data } from "effect"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"

/** How an attempt failed. `final`: another attempt would fail in the same way. The message holds no secret. */
export interface Failure {
  readonly code: AttemptErrorCode
  readonly message: string
  readonly final: boolean
  /** Seconds, if the target gives them in its body instead of `retry-after`. */
  readonly retryAfter?: number
}

/**
 * A send over a session failed. `broken`: the session is not used again. `unsent`: the gateway itself had no free capacity for
 * seconds: this does not count as an attempt, and is repeated at once.
 */
export class SessionFailure extends Data.TaggedError("SessionFailure")<
  Failure & {
    readonly broken: boolean
    readonly unsent?: true
  }
> {}

/** A send that `mayStart` or the gateway has cancelled. */
export const cancelled = new SessionFailure({
  code: "NETWORK_REQUEST_CANCELED",
  message: "cancelled by the gateway",
  final: false,
  broken: false
})
