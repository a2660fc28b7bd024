import { isUtf8 } from "node:buffer"
import { Result, type Schema } from "effect"
import { bodyLimits, excessIn, parseJson, utf8 } from "@tidegate/json/JsonText"
import { visitJson } from "@tidegate/json/VisitJson"
import type { Values } from "@tidegate/model/Message"
import type { BodyEncoding } from "@tidegate/model/Request"

/** Of a text with more bytes only the beginning is shown: writing all of it as JSON would block all other work. */
const textAtMost = 1024 * 1024
/** How much of a larger text is shown, in bytes. */
const previewBytes = 64 * 1024

const jsonType = /^(?:application|text)\/(?:[\w.+-]+\+)?json\b/i

export interface ReadableBody {
  readonly body: Schema.Json
  readonly encoding: BodyEncoding
  /** Whether `body` is the beginning only. */
  readonly isPreview: boolean
  /** Why a JSON body is not shown as its value; null: it is, or the body is no JSON. */
  readonly reason: string | null
}

/**
 * How many JSON values all bodies of one answer may have together; it is counted down. An answer is serialized in one go. A body
 * that no longer fits is shown as text.
 */
export interface ValueBudget {
  values: number
}

export const valueBudget = (): ValueBudget => ({ values: bodyLimits.values })

const saysJson = (contentType: string | null): boolean => contentType === null || jsonType.test(contentType)

/** A body as JSON shows it: its value when it is valid JSON and its content type is JSON or absent; else text, else base64. */
export const readBody = (bytes: Uint8Array, contentType: string | null, budget = valueBudget()): ReadableBody => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isUtf8(buffer)) return { body: buffer.toString("base64"), encoding: "base64", isPreview: false, reason: null }
  const parsed = saysJson(contentType) ? parseJson(buffer, { ...bodyLimits, values: budget.values }) : notJson
  if (parsed.kind === "json") {
    budget.values -= parsed.values
    const value = parsed.value as Schema.Json
    if (isFinite(value)) return { body: value, encoding: "json", isPreview: false, reason: null }
  }
  const isPreview = buffer.length > textAtMost
  return {
    body: isPreview ? startOf(buffer) : buffer.toString("utf8"),
    encoding: "text",
    isPreview,
    reason:
      parsed.kind === "invalid" || parsed.kind === "json"
        ? null
        : parsed.kind === "values" && budget.values < bodyLimits.values
          ? tooManyTogether
          : `the body ${excessIn(parsed.kind)}`
  }
}

const notJson = { kind: "invalid" } as const
const tooManyTogether = `the bodies of this answer have more than ${bodyLimits.values} JSON values together`

/** The beginning of UTF-8, cut between characters. */
const startOf = (buffer: Buffer): string => {
  let end = previewBytes
  while ((buffer[end]! & 0xc0) === 0x80) end--
  return buffer.toString("utf8", 0, end)
}

/**
 * The likely encoding of a body that is too large to read here, by its content type and its beginning. Only the detail knows
 * whether it is valid JSON to its end.
 */
export const likelyEncoding = (start: Uint8Array, contentType: string | null): BodyEncoding => {
  // A character that is cut at the end: its first byte and the bytes after it.
  let end = start.length
  while (start.length - end < 3 && (start[end - 1]! & 0xc0) === 0x80) end--
  end = !isUtf8(start) && start[end - 1]! >= 0xc0 ? end - 1 : start.length
  if (!isUtf8(start.subarray(0, end))) return "base64"
  return saysJson(contentType) && /^\s*[[{"\dtfn-]/.test(utf8(start.subarray(0, end))) ? "json" : "text"
}

/** Whether JSON can write every number of a value: `1e999` parses to infinity. */
const isFinite = (root: Schema.Json): boolean =>
  visitJson(root, (value) => typeof value !== "number" || Number.isFinite(value))

const isText = (value: unknown): value is string => typeof value === "string"

/** By hand: a page has hundreds of headers' objects, and a schema takes as long for them as for all other parts of their records. */
const isValues = (parsed: unknown): parsed is Values =>
  typeof parsed === "object" &&
  parsed !== null &&
  !Array.isArray(parsed) &&
  Object.values(parsed).every((value) => isText(value) || (Array.isArray(value) && value.every(isText)))

/** Headers as stored: a JSON object of lower-case names. */
export const readHeaders = (text: string): Values => {
  const parsed = Result.getOrNull(Result.try((): unknown => JSON.parse(text)))
  return isValues(parsed) ? parsed : {}
}

export const headerOf = (headers: Values, name: string): string | null => {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return value === undefined ? null : typeof value === "string" ? value : (value[0] ?? null)
}
