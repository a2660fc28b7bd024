import { hkdfSync, type KeyObject, randomBytes } from "node:crypto"
import { Context } from "effect"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Values } from "@tidegate/model/Message"
import { type LoopKeys, readChain, systemRoot, writeChain } from "@tidegate/outbound-auth/LoopMark"

/** The limits of requests that lead back to the gateway. */
export interface LoopLimits {
  /** How often a chain of requests may have left the gateway. */
  readonly hops: number
  /** Requests that may follow from one request within a minute, over all paths. */
  readonly descendants: number
}

export const loopLimits: LoopLimits = { hops: 10, descendants: 1_000 }

const windowMs = 60_000
/**
 * First requests that are counted, some 200 bytes each. When there are more, the one counted for the longest time is dropped: the
 * depth of its chain stays limited.
 */
const maxRoots = 20_000

/** Limits the depth and the breadth of chains of requests that lead back to the gateway. */
export interface Loops {
  /** The value of `gateway-loop` for anything that leaves the gateway because of the request `id` with these headers. */
  readonly next: (headers: Values, id: string) => string
  /** The same for one call because of several requests: the mark of the one that is the deepest in its chain. */
  readonly nextOfAll: (requests: ReadonlyArray<{ readonly headers: Values; readonly requestId: string }>) => string
  /**
   * Whether a request with these headers may start anything; counts it when it is in a chain.
   *
   * The depth is exact, because it is in the request. The breadth is counted by each process in its memory: ingress asks no other
   * process. When a count is lost, the depth still limits what follows. So with N processes that have ingress or workflows, the
   * limit holds N times. A receiver of a mark can use up the rest of its limit: that stops only what follows from the request
   * that was sent to it.
   */
  readonly admits: (headers: Values) => boolean
  /** The value of `gateway-loop` for a system event of a team: it says of all that follows from the event where it comes from. */
  readonly beginSystem: (teamId: string) => string
  /**
   * Whether a request with these headers follows from a system event of the team. No system event is made of what goes wrong with
   * it: otherwise a broken destination of system events would cause events for ever, on whatever way they reach it.
   */
  readonly isSystem: (headers: Values, teamId: string) => boolean
  /**
   * How deep a request with these headers is in its chain, as a text: empty for one that is in no chain. Those that follow from a
   * system event have other texts.
   */
  readonly depthOf: (headers: Values, teamId: string) => string
}

export const makeLoops = (keys: LoopKeys, limits: LoopLimits, now: () => number = () => performance.now()): Loops => {
  const counted = new Map<string, { readonly since: number; count: number }>()
  /** Deliveries of one request usually follow each other. */
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
    nextOfAll: (requests) => {
      const chains = requests.map(({ headers, requestId }) => readChain(keys, headers, requestId))
      return writeChain(
        keys,
        chains.reduce((deepest, chain) => (chain.hops > deepest.hops ? chain : deepest))
      )
    },
    admits: (headers) => {
      if (headers[loopHeader] === undefined) return true
      const { hops, root } = readChain(keys, headers, "")
      return hops <= limits.hops && (hops === 0 || isWithin(root))
    },
    beginSystem: (teamId) => writeChain(keys, { root: systemRoot(teamId), hops: 0, others: [] }),
    isSystem: (headers, teamId) =>
      headers[loopHeader] !== undefined && readChain(keys, headers, "").root === systemRoot(teamId),
    depthOf: (headers, teamId) => {
      if (headers[loopHeader] === undefined) return ""
      const { hops, root } = readChain(keys, headers, "")
      return root === systemRoot(teamId) ? `system ${hops}` : hops === 0 ? "" : `${hops}`
    }
  }
}

/** The keys of loop marks, derived from the keys of the ring: all processes that have the key accept each other's marks. */
export const loopKeysOf = ([first, ...others]: readonly [KeyObject, ...ReadonlyArray<KeyObject>]): LoopKeys => {
  const derived = (key: KeyObject): string =>
    Buffer.from(hkdfSync("sha256", key, "", "tidegate loop marks v1", 32)).toString("hex")
  return [derived(first), ...others.map(derived)]
}

/** The loop limits of the process, with a random key unless the application provides those of the ring. */
export const Loops = Context.Reference<Loops>("@tidegate/entities/Loops", {
  defaultValue: () => makeLoops([randomBytes(32).toString("hex")], loopLimits)
})
