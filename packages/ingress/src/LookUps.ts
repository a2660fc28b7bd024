import type { IncomingMessage } from "node:http"
import { clientOf } from "@tidegate/model/ClientAddress"
import type { TrustedProxies } from "@tidegate/model/TrustedProxies"

/**
 * Requests of one process that may wait until their source is looked up. Anybody can make up names, a connection may have hundreds of
 * requests under way, and each look-up of an unknown name takes a statement.
 */
const maxWaiting = 4_096
/** Those of one client address: half, so that a flood leaves places for the others. */
const maxOfAddress = maxWaiting / 2

/** Limits the requests that wait for a look-up. */
export class LookUps {
  readonly #proxies: TrustedProxies
  #all = 0
  readonly #addresses = new Map<string, number>()

  constructor(proxies: TrustedProxies) {
    this.#proxies = proxies
  }

  /** Takes a place, and returns how to give it back. "busy": the client address has too many. "full": the process has. */
  enter({ headers, socket }: IncomingMessage): (() => void) | "busy" | "full" {
    if (this.#all >= maxWaiting) return "full"
    const address = clientOf(this.#proxies.clientOf(socket.remoteAddress, headers) ?? "")
    const before = this.#addresses.get(address) ?? 0
    if (before >= maxOfAddress) return "busy"
    this.#all++
    this.#addresses.set(address, before + 1)
    return () => {
      this.#all--
      const left = this.#addresses.get(address)! - 1
      if (left === 0) this.#addresses.delete(address)
      else this.#addresses.set(address, left)
    }
  }
}
