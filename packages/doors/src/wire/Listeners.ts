import type { Server } from "node:http"
import { type AddressInfo, createServer, type ListenOptions, type Server as Listener, type Socket } from "node:net"

/**
 * The event loop takes one connection a turn from each socket that listens, however many wait there: with turns of 20 ms, a sender who opens a
 * connection for each request would be served 50 times a second, whatever the process could do. So several listen on one port.
 */
const sockets = 32

/**
 * Connections that wait at each, where the system allows as many (`net.core.somaxconn`). One that finds no place is tried again by its sender's
 * system after a second, then after three and seven: a burst would wait for that, and not for the gateway.
 */
const backlog = 4_096

/** Elsewhere a port has one socket. */
const mayShare = process.platform === "linux"

/** Sockets that share a port are let join it without a word: who else has it is asked for first. */
const claimed = (options: ListenOptions, then: (error: Error | null) => void): void => {
  if (!mayShare || options.port === undefined || options.port === 0) return then(null)
  // Whoever connects meanwhile is to come again: the claim ends with its last connection.
  const claim = createServer((socket) => void socket.destroy())
  claim.once("error", then)
  claim.listen(options, () => claim.close(() => then(null)))
}

/** The server, which listens by as many sockets as it takes to have its connections soon; they are its own. To be told where to listen by options. */
export const takingSoon = (server: Server): Server => {
  const listen = server.listen.bind(server)
  const close = server.close.bind(server)
  const others: Array<Listener> = []

  const another = (options: ListenOptions): void => {
    const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
      server.emit("connection", socket)
    })
    // One less.
    other.on("error", () => void other.close())
    other.listen(options)
    others.push(other)
  }

  const listenByOptions = (options: ListenOptions, listening?: () => void): Server => {
    claimed(options, (error) => {
      if (error !== null) {
        server.emit("error", error)
        return
      }
      const given = { ...options, backlog, ...(mayShare ? { reusePort: true } : {}) }
      listen(given, () => {
        const { port } = server.address() as AddressInfo
        if (mayShare) for (let i = 1; i < sockets; i++) another({ ...given, port })
        listening?.()
      })
    })
    return server
  }

  const closeAll = (done?: (error?: Error) => void): Server => {
    let open = others.length + 1
    let failure: Error | undefined
    const closed = (error?: Error): void => {
      failure ??= error
      if (--open === 0) done?.(failure)
    }
    // Their connections are the server's, which ends those that are idle.
    for (const other of others) other.close(() => closed())
    close(closed)
    return server
  }

  return Object.assign(server, { listen: listenByOptions as Server["listen"], close: closeAll })
}
