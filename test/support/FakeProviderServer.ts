import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { type CallbackAnswer, type FakeCallback, FakeProvider } from "../../packages/channels/test/fake/FakeProvider.ts"
import type { ProviderAnswer, ProviderRequest } from "../../packages/channels/src/Adapter.ts"
import { now } from "./Waiting.ts"

/** The fake provider behind an HTTP server on a free port. It sends its callbacks when a test says so (`flush`). */
export class FakeProviderServer {
  readonly provider: FakeProvider
  /** Where it listens. */
  readonly address: string
  readonly #server: Server

  private constructor(server: Server, token: string | null, origin: string | null) {
    this.#server = server
    this.address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.provider = new FakeProvider({ origin: origin ?? this.address, now, token })
  }

  /** `origin`: the one that its links name, if the gateway calls it in the place of that origin. */
  static async start(token: string | null = null, origin: string | null = null): Promise<FakeProviderServer> {
    const server = createServer()
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      server.listen(0, "127.0.0.1", resolve)
    })
    const fake = new FakeProviderServer(server, token, origin)
    server.on("request", (message, response) => {
      void fake.#answer(message)
        .then(({ body, headers, status }) => response.writeHead(status, headers).end(body))
        .catch(() => response.destroy())
    })
    return fake
  }

  get origin(): string {
    return this.provider.origin
  }

  /** Sends all callbacks that wait, and those that they lead to. Returns how many. */
  async flush(): Promise<number> {
    let count = 0
    while (this.provider.hasCallbacks) {
      for (const callback of this.provider.takeCallbacks()) {
        this.provider.answered(callback, await send(callback))
        count++
      }
    }
    return count
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(message: IncomingMessage): Promise<ProviderAnswer> {
    const chunks: Array<Buffer> = []
    for await (const chunk of message) chunks.push(chunk as Buffer)
    const headers = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, String(value)]))
    const reply = this.provider.handle({
      method: message.method as ProviderRequest["method"],
      url: this.origin + (message.url ?? "/"),
      headers,
      body: Buffer.concat(chunks),
      authorized: headers["authorization"] !== undefined
    })
    return "resume" in reply ? reply.resume(await send(reply.callback)) : reply
  }
}

/** A callback that nobody answers counts as answered with 502. */
const send = async ({ body, headers, method, url }: FakeCallback): Promise<CallbackAnswer> => {
  try {
    const response = await fetch(url, { method, headers, ...(method === "POST" ? { body } : {}) })
    return { status: response.status, body: await response.text() }
  } catch {
    return { status: 502, body: "" }
  }
}
