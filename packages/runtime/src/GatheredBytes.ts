/**
 * Collects the pieces of a body in one buffer of at most `limit` bytes: a body that comes byte by byte would otherwise cost hundreds of
 * bytes for each. A first piece is kept without a copy, because most bodies come in one piece.
 */
export class GatheredBytes {
  readonly #limit: number
  /** Its first `#length` bytes are the collected ones. */
  #buffer: Buffer = nothing
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get length(): number {
    return this.#length
  }

  /** Bytes of memory in use: at most twice the length, and at most the limit. */
  get held(): number {
    return this.#buffer.length
  }

  /** Adds as much of a piece as fits. Returns whether all of it fitted. */
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

  /** Returns the collected bytes, in a buffer that holds nothing else. */
  take(): Buffer {
    if (this.#buffer.length !== this.#length) this.#grow(this.#length)
    return this.#buffer
  }

  #grow(capacity: number): void {
    // Not from Node's pool, whose slabs stay in memory as long as any slice of them.
    const grown = Buffer.allocUnsafeSlow(capacity)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}

const nothing = Buffer.alloc(0)
