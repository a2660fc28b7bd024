/** What the header of a frame says. */
export interface FrameHead {
  /** Bytes of the frame, with its header. */
  readonly size: number
  /** Its bytes are not kept, and it is not passed on. */
  readonly isDropped: boolean
}

/**
 * Cuts the bytes of an untrusted server into frames. Each has a header of a fixed length, which `begin` judges before the rest is
 * stored. Holds at most one frame.
 */
export class FrameCutter {
  readonly #header: number
  readonly #begin: (header: Buffer) => FrameHead
  /** The incomplete frame, including its header; null if it is being dropped. */
  #held: Buffer | null
  /** Bytes of it that have arrived, and how many it has as far as known. */
  #have = 0
  #size: number

  /** `header`: its length. `begin` throws if the frame must end the session. */
  constructor(header: number, begin: (header: Buffer) => FrameHead) {
    this.#header = header
    this.#begin = begin
    this.#held = Buffer.allocUnsafe(header)
    this.#size = header
  }

  /** Whether no part of a frame has arrived. */
  get isBetween(): boolean {
    return this.#have === 0
  }

  /** Passes on the frames that are complete. */
  read(chunk: Buffer, pass: (frame: Buffer) => void): void {
    let at = 0
    while (at < chunk.length) {
      const part = Math.min(chunk.length - at, this.#size - this.#have)
      if (this.#held !== null) chunk.copy(this.#held, this.#have, at, at + part)
      this.#have += part
      at += part
      if (this.#have < this.#size) return
      if (this.#size === this.#header) this.#open(this.#held!)
      if (this.#have < this.#size) continue
      const frame = this.#held
      this.#held = Buffer.allocUnsafe(this.#header)
      this.#have = 0
      this.#size = this.#header
      if (frame !== null) pass(frame)
    }
  }

  #open(header: Buffer): void {
    const { isDropped, size } = this.#begin(header)
    this.#size = size
    this.#held = isDropped ? null : Buffer.allocUnsafe(size)
    if (this.#held !== null) header.copy(this.#held)
  }
}
