import type { RetryRule, RetryStrategy } from "@tidegate/model/Rule"
import { Result } from "effect"
import { compileStatusExpressions, type StatusExpressionInvalid } from "./StatusExpression.ts"

/**
 * When a failed delivery is retried. Pure: the caller passes the time and the random number, so a schedule of days
 * is computed, and tested, at once. All times are Unix milliseconds.
 */

/** A compiled retry rule. */
export interface RetryPolicy {
  readonly strategy: RetryStrategy
  /** Retries after the first attempt. */
  readonly count: number
  /** Milliseconds. */
  readonly interval: number
  /** Whether a response with this status is retried. */
  readonly covers: (status: number) => boolean
}

/** Compiles a valid rule; fails only if `response_status_codes` is invalid. */
export const compileRetry = (rule: RetryRule): Result.Result<RetryPolicy, StatusExpressionInvalid> =>
  Result.map(compileStatusExpressions(rule.response_status_codes ?? []), (covers) => ({
    strategy: rule.strategy,
    count: rule.count,
    interval: rule.interval,
    covers
  }))

/** How an attempt failed: the response's status (never 2xx) and Retry-After header; null if there was no response. */
export interface FailedAttempt {
  readonly status: number | null
  readonly retryAfter: string | null
  /** Whether the target refuses requests for now and names the duration: this pauses the whole destination. */
  readonly refusedForNow?: boolean
}

/** Why an event is not retried. */
export type FinalReason =
  /** The connection has no retry rule. */
  | "NO_RETRY_RULE"
  /** 410: the endpoint is gone. */
  | "GONE"
  /** The rule does not cover this status. */
  | "STATUS_NOT_COVERED"
  /** The destination sent `Retry-After: -1`. */
  | "CANCELLED_BY_DESTINATION"
  /** The rule's count is used up. */
  | "EXHAUSTED"
  /** The next attempt would come later than 7 days after the first. */
  | "WINDOW_PASSED"

export type RetryDecision =
  | { readonly final: false; readonly retryAt: number }
  | { readonly final: true; readonly reason: FinalReason }

/** Milliseconds after the first attempt after which no retry is made. */
export const retryWindow = 7 * 24 * 60 * 60 * 1_000

/**
 * Maximum attempts of an event whose target refuses requests for now, whatever the rule's count is, because an overloaded target
 * says nothing about the event. It equals the largest count that a rule allows.
 */
export const maxRefused = 50

/** Statuses that a target refuses by for now. Also 403, as GitHub and Google do, and 2xx of an API whose body says no. */
export const isForNow = (status: number): boolean => status === 429 || status === 503 || status === 403 || status < 300

/** Below this interval a rule's waits are exact. */
const jitterFrom = 5_000
const jitter = 0.1

/** The shortest wait that a destination may request, equal to the shortest of a rule: `Retry-After: 0` must not cause a flood of retries. */
const shortestWait = 1_000

const ended = (reason: FinalReason): RetryDecision => ({ final: true, reason })

/**
 * Decides what follows the failure of attempt `attemptNumber` (1 for the first). Retry-After, on any status that is
 * retried, replaces the rule's wait, whether longer or shorter; it counts as a retry like any other. If the target refuses requests for now, the
 * event is retried even if the count is used up. `random` is in [0, 1).
 */
export const nextRetry = (
  policy: RetryPolicy | null,
  attemptNumber: number,
  outcome: FailedAttempt,
  now: number,
  firstAttemptAt: number,
  random: number
): RetryDecision => {
  if (outcome.status === 410) return ended("GONE")
  if (policy === null) return ended("NO_RETRY_RULE")
  if (outcome.status !== null && !policy.covers(outcome.status)) return ended("STATUS_NOT_COVERED")
  const asked = outcome.retryAfter === null ? null : parseRetryAfter(outcome.retryAfter, now)
  if (asked === "cancel") return ended("CANCELLED_BY_DESTINATION")
  const most = outcome.refusedForNow === true ? Math.max(policy.count, maxRefused - 1) : policy.count
  if (attemptNumber > most) return ended("EXHAUSTED")
  const wait = asked === null ? waitOf(policy, attemptNumber, random) : Math.max(asked, shortestWait)
  const retryAt = now + Math.round(wait)
  return retryAt - firstAttemptAt > retryWindow ? ended("WINDOW_PASSED") : { final: false, retryAt }
}

/** The rule's own wait before retry `n`, with ±10 % of jitter unless the interval is short. */
const waitOf = (policy: RetryPolicy, n: number, random: number): number => {
  const wait = policy.strategy === "linear" ? policy.interval : policy.interval * 2 ** (n - 1)
  return policy.interval < jitterFrom ? wait : wait * (1 + jitter * (2 * random - 1))
}

const day = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
const time = "\\d\\d:\\d\\d:\\d\\d"

/** The three forms of an HTTP date: the current one, that of RFC 850, and that of asctime, which omits the zone (GMT). */
const httpDate = new RegExp(
  `^(?:${day}, \\d\\d ${month} \\d{4} ${time} GMT|${day}[a-z]*day, \\d\\d-${month}-\\d\\d ${time} GMT|${day} ${month} [ \\d]\\d ${time} \\d{4})$`
)

/**
 * The value of a Retry-After header: milliseconds from `now` (0 for a past date), `"cancel"` for `-1`, and
 * null if it is neither seconds nor an HTTP date: then the rule's own wait is used.
 */
export const parseRetryAfter = (value: string, now: number): number | "cancel" | null => {
  const text = value.trim()
  if (text === "-1") return "cancel"
  // The standard does not allow a fraction, but some APIs send one.
  if (/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) return Math.ceil(Number(text) * 1_000)
  if (!httpDate.test(text)) return null
  const at = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

/**
 * Milliseconds that a Retry-After header asks a caller to wait that has no rule of its own; null: it does not say. `sentAt`: the answer's own
 * date (Unix ms). A date counts from it, so that the two clocks need not agree.
 */
export const askedWait = (value: string, sentAt: number): number | null => {
  // The standard does not allow a fraction, but some APIs send one.
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(value)) return Math.ceil(Number(value) * 1_000)
  const wait = Date.parse(value) - sentAt
  return Number.isNaN(wait) || wait < 0 ? null : wait
}
