import { decodedBody } from "@tidegate/model/ContentCoding"
import { parseJson } from "@tidegate/json/JsonText"
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

/** More is not made of an answer that is compressed: whoever asks for nothing of the kind may be sent it all the same. */
const maxDecoded = 1024 * 1024

/** The object that an answer's body is; empty when it is none, or was cut. */
export const answered = ({ body, bodyTruncated, headers }: Answer): Readonly<Record<string, unknown>> => {
  const plain = bodyTruncated ? null : decodedBody(body, headers["content-encoding"], maxDecoded)
  if (plain === null) return {}
  const parsed = parseJson(plain)
  return parsed.kind === "json" && typeof parsed.value === "object" && parsed.value !== null
    ? (parsed.value as Readonly<Record<string, unknown>>)
    : {}
}

/** Whether it is a page: of a proxy, a portal, a load balancer. No API that is called here answers with one. */
const isPage = ({ body, headers }: Partial<Pick<Answer, "headers" | "body">>): boolean =>
  /^text\/html\b/i.test(String(headers?.["content-type"] ?? "")) ||
  (body !== undefined && /^\s*<(?:!doctype\s+html|html)\b/i.test(body.toString("latin1", 0, 256)))

/**
 * A success that the API itself has told of, and nobody in between: a page of a portal or of a proxy comes with a 200 as well. Not
 * final: what stands in between may be gone with the next attempt.
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

/** Whether what is kept of an answer begins as a JSON object, where it was cut and cannot be read. */
export const beginsAsObject = ({ body, bodyTruncated }: Answer, pattern = /^\s*\{\s*"/): boolean =>
  bodyTruncated && pattern.test(body.toString("latin1", 0, 64))

/** Asked again, the same is said of the same request; the others may pass. */
const isLasting = (status: number): boolean =>
  status >= 400 && status < 500 && ![408, 409, 423, 425, 429].includes(status)

/**
 * What the status of an API's answer means: 2xx is success. A request that is refused as it is would be refused again. Refused
 * credentials may be mended while the retries last. `said`: the API's own word for it, as far as it is one.
 */
export const judgeCall = (
  answer: Pick<Answer, "status"> & Partial<Pick<Answer, "headers" | "body">>,
  said?: unknown
): Verdict => {
  const { status } = answer
  if (status >= 200 && status < 300) return "successful"
  if (status === 401 || status === 403) return rejected(`HTTP ${status}`, said)
  // What a page says is not the API's word, and need not last.
  return failed(status, said, isLasting(status) && !isPage(answer))
}

/** A verdict that says, too, which part of a call has been refused: `where` as the API says it, as far as it is nothing that was sent. */
export const located = (verdict: Verdict, where: string | null): Verdict =>
  verdict === "successful" || where === null || !/^[\w .,:;'/[\]()-]{1,200}$/.test(where)
    ? verdict
    : { ...verdict, message: `${verdict.message}: ${where}` }

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
