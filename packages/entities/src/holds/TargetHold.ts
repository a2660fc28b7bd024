import type { Answer, Verdict } from "@tidegate/connectors/Connector"
import type { Failure } from "@tidegate/connectors/Failure"
import { isForNow, parseRetryAfter } from "@tidegate/rules/Retry"

/*
 * Until when a target accepts nothing more, by its answers: a refusal with a duration (429 or 503 with Retry-After, or an API's
 * own body), or an answer of any status that uses up its limit. Pure.
 *
 * Such an answer is about the target and not about one event. So it pauses the destination: its other events wait in the queue,
 * and no attempt is wasted on the same refusal.
 */

/** How an exchange with a target has ended: what it has answered, or why there is no full answer. */
export interface Said {
  readonly status: number | null
  readonly headers: Answer["headers"]
  readonly errorCode: string | null
}

/** No answer holds anything for longer (ms), whatever it says: one that says ten years is asked again after ten minutes. */
export const longestHoldMs = 600_000
/** Added to the target's time (ms): some requests take longer than others to reach it. */
const marginMs = 25

type Headers = Answer["headers"]

const textOf = (headers: Headers, name: string): string | null => {
  const value = headers[name]
  return typeof value === "string" ? value.trim() : null
}

const decimal = /^\d{1,15}(?:\.\d{1,9})?$/

const secondsOf = (text: string | null): number | null => (text !== null && decimal.test(text) ? Number(text) : null)

/**
 * The milliseconds from now to a time on the target's clock. The answer's `date` header gives that clock; without it, this
 * process's clock is used.
 */
const untilMoment = (momentMs: number, headers: Headers, now: number): number => {
  const date = Date.parse(textOf(headers, "date") ?? "")
  return momentMs - (Number.isNaN(date) ? now : date)
}

/** A duration or a moment: a number as large as a current Unix time, in seconds or milliseconds, is a moment. */
const untilReset = (reset: number, headers: Headers, now: number): number => {
  if (reset >= 1e12) return untilMoment(reset, headers, now)
  return reset >= 1e9 ? untilMoment(reset * 1_000, headers, now) : reset * 1_000
}

/** Common headers of APIs: how many calls are left, and when the limit is renewed. */
const families: ReadonlyArray<{ readonly remaining: string; readonly after?: string; readonly reset: string }> = [
  // Discord sends both. The first is a duration, in seconds in all versions.
  { remaining: "x-ratelimit-remaining", after: "x-ratelimit-reset-after", reset: "x-ratelimit-reset" },
  { remaining: "ratelimit-remaining", reset: "ratelimit-reset" },
  { remaining: "x-rate-limit-remaining", reset: "x-rate-limit-reset" }
]

/**
 * Milliseconds until a used-up limit is renewed; null: not known. `always`: also when no header says that the limit is used up.
 */
const usedUpFor = (headers: Headers, now: number, always: boolean): number | null => {
  let longest: number | null = null
  for (const { after, remaining, reset } of families) {
    const left = textOf(headers, remaining)
    if (!always && (left === null || !/^0+(?:\.0+)?$/.test(left))) continue
    const wait = after === undefined ? null : secondsOf(textOf(headers, after))
    const moment = wait === null ? secondsOf(textOf(headers, reset)) : null
    const ms = wait !== null ? wait * 1_000 : moment === null ? null : untilReset(moment, headers, now)
    if (ms !== null) longest = Math.max(longest ?? 0, ms)
  }
  // A list, which may be spread over several fields.
  const policies = [headers["ratelimit"] ?? []].flat().join(", ") || null
  if (policies === null || policies.length > 1_024) return longest
  // `"burst";r=0;t=30, "day";r=900;t=3600`, and in earlier drafts `limit=100, remaining=0, reset=30`.
  const older = /(?:^|[,\s])remaining=0(?:$|[,\s])/.test(policies) ? /(?:^|[,\s])reset=(\d{1,9})/.exec(policies) : null
  const waits = policies
    .split(",")
    .flatMap((one) => (/;\s*r=0(?:$|[;\s])/.test(one) ? (/;\s*t=(\d{1,9})/.exec(one)?.[1] ?? []) : []))
  for (const seconds of [...waits, ...(older === null ? [] : [older[1]!])]) {
    longest = Math.max(longest ?? 0, Number(seconds) * 1_000)
  }
  return longest
}

const waitIn = (headers: Headers, now: number): number | null => {
  const said = textOf(headers, "retry-after")
  const wait = said === null ? null : parseRetryAfter(said, now)
  return wait === "cancel" ? null : wait
}

/** The temporary failure that ended an attempt; null: there was none, or the target has not said that it is temporary. */
const passing = ({ errorCode }: Said, verdict: Verdict): Failure | null =>
  errorCode !== null || verdict === "successful" || verdict.final || verdict.code === "OAUTH2_HANDSHAKE_FAILED"
    ? null
    : verdict

/** Until when (Unix ms) nothing more is sent to a target that gave this answer; null: it accepts more. */
export const heldUntil = (said: Said, verdict: Verdict, now: number): number | null => {
  const { errorCode, headers, status } = said
  if (errorCode !== null || status === null) return null
  const failure = passing(said, verdict)
  const isRefusal = failure !== null && isForNow(status)
  const asked = failure?.retryAfter !== undefined ? failure.retryAfter * 1_000 : isRefusal ? waitIn(headers, now) : null
  const wait = asked ?? usedUpFor(headers, now, status === 429)
  return wait === null || wait <= 0 ? null : now + Math.min(Math.ceil(wait) + marginMs, longestHoldMs)
}

/** Whether a target has refused an attempt for now, whatever was sent, and says for how long. */
export const isRefusedForNow = (said: Said, verdict: Verdict, now: number): boolean => {
  const { status } = said
  const failure = passing(said, verdict)
  if (failure === null || status === null) return false
  return (failure.retryAfter !== undefined || isForNow(status)) && heldUntil(said, verdict, now) !== null
}

/**
 * Milliseconds that a target asks a step to wait that it has refused: in its body (seconds), by its header, or until its limit is renewed; "cancel":
 * it is not to come again.
 */
export const waitOf = (failure: Failure, said: Said, now: number): number | "cancel" | null => {
  const header = said.headers["retry-after"]
  const asked =
    failure.retryAfter !== undefined ? String(failure.retryAfter) : typeof header === "string" ? header : null
  if (asked !== null) return parseRetryAfter(asked, now)
  return isRefusedForNow(said, failure, now) ? heldUntil(said, failure, now)! - now : null
}
