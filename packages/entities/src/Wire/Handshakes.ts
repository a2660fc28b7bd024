import type { Socket } from "node:net"
import { clientOf } from "@tidegate/model/ClientAddress"
import { metrics } from "@tidegate/telemetry/Metrics"

export interface HandshakeLimits {
  /** The time from the connection to the proven key, however many bytes arrive meanwhile. */
  readonly deadlineMs: number
  /** Limits of connections that have not proven their key yet: in all, and from one address. */
  readonly max: number
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
const reporting = { everyMs: 10_000, addresses: 16 }

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
  readonly #report: (refusals: Refusals) => void
  readonly #refused = new Map<string | null, { count: number; reason: string }>()
  #reporting: NodeJS.Timeout | null = null

  constructor(limits: HandshakeLimits, report: (refusals: Refusals) => void) {
    this.#limits = limits
    this.#report = report
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
    else if (this.#pending.size > this.#limits.max) this.#refuse(this.#pending.keys().next().value!, "displaced")
  }

  /** The peer has proven its key. */
  succeed(socket: Socket): void {
    this.#remove(nameOf(socket))
  }

  /** The peer has failed to prove its key; the connection is closed. */
  fail(socket: Socket, reason: string): void {
    this.#refuse(nameOf(socket), reason)
  }

  /** Closes pending connections and logs the refusals that are not logged yet. */
  close(): void {
    for (const [name, { raw }] of this.#pending) {
      this.#remove(name)
      raw.destroy()
    }
    if (this.#reporting !== null) clearTimeout(this.#reporting)
    this.#flush()
  }

  #remove(name: string): Pending | undefined {
    const pending = this.#pending.get(name)
    this.#pending.delete(name)
    clearTimeout(pending?.deadline)
    return pending
  }

  #refuse(name: string, reason: string): void {
    const pending = this.#remove(name)
    if (pending === undefined) return
    pending.raw.destroy()
    this.#count(pending.address, reason)
  }

  /** The first refusal of an address is logged at once, later ones together after a while. */
  #count(address: string, reason: string): void {
    metrics.refusedPeers.add()
    const known = this.#refused.has(address)
    const named = known || this.#refused.size < reporting.addresses ? address : null
    const counted = this.#refused.get(named)
    if (counted !== undefined) {
      counted.count++
      counted.reason = reason
    } else {
      this.#refused.set(named, { count: 0, reason })
      this.#report({ address: named, count: 1, reason })
    }
    this.#reporting ??= setTimeout(() => this.#flush(), reporting.everyMs).unref()
  }

  #flush(): void {
    this.#reporting = null
    for (const [address, { count, reason }] of this.#refused) if (count > 0) this.#report({ address, count, reason })
    this.#refused.clear()
  }
}
