import { createServer, type Server, type Socket } from "node:net"
import { LineCutter } from "../src/LineCutter.ts"
import type { FakeMessage, Queue } from "./FakeRabbit.ts"

/**
 * A Redis with streams that have one group each, as far as one consumer reads from it. What was given and not acknowledged stays with the consumer,
 * which is given it again when it asks for its own. Nothing is ever in `dead`, because a group is not told that an entry is of no use.
 */

interface Numbered {
  readonly id: string
  readonly message: FakeMessage
}

interface Stream extends Queue<Socket> {
  readonly consumers: Set<Socket>
  readonly fresh: Array<Numbered>
  readonly pending: Map<string, Numbered>
  /** Reads that wait for entries. */
  readonly reads: Map<Socket, { readonly most: number; readonly timer: NodeJS.Timeout }>
  last: number
}

const bulk = (value: string | Uint8Array): Buffer => {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")])
}
const array = (...elements: ReadonlyArray<Buffer>): Buffer =>
  Buffer.concat([Buffer.from(`*${elements.length}\r\n`), ...elements])

const fieldsOf = ({ body, contentType = "application/json", headers = {} }: FakeMessage): ReadonlyArray<Buffer> => [
  ...Object.entries({ content_type: contentType ?? "", ...headers })
    .flat()
    .map(bulk),
  bulk("body"),
  bulk(body)
]

export const entriesReply = (name: string, entries: ReadonlyArray<Numbered>): Buffer =>
  array(array(bulk(name), array(...entries.map(({ id, message }) => array(bulk(id), array(...fieldsOf(message)))))))

export class FakeRedis {
  readonly password: string
  readonly #streams = new Map<string, Stream>()
  readonly #sockets = new Set<Socket>()
  readonly #server: Server

  private constructor(password: string) {
    this.password = password
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static start(password = "wr1ter-p4ssword"): Promise<FakeRedis> {
    const server = new FakeRedis(password)
    return new Promise((resolve) => server.#server.listen(0, "127.0.0.1", () => resolve(server)))
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  queue(name: string): Stream {
    let stream = this.#streams.get(name)
    if (stream === undefined) {
      const counts = { settled: [], dead: [], mostUnsettled: 0, last: 0 }
      stream = { ...counts, consumers: new Set(), fresh: [], pending: new Map(), reads: new Map() }
      this.#streams.set(name, stream)
    }
    return stream
  }

  publish(name: string, ...messages: ReadonlyArray<FakeMessage>): void {
    const stream = this.queue(name)
    for (const message of messages) stream.fresh.push({ id: `${++stream.last}-0`, message })
    for (const [socket, { most, timer }] of stream.reads) {
      if (stream.fresh.length === 0) return
      clearTimeout(timer)
      stream.reads.delete(socket)
      this.#give(socket, name, most)
    }
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): Promise<void> {
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #give(socket: Socket, name: string, most: number): void {
    const stream = this.queue(name)
    const given = stream.fresh.splice(0, most)
    for (const one of given) stream.pending.set(one.id, one)
    stream.mostUnsettled = Math.max(stream.mostUnsettled, stream.pending.size)
    socket.write(entriesReply(name, given))
  }

  #readGroup(socket: Socket, words: ReadonlyArray<string>): void {
    const after = words.at(-1)!
    const name = words.at(-2)!
    const stream = this.queue(name)
    const most = Number(words[words.indexOf("COUNT") + 1])
    stream.consumers.add(socket)
    if (after !== ">") {
      const from = Number(after.split("-")[0])
      const own = [...stream.pending.values()].filter(({ id }) => Number(id.split("-")[0]) > from)
      return void socket.write(entriesReply(name, own.slice(0, most)))
    }
    const blocks = words.indexOf("BLOCK")
    if (stream.fresh.length > 0) return this.#give(socket, name, most)
    if (blocks === -1) return void socket.write("*-1\r\n")
    const timer = setTimeout(
      () => {
        stream.reads.delete(socket)
        socket.write("*-1\r\n")
      },
      Number(words[blocks + 1])
    )
    stream.reads.set(socket, { most, timer })
  }

  #acknowledge(name: string, ids: ReadonlyArray<string>): number {
    const stream = this.queue(name)
    const known = ids.flatMap((id) => stream.pending.get(id) ?? [])
    for (const { id, message } of known) {
      stream.pending.delete(id)
      stream.settled.push(message.id)
    }
    return known.length
  }

  #command(socket: Socket, words: ReadonlyArray<string>): void {
    switch (words[0]) {
      case "AUTH":
        return void socket.write(
          words[2] === this.password ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n"
        )
      case "XREADGROUP":
        return this.#readGroup(socket, words)
      case "XACK":
        return void socket.write(`:${this.#acknowledge(words[1]!, words.slice(3))}\r\n`)
      case "XAUTOCLAIM":
        return void socket.write(array(bulk("0-0"), array(), array()))
      case "QUIT":
        return void socket.end("+OK\r\n")
      default:
        socket.write("-ERR unknown command\r\n")
    }
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on("error", () => undefined)
    socket.once("close", () => {
      this.#sockets.delete(socket)
      for (const stream of this.#streams.values()) {
        clearTimeout(stream.reads.get(socket)?.timer)
        stream.reads.delete(socket)
        stream.consumers.delete(socket)
      }
    })
    let words: Array<string> = []
    let left = 0
    const cutter = new LineCutter(4_096, (line) => (line.startsWith("$") ? Number(line.slice(1)) : null))
    socket.on("data", (chunk: Buffer) =>
      cutter.read(chunk, (line, text) => {
        if (line.startsWith("*")) {
          left = Number(line.slice(1))
          words = []
          return
        }
        words.push(text.toString())
        if (--left === 0) this.#command(socket, words)
      })
    )
  }
}
