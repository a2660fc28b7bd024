import type { Socket } from "node:net"
import { clientOf } from "@tidegate/model/ClientAddress"
import { metrics } from "@tidegate/telemetry/Metrics"

export interface HandshakeLimits {
  /** The time from the connection to the proven key, however many bytes arrive meanwhile. */
  readonly deadlineMs: number
  /** Limits of connections that have not proven their key yet: in all, and from one address. */
  readonly most: number
  readonly maxPerAddress: number
}

/** Connections from one address that ended without a proven key. */
export interface Refusals {
  /** Null: addresses that were too many to name. */
  readonly address: string | null
  readonly count: number
  /** The reason of the last refusal. */
  readonly reason: string
}

/** How often an address is logged, and how many addresses are logged in that time: a flood must not fill the log. */
const telling = { everyMs: 10_000, addresses: 16 }

interface Pending {
  readonly raw: Socket
  readonly address: string
  readonly deadline: NodeJS.Timeout
}

/** Identifies a connection from either of its objects, the plain socket and the TLS socket over it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/**
 * The connections that have not proven a key yet. Their number never exceeds the limits: a new connection displaces the oldest
 * one of its address, or of all. An honest peer is done within milliseconds, so silent or flooding connections displace each
 * other and not it.
 */
export class Handshakes {
  /** Oldest first. */
  readonly #pending = new Map<string, Pending>()
  readonly #limits: HandshakeLimits
  readonly #tell: (refusals: Refusals) => void
  readonly #told = new Map<string | null, { count: number; reason: string }>()
  #telling: NodeJS.Timeout | null = null

  constructor(limits: HandshakeLimits, tell: (refusals: Refusals) => void) {
    this.#limits = limits
    this.#tell = tell
  }

  get pending(): number {
    return this.#pending.size
  }

  /** A connection was opened. */
  begin(raw: Socket): void {
    // It was closed before we could look at it.
    if (raw.remoteAddress === undefined) return void raw.destroy()
    const address = clientOf(raw.remoteAddress)
    const name = nameOf(raw)
    const deadline = setTimeout(() => this.#refuse(name, "timeout"), this.#limits.deadlineMs)
    this.#pending.set(name, { raw, address, deadline })
    raw.once("close", () => {
      if (this.#pending.get(name)?.raw === raw) this.#refuse(name, "closed")
    })

    const ofAddress = [...this.#pending].filter(([, pending]) => pending.address === address)
    if (ofAddress.length > this.#limits.maxPerAddress) this.#refuse(ofAddress[0]![0], "displaced")
    else if (this.#pending.size > this.#limits.most) this.#refuse(this.#pending.keys().next().value!, "displaced")
  }

  /** The peer has proven its key. */
  succeed(socket: Socket): void {
    this.#settle(nameOf(socket))
  }

  /** The peer has failed to prove its key; the connection is closed. */
  fail(socket: Socket, reason: string): void {
    this.#refuse(nameOf(socket), reason)
  }

  /** Closes pending connections and logs the refusals that are not logged yet. */
  close(): void {
    for (const [name, { raw }] of this.#pending) {
      this.#settle(name)
      raw.destroy()
    }
    if (this.#telling !== null) clearTimeout(this.#telling)
    this.#flush()
  }

  #settle(name: string): Pending | undefined {
    const pending = this.#pending.get(name)
    this.#pending.delete(name)
    clearTimeout(pending?.deadline)
    return pending
  }

  #refuse(name: string, reason: string): void {
    const pending = this.#settle(name)
    if (pending === undefined) return
    pending.raw.destroy()
    this.#count(pending.address, reason)
  }

  /** The first refusal of an address is logged at once, later ones together after a while. */
  #count(address: string, reason: string): void {
    metrics.refusedPeers.add()
    const known = this.#told.has(address)
    const named = known || this.#told.size < telling.addresses ? address : null
    const counted = this.#told.get(named)
    if (counted !== undefined) {
      counted.count++
      counted.reason = reason
    } else {
      this.#told.set(named, { count: 0, reason })
      this.#tell({ address: named, count: 1, reason })
    }
    this.#telling ??= setTimeout(() => this.#flush(), telling.everyMs).unref()
  }

  #flush(): void {
    this.#telling = null
    for (const [address, { count, reason }] of this.#told) if (count > 0) this.#tell({ address, count, reason })
    this.#told.clear()
  }
}
