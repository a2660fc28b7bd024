import { isUtf8 } from "node:buffer"
import { Option, Schema } from "effect"
import type { BodyEncoding } from "@tidegate/model/Request"

/** Headers or parsed queries: a value, or several in the order received. */
export type Values = Record<string, string | ReadonlyArray<string>>

/** Bodies larger than this are shown as the text they are: parsing them would keep everything else waiting. */
const parseAtMost = 1024 * 1024

const jsonType = /^(?:application|text)\/(?:[\w.+-]+\+)?json\b/i

export interface ReadableBody {
  readonly body: Schema.Json
  readonly encoding: BodyEncoding
}

/** A body as it can be shown in JSON: its value when it says it is JSON (or says nothing) and is, else text, else base64. */
export const readBody = (bytes: Uint8Array, contentType: string | null): ReadableBody => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isUtf8(buffer)) return { body: buffer.toString("base64"), encoding: "base64" }
  const text = buffer.toString("utf8")
  if (text !== "" && text.length <= parseAtMost && (contentType === null || jsonType.test(contentType))) {
    const value = parseJson(text)
    if (value !== undefined) return { body: value, encoding: "json" }
  }
  return { body: text, encoding: "text" }
}

/** Deeper than this, a value is shown as text: what walks it would run out of stack. */
const nestAtMost = 200

const parseJson = (text: string): Schema.Json | undefined => {
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (inString) {
      if (code === 92) i++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 91 || code === 123) {
      if (++depth > nestAtMost) return undefined
    } else if (code === 93 || code === 125) depth--
  }
  try {
    const value: unknown = JSON.parse(text)
    return isJson(value) ? value : undefined
  } catch {
    return undefined
  }
}

// A number such as 1e999 parses to infinity, which JSON cannot write.
const isJson = Schema.is(Schema.Json)

const Headers = Schema.fromJsonString(
  Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)]))
)
const decodeHeaders = Schema.decodeUnknownOption(Headers)

/** Headers as stored: a JSON object of lower-case names. */
export const readHeaders = (text: string): Values => Option.getOrElse(decodeHeaders(text), () => ({}))

export const headerOf = (headers: Values, name: string): string | null => {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return value === undefined ? null : typeof value === "string" ? value : (value[0] ?? null)
}

/** A query string as names and values; a repeated name has a list. */
export const parseQuery = (query: string): Values => {
  const values = new Map<string, string | Array<string>>()
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values.get(name)
    if (before === undefined) values.set(name, value)
    else if (typeof before === "string") values.set(name, [before, value])
    else before.push(value)
  }
  return Object.fromEntries(values)
}
