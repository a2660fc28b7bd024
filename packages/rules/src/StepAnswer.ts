import type { Json } from "@tidegate/model/Rule"
import { isJsonObject } from "@tidegate/json/ExactNumber"
import type { CustomReply } from "./CustomResponse.ts"
import { settableHeaders } from "./ResponseHeaders.ts"

/** The answer to a sender that a step of a workflow has given as its output. */

/** The largest body, in characters. */
const longestBody = 1_048_576

const inJson = "application/json; charset=utf-8"
const inXml = "application/xml; charset=utf-8"
const asText = "text/plain; charset=utf-8"

const bodyless: ReadonlySet<number> = new Set([204, 205, 304])

const isStatus = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 200 && value <= 599

/** A page cannot be answered: it would run in browsers with the origin of the API. */
const mediaTypeOf = (body: Json, headers: Readonly<Record<string, unknown>>): string => {
  if (typeof body !== "string") return inJson
  const written = headers["content-type"]
  const named = typeof written === "string" ? /^[a-z]+\/(?:[\w.+-]+\+)?(json|xml)\b/i.exec(written)?.[1] : undefined
  if (named === undefined) return asText
  return named.toLowerCase() === "xml" ? inXml : inJson
}

/**
 * An output with an HTTP status (of an HTTP request or a destination) is the answer itself: status, headers and body. Of an output
 * with a body and no status (of a transformation) the body is the answer; any other output is it as JSON. Null: it is too long.
 */
export const stepAnswer = (output: Json): CustomReply | null => {
  const members = isJsonObject(output) ? output : {}
  const has = (name: string): boolean => Object.hasOwn(members, name)
  const status = has("status") && isStatus(members["status"]) ? members["status"] : null
  const body = (status !== null || has("body") ? (members["body"] ?? null) : output) as Json
  const given = status !== null && isJsonObject(members["headers"]) ? members["headers"] : {}
  const text = body === null ? "" : typeof body === "string" ? body : JSON.stringify(body)
  if (text.length > longestBody) return null
  return {
    status: status ?? 200,
    contentType: mediaTypeOf(body, given),
    headers: settableHeaders(given),
    body: bodyless.has(status ?? 200) ? "" : text
  }
}
