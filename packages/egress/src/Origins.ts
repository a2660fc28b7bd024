import { Pool } from "undici"
import type { Guard } from "./Guard.ts"
import { metered } from "./WireMeter.ts"

export interface OriginsOptions {
  readonly guard: Pick<Guard, "connect">
  readonly connectionsPerOrigin: number
  /** Of one pool. Default: all of an origin's, so that whoever waits for one gets the first that is free. */
  readonly connectionsPerPool?: number
  readonly maxIdleOrigins: number
  readonly maxConnections: number
}

/** Connections to one origin, and how many exchanges use them or wait for one. */
interface Connections {
  readonly pool: Pool
  readonly origin: Origin
  readonly most: number
  inFlight: number
}

/** One scheme, host and port, and how many exchanges hold it. */
interface Origin {
  readonly key: string
  readonly connections: Array<Connections>
  inFlight: number
  idleSince: number
}

/** How long an idle connection is kept unless the target names a time; below what common servers keep. */
const keepAliveMs = 4_000
/** The longest a target's own `keep-alive` hint is followed. */
const maxKeepAliveMs = 30_000
const sweepMs = 1_000

/**
 * The open origins. Each has its own pools of connections; an origin nobody uses is closed once its connections cannot be
 * alive any more, or earlier, longest idle first, when more than `maxIdleOrigins` are idle or there are more than `maxConnections`.
 * So memory and descriptors follow the number of targets in use, not of those ever seen.
 *
 * Several pools, because one looks for a free connection among all that it has, twice for each request.
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
        metered(result[1])
        connections++
        result[1].once("close", () => connections--)
        // One goes for each that comes: closing them all would have them all opened again.
        const [longestIdle] = idle
        if (connections > options.maxConnections && longestIdle !== undefined) close(longestIdle)
      }
      callback(...result)
    })

  const create = (key: string): Origin => {
    const origin: Origin = { key, connections: [], inFlight: 0, idleSince: 0 }
    open.set(key, origin)
    return origin
  }

  /** Connections with one to spare; else those that the fewest wait for. The first ones first: the last fall idle, and close. */
  const connectionsOf = (origin: Origin): Connections => {
    const { connections } = origin
    let least = connections[0]
    let all = 0
    for (const some of connections) {
      if (some.inFlight < some.most) return some
      if (some.inFlight - some.most < least!.inFlight - least!.most) least = some
      all += some.most
    }
    const most = Math.min(options.connectionsPerPool ?? Number.POSITIVE_INFINITY, options.connectionsPerOrigin - all)
    if (most <= 0 && least !== undefined) return least
    const pool = new Pool(origin.key, {
      connect,
      connections: most,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: maxKeepAliveMs,
      // Each exchange has its own budget; undici's timers are coarse and would be a second one.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    const more: Connections = { pool, origin, most, inFlight: 0 }
    connections.push(more)
    return more
  }

  const destroy = async ({ connections }: Origin): Promise<void> => {
    await Promise.all(connections.map(({ pool }) => pool.destroy()))
  }

  const close = (origin: Origin): void => {
    open.delete(origin.key)
    idle.delete(origin)
    void destroy(origin)
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
    /** Connections to the origin of a key such as `https://example.com:8443`, held until `release`. */
    acquire: (key: string): Connections => {
      const origin = open.get(key) ?? create(key)
      if (origin.inFlight++ === 0) idle.delete(origin)
      closeIdle(() => idle.size > options.maxIdleOrigins)
      const connections = connectionsOf(origin)
      connections.inFlight++
      return connections
    },
    release: (connections: Connections): void => {
      connections.inFlight--
      const { origin } = connections
      if (--origin.inFlight > 0) return
      origin.idleSince = performance.now()
      idle.add(origin)
    },
    /** How many origins are open, in use or idle. */
    size: (): number => open.size,
    /** Cuts every connection; what is still in flight ends as cancelled. */
    destroy: async (): Promise<void> => {
      clearInterval(sweeper)
      const origins = [...open.values()]
      open.clear()
      idle.clear()
      await Promise.all(origins.map(destroy))
    }
  }
}
