import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { keyOf, type Listen, type ListenFault, type ToProcess } from "./Messages.ts"

/** A process that takes connections. */
export interface Taker {
  /** Whether the process should get new connections. If this is false for all processes, all of them get connections. */
  readonly isReady: boolean
  /** Sends a message to the process. Returns false if the process has ended. `sent` is called when the operating system has the message. */
  readonly tell: (message: ToProcess, connection?: Socket, sent?: () => void) => boolean
}

/**
 * How many connections may be on their way to one process. A process that does not take them gets no more, so a frozen process keeps only few senders
 * waiting.
 */
const onTheWay = 64
/** How many connections may wait to be accepted, if the operating system allows so many. */
const backlog = 4_096

interface Port {
  readonly server: Server
  readonly takers: Array<Taker>
  /** Completes when it listens. */
  readonly opened: Promise<AddressInfo>
}

/**
 * The listening sockets of all processes. The supervisor accepts each connection and gives it to the next process in turn. So connections are spread
 * evenly, and none is lost when a process ends. If each process had its own listening socket, connections in the queue of that socket would be lost.
 */
export class Connections {
  readonly #ports = new Map<string, Port>()
  /** The connections that are on their way to a process. */
  readonly #waiting = new Map<Taker, Set<Socket>>()
  #turn = 0

  /** Adds a process to those that get the connections of an address. The first process opens the address. */
  async add(taker: Taker, at: Listen): Promise<AddressInfo> {
    const key = keyOf(at)
    let port = this.#ports.get(key)
    if (port === undefined) {
      port = this.#open(at)
      this.#ports.set(key, port)
    }
    port.takers.push(taker)
    try {
      return await port.opened
    } catch (error) {
      this.#ports.delete(key)
      throw error
    }
  }

  /** Removes a process from one address, or from all addresses. An address without a process is closed, so that senders get a refused connection. */
  remove(taker: Taker, at?: Listen): void {
    for (const [key, { server, takers }] of this.#ports) {
      if (at !== undefined && key !== keyOf(at)) continue
      const index = takers.indexOf(taker)
      if (index < 0) continue
      takers.splice(index, 1)
      if (takers.length > 0) continue
      this.#ports.delete(key)
      server.close()
    }
    if (at !== undefined) return
    // The process has ended, so the senders of these connections would wait for ever.
    for (const socket of this.#waiting.get(taker) ?? []) socket.destroy()
    this.#waiting.delete(taker)
  }

  #open(at: Listen): Port {
    const takers: Array<Taker> = []
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      // The client may leave before a process has the connection.
      socket.on("error", () => {})
      this.#hand(socket, at, takers)
    })
    const opened = new Promise<AddressInfo>((resolve, reject) => {
      server.once("error", reject)
      server.listen({ ...at, backlog }, () => {
        server.off("error", reject)
        // For example, no file descriptor is free. Then the connection is lost, but the supervisor goes on.
        server.on("error", () => {})
        resolve(server.address() as AddressInfo)
      })
    })
    return { server, takers, opened }
  }

  #hand(socket: Socket, at: Listen, takers: ReadonlyArray<Taker>): void {
    const ready = takers.filter(({ isReady }) => isReady)
    const able = (ready.length > 0 ? ready : takers).filter((taker) => (this.#waiting.get(taker)?.size ?? 0) < onTheWay)
    const taker = able[this.#turn++ % able.length]
    if (taker === undefined) {
      socket.destroy()
      return
    }
    const waiting = this.#waiting.get(taker) ?? new Set()
    this.#waiting.set(taker, waiting)
    waiting.add(socket)
    const done = (): void => {
      waiting.delete(socket)
      // Closes only the supervisor's copy of the socket. The process's copy stays open, unless the process has ended.
      socket.destroy()
    }
    if (!taker.tell({ kind: "connection", at }, socket, done)) done()
  }
}

/** A failure to listen, in the form in which it is sent to the process. */
export const faultOf = (error: unknown, { host, port }: Listen): ListenFault => {
  const {
    address = host,
    code = "",
    message,
    syscall = "listen"
  } = error as NodeJS.ErrnoException & { address?: string }
  return { code, syscall, message, address, port }
}
