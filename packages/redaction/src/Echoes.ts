import type { Values } from "@tidegate/model/Message"
import { maskSecret } from "./Masking.ts"

/** Shorter ones stand in answers by chance, and hide nothing that could not be guessed. */
const minLength = 8
/** Values that are looked for, at the most: each costs a search of every answer. */
const most = 16

/** A value as it may stand in an answer: as it is, in a JSON string, or in a URL. */
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
 * Takes the credentials of a delivery out of what its target has answered: some targets send back what they were sent, and what is kept of an answer
 * is read by whoever may read attempts, who need not be one that may read the credential.
 */
export class Echoes {
  readonly #hidden: ReadonlyArray<Hidden>

  /** The longest first: one may be part of another. */
  private constructor(hidden: ReadonlyArray<Hidden>) {
    this.#hidden = hidden.toSorted((a, b) => b.bytes.length - a.bytes.length)
  }

  /** Null: there is nothing to be hidden, and so nothing is searched. */
  static of(secrets: ReadonlyArray<string>): Echoes | null {
    const hidden = secrets.slice(0, most).flatMap(hiddenOf)
    return hidden.length === 0 ? null : new Echoes(hidden)
  }

  /** What hides one more, too. */
  static with(echoes: Echoes | null, secret: string): Echoes {
    return new Echoes([...(echoes === null ? [] : echoes.#hidden), ...hiddenOf(secret)])
  }

  text(value: string): string {
    let shown = value
    for (const { mask, text } of this.#hidden) if (shown.includes(text)) shown = shown.replaceAll(text, mask)
    return shown
  }

  /** `isCut`: what follows was not kept, so that it may end amid a credential. */
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
