import { type ParsedJson, parseJson, parsingJson, utf8 } from "@tidegate/json/JsonText"
import { type MessageHead, parseQuery, type Values } from "@tidegate/model/Message"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { Json } from "@tidegate/model/Rule"
import type { FilterInput } from "./Filter.ts"

/** What rules are asked about. */
export interface RequestInput extends FilterInput {
  readonly method: string
}

/** What rules are asked about; the body and the query are parsed when the first rule asks for them. */
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
    body: () => (parsedBody ??= { value: parseBody(request.headers, body) }).value
  }
}

const form = (contentType: string | undefined): "json" | "text" | "unknown" =>
  contentType === undefined ? "unknown" : /[/+]json\b/i.test(contentType) ? "json" : "text"

/**
 * The body as rules see it: parsed when it is JSON (or does not say what it is and parses), else its text. A body that
 * says it is JSON and is not stays text, and so does one that costs too much to parse: it is never rejected for that.
 */
export const parseBody = (headers: Values, body: Uint8Array): Json =>
  isText(headers) ? utf8(body) : read(parseJson(body), body)

/** The same in parts, of one that may be large. */
export function* parsingBody(headers: Values, body: Uint8Array): Resumable<Json> {
  return isText(headers) ? utf8(body) : read(yield* parsingJson(body), body)
}

const isText = ({ "content-type": type }: Values): boolean =>
  form(typeof type === "string" ? type : undefined) === "text"

const read = (parsed: ParsedJson, body: Uint8Array): Json =>
  parsed.kind === "json" ? (parsed.value as Json) : utf8(body)
