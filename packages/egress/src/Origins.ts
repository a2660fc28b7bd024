import { Pool } from "undici"
import type { ClientTls } from "@tidegate/model/ClientTls"
import type { Guard } from "./Guard.ts"
import { metered } from "./WireMeter.ts"

export interface OriginsOptions {
  readonly guard: Pick<Guard, "connect" | "connectAs">
  readonly connectionsPerOrigin: number
  /** Connections of one pool. Default: all of an origin's, so that a waiting exchange gets the first connection that is free. */
  readonly connectionsPerPool?: number
  readonly maxIdleOrigins: number
  readonly maxConnections: number
}

/** A pool of connections to one origin, and how many exchanges use it or wait for it. */
interface Connections {
  readonly pool: Pool
  readonly origin: Origin
  readonly most: number
  inFlight: number
}

/** One scheme, host and port, with one client certificate or none, and how many exchanges use it. */
interface Origin {
  readonly key: string
  readonly url: string
  readonly connect: Guard["connect"]
  readonly connections: Array<Connections>
  inFlight: number
  idleSince: number
}

/** How long an idle connection is kept unless the target names a time; shorter than common servers keep theirs. */
const keepAliveMs = 4_000
/** The longest time from a target's own `keep-alive` header that is used. */
const maxKeepAliveMs = 30_000
const sweepMs = 1_000

/**
 * The open origins. Each has its own connection pools. An unused origin is closed once its connections have expired. It is closed earlier, the
 * longest idle first, if more than `maxIdleOrigins` are idle or there are more than `maxConnections`. So memory and descriptors depend on the
 * number of targets in use, not on the number of targets ever used.
 *
 * An origin has several pools, because a pool searches all its connections for a free one, twice for each request.
 *
 * undici's `Agent` is not used: it keeps an origin for ever once as many requests as its connection limit have failed to connect.
 */
export const makeOrigins = (options: OriginsOptions) => {
  const open = new Map<string, Origin>()
  /** In the order in which they became idle. */
  const idle = new Set<Origin>()
  let connections = 0

  const counted =
    (connect: Guard["connect"]): Guard["connect"] =>
    (target, callback) =>
      connect(target, (...result) => {
        if (result[0] === null) {
          metered(result[1])
          connections++
          result[1].once("close", () => connections--)
          // Only one origin is closed for each new connection: if all idle ones were closed, they would all have to be opened again.
          const [longestIdle] = idle
          if (connections > options.maxConnections && longestIdle !== undefined) close(longestIdle)
        }
        callback(...result)
      })

  const usual = counted(options.guard.connect)

  const create = (key: string, url: string, tls: ClientTls | undefined): Origin => {
    const connect = tls === undefined ? usual : counted(options.guard.connectAs(tls))
    const origin: Origin = { key, url, connect, connections: [], inFlight: 0, idleSince: 0 }
    open.set(key, origin)
    return origin
  }

  /**
   * Chooses a pool with a free connection, else the pool with the fewest waiting exchanges. Earlier pools are preferred, so that the last ones
   * become idle and close.
   */
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
    const pool = new Pool(origin.url, {
      connect: origin.connect,
      connections: most,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: maxKeepAliveMs,
      // Each exchange has its own timeout; undici's timers are coarse and would be a second one.
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
    /**
     * A pool of an origin such as `https://example.com:8443`, held until `release`. `tls`: connections that show this certificate, shared with
     * nobody who shows another one or none.
     */
    acquire: (url: string, tls?: ClientTls): Connections => {
      const key = tls === undefined ? url : `${url} ${tls.id}`
      const origin = open.get(key) ?? create(key, url, tls)
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
    /** Number of open origins, in use or idle. */
    size: (): number => open.size,
    /** Closes every connection; exchanges in progress end as cancelled. */
    destroy: async (): Promise<void> => {
      clearInterval(sweeper)
      const origins = [...open.values()]
      open.clear()
      idle.clear()
      await Promise.all(origins.map(destroy))
    }
  }
}
