import { clientOf } from "@tidegate/model/ClientAddress"
import { GatheredBytes } from "@tidegate/runtime/GatheredBytes"
import type { TrustedProxies } from "@tidegate/model/TrustedProxies"
import type { FramedMessage } from "./wire/FramedMessage.ts"

/**
 * What bodies may hold that are being read, wait for their turn to be decided about or answered, or are kept for an upstream
 * that has not answered, in one process.
 */
const maxBytes = 256 * 1024 * 1024
/** Bodies being read in one process. */
const maxBodies = 2_048

/**
 * What one source, or one client address, may have of either: half, so that a flood at one leaves the others room, and a
 * reverse proxy that nobody has named (`TrustedProxies`), behind whose one address all senders are, still gets a multiple of what senders have under way at once.
 */
const share = 1 / 2

/** How reading a body ended. */
export type Outcome =
  | { readonly kind: "whole"; readonly body: Buffer }
  /** More than the largest; `size` is what is known of it. */
  | { readonly kind: "too large"; readonly size: number }
  /** The source, or the sender's address, has too much under way. */
  | { readonly kind: "busy" }
  /** The process has. */
  | { readonly kind: "full" }

interface Load {
  bodies: number
  bytes: number
}

/** The bodies that the door reads, and the memory that they take. Sheds before it falls over: what does not fit is not read. */
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

  /** Counts bytes of a body that is kept although it has been read; negative: no longer. */
  keep(bytes: number): void {
    this.#all.bytes += bytes
  }

  /**
   * A body of at most `largest` bytes, counted as one of `sourceId`. `done` is called once, or never when the sender goes away or is cut off. Whether reading has begun; else the outcome is
   * known without.
   */
  read(message: FramedMessage, sourceId: string, largest: number, done: (outcome: Outcome) => void): boolean {
    // Gone while its source was looked up: nothing would tell that again.
    if (message.destroyed) return false
    const declared = message.headers["content-length"]
    const announced = declared === undefined ? largest : Number(declared)
    if (announced > largest) {
      done({ kind: "too large", size: announced })
      return false
    }
    // A length that was announced is all that will come: no room is made for more. Null: reading is over.
    let gathered: GatheredBytes | null = new GatheredBytes(announced)
    /** Null while there is nothing to count: most bodies come in one piece, and are gone again within the turn. */
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

  /** Counts a body of which there is more to come. */
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

/** What one body takes of what there is. */
interface Place {
  /** Says how much memory it takes now; null: there is room for that. */
  readonly hold: (bytes: number) => Outcome | null
  readonly leave: () => void
}

const exceeds = ({ bodies, bytes }: Load): boolean => bodies > maxBodies * share || bytes > maxBytes * share

const loadOf = (loads: Map<string, Load>, key: string): Load => {
  let load = loads.get(key)
  if (load === undefined) loads.set(key, (load = { bodies: 0, bytes: 0 }))
  return load
}
