import { isUtf8 } from "node:buffer"
import type { Headers } from "../SignatureScheme.ts"
import { singleHeader } from "./Presented.ts"

/**
 * Reads forms as providers post them. A form is read before its sender is verified. So a form with more fields than any provider's, or with
 * longer names, is refused; fields that are not requested are not kept; and the worst 10 MiB take about 30 ms. For this reason neither
 * URLSearchParams (1.3 s for 10 MiB of `+`) nor a streaming multipart parser (90 ms for a boundary of 70 `a`) is used.
 */
const maxFields = 1_000
const longestName = 1_024
const longestPartHead = 4_096

export interface FormField {
  readonly name: string
  readonly value: Buffer
}

const mediaType = (headers: Headers): string => singleHeader(headers, "content-type") ?? ""

const essence = (type: string): string => (type.split(";", 1)[0] ?? "").trim().toLowerCase()

const asBuffer = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer =>
  Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)

const ampersand = 0x26
const equals = 0x3d
const plus = 0x2b
const percent = 0x25
const space = 0x20

const hexDigit = (code: number): number => {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Decodes `+` and escapes; an invalid escape stays as it is. Plain loops, because the bytes are untrusted and may be many. */
const decoded = (text: Buffer): Buffer => {
  const escapeAt = text.indexOf(percent)
  if (escapeAt < 0 && text.indexOf(plus) < 0) return text
  const bytes = new Uint8Array(text)
  const end = bytes.length
  const plainEnd = escapeAt < 0 ? end : escapeAt
  for (let at = 0; at < plainEnd; at++) if (bytes[at] === plus) bytes[at] = space
  let length = plainEnd
  for (let at = plainEnd; at < end; at++) {
    const code = bytes[at]!
    const high = code === percent && at + 2 < end ? hexDigit(bytes[at + 1]!) : -1
    const low = high < 0 ? -1 : hexDigit(bytes[at + 2]!)
    if (low < 0) bytes[length++] = code === plus ? space : code
    else {
      bytes[length++] = high * 16 + low
      at += 2
    }
  }
  return Buffer.from(bytes.buffer, 0, length)
}

/**
 * The fields of a URL-encoded form in their order, or only those among `names`. Null if the body is no such form, is not UTF-8, or
 * exceeds the limits.
 */
export const formBody = (
  headers: Headers,
  body: Uint8Array,
  names?: ReadonlyArray<string>
): ReadonlyArray<FormField> | null => {
  if (essence(mediaType(headers)) !== "application/x-www-form-urlencoded" || !isUtf8(body)) return null
  const text = asBuffer(body)
  const fields: Array<FormField> = []
  let parts = 0
  for (let at = 0; at < text.length;) {
    // Empty parts count too: a body of separators alone costs as much as fields.
    if (parts++ === maxFields) return null
    const found = text.indexOf(ampersand, at)
    const end = found < 0 ? text.length : found
    if (end > at) {
      const field = text.subarray(at, end)
      const equalsAt = field.indexOf(equals)
      const name = equalsAt < 0 ? field : field.subarray(0, equalsAt)
      if (name.length > longestName) return null
      const known = decoded(name).toString("utf8")
      if (names?.includes(known) !== false) {
        fields.push({ name: known, value: decoded(field.subarray(name.length + 1)) })
      }
    }
    at = end + 1
  }
  return fields
}

/** One parameter of a header at a time: `; name=token` or `; name="quoted"`. */
const parameter = /[ \t]*;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\\r\n]|\\[^\r\n])*)"|([^\s";,]+))/gy

/** The parameters after the first word of a header; null if one occurs twice, or if the rest has any other form. */
const parametersOf = (header: string): ReadonlyMap<string, string> | null => {
  const parameters = new Map<string, string>()
  const text = header.replace(/[ \t]*;?[ \t]*$/, "")
  const start = text.indexOf(";")
  if (start < 0) return parameters
  parameter.lastIndex = start
  while (parameter.lastIndex < text.length) {
    const found = parameter.exec(text)
    if (found === null) return null
    const [, name = "", quoted, token] = found
    if (parameters.has(name.toLowerCase())) return null
    parameters.set(name.toLowerCase(), token ?? quoted?.replaceAll(/\\(.)/g, "$1") ?? "")
  }
  return parameters
}

const boundaryForm = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/

/** The field name in the head of a part; null if the part is a file or has no name. */
const fieldNameOf = (head: string): string | null => {
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":")
    if (line.slice(0, colon).toLowerCase() !== "content-disposition") continue
    const disposition = line.slice(colon + 1).trim()
    const parameters = essence(disposition) === "form-data" ? parametersOf(disposition) : null
    return parameters === null || parameters.has("filename") || parameters.has("filename*")
      ? null
      : (parameters.get("name") ?? null)
  }
  return null
}

const dashes = Buffer.from("--")
const lineEnd = Buffer.from("\r\n")
const headEnd = Buffer.from("\r\n\r\n")

/**
 * The fields among `names` of a multipart form, in their order. Null if the body is no such form, is incomplete, does not begin with
 * its first part, or exceeds the limits.
 */
const multipartFields = (
  type: string,
  body: Uint8Array,
  names: ReadonlyArray<string>
): ReadonlyArray<FormField> | null => {
  const boundary = parametersOf(type)?.get("boundary")
  if (boundary === undefined || !boundaryForm.test(boundary)) return null
  const bytes = asBuffer(body)
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1")
  const startsWith = (expected: Buffer, at: number): boolean =>
    bytes.length >= at + expected.length && bytes.compare(expected, 0, expected.length, at, at + expected.length) === 0

  // The first delimiter has no line before it.
  if (!startsWith(delimiter.subarray(lineEnd.length), 0)) return null
  const fields: Array<FormField> = []
  let at = delimiter.length - lineEnd.length
  for (let parts = 0; !startsWith(dashes, at); parts++) {
    if (parts === maxFields || !startsWith(lineEnd, at)) return null
    // The head may be empty: then it ends where the delimiter's line ends.
    const headLength = bytes.subarray(at, at + longestPartHead).indexOf(headEnd)
    if (headLength < 0) return null
    const start = at + headLength + headEnd.length
    const end = bytes.indexOf(delimiter, start - lineEnd.length)
    if (end < 0) return null
    const name = fieldNameOf(bytes.toString("latin1", at + lineEnd.length, at + headLength))
    if (name !== null && names.includes(name)) fields.push({ name, value: bytes.subarray(Math.min(start, end), end) })
    at = end + delimiter.length
  }
  return fields
}

/**
 * The fields among `names` of a form of either kind. Null if the body is no form, or if one of them occurs twice: it is unknown which of
 * the two was signed.
 */
export const formFields = (
  headers: Headers,
  body: Uint8Array,
  names: ReadonlyArray<string>
): ReadonlyMap<string, string> | null => {
  const type = mediaType(headers)
  const fields =
    essence(type) === "multipart/form-data" ? multipartFields(type, body, names) : formBody(headers, body, names)
  if (fields === null) return null
  const found = new Map<string, string>()
  for (const { name, value } of fields) {
    if (found.has(name) || !isUtf8(value)) return null
    found.set(name, value.toString("utf8"))
  }
  return found
}

/** Whether the headers declare the body as a form, of either kind. */
export const isForm = (headers: Headers): boolean =>
  ["application/x-www-form-urlencoded", "multipart/form-data"].includes(essence(mediaType(headers)))
