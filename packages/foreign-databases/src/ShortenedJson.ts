const quote = 34
const backslash = 92

/** What stands in place of a text that was left out: it says how many bytes the text had. */
const leftOut = /^ left out: (\d{1,15})$/

/** The bytes that a text had in JSON; null: it was not left out. */
export const leftOutOf = (text: string): number | null => {
  const [, bytes] = leftOut.exec(text) ?? []
  return bytes === undefined ? null : Number(bytes)
}

/**
 * Keeps a JSON text as it arrives, without its long texts. So the rest of an answer can be read however large a value in it is, and no more
 * than the limits is held in memory.
 */
export class ShortenedJson {
  readonly #longestText: number
  readonly #most: number
  readonly #parts: Array<Buffer> = []
  #kept = 0
  #isInText = false
  /** The last byte was a backslash in a text. */
  #isEscaped = false
  /** The bytes of the current text, the place in what is kept where it begins, and whether it is left out. */
  #length = 0
  #begins = 0
  #isLeftOut = false

  /** Texts of more than `longestText` bytes are left out. `most`: bytes that are kept. */
  constructor(longestText: number, most: number) {
    this.#longestText = longestText
    this.#most = most
  }

  /** Takes the next bytes. False: there is more to keep than may be kept. */
  add(chunk: Buffer): boolean {
    /** The first byte that is neither kept nor left out yet. */
    let from = 0
    let at = 0
    // To search for each text would read the rest of the chunk for each.
    let nextBackslash = chunk.indexOf(backslash)
    while (at < chunk.length) {
      if (!this.#isInText) {
        const begin = chunk.indexOf(quote, at)
        at = begin < 0 ? chunk.length : begin + 1
        if (begin < 0) break
        this.#isInText = true
        this.#length = 0
        this.#begins = this.#kept + at - from
        continue
      }
      const wasEscaped = this.#isEscaped
      const end = wasEscaped ? -1 : chunk.indexOf(quote, at)
      if (nextBackslash >= 0 && nextBackslash < at) nextBackslash = chunk.indexOf(backslash, at)
      this.#isEscaped = !wasEscaped && nextBackslash >= 0 && (end < 0 || nextBackslash < end)
      const isEnd = end >= 0 && !this.#isEscaped
      const next = wasEscaped ? at + 1 : this.#isEscaped ? nextBackslash + 1 : isEnd ? end : chunk.length
      this.#length += next - at
      if (!this.#isLeftOut && this.#length > this.#longestText) {
        this.#keep(chunk.subarray(from, at))
        this.#forgetFrom(this.#begins)
        this.#isLeftOut = true
      }
      at = next
      if (this.#isLeftOut) from = at
      if (!isEnd) continue
      if (this.#isLeftOut) this.#keep(Buffer.from(` left out: ${this.#length}`))
      this.#isInText = false
      this.#isLeftOut = false
      at++
    }
    this.#keep(chunk.subarray(from))
    return this.#kept <= this.#most
  }

  /** What was kept. */
  text(): Buffer {
    return Buffer.concat(this.#parts)
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#kept += bytes.length
    this.#parts.push(bytes)
  }

  #forgetFrom(place: number): void {
    while (this.#kept > place) {
      const last = this.#parts.pop()!
      this.#kept -= last.length
      if (this.#kept < place) this.#keep(last.subarray(0, place - this.#kept))
    }
  }
}
