import { decodedBody } from "@tidegate/model/ContentCoding"
import { parseJson } from "@tidegate/json/JsonText"
import type { Message } from "@tidegate/model/Message"
import {
  type Answer,
  type AttemptFacts,
  type BatchCalls,
  type BatchPart,
  type HttpSender,
  type OutboundRequest,
  Refusal,
  type Verdict
} from "./Connector.ts"
import type { Failure } from "./Failure.ts"
import { type Fill, filling, Unrenderable } from "./Rendering.ts"

/** Calls of third-party APIs. Templates make the request. Both the status and the body of the answer decide about success. */

export interface ApiCall {
  readonly url: string
  /** Flat: name, value, including the headers of the authentication. */
  readonly headers: ReadonlyArray<string>
  readonly contentType: string
  readonly body: string | Uint8Array
  /** URLs in the call that the API fetches. */
  readonly fetched?: ReadonlyArray<string>
}

const method = "POST"

interface Calling<Made> {
  /** Recorded for each call: a URL without secrets. */
  readonly shownUrl: string
  /** Throws `Unrenderable` if nothing valid can be made of this event. */
  readonly make: (fill: Fill, facts: AttemptFacts, message: Message) => Made
}

/** The call that an event becomes, or the reason why there is none. */
const made =
  <Made>({ make, shownUrl }: Calling<Made>) =>
  (message: Message, facts: AttemptFacts): Made | Refusal => {
    try {
      return make(filling(message, facts), facts, message)
    } catch (cause) {
      if (!(cause instanceof Unrenderable)) throw cause
      return new Refusal({ code: cause.code, message: cause.message, method, shownUrl })
    }
  }

const requestOf = (shownUrl: string, { body, contentType, fetched, headers, url }: ApiCall): OutboundRequest => ({
  method,
  url,
  shownUrl,
  headers: ["user-agent", "event-gateway/1", "content-type", contentType, ...headers],
  body: typeof body === "string" ? Buffer.from(body) : body,
  ...(fetched === undefined ? {} : { fetched })
})

/** Sends a POST to an API. `shownUrl` is recorded for each call: a URL without secrets. */
export const apiSender = ({
  call,
  judge,
  shownUrl
}: {
  readonly shownUrl: string
  /** Throws `Unrenderable` if no valid call can be made of this event. */
  readonly call: (fill: Fill, facts: AttemptFacts, message: Message) => ApiCall
  readonly judge: (answer: Answer) => Verdict
}): HttpSender => ({
  kind: "http",
  judge,
  prepare: made({ shownUrl, make: (...event) => requestOf(shownUrl, call(...event)) })
})

/** Calls of an API with parts of several events. */
export const apiBatch = ({
  call,
  judge,
  limits,
  part,
  shownUrl
}: Pick<BatchCalls, "limits" | "judge"> & {
  readonly shownUrl: string
  /** Throws `Unrenderable` if no valid part can be made of this event. Null: it has a call of its own. */
  readonly part: (fill: Fill, facts: AttemptFacts, message: Message) => BatchPart | null
  readonly call: (parts: ReadonlyArray<BatchPart>) => ApiCall
}): BatchCalls => ({
  method,
  shownUrl,
  limits,
  judge,
  part: made({ shownUrl, make: part }),
  call: (parts) => requestOf(shownUrl, call(parts))
})

/** Headers by name, flat. */
export const flat = (headers: Readonly<Record<string, string>>): ReadonlyArray<string> => Object.entries(headers).flat()

export const json = "application/json; charset=utf-8"
export const form = "application/x-www-form-urlencoded; charset=utf-8"

/** Limit of a decompressed answer (bytes): a target may compress its answer without being asked. */
const maxDecoded = 1024 * 1024

/** The object in an answer's body; empty if the body is no object, or was cut. */
export const answered = ({ body, bodyTruncated, headers }: Answer): Readonly<Record<string, unknown>> => {
  const plain = bodyTruncated ? null : decodedBody(body, headers["content-encoding"], maxDecoded)
  if (plain === null) return {}
  const parsed = parseJson(plain)
  return parsed.kind === "json" && typeof parsed.value === "object" && parsed.value !== null
    ? (parsed.value as Readonly<Record<string, unknown>>)
    : {}
}

