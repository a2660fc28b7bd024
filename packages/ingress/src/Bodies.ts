import { clientOf } from "@tidegate/model/ClientAddress"
import { GatheredBytes } from "@tidegate/runtime/GatheredBytes"
import type { TrustedProxies } from "@tidegate/model/TrustedProxies"
import type { FramedMessage } from "./wire/FramedMessage.ts"

/**
 * Bytes of request bodies in one process: bodies that are being read, that wait to be decided or answered, or that are kept for an
 * upstream that has not answered.
 */
const maxBytes = 256 * 1024 * 1024
/** Bodies that are being read in one process. */
const maxBodies = 2_048

/**
 * The part of either limit that one source or one client address may use: half, so that a flood at one leaves capacity for the others. An
 * untrusted reverse proxy (see `TrustedProxies`) has one address for all its senders; half is still a multiple of what they have in
 * progress at once.
 */
const share = 1 / 2

/** Result of reading a body. */
export type Outcome =
  | { readonly kind: "whole"; readonly body: Buffer }
  /** The body exceeds the limit; `size` is its size as far as known. */
  | { readonly kind: "too large"; readonly size: number }
  /** The source or the client address uses too much. */
  | { readonly kind: "busy" }
  /** The process uses too much. */
  | { readonly kind: "full" }

interface Load {
  bodies: number
  bytes: number
}

/** Limits the bodies that ingress reads, and their memory. A body that does not fit is refused before it is read. */
export class Bodies {
  readonly #proxies: TrustedProxies
  readonly #all: Load = { bodies: 0, bytes: 0 }
  readonly #sources = new Map<string, Load>()
  readonly #addresses = new Map<string, Load>()

  constructor(proxies: TrustedProxies) {
    this.#proxies = proxies
  }

  get isFull(): boolean {
    return this.#all.bodies >= maxBodies || this.#all.bytes > maxBytes
  }

  /** Bytes that are held now. */
  get heldBytes(): number {
    return this.#all.bytes
  }

  /** Counts bytes of a body that is kept after it was read; negative: the bytes are released. */
  keep(bytes: number): void {
    this.#all.bytes += bytes
  }

  /**
   * Reads a body of at most `largest` bytes and counts it for `sourceId`. `done` is called once, or never if the sender disconnects or is
   * cut off. Returns whether reading has begun; if not, the outcome is known at once.
   */
  read(message: FramedMessage, sourceId: string, largest: number, done: (outcome: Outcome) => void): boolean {
    // The sender disconnected while its source was looked up: no further event would report that.
    if (message.destroyed) return false
    const declared = message.headers["content-length"]
    const announced = declared === undefined ? largest : Number(declared)
    if (announced > largest) {
      done({ kind: "too large", size: announced })
      return false
    }
    // No more bytes than announced can come, so no more memory is reserved. Null once reading has ended.
    let gathered: GatheredBytes | null = new GatheredBytes(announced)
    /** Null while nothing has to be counted: most bodies come in one piece and are released in the same event-loop iteration. */
    let place: Place | null = null

    const end = (outcome: Outcome | null): void => {
      gathered = null
      place?.leave()
      if (outcome !== null) done(outcome)
    }
    message.on("data", (piece: Buffer) => {
      if (gathered === null) return
      const size = gathered.length + piece.length
      if (!gathered.add(piece)) return end({ kind: "too large", size })
      if (size === announced) return
      place ??= this.#enter(
        sourceId,
        clientOf(this.#proxies.clientOf(message.socket.remoteAddress, message.headers) ?? "")
      )
      const refused = place.hold(gathered.held)
      if (refused !== null) end(refused)
    })
    message.on("end", () => {
      if (gathered !== null) end({ kind: "whole", body: gathered.take() })
    })
    message.on("close", () => {
      if (gathered !== null) end(null)
    })
    return true
  }

  /** Counts a body that is not complete yet. */
  #enter(sourceId: string, client: string): Place {
    const all = this.#all
    const source = loadOf(this.#sources, sourceId)
    const address = loadOf(this.#addresses, client)
    let held = 0
    const count = (bodies: number, bytes: number): void => {
      held += bytes
      for (const load of [all, source, address]) {
        load.bodies += bodies
        load.bytes += bytes
      }
    }
    count(1, 0)
    return {
      hold: (bytes) => {
        if (bytes === held && held > 0) return null
        count(0, bytes - held)
        if (all.bodies > maxBodies || all.bytes > maxBytes) return { kind: "full" }
        return exceeds(source) || exceeds(address) ? { kind: "busy" } : null
      },
      leave: () => {
        count(-1, -held)
        if (source.bodies === 0) this.#sources.delete(sourceId)
        if (address.bodies === 0) this.#addresses.delete(client)
      }
    }
  }
}

/** The capacity that one body uses. */
interface Place {
  /** Sets the memory of the body. Returns null if it fits into the limits. */
  readonly hold: (bytes: number) => Outcome | null
  readonly leave: () => void
}

const exceeds = ({ bodies, bytes }: Load): boolean => bodies > maxBodies * share || bytes > maxBytes * share

const loadOf = (loads: Map<string, Load>, key: string): Load => {
  let load = loads.get(key)
  if (load === undefined) loads.set(key, (load = { bodies: 0, bytes: 0 }))
  return load
}
