import { parsingJson } from "@tidegate/json/JsonText"
import { askedWait } from "@tidegate/rules/Retry"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { Effect } from "effect"
import {
  type Context,
  type ProviderAnswer,
  ProviderError,
  type ProviderErrorCode,
  type ProviderRequest
} from "../Adapter.ts"

/** Reads the answers of providers. One place decides what each status means. */

/** Bytes of a page of a list: the largest body that a gateway takes. */
export const maxPageBytes = 10_485_760

const codeOf = (status: number): ProviderErrorCode => {
  if (status === 401) return "ACCOUNT_UNAUTHORIZED"
  if (status === 403) return "PROVIDER_FORBIDDEN"
  if (status === 404 || status === 410) return "PROVIDER_NOT_FOUND"
  if (status === 429) return "PROVIDER_RATE_LIMITED"
  // 408 and 425 ask for a repetition.
  return status >= 500 || status === 408 || status === 425 ? "PROVIDER_UNAVAILABLE" : "PROVIDER_REFUSED"
}

const isPermanent = (status: number): boolean => [401, 403, 404, 410].includes(status)

/** The longest wait that a provider may ask for (ms). */
const longestWait = 86_400_000

/** The wait that an answer asks for (ms). It may be a number of seconds, a date, or the Unix time at which the limit ends. */
const waitOf = ({ headers }: ProviderAnswer, now: number): number | null => {
  const after = headers["retry-after"]
  const reset = headers["ratelimit-reset"] ?? headers["x-ratelimit-reset"] ?? ""
  const resetIn = /^\d{9,11}$/.test(reset) ? Number(reset) * 1_000 - now : -1
  const wait = after === undefined ? resetIn : askedWait(after, Date.parse(headers["date"] ?? "") || now)
  return wait === null || wait < 0 ? null : Math.min(wait, longestWait)
}

/** Whether a 403 is a rate limit: GitHub says so in its headers, Google in its body. */
const isRateLimit = ({ body, headers }: ProviderAnswer): boolean =>
  headers["retry-after"] !== undefined ||
  headers["x-ratelimit-remaining"] === "0" ||
  /"(?:userRateLimitExceeded|rateLimitExceeded|quotaExceeded|dailyLimitExceeded)"/.test(
    Buffer.from(body.subarray(0, 4_096)).toString("latin1")
  )

/** The failure that a status means. The message contains nothing of the body, which could repeat a secret. */
export const failureOf = (answer: ProviderAnswer, now: number, what: string): ProviderError => {
  const { status } = answer
  const isLimit = status === 403 && isRateLimit(answer)
  return new ProviderError({
    code: isLimit ? "PROVIDER_RATE_LIMITED" : codeOf(status),
    message: `${what}: the provider answered HTTP ${status}`,
    permanent: isPermanent(status) && !isLimit,
    status,
    retryAfterMs: isLimit || status === 429 || status >= 500 ? waitOf(answer, now) : null
  })
}

/** The failure of an answer that is not what the protocol says. */
export const invalid = (message: string, status: number | null = null, permanent = false): ProviderError =>
  new ProviderError({ code: "PROVIDER_ANSWER_INVALID", message, permanent, status, retryAfterMs: null })

/**
 * Sends a request, and fails unless the status is 2xx or one of `also`, which the caller handles. `what`: the purpose of the request, for the
 * message.
 */
export const answered = (
  { call, now }: Context,
  request: ProviderRequest,
  what: string,
  also: ReadonlyArray<number> = []
): Effect.Effect<ProviderAnswer, ProviderError> =>
  Effect.flatMap(call(request), (answer) =>
    (answer.status >= 200 && answer.status < 300) || also.includes(answer.status)
      ? Effect.succeed(answer)
      : Effect.fail(failureOf(answer, now, what))
  )

/** The JSON of an answer, with the digits of its numbers. It is parsed in steps, because it may be large. */
export const jsonOf = (answer: ProviderAnswer, what: string): Effect.Effect<unknown, ProviderError> =>
  Effect.gen(function* () {
    if (answer.truncated) return yield* invalid(`${what}: the answer is too large`, answer.status)
    const parsed = yield* inSlices(parsingJson(answer.body))
    return parsed.kind === "json"
      ? parsed.value
      : yield* invalid(`${what}: the answer is no JSON that can be read (${parsed.kind})`, answer.status)
  })

/** Gets JSON with the account's credentials. */
export const getJson = (
  context: Context,
  url: string,
  what: string,
  headers: Readonly<Record<string, string>> = {}
): Effect.Effect<unknown, ProviderError> => Effect.map(getPage(context, url, what, [], headers), ({ value }) => value)

export interface Page {
  readonly status: number
  readonly headers: ProviderAnswer["headers"]
  /** Null if the status is one of `also`. */
  readonly value: unknown
}

/** The same with status and headers. `also`: statuses that mean something to the caller. */
export const getPage = (
  context: Context,
  url: string,
  what: string,
  also: ReadonlyArray<number> = [],
  headers: Readonly<Record<string, string>> = {}
): Effect.Effect<Page, ProviderError> =>
  Effect.gen(function* () {
    const answer = yield* answered(
      context,
      {
        method: "GET",
        url,
        headers: { accept: "application/json", ...headers },
        authorized: true,
        maxAnswerBytes: maxPageBytes
      },
      what,
      also
    )
    const value = also.includes(answer.status) ? null : yield* jsonOf(answer, what)
    return { status: answer.status, headers: answer.headers, value }
  })

/** Sends JSON with the account's credentials. */
export const sendJson = (
  context: Context,
  method: "POST" | "PATCH",
  url: string,
  body: unknown,
  what: string,
  also: ReadonlyArray<number> = []
): Effect.Effect<ProviderAnswer, ProviderError> =>
  answered(
    context,
    {
      method,
      url,
      headers: { accept: "application/json", "content-type": "application/json" },
      body: JSON.stringify(body),
      authorized: true
    },
    what,
    also
  )

/** Deletes something. If it does not exist any more, this counts as success. */
export const remove = (context: Context, url: string, what: string): Effect.Effect<void, ProviderError> =>
  Effect.asVoid(answered(context, { method: "DELETE", url, authorized: true }, what, [404, 410]))
