import type { Server } from "node:http"
import { type AddressInfo, createServer, type ListenOptions, type Server as Listener, type Socket } from "node:net"

/**
 * Each listening socket accepts one connection per event-loop iteration, however many wait. With iterations of 20 ms, a sender that opens a
 * connection for each request would get 50 per second, whatever the capacity of the process. So several sockets listen on one port.
 */
const sockets = 32

/**
 * Connections that may wait at each socket, where the system allows it (`net.core.somaxconn`). If the queue is full, the sender's
 * system tries again after one second, then after three and seven: a burst would wait for these retries, not for the gateway.
 */
const backlog = 4_096

/** On other systems only one socket can listen on a port. */
const mayShare = process.platform === "linux"

/** Milliseconds that a process waits for another one that is about to listen on the port. */
const patienceMs = 5_000

/**
 * Only one process at a time may check that a port is free and then share it: two that start together would both find it free. The lock is an
 * abstract socket name in the kernel, which disappears with the process.
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
 * The system lets a socket join a shared port without an error. So a socket without sharing first checks that no other process listens
 * there. The caller releases the lock after its own sockets listen.
 */
const claimed = (options: ListenOptions, then: (error: Error | null, release: () => void) => void): void => {
  const { port } = options
  if (!mayShare || port === undefined || port === 0) return then(null, () => {})
  alone(port, (error, release) => {
    if (error !== null) return then(error, release)
    // A client that connects meanwhile is disconnected and has to retry: the claim ends only after its last connection.
    const claim = createServer((socket) => void socket.destroy())
    claim.once("error", (error) => then(error, release))
    claim.listen(options, () => claim.close(() => then(null, release)))
  })
}

/** Milliseconds for which a port is still accepted from after closing has begun, if its senders never pause. */
const longestDrainMs = 2_000

/**
 * Waits until all completed connections have been accepted: closing the sockets would reset those in the queue. Each socket accepts one
 * connection per event-loop iteration, so after an iteration without one the queues are empty.
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
  // The first check may run in the middle of an iteration.
  setImmediate(look)
}

/**
 * Makes a server listen with several sockets, so that it accepts connections fast; all connections are the server's own. `listen` has to
 * be called with options.
 */
export const takingSoon = (server: Server): Server => {
  const listen = server.listen.bind(server)
  const close = server.close.bind(server)
  const others: Array<Listener> = []

  const another = (options: ListenOptions): void => {
    const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
      server.emit("connection", socket)
    })
    // The port works with one socket fewer.
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
    // Answers from here on close their connections, so that clients use another process.
    Object.defineProperty(server, "listening", { value: false, configurable: true })
    drained(server, () => {
      let open = others.length + 1
      let failure: Error | undefined
      const closed = (error?: Error): void => {
        failure ??= error
        if (--open === 0) done?.(failure)
      }
      // The server owns the connections and closes idle ones.
      for (const other of others) other.close(() => closed())
      close(closed)
    })
    return server
  }

  return Object.assign(server, { listen: listenByOptions as Server["listen"], close: closeAll })
}
