import type { Socket } from "node:net"
import { clientOf } from "@tidegate/model/ClientAddress"
import { metrics } from "@tidegate/telemetry/Metrics"

export interface HandshakeLimits {
  /** From the connection to the proven key, however many bytes come meanwhile. */
  readonly deadlineMs: number
  /** Connections that have not proven their key yet: in all, and from one address. */
  readonly most: number
  readonly maxPerAddress: number
}

/** Connections from one address that ended without a proven key. */
export interface Refusals {
  /** Null: of addresses that were too many to be named. */
  readonly address: string | null
  readonly count: number
  /** Of the last one. */
  readonly reason: string
}

/** How often an address is named, and how many are named in that time: a flood must not fill the log. */
const telling = { everyMs: 10_000, addresses: 16 }

interface Pending {
  readonly raw: Socket
  readonly address: string
  readonly deadline: NodeJS.Timeout
}

/** Names a connection from both of its faces, the bare socket and the one with TLS over it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/**
 * The connections that have not proven a key yet. There are never more than the limits say: a new one displaces the oldest
 * of its address, or of all. An honest peer is done within milliseconds, so that those who say nothing or flood displace
 * each other and not it.
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

  /** A connection has come. */
  begin(raw: Socket): void {
    // Gone before it was looked at.
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

  /** It has proven its key. */
  succeed(socket: Socket): void {
    this.#settle(nameOf(socket))
  }

  /** It has failed to; it is closed. */
  fail(socket: Socket, reason: string): void {
    this.#refuse(nameOf(socket), reason)
  }

  /** Closes what is pending, and says what has not been said yet. */
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

  /** The first of an address is told at once, those that follow in a while in one line. */
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
