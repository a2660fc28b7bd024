import { isExactNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { createHash, hash } from "node:crypto"
import { readJson } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import type { PayloadPreview } from "@tidegate/model/WorkflowRun"
import { Redactor } from "@tidegate/redaction/Redactor"
import { redactedInPreviews as mask } from "@tidegate/redaction/SecretValues"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import { isSecretHere, secretIn } from "./SecretHere.ts"
import type { SecretTexts } from "./SecretTexts.ts"
import type { Resumable, StepAnswer } from "./StepKind.ts"

/**
 * The form in which people see a step's input or output. A preview is made when the value is stored, and stored beside it, so
 * readers have no secrets to mask. Fails closed: what may be a secret is treated as one.
 */
export interface Preview {
  readonly available: boolean
  readonly redacted: boolean
  readonly truncated: boolean
  readonly content_type: string
  readonly size_bytes: number
  readonly sha256: string
  readonly preview: Json
  readonly redacted_paths: ReadonlyArray<string>
  readonly reason: "too_large" | null
}

/** The usual members of a preview. */
const usual = {
  available: true,
  redacted: false,
  truncated: false,
  content_type: "application/json",
  redacted_paths: [],
  reason: null
} as const satisfies Partial<Preview>

/** A preview that shows nothing. */
const empty = {
  available: false,
  redacted: false,
  truncated: false,
  content_type: null,
  size_bytes: null,
  sha256: null,
  preview: null,
  redacted_paths: []
} as const satisfies Partial<PayloadPreview>

/** The preview of a value that is not shown, with what is known about the value. */
export const noPreview = (
  reason: PayloadPreview["reason"],
  about: Partial<Pick<PayloadPreview, "content_type" | "size_bytes" | "sha256">> = {}
): PayloadPreview => ({ ...empty, ...about, reason })

type StoredPreview = Partial<Preview> & Pick<Preview, "preview">

interface Both<Of> {
  readonly input?: Of
  readonly output?: Of
  /** The answer in the step's error, without its secrets; null: there is none any more. */
  readonly answer?: StepAnswer | null
}

/**
 * A preview as it is stored: members with the usual value are left out. Most previews show the whole value: they are stored without its size
 * and hash, which readers compute, because every run writes previews and few are read.
 */
const storedPreview = (preview: Preview): StoredPreview => {
  const { available, content_type, reason, redacted, redacted_paths, truncated, ...stored } = preview
  const isUsual = available && !redacted && !truncated && content_type === usual.content_type && reason === null
  return isUsual && redacted_paths.length === 0 ? stored : preview
}

/** The previews of a stored journal entry, by the positions of their steps. */
export const previewsIn = (text: string): ReadonlyArray<readonly [step: number, previews: Both<Preview>]> =>
  Object.entries(readJson(text) as { readonly [step: string]: Both<StoredPreview> }).map(
    ([step, { answer, input, output }]) => [
      Number(step),
      {
        ...(answer === undefined ? {} : { answer }),
        ...(input === undefined ? {} : { input: wholePreview(input) }),
        ...(output === undefined ? {} : { output: wholePreview(output) })
      }
    ]
  )

/** Completes a stored preview with the members that were left out. */
const wholePreview = (stored: StoredPreview): Preview => {
  const { sha256, size_bytes } = stored
  if (size_bytes !== undefined && sha256 !== undefined) return { ...usual, ...stored, size_bytes, sha256 }
  const text = JSON.stringify(stored.preview)
  return { ...usual, ...stored, size_bytes: Buffer.byteLength(text), sha256: hashOf(text) }
}

/** In bytes: a value up to the first is shown completely, up to the second in part, and beyond it not at all. */
const wholeAtMost = 16 * 1024
const partAtMost = 256 * 1024

/** The size of a partial preview. */
const part = { text: 1_024, elements: 20, levels: 8 } as const

/** Limits of the list of masked paths: their number and length (characters). */
const maxPaths = 100
const longestPath = 300

/** Masking leaves out what is nested deeper. */
const maxLevels = 256

/** The limit of previews that are stored together, in characters of JSON; it is counted down. */
export interface PreviewRoom {
  left: number
}

/**
 * The preview of a value, as resumable work. `secret`: names that are secret in it beside those that always are. `texts`: values
 * that appeared under secret names elsewhere. `room`: the remaining limit, which is reduced. A value beyond the limit gets only
 * its size and hash, like one that is too large.
 */
export function* previewOf(
  value: Json,
  secret: ReadonlyArray<string> = [],
  texts?: SecretTexts,
  room: PreviewRoom = { left: partAtMost }
): Resumable<Preview> {
  return yield* looked(value, JSON.stringify(value), secret, texts, room)
}

/**
 * The same in its stored form, as JSON: at once when the value obviously has no secret, else as resumable work. `text`: the value
 * as JSON.
 */
export const storedPreviewOf = (
  value: Json,
  texts: SecretTexts,
  room: PreviewRoom,
  text: string = JSON.stringify(value)
): string | Resumable<string> => {
  if (text.length > wholeAtMost) return storedInParts(value, text, texts, room)
  const size_bytes = Buffer.byteLength(text)
  if (!isShownAsItIs(value, text, size_bytes, glancing, texts, room)) return storedInParts(value, text, texts, room)
  return `{"preview":${text}}`
}

function* storedInParts(value: Json, text: string, texts: SecretTexts, room: PreviewRoom): Resumable<string> {
  return JSON.stringify(storedPreview(yield* looked(value, text, [], texts, room)))
}

const glancing = new Redactor(isSecretHere, mask)

const hashOf = (text: string): string => `sha256:${hash("sha256", text, "hex")}`

/** Whether a short check shows that nothing has to be masked in a value. If so, its size is taken from the limit. */
const isShownAsItIs = (
  value: Json,
  text: string,
  size_bytes: number,
  redactor: Redactor,
  texts: SecretTexts | undefined,
  room: PreviewRoom
): boolean => {
  if (size_bytes > wholeAtMost || text.length > room.left || texts?.isEmpty === false || texts?.isFull === true)
    return false
  if (!redactor.isPlain(value) || !hasNoCard(value)) return false
  room.left -= text.length
  return true
}

/** `text`: the value as JSON. */
function* looked(
  value: Json,
  text: string,
  secret: ReadonlyArray<string>,
  texts: SecretTexts | undefined,
  room: PreviewRoom
): Resumable<Preview> {
  const isLong = text.length > partAtMost
  if (isLong) yield
  const sha256 = isLong ? yield* hashInParts(text) : hashOf(text)
  const size_bytes = Buffer.byteLength(text)
  const about = { content_type: "application/json", size_bytes, sha256 }
  if (isLong) yield
  if (size_bytes > partAtMost || texts?.isFull === true) {
    return { ...empty, ...about, truncated: true, reason: "too_large" }
  }
  const isSecret = secret.length === 0 ? isSecretHere : secretIn(secret)
  const redactor = new Redactor(isSecret, mask)
  const isPart = size_bytes > wholeAtMost
  if (isShownAsItIs(value, text, size_bytes, redactor, texts, room)) return { ...usual, ...about, preview: value }
  yield
  // Cut first and masked afterwards, so that masking sees what will be shown.
  const whole = isPart ? beginningOf(value, 1) : value
  // But a text that equals a secret is recognized only while it is complete.
  const open = texts === undefined ? value : yield* texts.masked(value)
  const seen = open === value ? whole : isPart ? beginningOf(open, 1) : open
  const preview = yield* redactor.value(withoutCards(seen, 1))
  const redacted_paths: Array<string> = []
  changes(whole, preview, "", redacted_paths)
  const isRedacted = preview !== whole
  // Masks are longer than some secrets: a value with a thousand of them would make the preview too large.
  const length = jsonLengthWithin(preview, Math.min(room.left, partAtMost))
  if (length === null) {
    return { ...empty, ...about, redacted: isRedacted, truncated: true, reason: "too_large" }
  }
  room.left -= length
  return { available: true, redacted: isRedacted, truncated: isPart, ...about, preview, redacted_paths, reason: null }
}

/** A value with all secrets masked, as in a preview. `isPart`: only the beginning of a large value. */
export function* withoutSecrets(value: Json, texts: SecretTexts, isPart = false): Resumable<Json> {
  // A text that equals a secret is recognized only while it is complete; the rest is masked as it will be shown.
  const open = yield* texts.masked(value)
  const seen = isPart ? beginningOf(open, 1) : open
  return yield* new Redactor(isSecretHere, mask).value(withoutCards(seen, 1))
}

/** Bytes that are hashed in one go: this takes one or two milliseconds. */
const hashedAtOnce = 1_048_576

function* hashInParts(text: string): Resumable<string> {
  const bytes = Buffer.from(text)
  const made = createHash("sha256")
  for (let from = 0; from < bytes.length; from += hashedAtOnce) {
    yield
    made.update(bytes.subarray(from, from + hashedAtOnce))
  }
  return `sha256:${made.digest("hex")}`
}

/** How many characters a shown value takes in an answer; null: more than `atMost`. */
export const charactersOf = (shown: Json, atMost: number): number | null => jsonLengthWithin(shown, atMost)

const beginningOf = (value: Json, level: number): Json => {
  if (typeof value === "string") {
    return value.length > part.text ? `${value.slice(0, part.text).toWellFormed()}…` : value
  }
  if (isList(value)) {
    return level > part.levels ? [] : value.slice(0, part.elements).map((element) => beginningOf(element, level + 1))
  }
  if (!isMembers(value)) return value
  return level > part.levels ? {} : mapped(value, (inner) => beginningOf(inner, level + 1))
}

type Members = { readonly [name: string]: Json }

const mapped = (members: Members, change: (value: Json) => Json): Members =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, change(value)]))

