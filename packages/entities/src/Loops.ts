import { hkdfSync, type KeyObject, randomBytes } from "node:crypto"
import { Context } from "effect"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Values } from "@tidegate/model/Message"
import { type LoopKeys, readChain, writeChain } from "@tidegate/outbound-auth/LoopMark"

/** How far what leads back to the gateway may go. */
export interface LoopLimits {
  /** How often a chain of requests may have left the gateway. */
  readonly hops: number
  /** Requests that one may have come to in a minute, whichever way. */
  readonly descendants: number
}

export const loopLimits: LoopLimits = { hops: 10, descendants: 1_000 }

const windowMs = 60_000
/** First requests that are counted, some 200 bytes each. The one that was begun to be counted first goes first: a chain is still as deep as it is. */
const maxRoots = 20_000

/** The chains of requests that lead back to the gateway, bounded in depth and in breadth. */
export interface Loops {
  /** The value of `gateway-loop` for whatever leaves the gateway because of the request `id` with those headers. */
  readonly next: (headers: Values, id: string) => string
  /**
   * Whether a request with those headers may begin anything; counts it when it is in a chain.
   *
   * The depth is exact, because it is in the request. The breadth is counted by each process for itself, in memory: the door asks nobody, and what a count
   * that is lost lets through is bounded by the depth all the same. So of N processes with doors or workflows, each takes the limit once. Whoever has been sent a
   * mark can use up what is left of it: it stops nothing but what comes of the request that they were sent.
   */
  readonly admits: (headers: Values) => boolean
}

export const makeLoops = (keys: LoopKeys, limits: LoopLimits, now: () => number = () => performance.now()): Loops => {
  const counted = new Map<string, { readonly since: number; count: number }>()
  /** Deliveries of one request follow each other. */
  let lastHeaders: Values | null = null
  let lastId = ""
  let lastNext = ""

  const isWithin = (root: string): boolean => {
    const at = now()
    const known = counted.get(root)
    if (known !== undefined && at - known.since < windowMs) return ++known.count <= limits.descendants
    counted.delete(root)
    if (counted.size >= maxRoots) counted.delete(counted.keys().next().value!)
    counted.set(root, { since: at, count: 1 })
    return limits.descendants > 0
  }

  return {
    next: (headers, id) => {
      if (lastId !== id || lastHeaders !== headers) {
        lastNext = writeChain(keys, readChain(keys, headers, id))
        lastHeaders = headers
        lastId = id
      }
      return lastNext
    },
    admits: (headers) => {
      if (headers[loopHeader] === undefined) return true
      const { hops, root } = readChain(keys, headers, "")
      return hops <= limits.hops && (hops === 0 || isWithin(root))
    }
  }
}

/** The keys of marks, of the keys of the ring: marks of a process are taken by all that have its key. */
export const loopKeysOf = ([first, ...others]: readonly [KeyObject, ...ReadonlyArray<KeyObject>]): LoopKeys => {
  const derived = (key: KeyObject): string =>
    Buffer.from(hkdfSync("sha256", key, "", "tidegate loop marks v1", 32)).toString("hex")
  return [derived(first), ...others.map(derived)]
}

/** The process's; with a key of its own unless the application gives it those of the ring. */
export const Loops = Context.Reference<Loops>("@tidegate/entities/Loops", {
  defaultValue: () => makeLoops([randomBytes(32).toString("hex")], loopLimits)
})
