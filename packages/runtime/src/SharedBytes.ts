/**
 * Bytes of memory that many owners share, as `FairSemaphore` shares permits: each may hold as many as are left over after it, so that some are always
 * free for an owner that comes later.
 */
export class SharedBytes {
  readonly #max: number
  #held = 0

  constructor(max: number) {
    this.#max = max
  }

  get free(): number {
    return this.#max - this.#held
  }

  /** The bytes of one owner. */
  share(): ByteShare {
    return new ByteShare(this, (bytes) => {
      this.#held += bytes
    })
  }
}

export class ByteShare {
  readonly #shared: SharedBytes
  readonly #add: (bytes: number) => void
  #held = 0

  constructor(shared: SharedBytes, add: (bytes: number) => void) {
    this.#shared = shared
    this.#add = add
  }

  get isEmpty(): boolean {
    return this.#held === 0
  }

  /** Whether the owner may hold so many more. */
  hasRoom(bytes: number): boolean {
    return this.#held + bytes <= this.#shared.free
  }

  /** Also beyond the room: what is there is counted. */
  hold(bytes: number): void {
    this.#held += bytes
    this.#add(bytes)
  }

  release(bytes: number): void {
    this.hold(-bytes)
  }
}
