import { isForNow, maxRefused } from "@tidegate/rules/Retry"
import { compileStatusExpressions } from "@tidegate/rules/StatusExpression"
import * as Characters from "@tidegate/model/Characters"
import { Result, Schema } from "effect"
import type { StepError } from "./StepKind.ts"

/** Members of `config` that several kinds of steps have. */

/** The default number of retries after the first attempt. */
export const defaultRetries = 5

const StepRetry = Schema.Struct({
  strategy: Schema.optionalKey(Schema.Literals(["linear", "exponential"])),
  interval: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 86_400_000 })).annotate({
      description: "Milliseconds before the first retry (default: 60000)"
    })
  ),
  count: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 })).annotate({
      description: "Maximum number of retries after the first attempt (default: 5)"
    })
  ),
  max_interval: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 86_400_000 })).annotate({
      description: "Maximum milliseconds between two attempts (default: 86400000, a day)"
    })
  ),
  jitter: Schema.optionalKey(Schema.Literals(["none", "full"])),
  response_status_codes: Schema.optionalKey(
    Schema.Array(Schema.Union([Schema.String, Schema.Int])).check(Schema.isBetweenLength(1, 10))
  ),
  error_codes: Schema.optionalKey(
    Schema.Array(Schema.String.check(Schema.isPattern(/^[A-Z0-9_]{1,64}$/))).check(Schema.isBetweenLength(1, 20))
  )
})
export type StepRetry = typeof StepRetry.Type

export const onErrorValues = ["fail", "continue", "branch"] as const
export type OnError = (typeof onErrorValues)[number]

/** By their names in `config`. */
export const commonSettings = {
  timeout_ms: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 120_000 })).annotate({
      description: "Maximum milliseconds of an attempt (default: 30000)"
    })
  ),
  retry: Schema.optionalKey(Schema.NullOr(StepRetry)),
  on_error: Schema.optionalKey(Schema.Literals(onErrorValues)),
  /** A template for the list that the step runs for. */
  for_each: Schema.optionalKey(Schema.String),
  concurrency: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })).annotate({
      description: "How many elements of `for_each` are called at once (default: 1, in order)"
    })
  ),
  compensate: Schema.optionalKey(
    Schema.String.check(Characters.between(1, 96)).annotate({
      description: "The id of the step that undoes this one when the run has failed"
    })
  )
} as const

/** A note for readers of the graph; every step may have one. */
export const note = Schema.optionalKey(Schema.String.check(Characters.upTo(4_000)))

export const defaultTimeoutMs = 30_000

export interface RetryPolicy {
  /** The number of attempts in all. */
  readonly attempts: number
  /**
   * Milliseconds until the attempt after `attempt` (1 for the first); null: the failure is final. A wait that the target asked
   * for replaces the policy's own, up to its `max_interval` or a day. `random` is in [0, 1).
   */
  readonly waitAfter: (attempt: number, error: StepError, random: number) => number | null
}

/** Errors that another attempt cannot fix. */
const neverAgain =
  /^(?:INPUT_|TEMPLATE_|FORMATTER_|FOR_EACH_|OUTPUT_TOO_LARGE$|SYNTAX_ERROR$|TARGET_NOT_ALLOWED$|RESOURCE_)/

/** Refusals that may be temporary. */
const passing = new Set([408, 409, 425, 429])

/** Whether a target has refused the call for now, whatever was sent, and said how long that lasts. */
const isRefusedForNow = ({ retry_after_ms = 0, status }: StepError): boolean =>
  status !== undefined && isForNow(status) && retry_after_ms > 0

const day = 86_400_000

/** Fails with the index of an invalid status expression. */
export const compileRetry = (
  retry: StepRetry
): Result.Result<RetryPolicy, { readonly index: number; readonly message: string }> =>
  Result.map(compileStatusExpressions(retry.response_status_codes ?? []), (covers) => {
    const { count = defaultRetries, error_codes, interval = 60_000, jitter, max_interval } = retry
    const { response_status_codes, strategy } = retry
    const longest = max_interval ?? day
    const again = ({ code, final, status }: StepError): boolean => {
      const listed = error_codes?.includes(code) ?? false
      if (final === true) return listed
      if (status !== undefined && response_status_codes !== undefined) return covers(status) || listed
      if (listed) return true
      if (neverAgain.test(code)) return false
      if (status !== undefined) return status >= 500 || status < 400 || passing.has(status)
      return error_codes === undefined
    }
    return {
      attempts: count + 1,
      waitAfter: (attempt, error, random) => {
        const most = count > 0 && isRefusedForNow(error) ? maxRefused - 1 : count
        if (attempt > most || !again(error)) return null
        if (error.retry_after_ms !== undefined) return Math.min(Math.max(error.retry_after_ms, 1_000), longest)
        const whole = strategy === "linear" ? interval : interval * 2 ** (attempt - 1)
        return Math.round(Math.min(whole, longest) * (jitter === "full" ? random : 1))
      }
    }
  })

export const noRetry: RetryPolicy = { attempts: 1, waitAfter: () => null }
