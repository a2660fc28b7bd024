import { type OutgoingHttpHeaders, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import type { SenderAnswer, SentRequest } from "@tidegate/entities/Source/IngressSender"
import { FramedMessage } from "./FramedMessage.ts"

/** A request of the gateway itself and its answer, in the form in which ingress gets those of senders: without a connection. */

/** Takes what is written to it, and has nothing to read. */
class Nowhere extends Duplex {
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done()
  }
}

/** A request whose id is known before it is read. */
class OwnMessage extends FramedMessage {
  readonly #id: string

  constructor(socket: Socket, { body, headers, id, method, target }: SentRequest) {
    super(socket)
    this.#id = id
    this.method = method
    this.url = target
    this.httpVersion = "1.1"
    this.httpVersionMajor = 1
    this.httpVersionMinor = 1
    this.rawHeaders = [...headers, "content-length", String(body.length)]
    for (let i = 0; i < this.rawHeaders.length; i += 2) {
      const name = this.rawHeaders[i]!
      // Ingress reads the raw ones. These are for parts that need one value of a usual header.
      if (!Object.hasOwn(this.headers, name) && name !== "__proto__") this.headers[name] = this.rawHeaders[i + 1]!
    }
    this.complete = true
    if (body.length > 0) this.push(Buffer.from(body))
    this.push(null)
  }

  override get requestId(): string {
    return this.#id
  }
}

/** An answer that keeps what is written to it, up to a limit. */
class OwnResponse extends ServerResponse<FramedMessage> {
  #contentType: string | null = null
  readonly #pieces: Array<Buffer> = []
  #bytes = 0

  get answer(): SenderAnswer {
    return { status: this.statusCode, contentType: this.#contentType, body: Buffer.concat(this.#pieces) }
  }

  override writeHead(status: number, ...more: ReadonlyArray<unknown>): this {
    const headers = more.at(-1)
    for (const [name, value] of Object.entries(typeof headers === "object" ? { ...headers } : {})) {
      if (name.toLowerCase() === "content-type") this.#contentType = String(value)
    }
    return super.writeHead(status, ...(more as [OutgoingHttpHeaders?]))
  }

  override write(chunk: unknown, ...more: ReadonlyArray<unknown>): boolean {
    this.#keep(chunk, more[0])
    return super.write(chunk, ...(more as []))
  }

  override end(...more: ReadonlyArray<unknown>): this {
    if (typeof more[0] !== "function") this.#keep(more[0], more[1])
    return super.end(...(more as []))
  }

  #keep(chunk: unknown, encoding: unknown): void {
    const left = maxCapturedBytes - this.#bytes
    if (left <= 0 || (typeof chunk !== "string" && !(chunk instanceof Uint8Array))) return
    const bytes =
      typeof chunk === "string"
        ? Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8")
        : Buffer.from(chunk)
    const kept = bytes.subarray(0, left)
    this.#pieces.push(kept)
    this.#bytes += kept.length
  }
}

/**
 * Gives a request to `handle`. `done` is called once: with the answer, or with null if the exchange ended without one. Returns how to hang up.
 */
export const exchangeOwn = (
  request: SentRequest,
  handle: (message: FramedMessage, response: ServerResponse) => void,
  done: (answer: SenderAnswer | null) => void
): (() => void) => {
  const connection = new Nowhere()
  const socket = connection as unknown as Socket
  const message = new OwnMessage(socket, request)
  const response = new OwnResponse(message)
  response.assignSocket(socket)
  let isOver = false
  const end = (answer: SenderAnswer | null): void => {
    if (isOver) return
    isOver = true
    connection.destroy()
    done(answer)
  }
  response.once("finish", () => end(response.answer))
  connection.once("close", () => end(null))
  handle(message, response)
  return () => connection.destroy()
}
