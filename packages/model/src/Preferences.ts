/** The `Prefer` header of RFC 7240, for the preferences that the gateway knows. */

/** A longer header is ignored: a call can be understood without any preference. */
const longest = 4_096

const blank = /[ \t]*/y
const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y
const quoted = /"((?:[^"\\]|\\.)*)"/y

/** Reads a text from beginning to end without going back. */
class Reading {
  private at = 0
  private readonly text: string

  constructor(text: string) {
    this.text = text
  }

  get isOver(): boolean {
    return this.at >= this.text.length
  }

  /** The match of `pattern` at the current position; null when there is none. */
  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found !== null) this.at = pattern.lastIndex
    return found
  }

  /** Whether `mark` is at the current position, with optional spaces around it. */
  skip(mark: string): boolean {
    this.take(blank)
    if (this.text[this.at] !== mark) return false
    this.at += 1
    this.take(blank)
    return true
  }

  /** Reads `name` or `name=value`; null when there is neither. */
  pair(): { readonly name: string; readonly value: string } | null {
    const name = this.take(token)?.[0]
    if (name === undefined) return null
    if (!this.skip("=")) return { name: name.toLowerCase(), value: "" }
    const text = this.take(quoted)?.[1]?.replaceAll(/\\(.)/g, "$1")
    return { name: name.toLowerCase(), value: text ?? this.take(token)?.[0] ?? "" }
  }
}

/**
 * The value of a preference; undefined without it. Several `Prefer` headers count as one, joined by commas. The first of a
 * repeated preference is used (RFC 7240, section 2); names are compared without case. Reading stops at malformed text.
 */
export const preferenceOf = (header: string | undefined, name: string): string | undefined => {
  if (header === undefined || header.length > longest) return undefined
  const reading = new Reading(header)
  while (!reading.isOver) {
    if (reading.skip(",")) continue
    const preference = reading.pair()
    if (preference?.name === name) return preference.value
    while (reading.skip(";")) reading.pair()
    if (!reading.isOver && !reading.skip(",")) return undefined
  }
  return undefined
}
