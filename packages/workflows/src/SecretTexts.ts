import { isJsonNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import { nameNames, valueNames } from "@tidegate/redaction/NamedValues"
import { redactedInPreviews as mask } from "@tidegate/redaction/SecretValues"
import { isSecretHere } from "./SecretHere.ts"
import type { Resumable } from "./StepKind.ts"

/** So many texts are remembered of a run: of one that has more, nothing is shown. */
const maxTexts = 100
/** Shorter ones are in anything. */
const shortest = { whole: 4, within: 6 } as const
/** Values between two parts of the work. */
const valuesAtOnce = 256
/** Nothing that is nested so deep is told at a glance. */
const maxLevels = 32
/** In a longer text each search is a part of the work. */
const longText = 16_384
/** A credential behind the name of its scheme. */
const schemed = /^(?:basic|bearer|token) (\S{8,})$/i

/**
 * What has stood under secret names in a run: a template moves it under any other name, and code may put it into any text. It is masked wherever it
 * comes again, whatever it is called there: in what is shown of values, and in what is told of failures. It fails closed: what is under a secret name is
 * secret with all that is in it.
 */
export class SecretTexts {
  readonly #texts = new Set<string>()
  /** With their copies, all in one case: operations and code write a text in another one. */
  readonly #known = new Set<string>()
  #within: ReadonlyArray<string> = []
  #isFull = false

  /** Whether there were none. */
  get isEmpty(): boolean {
    return this.#texts.size === 0
  }

  /** Whether there were more than are remembered. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Remembers what a value has under secret names. */
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
    // The longest first: what is left of one that holds another would tell its ends.
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
   * A text that somebody made up, as an error's: without them, also without the beginning of one where it was cut off. Where there were more than are
   * remembered nobody can tell what is in it, and nothing of it is left.
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

  /** A value without them; itself where there is none. */
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

/** As long as it was: what is found in it is at the same place. */
const inOneCase = (text: string): string => {
  const lower = text.toLowerCase()
  return lower.length === text.length ? lower : text.replaceAll(/[A-Z]+/g, (part) => part.toLowerCase())
}

/** `searched`: the text in one case. */
const masking = (text: string, searched: string, secret: string): string => {
  let shown = ""
  let from = 0
  for (let at = searched.indexOf(secret); at >= 0; at = searched.indexOf(secret, from)) {
    shown += text.slice(from, at) + mask
    from = at + secret.length
  }
  return shown + text.slice(from)
}

/** Of a longer one nobody makes copies: it is a document, and no credential. */
const longestCopied = 4_096

/** What base64 makes of bytes that stand behind others, and before some: all that follows from them alone. `before`: the others, modulo 3. */
const base64Within = (bytes: Buffer, before: number): string => {
  const characters = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64")
  return characters.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
}

/** How templates, operations and code write a text that they were given: encoded, or escaped; in other letters, all of them. */
const copiesOf = (text: string): ReadonlyArray<string> => {
  if (text.length > longestCopied) return []
  const bytes = Buffer.from(text)
  const url = encodeURIComponent(text.toWellFormed())
  return [
    bytes.toString("base64"),
    bytes.toString("base64url"),
    // Of `user:secret`, for one.
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

/** Whether `learn` may find something in a value: of most it is plain that it will not. */
export const mayTeach = (value: Json): boolean => glance(value, valuesAtOnce, 0) < 0

const isSecretText = (value: Json): boolean => typeof value === "string" && value.length <= 128 && isSecretHere(value)

/**
 * Whether plainly nothing in a value is named as a secret, told without taking it apart: of most it is so. How many values are left of those that may be
 * looked at, or -1, which says nothing.
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