/** Whether the answer is a web page, for example of a proxy or a load balancer. The APIs called here never answer with one. */
const isPage = ({ body, headers }: Partial<Pick<Answer, "headers" | "body">>): boolean =>
  /^text\/html\b/i.test(String(headers?.["content-type"] ?? "")) ||
  (body !== undefined && /^\s*<(?:!doctype\s+html|html)\b/i.test(body.toString("latin1", 0, 256)))

/**
 * Accepts a success only with proof that the API itself answered, because a proxy or a captive portal also answers 200. The failure is not
 * final: the proxy may be gone at the next attempt.
 */
export const proved = (answer: Answer, verdict: Verdict, isProof: boolean): Verdict =>
  verdict !== "successful" || isProof
    ? verdict
    : {
        code: "BAD_RESPONSE",
        message: isPage(answer)
          ? `HTTP ${answer.status} with a page, and not the API's answer: something stands between the gateway and the API`
          : `HTTP ${answer.status} without what the API answers when it has done what it was asked`,
        final: false
      }

/** Whether a truncated answer, which cannot be parsed, begins like a JSON object. */
export const beginsAsObject = ({ body, bodyTruncated }: Answer, pattern = /^\s*\{\s*"/): boolean =>
  bodyTruncated && pattern.test(body.toString("latin1", 0, 64))

/** Whether the same request would get the same status again; other statuses may change. */
const isLasting = (status: number): boolean =>
  status >= 400 && status < 500 && ![408, 409, 423, 425, 429].includes(status)

/**
 * The meaning of an API's status: 2xx is success. A request that the API refuses would be refused again. Refused
 * credentials are not final, because they may be corrected while retries last. `said`: the API's own error code, if there is one.
 */
export const judgeCall = (
  answer: Pick<Answer, "status"> & Partial<Pick<Answer, "headers" | "body">>,
  said?: unknown
): Verdict => {
  const { status } = answer
  if (status >= 200 && status < 300) return "successful"
  if (status === 401 || status === 403) return rejected(`HTTP ${status}`, said)
  // A web page is not the API's answer, so the failure is not final.
  return failed(status, said, isLasting(status) && !isPage(answer))
}

/** Adds the refused part of a call to a verdict: `where` is the API's text, used only if it repeats nothing that was sent. */
export const located = (verdict: Verdict, where: string | null): Verdict =>
  verdict === "successful" || where === null || !/^[\w .,:;'/[\]()-]{1,200}$/.test(where)
    ? verdict
    : { ...verdict, message: `${verdict.message}: ${where}` }

/** A failure that does not concern the credentials. */
export const failed = (status: number, said: unknown, final: boolean): Failure => ({
  code: "BAD_RESPONSE",
  message: withDetail(`HTTP ${status} from the API`, said),
  final
})

/** Adds the waiting time that the API gives in its body, if there is one. */
export const waiting = (verdict: Verdict, seconds: unknown): Verdict =>
  verdict !== "successful" && typeof seconds === "number" && seconds >= 0
    ? { ...verdict, retryAfter: Math.ceil(seconds) }
    : verdict

/**
 * Seconds until the time (Unix seconds) in a header, measured from the answer's own date, so that the clocks of two machines need not
 * agree. Null if either is missing.
 */
export const untilReset = ({ headers }: Pick<Answer, "headers">, name: string): number | null => {
  const [reset, date] = [headers[name], headers["date"]]
  if (typeof reset !== "string" || !/^\d{1,12}$/.test(reset) || typeof date !== "string") return null
  const seconds = Number(reset) - Date.parse(date) / 1000
  return seconds > 0 ? seconds : null
}

/** The target refuses the destination's credentials. */
export const rejected = (what: string, said?: unknown): Failure => ({
  code: "AUTH_REJECTED",
  message: withDetail(`the API does not take the destination's credentials: ${what}`, said),
  final: false
})

/** An API's error code is shown only if it is a plain word or number, because it may repeat what was sent. */
const withDetail = (message: string, said: unknown): string =>
  (typeof said === "string" && /^[\w.-]{1,64}$/.test(said)) || typeof said === "number"
    ? `${message} (${said})`
    : message

/** The API understood the call and refused it. */
export const refused = (said: unknown, final: boolean): Failure => ({
  code: "BAD_RESPONSE",
  message: withDetail("the API has refused the call", said),
  final
})

/** `bytes`: the size as the service counts it. */
export const withinLimit = (bytes: number, limit: number): void => {
  if (bytes > limit) {
    throw new Unrenderable(
      `the message has ${bytes} bytes, and the service takes at most ${limit}`,
      "REQUEST_TOO_LARGE"
    )
  }
}
