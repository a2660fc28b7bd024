import { parseJson } from "@tidegate/model/JsonText"
import type { Message } from "@tidegate/model/Message"
import {
  type Answer,
  type AttemptFacts,
  type Failure,
  type HttpSender,
  type OutboundRequest,
  Refusal,
  type Verdict
} from "./Connector.ts"
import { type Fill, filling, Unrenderable } from "./Rendering.ts"

/** Calls of somebody's API: what is sent is made of templates, and what the answer means stands in its body too. */

export interface ApiCall {
  readonly url: string
  /** Flat: name, value. Those of the authentication among them. */
  readonly headers: ReadonlyArray<string>
  readonly contentType: string
  readonly body: string
  /** URLs in it that the API fetches. */
  readonly fetched?: ReadonlyArray<string>
}

const method = "POST"

/** POSTs to an API. `shownUrl` is what is recorded of each call: a URL with no secret in it. */
export const apiSender = ({
  call,
  judge,
  shownUrl
}: {
  readonly shownUrl: string
  /** Throws `Unrenderable` when nothing that can be sent is made of this event. */
  readonly call: (fill: Fill, facts: AttemptFacts) => ApiCall
  readonly judge: (answer: Answer) => Verdict
}): HttpSender => ({
  kind: "http",
  judge,
  prepare: (message: Message, facts: AttemptFacts): OutboundRequest | Refusal => {
    try {
      const { body, contentType, fetched, headers, url } = call(filling(message, facts), facts)
      return {
        method,
        url,
        shownUrl,
        headers: ["user-agent", "event-gateway/1", "content-type", contentType, ...headers],
        body: Buffer.from(body),
        ...(fetched === undefined ? {} : { fetched })
      }
    } catch (cause) {
      if (!(cause instanceof Unrenderable)) throw cause
      return new Refusal({ code: "TEMPLATE_ERROR", message: cause.message, method, shownUrl })
    }
  }
})

/** Headers by name, flat. */
export const flat = (headers: Readonly<Record<string, string>>): ReadonlyArray<string> => Object.entries(headers).flat()

export const json = "application/json; charset=utf-8"
export const form = "application/x-www-form-urlencoded; charset=utf-8"

/** The object that an answer's body is; empty when it is none, or was cut. */
export const answered = ({ body, bodyTruncated }: Answer): Readonly<Record<string, unknown>> => {
  if (bodyTruncated) return {}
  const parsed = parseJson(body)
  return parsed.kind === "json" && typeof parsed.value === "object" && parsed.value !== null
    ? (parsed.value as Readonly<Record<string, unknown>>)
    : {}
}

/** Asked again, the same is said of the same request; the others may pass. */
const isLasting = (status: number): boolean =>
  status >= 400 && status < 500 && ![408, 409, 423, 425, 429].includes(status)

/**
 * What the status of an API's answer means: 2xx is success. A request that is refused as it is would be refused again. Refused
 * credentials may be mended while the retries last. `said`: the API's own word for it, as far as it is one.
 */
export const judgeCall = ({ status }: Pick<Answer, "status">, said?: unknown): Verdict => {
  if (status >= 200 && status < 300) return "successful"
  return status === 401 || status === 403 ? rejected(`HTTP ${status}`, said) : failed(status, said, isLasting(status))
}

/** An answer that is none of success, and not about the credentials. */
export const failed = (status: number, said: unknown, final: boolean): Failure => ({
  code: "BAD_RESPONSE",
  message: told(`HTTP ${status} from the API`, said),
  final
})

/** The same with the wait that the API asks for in its body, where it does. */
export const waiting = (verdict: Verdict, seconds: unknown): Verdict =>
  verdict !== "successful" && typeof seconds === "number" && seconds >= 0
    ? { ...verdict, retryAfter: Math.ceil(seconds) }
    : verdict

/**
 * Seconds until the moment (Unix seconds) that a header names. By the answer's own date, so that the clocks of two machines need
 * not agree; null when it says either not.
 */
export const untilReset = ({ headers }: Pick<Answer, "headers">, name: string): number | null => {
  const [reset, date] = [headers[name], headers["date"]]
  if (typeof reset !== "string" || !/^\d{1,12}$/.test(reset) || typeof date !== "string") return null
  const seconds = Number(reset) - Date.parse(date) / 1000
  return seconds > 0 ? seconds : null
}

/** The credentials of the destination are not taken. */
export const rejected = (what: string, said?: unknown): Failure => ({
  code: "AUTH_REJECTED",
  message: told(`the API does not take the destination's credentials: ${what}`, said),
  final: false
})

/** An API's word is shown when it is a plain one: it may repeat what it was sent. */
const told = (message: string, said: unknown): string =>
  (typeof said === "string" && /^[\w.-]{1,64}$/.test(said)) || typeof said === "number"
    ? `${message} (${said})`
    : message

/** The API has understood the call, and says no. */
export const refused = (said: unknown, final: boolean): Failure => ({
  code: "BAD_RESPONSE",
  message: told("the API has refused the call", said),
  final
})
