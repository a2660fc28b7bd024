import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** One call as the upstream received it. */
export interface Call {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
  /** Whether the gateway has ended the call before it was answered. */
  readonly abandoned: Promise<void>
}

export type Answering = (response: ServerResponse, call: Call) => void | Promise<void>

/** The server behind a source in proxy mode: keeps what it is called with and answers what `answer` says. */
export class Upstream {
  readonly calls: Array<Call> = []
  answer: Answering = (response) => void response.end("upstream")
  readonly origin: string
  readonly close: () => Promise<void>

  private constructor(port: number, close: () => Promise<void>) {
    this.origin = `http://127.0.0.1:${port}`
    this.close = close
  }

  static async start(): Promise<Upstream> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
    const { port } = server.address() as AddressInfo
    const upstream = new Upstream(port, () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    })
    server.on("request", async (message, response) => {
      const chunks: Array<Buffer> = []
      const abandoned = new Promise<void>((resolve) =>
        response.once("close", () => {
          if (!response.writableFinished) resolve()
        })
      )
      try {
        for await (const chunk of message) chunks.push(chunk)
      } catch {
        return
      }
      const { headers, method = "", url = "" } = message
      const call: Call = { method, url, headers, body: Buffer.concat(chunks), abandoned }
      upstream.calls.push(call)
      await upstream.answer(response, call)
    })
    return upstream
  }
}
