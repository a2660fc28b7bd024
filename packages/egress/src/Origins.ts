import { Pool } from "undici"
import type { Guard } from "./Guard.ts"

export interface OriginsOptions {
  readonly guard: Pick<Guard, "connect">
  readonly connectionsPerOrigin: number
  readonly maxIdleOrigins: number
  readonly maxConnections: number
}

/** One scheme, host and port: its connections, and how many exchanges hold it. */
export interface Origin {
  readonly key: string
  readonly pool: Pool
  inFlight: number
  idleSince: number
}

/** How long an idle connection is kept unless the target names a time; below what common servers keep. */
const keepAliveMs = 4_000
/** The longest a target's own `keep-alive` hint is followed. */
const maxKeepAliveMs = 30_000
const sweepMs = 1_000

/**
 * The open origins. Each has its own pool of connections; an origin nobody uses is closed once its connections cannot be
 * alive any more, or earlier, longest idle first, when more than `maxIdleOrigins` are idle or there are more than `maxConnections`.
 * So memory and descriptors follow the number of targets in use, not of those ever seen.
 *
 * Not undici's `Agent`, which keeps an origin for good once as many requests as it may have connections failed to connect.
 */
export const makeOrigins = (options: OriginsOptions) => {
  const open = new Map<string, Origin>()
  /** In the order in which they fell idle. */
  const idle = new Set<Origin>()
  let connections = 0

  const connect: Guard["connect"] = (target, callback) =>
    options.guard.connect(target, (...result) => {
      if (result[0] === null) {
        connections++
        result[1].once("close", () => connections--)
        // One goes for each that comes: closing them all would have them all opened again.
        const [longestIdle] = idle
        if (connections > options.maxConnections && longestIdle !== undefined) close(longestIdle)
      }
      callback(...result)
    })

  const create = (key: string): Origin => {
    const pool = new Pool(key, {
      connect,
      connections: options.connectionsPerOrigin,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: maxKeepAliveMs,
      // Each exchange has its own budget; undici's timers are coarse and would be a second one.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    const origin: Origin = { key, pool, inFlight: 0, idleSince: 0 }
    open.set(key, origin)
    return origin
  }

  const close = (origin: Origin): void => {
    open.delete(origin.key)
    idle.delete(origin)
    void origin.pool.destroy()
  }

  const closeIdle = (isDue: (origin: Origin) => boolean): void => {
    for (const origin of idle) {
      if (!isDue(origin)) break
      close(origin)
    }
  }

  const sweeper = setInterval(() => {
    const limit = performance.now() - maxKeepAliveMs
    closeIdle((origin) => origin.idleSince < limit)
  }, sweepMs).unref()

  return {
    /** The origin for a key such as `https://example.com:8443`, held until `release`. */
    acquire: (key: string): Origin => {
      const origin = open.get(key) ?? create(key)
      if (origin.inFlight++ === 0) idle.delete(origin)
      closeIdle(() => idle.size > options.maxIdleOrigins)
      return origin
    },
    release: (origin: Origin): void => {
      if (--origin.inFlight > 0) return
      origin.idleSince = performance.now()
      idle.add(origin)
    },
    /** How many origins are open, in use or idle. */
    size: (): number => open.size,
    /** Cuts every connection; what is still in flight ends as cancelled. */
    destroy: async (): Promise<void> => {
      clearInterval(sweeper)
      const pools = [...open.values()].map((origin) => origin.pool)
      open.clear()
      idle.clear()
      await Promise.all(pools.map((pool) => pool.destroy()))
    }
  }
}
