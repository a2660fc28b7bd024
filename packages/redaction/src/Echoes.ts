import type { Values } from "@tidegate/model/Message"
import { maskSecret } from "./Masking.ts"

/** Shorter values occur in answers by chance, and could be guessed anyway. */
const minLength = 8
/** Maximum number of values to search for: each costs a search of every answer. */
const most = 16

/** The forms in which an answer may contain a value: unchanged, in a JSON string, or in a URL. */
const formsOf = (secret: string): ReadonlyArray<string> => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret.toWellFormed())
]

interface Hidden {
  readonly text: string
  readonly bytes: Buffer
  readonly mask: string
}

const hiddenOf = (secret: string): ReadonlyArray<Hidden> =>
  secret.length < minLength
    ? []
    : [...new Set(formsOf(secret))].map((text) => ({ text, bytes: Buffer.from(text), mask: maskSecret(secret) }))

/**
 * Masks the credentials of a delivery in its target's answer. Some targets echo what they received, and readers of attempts see the stored
 * part of an answer, but may not be allowed to read the credentials.
 */
export class Echoes {
  readonly #hidden: ReadonlyArray<Hidden>

  /** The longest first, because one may be part of another. */
  private constructor(hidden: ReadonlyArray<Hidden>) {
    this.#hidden = hidden.toSorted((a, b) => b.bytes.length - a.bytes.length)
  }

  /** Null if there is nothing to mask, so nothing is searched. */
  static of(secrets: ReadonlyArray<string>): Echoes | null {
    const hidden = secrets.slice(0, most).flatMap(hiddenOf)
    return hidden.length === 0 ? null : new Echoes(hidden)
  }

  /** Masks one secret more. */
  static with(echoes: Echoes | null, secret: string): Echoes {
    return new Echoes([...(echoes === null ? [] : echoes.#hidden), ...hiddenOf(secret)])
  }

  text(value: string): string {
    let shown = value
    for (const { mask, text } of this.#hidden) if (shown.includes(text)) shown = shown.replaceAll(text, mask)
    return shown
  }

  /** `isCut`: the value was cut here, so it may end in the middle of a credential. */
  bytes(value: Buffer, isCut: boolean): Buffer {
    let shown = value
    for (const { bytes, mask } of this.#hidden)
      if (shown.includes(bytes)) shown = replaced(shown, bytes, Buffer.from(mask))
    return isCut ? this.#withoutBeginning(shown) : shown
  }

  #withoutBeginning(value: Buffer): Buffer {
    for (const { bytes } of this.#hidden) {
      for (let length = Math.min(bytes.length, value.length) - 1; length >= minLength / 2; length--) {
        const at = value.length - length
        if (value.subarray(at).equals(bytes.subarray(0, length))) return value.subarray(0, at)
      }
    }
    return value
  }

  values(values: Readonly<Record<string, Values[string] | undefined>>): Record<string, Values[string] | undefined> {
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => [
        name,
        typeof value === "string" ? this.text(value) : value?.map((one) => this.text(one))
      ])
    )
  }
}

const replaced = (value: Buffer, part: Buffer, by: Buffer): Buffer => {
  const pieces: Array<Buffer> = []
  let from = 0
  for (let at = value.indexOf(part); at !== -1; at = value.indexOf(part, from)) {
    pieces.push(value.subarray(from, at), by)
    from = at + part.length
  }
  return Buffer.concat([...pieces, value.subarray(from)])
}
