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

/** Milliseconds that a process waits for another one that is about to listen on the port. */
const patienceMs = 5_000

/**
 * Processes take turns to find a port free and to share it: two that start together would each find it free. What is held for it is a name in the
 * kernel, where ports are, too; it is gone with the process.
 */
const alone = (port: number, then: (error: Error | null, release: () => void) => void): void => {
  const until = performance.now() + patienceMs
  const take = (): void => {
    const turn = createServer((socket) => void socket.destroy())
    turn.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE" && performance.now() < until) setTimeout(take, 5)
      else then(error, () => {})
    })
    turn.listen({ path: `\0tidegate-listens-${port}` }, () => then(null, () => void turn.close()))
  }
  take()
}

/**
 * Sockets that share a port are let join it without a word: who else has it is asked for first, by a socket that shares it with nobody. To be
 * released once one listens.
 */
const claimed = (options: ListenOptions, then: (error: Error | null, release: () => void) => void): void => {
  const { port } = options
  if (!mayShare || port === undefined || port === 0) return then(null, () => {})
  alone(port, (error, release) => {
    if (error !== null) return then(error, release)
    // Whoever connects meanwhile is to come again: the claim ends with its last connection.
    const claim = createServer((socket) => void socket.destroy())
    claim.once("error", (error) => then(error, release))
    claim.listen(options, () => claim.close(() => then(null, release)))
  })
}

/** Milliseconds for which a port whose senders never pause is listened to after it was to be closed. */
const longestDrainMs = 2_000

/**
 * Waits until nobody is left who has connected and was not taken: they would be cut off with the sockets that they wait at. Each socket takes one
 * connection a turn of the loop, so in a turn without one nobody waits.
 */
const drained = (server: Server, then: () => void): void => {
  const until = performance.now() + longestDrainMs
  let isQuiet = false
  const taken = (): void => {
    isQuiet = false
  }
  server.on("connection", taken)
  const look = (): void => {
    if (isQuiet || performance.now() >= until) {
      server.off("connection", taken)
      then()
      return
    }
    isQuiet = true
    setImmediate(look)
  }
  // The first turn may be in the middle of itself.
  setImmediate(look)
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
    claimed(options, (error, release) => {
      if (error !== null) {
        release()
        server.emit("error", error)
        return
      }
      server.once("error", release)
      const given = { ...options, backlog, ...(mayShare ? { reusePort: true } : {}) }
      listen(given, () => {
        const { port } = server.address() as AddressInfo
        if (mayShare) for (let i = 1; i < sockets; i++) another({ ...given, port })
        server.off("error", release)
        release()
        listening?.()
      })
    })
    return server
  }

  const closeAll = (done?: (error?: Error) => void): Server => {
    // Whoever is answered from here on is told to ask elsewhere.
    Object.defineProperty(server, "listening", { value: false, configurable: true })
    drained(server, () => {
      let open = others.length + 1
      let failure: Error | undefined
      const closed = (error?: Error): void => {
        failure ??= error
        if (--open === 0) done?.(failure)
      }
      // Their connections are the server's, which ends those that are idle.
      for (const other of others) other.close(() => closed())
      close(closed)
    })
    return server
  }

  return Object.assign(server, { listen: listenByOptions as Server["listen"], close: closeAll })
}
