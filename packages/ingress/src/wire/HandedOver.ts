import type { Server } from "node:http"
import type { AddressInfo, ListenOptions, Socket } from "node:net"

/** Another process that listens and hands its connections to this one. */
export interface ConnectionSource {
  /** Asks for the connections of an address; completes when they come. */
  readonly open: (options: ListenOptions, take: (socket: Socket) => void) => Promise<AddressInfo>
  /** Completes when the last connection has come. */
  readonly stop: () => Promise<void>
}

/**
 * Milliseconds in which a client that keeps its connection is asked, with its next answer, to open another one. Without this time a request
 * that is on its way would meet a closed connection. Clients that send nothing in it are disconnected.
 */
const lastAnswersMs = 1_500

/** Makes a server take its connections from `source` in place of listening itself. `listen` has to be called with options. */
export const handedOver = (server: Server, source: ConnectionSource): Server => {
  const close = server.close.bind(server)
  const open = new Set<Socket>()
  let address: AddressInfo | null = null
  let whenEmpty: (() => void) | null = null

  const take = (socket: Socket): void => {
    // As if the server had accepted it.
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    open.add(socket)
    socket.once("close", () => {
      open.delete(socket)
      if (open.size === 0) whenEmpty?.()
    })
    server.emit("connection", socket)
  }

  const isListening = (value: boolean): void => {
    Object.defineProperty(server, "listening", { value, configurable: true })
  }

  const listen = (options: ListenOptions, listening?: () => void): Server => {
    source.open(options, take).then(
      (at) => {
        address = at
        isListening(true)
        // Node's server starts its timers for slow requests at this event.
        server.emit("listening")
        listening?.()
      },
      (error: unknown) => void server.emit("error", error)
    )
    return server
  }

  const closeAll = (done?: (error?: Error) => void): Server => {
    // Answers from here on close their connections.
    isListening(false)
    const ended = (): void => {
      close()
      done?.()
    }
    void source.stop().then(() => {
      const disconnect = setTimeout(() => server.closeIdleConnections(), lastAnswersMs)
      whenEmpty = () => {
        clearTimeout(disconnect)
        whenEmpty = null
        ended()
      }
      if (open.size === 0) whenEmpty()
    })
    return server
  }

  return Object.assign(server, {
    listen: listen as Server["listen"],
    close: closeAll,
    address: () => address
  })
}
