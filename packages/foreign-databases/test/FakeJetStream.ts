import { createServer, type Server, type Socket } from "node:net"
import { LineCutter } from "../src/LineCutter.ts"
import { greeting, message } from "./FakeNats.ts"
import type { FakeMessage, Queue } from "./FakeRabbit.ts"

/**
 * A NATS server with streams, each with one consumer, as far as one pulls from it. It delivers again what was not acknowledged when its
 * connection ended.
 */

interface Puller {
  readonly socket: Socket
  readonly unsettled: Map<string, Numbered>
  pull: { readonly inbox: string; readonly expiry: NodeJS.Timeout; left: number; bytes: number } | null
}

interface Numbered extends FakeMessage {
  readonly sequence: number
}

interface Stream extends Queue<Puller> {
  readonly consumers: Set<Puller>
  readonly numbered: Array<Numbered>
  last: number
}

const largest = 8 * 1024 * 1024
const longestLine = 4_096

const headed = (subject: string, reply: string, head: string, body: Uint8Array | string): Buffer => {
  const [headers, content] = [Buffer.from(`NATS/1.0${head}\r\n\r\n`), Buffer.from(body)]
  const line = `HMSG ${subject} 1 ${reply}${reply === "" ? "" : " "}${headers.length} ${headers.length + content.length}\r\n`
  return Buffer.concat([Buffer.from(line), headers, content, Buffer.from("\r\n")])
}

const status = (inbox: string, words: string): Buffer => headed(inbox, "", ` ${words}`, "")

export class FakeJetStream {
  readonly password: string
  readonly #streams = new Map<string, Stream>()
  readonly #sockets = new Set<Socket>()
  readonly #server: Server

  private constructor(password: string) {
    this.password = password
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static start(password = "wr1ter-p4ssword"): Promise<FakeJetStream> {
    const server = new FakeJetStream(password)
    return new Promise((resolve) => server.#server.listen(0, "127.0.0.1", () => resolve(server)))
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  queue(name: string): Stream {
    let stream = this.#streams.get(name)
    if (stream === undefined) {
      stream = { numbered: [], consumers: new Set(), settled: [], dead: [], mostUnsettled: 0, last: 0 }
      this.#streams.set(name, stream)
    }
    return stream
  }

  publish(name: string, ...messages: ReadonlyArray<FakeMessage>): void {
    const stream = this.queue(name)
    for (const one of messages) stream.numbered.push({ ...one, sequence: ++stream.last })
    this.#pump(name)
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): Promise<void> {
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #pump(name: string): void {
    const stream = this.queue(name)
    for (const puller of stream.consumers) {
      while (puller.pull !== null && stream.numbered.length > 0) {
        const { pull } = puller
        const next = stream.numbered[0]!
        const { body, contentType = "application/json", headers = {}, routingKey = "order.paid", sequence } = next
        const reply = `$JS.ACK.${name}.tidegate.1.${sequence}.${sequence}.1700000000000000000.0`
        const named = Object.entries({ "Content-Type": contentType, ...headers })
        const head = named.map(([key, value]) => `\r\n${key}: ${value}`).join("")
        const bytes = headed(routingKey, reply, head, body)
        if (pull.bytes > 0 && bytes.length > pull.bytes) {
          this.#end(puller)
          puller.socket.write(status(pull.inbox, "409 Message Size Exceeds MaxBytes"))
          continue
        }
        pull.bytes -= pull.bytes === 0 ? 0 : bytes.length
        stream.numbered.shift()
        puller.unsettled.set(reply, next)
        stream.mostUnsettled = Math.max(stream.mostUnsettled, puller.unsettled.size)
        if (--pull.left === 0) this.#end(puller)
        puller.socket.write(bytes)
      }
    }
  }

  #end(puller: Puller): void {
    clearTimeout(puller.pull?.expiry)
    puller.pull = null
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    const puller: Puller = { socket, unsettled: new Map(), pull: null }
    let name = ""
    const back = (message: Numbered): void => {
      const stream = this.queue(name)
      stream.numbered.push(message)
      stream.numbered.sort((a, b) => a.sequence - b.sequence)
    }
    const published = (subject: string, inbox: string, body: string): void => {
      const words = subject.split(".")
      if (subject.startsWith("$JS.API.CONSUMER.INFO.")) {
        name = words[4]!
        this.queue(name).consumers.add(puller)
        socket.write(message(inbox, '{"config":{"durable_name":"tidegate","ack_policy":"explicit"}}'))
      } else if (subject.startsWith("$JS.API.CONSUMER.MSG.NEXT.")) {
        const asked = JSON.parse(body) as { batch: number; max_bytes?: number; expires: number }
        const over = (): void => {
          this.#end(puller)
          socket.write(status(inbox, "408 Request Timeout"))
        }
        const expiry = setTimeout(over, asked.expires / 1e6)
        puller.pull = { inbox, expiry, left: asked.batch, bytes: asked.max_bytes ?? 0 }
      } else {
        const settled = puller.unsettled.get(subject)
        if (settled === undefined) return void socket.destroy()
        puller.unsettled.delete(subject)
        if (body === "-NAK") back(settled)
        else this.queue(name)[body === "+TERM" ? "dead" : "settled"].push(settled.id)
      }
      this.#pump(name)
    }
    socket.on("error", () => undefined)
    socket.once("close", () => {
      this.#sockets.delete(socket)
      this.#end(puller)
      if (name === "") return
      this.queue(name).consumers.delete(puller)
      for (const one of puller.unsettled.values()) back(one)
      this.#pump(name)
    })
    const cutter = new LineCutter(longestLine, (line) =>
      line.startsWith("PUB ") ? Number(/ (\d+)$/.exec(line)![1]) : null
    )
    socket.write(greeting({ max_payload: largest }))
    socket.on("data", (chunk: Buffer) =>
      cutter.read(chunk, (line, body) => {
        const [word, subject = "", inbox = ""] = line.split(" ")
        if (word === "CONNECT" && !line.includes(JSON.stringify(this.password))) {
          socket.end("-ERR 'Authorization Violation'\r\n")
        }
        if (word === "PING") socket.write("PONG\r\n")
        if (word === "PUB") published(subject, inbox, body.toString())
      })
    )
  }
}
