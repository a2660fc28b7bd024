import { isJsonNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import { nameNames, valueNames } from "@tidegate/redaction/NamedValues"
import { redactedInPreviews as mask } from "@tidegate/redaction/SecretValues"
import { isSecretHere } from "./SecretHere.ts"
import type { Resumable } from "./StepKind.ts"

/** The number of remembered secrets of a run. When a run has more, nothing of its texts is shown. */
const maxTexts = 100
/** Shorter secrets would match anywhere. */
const shortest = { whole: 4, within: 6 } as const
/** JSON values processed between two yields. */
const valuesAtOnce = 256
/** The short check does not look deeper than this. */
const maxLevels = 32
/** In a longer text each search is followed by a yield. */
const longText = 16_384
/** A credential after the name of its scheme. */
const schemed = /^(?:basic|bearer|token) (\S{8,})$/i

/**
 * The values that appeared under secret names in a run. A template may move them to any other name, and code may put them into
 * any text. They are masked wherever they appear again: in previews and in error messages. Fails closed: everything inside a
 * value with a secret name is secret.
 */
export class SecretTexts {
  readonly #texts = new Set<string>()
  /** With their encoded copies, all in lower case: operations and code may change the case of a text. */
  readonly #known = new Set<string>()
  #within: ReadonlyArray<string> = []
  #isFull = false

  /** Whether there were none. */
  get isEmpty(): boolean {
    return this.#texts.size === 0
  }

  /** Whether there were more than can be remembered. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Remembers the values that appear under secret names in a value. It has its own loop: it pauses, and what is in a secret is secret. */
  *learn(value: Json): Resumable<void> {
    if (!mayTeach(value)) return
    const before = this.#texts.size
    const left: Array<readonly [value: Json, isSecret: boolean]> = [[value, false]]
    let seen = 0
    for (let next = left.pop(); next !== undefined && !this.#isFull; next = left.pop()) {
      if (++seen % valuesAtOnce === 0) yield
      const [inner, isSecret] = next
      if (Array.isArray(inner)) {
        let isNamed = false
        for (const item of inner as ReadonlyArray<Json>) {
          left.push([item, isSecret || isNamed])
          isNamed = !isNamed && typeof item === "string" && item.length <= 128 && isSecretHere(item)
        }
      } else if (isJsonObject(inner)) {
        const entries = Object.entries(inner as { readonly [name: string]: Json })
        const isNamed = entries.some(
          ([name, of]) => typeof of === "string" && of.length <= 128 && nameNames.test(name) && isSecretHere(of)
        )
        for (const [name, of] of entries) {
          left.push([of, isSecret || isSecretHere(name) || (isNamed && valueNames.test(name))])
        }
      } else if (isSecret && (typeof inner === "string" || isJsonNumber(inner))) {
        const text = String(inner)
        this.#add(text)
        // The credential alone, as code takes it out of such a header.
        const credential = text.length <= longText ? schemed.exec(text)?.[1] : undefined
        if (credential !== undefined) this.#add(credential)
      }
    }
    // The longest first: masking a shorter secret inside a longer one would show the rest of the longer one.
    if (this.#texts.size > before) {
      this.#within = [...this.#known]
        .filter(({ length }) => length >= shortest.within)
        .toSorted((left, right) => right.length - left.length)
    }
  }

  #add(text: string): void {
    if (text.length < shortest.whole || text === mask) return
    if (this.#texts.size >= maxTexts && !this.#texts.has(text)) this.#isFull = true
    else if (!this.#texts.has(text)) {
      this.#texts.add(text)
      this.#known.add(inOneCase(text))
      if (text.length >= shortest.within) for (const copy of copiesOf(text)) this.#known.add(inOneCase(copy))
    }
  }

  /**
   * Masks secrets in a free text, such as an error's, including the beginning of a secret at a cut end. When there were more than
   * can be remembered, it is not known what the text contains, and all of it is masked.
   */
  *message(text: string): Resumable<string> {
    if (this.#isFull) return mask
    if (this.#texts.size === 0) return text
    const shown = yield* this.#text(text)
    const searched = inOneCase(shown)
    for (const secret of this.#within) {
      const beginning = secret.slice(0, shortest.within)
      for (let at = searched.indexOf(beginning); at >= 0; at = searched.indexOf(beginning, at + 1)) {
        if (secret.startsWith(searched.slice(at))) return `${shown.slice(0, at)}${mask}`
      }
    }
    return shown
  }

  /** Masks secrets in a value; returns the value itself when there are none. */
  *masked(value: Json): Resumable<Json> {
    return this.#texts.size === 0 ? value : yield* this.#value(value)
  }

  *#value(value: Json): Resumable<Json> {
    if (typeof value === "string") return yield* this.#text(value)
    if (isJsonNumber(value)) return this.#known.has(String(value)) ? mask : value
    if (typeof value !== "object" || value === null) return value
    yield
    if (Array.isArray(value)) {
      const shown: Array<Json> = []
      for (const item of value as ReadonlyArray<Json>) shown.push(yield* this.#value(item))
      return shown.every((item, i) => item === value[i]) ? value : shown
    }
    let isChanged = false
    const shown: Array<readonly [string, Json]> = []
    for (const [name, of] of Object.entries(value as { readonly [name: string]: Json })) {
      const entry = [yield* this.#text(name), yield* this.#value(of)] as const
      isChanged ||= entry[0] !== name || entry[1] !== of
      shown.push(entry)
    }
    return isChanged ? Object.fromEntries(shown) : value
  }

  *#text(text: string): Resumable<string> {
    let shown = text
    let searched = inOneCase(text)
    if (this.#known.has(searched)) return mask
    for (const secret of this.#within) {
      if (searched.length < secret.length) continue
      if (searched.length > longText) yield
      if (!searched.includes(secret)) continue
      shown = masking(shown, searched, secret)
      searched = inOneCase(shown)
    }
    return shown
  }
}

/** The length stays the same, so that a match has the same position in the original. */
const inOneCase = (text: string): string => {
  const lower = text.toLowerCase()
  return lower.length === text.length ? lower : text.replaceAll(/[A-Z]+/g, (part) => part.toLowerCase())
}

/** `searched`: the text in lower case. */
const masking = (text: string, searched: string, secret: string): string => {
  let shown = ""
  let from = 0
  for (let at = searched.indexOf(secret); at >= 0; at = searched.indexOf(secret, from)) {
    shown += text.slice(from, at) + mask
    from = at + secret.length
  }
  return shown + text.slice(from)
}

/** Longer texts get no encoded copies: they are documents and not credentials. */
const longestCopied = 4_096

/**
 * The base64 characters of bytes inside a longer sequence that depend on these bytes only. `before`: the number of preceding
 * bytes, modulo 3.
 */
const base64Within = (bytes: Buffer, before: number): string => {
  const characters = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64")
  return characters.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
}

/** The forms that templates, operations and code may give a text: encoded, escaped, or in another case. */
const copiesOf = (text: string): ReadonlyArray<string> => {
  if (text.length > longestCopied) return []
  const bytes = Buffer.from(text)
  const url = encodeURIComponent(text.toWellFormed())
  return [
    bytes.toString("base64"),
    bytes.toString("base64url"),
    // For example inside `user:secret`.
    ...[0, 1, 2].flatMap((before) => {
      const within = base64Within(bytes, before)
      return [within, within.replaceAll("+", "-").replaceAll("/", "_")]
    }),
    bytes.toString("hex"),
    url,
    url.replaceAll("%20", "+"),
    JSON.stringify(text).slice(1, -1),
    // As Markdown.
    text.replaceAll(/[\\*_`[\]]/g, String.raw`\$&`),
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
  ].filter((copy) => copy !== text && copy.length >= shortest.within)
}

/** Whether `learn` may find something in a value; usually a short check excludes it. */
export const mayTeach = (value: Json): boolean => glance(value, valuesAtOnce, 0) < 0

const isSecretText = (value: Json): boolean => typeof value === "string" && value.length <= 128 && isSecretHere(value)

/**
 * A short check whether names in a value may be secret. Returns how many more values may be examined, or -1 when a secret is
 * possible. It has its own search for speed: each stored step passes it.
 */
const glance = (value: Json, most: number, level: number): number => {
  if (typeof value !== "object" || value === null) return most - 1
  if (level >= maxLevels) return -1
  let left = most - 1
  if (Array.isArray(value)) {
    for (const item of value as ReadonlyArray<Json>) {
      if (left < 0 || isSecretText(item)) return -1
      left = glance(item, left, level + 1)
    }
    return left
  }
  const members = value as { readonly [name: string]: Json }
  for (const name of Object.keys(members)) {
    const of = members[name]!
    if (left < 0 || isSecretHere(name) || (nameNames.test(name) && isSecretText(of))) return -1
    left = glance(of, left, level + 1)
  }
  return left
}
