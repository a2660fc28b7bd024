import { Clock, Effect } from "effect"
import { type ProviderAnswer, ProviderError, type ProviderRequest } from "@tidegate/channels/Adapter"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import { Egress } from "@tidegate/egress/Egress"
import { decodedApart } from "@tidegate/model/ContentCoding"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Values } from "@tidegate/model/Message"
import type { Echoes } from "@tidegate/redaction/Echoes"
import { Loops } from "../Loops.ts"

/** The time-out of one request to a provider, in milliseconds. */
const patienceMs = 30_000
/** Bytes of an answer that are read: by default, and at most. */
const answerBytes = { usual: 1_048_576, most: 10 * 1_048_576 }
/** Bytes of the body of an error that are read. */
const errorBytes = 65_536
const nothing = Buffer.alloc(0)
const maxRedirects = 3
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Request headers that another origin gets after a redirect: no other header can be known to hold no secret. */
const forAnyOrigin: ReadonlySet<string> = new Set(["accept", "accept-language", "if-modified-since", "if-none-match"])

type Headers = Readonly<Record<string, string>>

const flat = (headers: Readonly<Record<string, Values[string] | undefined>>): Headers =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), typeof value === "string" ? value : value.join(", ")]]
    )
  )

/** Nothing is sent: the same request would be refused again. */
export const refused = (
  code: "PROVIDER_REFUSED" | "ACCOUNT_UNAUTHORIZED" | "ACCOUNT_ORIGIN_REFUSED",
  message: string
) => new ProviderError({ code, message, permanent: true, status: null, retryAfterMs: null })

/** No answer came, or none that can be read; the next try may have more success. */
export const passing = (
  code: "PROVIDER_UNREACHABLE" | "PROVIDER_UNAVAILABLE" | "PROVIDER_ANSWER_INVALID",
  message: string,
  retryAfterMs: number | null = null
) => new ProviderError({ code, message, permanent: false, status: null, retryAfterMs })

/** Where a redirected GET continues; null: the answer is final. */
const nextUrl = (url: URL, { headers, status }: ProviderAnswer): URL | null => {
  const location = headers["location"]
  const next = redirects.has(status) && location !== undefined ? URL.parse(location, url.href) : null
  return next !== null && /^https?:$/.test(next.protocol) ? next : null
}

interface Sent extends ProviderRequest {
  /** Masks the credentials of the request in an error that repeats them; null: it has none. */
  readonly echoes?: Echoes | null
}

/**
 * Sends requests to providers: each through the guarded egress, with a bounded answer, and marked against loops. A GET without
 * credentials follows at most 3 redirects; with credentials none is followed, because they belong to one origin.
 */
export const makeProviderExchange = Effect.gen(function* () {
  const egress = yield* Egress
  const origins = yield* ApiOrigins
  const loops = yield* Loops

  const once = Effect.fnUntraced(function* (
    url: URL,
    { body, echoes = null, headers = {}, maxAnswerBytes = answerBytes.usual, method }: Sent
  ): Effect.fn.Return<ProviderAnswer, ProviderError> {
    const now = yield* Clock.currentTimeMillis
    const most = Math.min(maxAnswerBytes, answerBytes.most)
    const sent = {
      "user-agent": "event-gateway/1",
      "accept-encoding": "identity",
      // A call that no request of a sender has caused begins a chain of its own.
      [loopHeader]: loops.next({}, newId(prefixes.request, now)),
      ...headers
    }
    const answer = yield* Effect.promise((signal) =>
      egress.deliver({
        method,
        url: origins(url.origin) + url.pathname + url.search,
        headers: Object.entries(sent).flat(),
        body: body ?? null,
        timeoutMs: patienceMs,
        captureBytes: most,
        signal
      })
    )
    const { bodyTruncated, errorCode, status } = answer
    if (errorCode !== null || status === null) {
      const message = `the provider could not be called: ${errorCode ?? "UNKNOWN"}`
      return yield* errorCode === "TARGET_NOT_ALLOWED" || errorCode === "INVALID_URL"
        ? refused("PROVIDER_REFUSED", message)
        : passing("PROVIDER_UNREACHABLE", message)
    }
    const plain = yield* Effect.promise(() => decodedApart(answer.body, answer.headers["content-encoding"], most))
    if (plain === null) return yield* passing("PROVIDER_ANSWER_INVALID", "the answer's content-encoding cannot be read")
    if (plain === "too large") return { status, headers: flat(answer.headers), body: nothing, truncated: true }
    if (status < 400) return { status, headers: flat(answer.headers), body: plain, truncated: bodyTruncated }
    // Of an error the beginning is enough, and to search all of a long one would hold the event loop.
    const error = plain.subarray(0, errorBytes)
    const truncated = bodyTruncated || error.length < plain.length
    return { status, headers: flat(answer.headers), body: echoes?.bytes(error, truncated) ?? error, truncated }
  })

  return Effect.fnUntraced(function* (request: Sent): Effect.fn.Return<ProviderAnswer, ProviderError> {
    const first = URL.parse(request.url)
    if (first === null) return yield* refused("PROVIDER_REFUSED", "the request has no absolute URL")
    let url: URL = first
    const follows = request.method === "GET" && !request.authorized
    let sent = request
    for (let left = maxRedirects; ; left--) {
      const answer: ProviderAnswer = yield* once(url, sent)
      const next: URL | null = follows && left > 0 ? nextUrl(url, answer) : null
      if (next === null) return answer
      url = next
      if (url.origin !== first.origin) {
        const kept = Object.entries(request.headers ?? {}).filter(([name]) => forAnyOrigin.has(name))
        sent = { ...request, headers: Object.fromEntries(kept) }
      }
    }
  })
})

export type ProviderExchange = Effect.Success<typeof makeProviderExchange>
