import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { keyOf, type Listen, type ListenFault, type ToProcess } from "./Messages.ts"

/** A process that takes connections. */
export interface Taker {
  /** Whether it is to get new connections. If no process is, all get them. */
  readonly isReady: boolean
  /** False if the process has ended. `sent` is called when its system has the message. */
  readonly tell: (message: ToProcess, connection?: Socket, sent?: () => void) => boolean
}

/**
 * Connections that may be on their way to one process. One that has no time for them gets no more meanwhile, so a process that is frozen
 * keeps few senders waiting.
 */
const onTheWay = 64
/** Connections that may wait to be accepted, where the system allows it. */
const backlog = 4_096

interface Port {
  readonly server: Server
  readonly takers: Array<Taker>
  /** Completes when it listens. */
  readonly opened: Promise<AddressInfo>
}

/**
 * The listening sockets of all processes. The supervisor accepts and hands each connection to the next process in turn: so the connections are
 * spread evenly, and none is lost when a process ends, as it would be in the queue of a listening socket of the process's own.
 */
export class Connections {
  readonly #ports = new Map<string, Port>()
  /** The connections that are on their way to a process. */
  readonly #waiting = new Map<Taker, Set<Socket>>()
  #turn = 0

  /** Adds a process to those that take the connections of an address. The first one opens it. */
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

  /** Removes a process from those of one address, or of all. An address without a process is closed: senders see that nobody is there. */
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
    // The process has ended: their senders would wait for ever.
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
        // Such as no free file descriptor: the connection is lost, not the supervisor.
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
      // Closes the supervisor's own copy: the one that was sent stays open, unless its process has ended.
      socket.destroy()
    }
    if (!taker.tell({ kind: "connection", at }, socket, done)) done()
  }
}

/** A failure to listen, as it crosses the channel. */
export const faultOf = (error: unknown, { host, port }: Listen): ListenFault => {
  const {
    address = host,
    code = "",
    message,
    syscall = "listen"
  } = error as NodeJS.ErrnoException & { address?: string }
  return { code, syscall, message, address, port }
}
