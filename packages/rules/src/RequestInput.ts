import { parseJson, utf8 } from "@tidegate/model/JsonText"
import { type MessageHead, parseQuery, type Values } from "@tidegate/model/Message"
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
export const parseBody = (headers: Values, body: Uint8Array): Json => {
  const type = headers["content-type"]
  if (form(typeof type === "string" ? type : undefined) === "text") return utf8(body)
  const parsed = parseJson(body)
  return parsed.kind === "json" ? (parsed.value as Json) : utf8(body)
}
