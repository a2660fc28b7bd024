import { bodyLimits, measureJson, type ParsedJson, parseJson, parsingJson, utf8 } from "@tidegate/json/JsonText"
import { type MessageHead, parseQuery, type Values } from "@tidegate/model/Message"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { Json } from "@tidegate/model/Rule"
import type { FilterInput } from "./Filter.ts"

/** The request as rules read it. */
export interface RequestInput extends FilterInput {
  readonly method: string
  /** Parses the body in steps, for a body that may be large; afterwards `body` returns it at once. */
  readonly parsing: () => Resumable<void>
  /**
   * The body's text, if `JSON.parse` reads it as rules do, at little cost and with every digit; if it is no JSON, rules read the text.
   * Null: only `body` has it so, or it is parsed already.
   */
  readonly jsonText: () => string | null
}

/** The request as rules read it; body and query are parsed on first use. */
export const requestInput = (request: MessageHead, body: Uint8Array): RequestInput => {
  let parsedBody: { readonly value: Json } | undefined
  let parsedQuery: ReturnType<typeof parseQuery> | undefined
  return {
    headers: request.headers,
    path: request.path,
    method: request.method,
    get query() {
      return (parsedQuery ??= parseQuery(request.query))
    },
    body: () => (parsedBody ??= { value: parseBody(request.headers, body) }).value,
    jsonText: () => {
      if (parsedBody !== undefined || isText(request.headers)) return null
      const { excess, mayRound } = measureJson(body, bodyLimits)
      return excess === null && !mayRound ? utf8(body) : null
    },
    *parsing() {
      parsedBody ??= { value: yield* parsingBody(request.headers, body) }
    }
  }
}

const form = (contentType: string | undefined): "json" | "text" | "unknown" =>
  contentType === undefined ? "unknown" : /[/+]json\b/i.test(contentType) ? "json" : "text"

/**
 * The body as rules read it: parsed if it is JSON (or has no content type and can be parsed), else its text. A body that
 * claims to be JSON and is not stays text, and so does one that costs too much to parse: the request is never rejected for that.
 */
export const parseBody = (headers: Values, body: Uint8Array): Json =>
  isText(headers) ? utf8(body) : read(parseJson(body), body)

/** The same, resumable, for a body that may be large. */
export function* parsingBody(headers: Values, body: Uint8Array): Resumable<Json> {
  return isText(headers) ? utf8(body) : read(yield* parsingJson(body), body)
}

const isText = ({ "content-type": type }: Values): boolean =>
  form(typeof type === "string" ? type : undefined) === "text"

const read = (parsed: ParsedJson, body: Uint8Array): Json =>
  parsed.kind === "json" ? (parsed.value as Json) : utf8(body)
