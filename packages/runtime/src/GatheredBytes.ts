/**
 * Bytes that come piece by piece, kept in one buffer of at most `limit` bytes: a body that comes byte by byte would otherwise
 * cost hundreds of bytes for each. A first piece is kept as it is, because most bodies come in one.
 */
export class GatheredBytes {
  readonly #limit: number
  /** What was gathered is its first `#length` bytes. */
  #buffer: Buffer = nothing
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get length(): number {
    return this.#length
  }

  /** The memory that is held, in bytes: at most twice the length, and at most the limit. */
  get held(): number {
    return this.#buffer.length
  }

  /** Keeps as much of a piece as there is room for; whether that was all of it. */
  add(piece: Buffer): boolean {
    const room = this.#limit - this.#length
    const kept = piece.length > room ? piece.subarray(0, room) : piece
    const length = this.#length + kept.length
    if (this.#length === 0) {
      this.#buffer = kept
    } else {
      if (length > this.#buffer.length) this.#grow(Math.min(this.#limit, Math.max(length, this.#length * 2)))
      kept.copy(this.#buffer, this.#length)
    }
    this.#length = length
    return kept === piece
  }

  /** All that was gathered, in a buffer that holds nothing else. */
  take(): Buffer {
    if (this.#buffer.length !== this.#length) this.#grow(this.#length)
    return this.#buffer
  }

  #grow(capacity: number): void {
    // Not from the pool, whose slabs outlive what was cut from them.
    const grown = Buffer.allocUnsafeSlow(capacity)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}

const nothing = Buffer.alloc(0)