/** Masks card numbers, as text or as numbers; returns the value itself when there are none. */
const withoutCards = (value: Json, level: number): Json => {
  if (typeof value === "string") return value.length < 13 ? value : value.replace(digits, maskedCard)
  if (typeof value === "number") return value > 1e12 && isCard(String(value)) ? mask : value
  if (isExactNumber(value)) return isCard(String(value)) ? mask : value
  if (level > maxLevels) return value
  if (isList(value)) {
    let next: Array<Json> | null = null
    for (const [i, element] of value.entries()) {
      const without = withoutCards(element, level + 1)
      if (without !== element) (next ??= [...value])[i] = without
    }
    return next ?? value
  }
  if (!isMembers(value)) return value
  const entries = Object.entries(value)
  let isChanged = false
  for (const entry of entries) {
    const without = withoutCards(entry[1], level + 1)
    isChanged ||= without !== entry[1]
    entry[1] = without
  }
  // Most values have none, and are not copied.
  return isChanged ? Object.fromEntries(entries) : value
}

/** Whether a short check shows that a shallow value has no card number; false says nothing. It has its own search for speed. */
const hasNoCard = (value: Json): boolean => {
  if (typeof value === "string") return value.length < 13 || !manyDigits.test(value)
  if (typeof value === "number") return value <= 1e12
  if (isExactNumber(value)) return false
  if (isList(value)) return value.every(hasNoCard)
  if (!isMembers(value)) return true
  for (const name of Object.keys(value)) if (!hasNoCard(value[name]!)) return false
  return true
}

