/** The `Prefer` header of RFC 7240, as far as the gateway knows preferences. */

/** Of a header that is longer nothing is read: no preference is needed to understand a call. */
const longest = 4_096

const blank = /[ \t]*/y
const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y
const quoted = /"((?:[^"\\]|\\.)*)"/y

/** Reads from the beginning to the end, and never goes back. */
class Reading {
  private at = 0
  private readonly text: string

  constructor(text: string) {
    this.text = text
  }

  get isOver(): boolean {
    return this.at >= this.text.length
  }

  /** What `pattern` fits here; null when it does not. */
  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found !== null) this.at = pattern.lastIndex
    return found
  }

  /** Whether `mark` stands here, with any space around it. */
  skip(mark: string): boolean {
    this.take(blank)
    if (this.text[this.at] !== mark) return false
    this.at += 1
    this.take(blank)
    return true
  }

  /** `name` or `name=value`, with what it means; null for none. */
  pair(): { readonly name: string; readonly value: string } | null {
    const name = this.take(token)?.[0]
    if (name === undefined) return null
    if (!this.skip("=")) return { name: name.toLowerCase(), value: "" }
    const text = this.take(quoted)?.[1]?.replaceAll(/\\(.)/g, "$1")
    return { name: name.toLowerCase(), value: text ?? this.take(token)?.[0] ?? "" }
  }
}

/**
 * The value of a preference; undefined without it. Several `Prefer` headers are one, joined by commas. Of a preference that is
 * stated twice the first holds (RFC 7240, section 2); names are compared without case. What is no preference ends the reading.
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
