import { Schema } from "effect"

/** Headers or a parsed query: a name and its value, or its values in the order received. */
export const Values = Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)]))
export type Values = typeof Values.Type

/** An HTTP request in the form that it has from ingress to its target, without its body. */
export interface MessageHead {
  readonly method: string
  /** The part after a source's (or a destination's) own URL, undecoded; begins with a slash. */
  readonly path: string
  /** Without the question mark, undecoded. */
  readonly query: string
  /** By lower-case name; a repeated header is a list. */
  readonly headers: Values
}

/** A message with its body. */
export interface Message extends MessageHead {
  readonly body: Uint8Array
}

/** A head as it is stored: `headers` is the text of a JSON object. */
export interface StoredHead extends Omit<MessageHead, "headers"> {
  readonly headers: string
}

/** The headers of a stored head. We wrote them, with limited size. */
export const storedHeaders = ({ headers }: StoredHead): Values => JSON.parse(headers) as Values

/** The head that was stored in this form. */
export const messageHead = (stored: StoredHead): MessageHead => ({
  method: stored.method,
  path: stored.path,
  query: stored.query,
  headers: storedHeaders(stored)
})

/** Parses a query into values by name; a repeated name is a list. The object has no inherited names. */
export const parseQuery = (query: string): Values => {
  const parsed: Record<string, string | Array<string>> = Object.create(null)
  if (query === "") return parsed
  for (const [name, value] of new URLSearchParams(query)) {
    const known = parsed[name]
    if (known === undefined) parsed[name] = value
    else if (typeof known === "string") parsed[name] = [known, value]
    else known.push(value)
  }
  return parsed
}