/** 13 to 19 digits, with single spaces or dashes between them. */
const digits = /(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)/g
const manyDigits = /\d(?:[ -]?\d){12}/

const maskedCard = (written: string): string => (isCard(written.replaceAll(/[ -]/g, "")) ? mask : written)

/** Verifies the check digit (Luhn). */
const isCard = (number: string): boolean => {
  if (!/^\d{13,19}$/.test(number)) return false
  let sum = 0
  for (let i = 0; i < number.length; i++) {
    const digit = Number(number[number.length - 1 - i])
    const counted = i % 2 === 0 ? digit : digit * 2
    sum += counted > 9 ? counted - 9 : counted
  }
  return sum % 10 === 0
}

/** Collects the paths at which a value was changed. */
const changes = (before: Json, after: Json, path: string, found: Array<string>): void => {
  if (before === after || found.length >= maxPaths) return
  if (isList(before) && isList(after) && before.length === after.length) {
    for (const [i, element] of before.entries()) changes(element, after[i]!, `${path}[${i}]`, found)
  } else if (isMembers(before) && isMembers(after)) {
    const names = Object.keys(before)
    const shown = Object.keys(after)
    // A name that is a secret was replaced: the object is reported, not the name.
    if (names.some((name, i) => shown[i] !== name)) tell(path, found)
    else for (const name of names) changes(before[name]!, after[name]!, path === "" ? name : `${path}.${name}`, found)
  } else {
    tell(path, found)
  }
}

const tell = (path: string, found: Array<string>): void => {
  found.push(path.length > longestPath ? `${path.slice(0, longestPath).toWellFormed()}…` : path)
}

const isList = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value)

const isMembers = (value: Json): value is Members => isJsonObject(value)
