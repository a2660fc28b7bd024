import { answered, beginsAsObject, failed, judgeCall, proved, waiting } from "./Api.ts"
import type { Answer, Verdict } from "./Connector.ts"
import type { Failure } from "./Failure.ts"

/** Error answers of Google's APIs. */

/** The API answered with success, but reports that nothing was done. */
const nothingDone: Failure = {
  code: "BAD_RESPONSE",
  message: "the API has taken the call, and says that nothing was done",
  final: false
}

/** Reasons of a 403 that mean too many calls, not wrong credentials. */
const tooMany = new Set([
  "dailyLimitExceeded",
  "quotaExceeded",
  "rateLimitExceeded",
  "userRateLimitExceeded",
  "RATE_LIMIT_EXCEEDED"
])

interface GoogleError {
  /** `RESOURCE_EXHAUSTED`, or an older `rateLimitExceeded`. */
  readonly said: unknown
  readonly message: unknown
  readonly details: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly isTooMany: boolean
  /** Seconds. */
  readonly retryAfter: number | null
}

const listOf = (value: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  Array.isArray(value) ? value.slice(0, 10).filter((one) => typeof one === "object" && one !== null) : []

/** `30s` or `0.5s`. */
const secondsOf = (duration: unknown): number | null => {
  const [, seconds] = (typeof duration === "string" && /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(duration)) || []
  return seconds === undefined ? null : Number(seconds)
}

/** "Retry after 2026-01-02T03:04:05.000Z": a time; the seconds are measured from the answer's own date. */
const untilMoment = (message: unknown, date: unknown): number | null => {
  const [, moment] =
    (typeof message === "string" && /\bretry after (\d{4}-\d\d-\d\dT[\d:.]{5,15}Z)/i.exec(message.slice(0, 1_000))) ||
    []
  if (moment === undefined || typeof date !== "string") return null
  const seconds = (Date.parse(moment) - Date.parse(date)) / 1000
  return seconds >= 0 ? seconds : null
}

const errorOf = (answer: Answer): GoogleError => {
  const { error } = answered(answer)
  const { details, errors, message, status } = (typeof error === "object" && error !== null ? error : {}) as Readonly<
    Record<string, unknown>
  >
  const reasons = [...listOf(errors), ...listOf(details)].map(({ reason }) => reason)
  return {
    said: status ?? reasons.find((reason) => typeof reason === "string"),
    message,
    details: listOf(details),
    isTooMany: status === "RESOURCE_EXHAUSTED" || reasons.some((reason) => tooMany.has(String(reason))),
    retryAfter:
      listOf(details).reduce<number | null>((found, { retryDelay }) => found ?? secondsOf(retryDelay), null) ??
      untilMoment(message, answer.headers["date"])
  }
}

/** `isDone`: whether the body of a 2xx confirms the operation. A truncated body counts as confirmed. */
export const judgeGoogle = (answer: Answer, isDone: (body: Readonly<Record<string, unknown>>) => boolean): Verdict => {
  if (answer.status >= 200 && answer.status < 300) {
    const said = answered(answer)
    if (isDone(said) || beginsAsObject(answer)) return "successful"
    return Object.keys(said).length === 0 ? proved(answer, "successful", false) : nothingDone
  }
  const { isTooMany, retryAfter, said } = errorOf(answer)
  // Rate limit errors also come with 403, and without a header.
  const verdict = isTooMany ? failed(answer.status, said, false) : judgeCall(answer, said)
  return waiting(verdict, retryAfter)
}

/**
 * The error code of an answer, its message, and its details. The code is null if it is not one of Google's, for example because a load balancer has
 * answered.
 */
export const googleErrorIn = (
  answer: Answer
): { readonly code: string | null; readonly said: string; readonly details: GoogleError["details"] } => {
  const { details, isTooMany, message, said } = errorOf(answer)
  const code = isTooMany ? "RESOURCE_EXHAUSTED" : typeof said === "string" && /^[\w.-]{1,64}$/.test(said) ? said : null
  return { code, said: typeof message === "string" ? message : "", details }
}
