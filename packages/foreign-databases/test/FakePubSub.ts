import { generateKeyPairSync } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { decodeJwt } from "jose"
import type { FakeMessage, Queue } from "./FakeRabbit.ts"

/**
 * Subscriptions of Pub/Sub, as far as one pulls from them, and the place where service accounts get tokens. Nothing is ever in `dead`, because the
 * service is not told that a message is of no use. A message that was not acknowledged is delivered again after its deadline, or after a cut.
 */

interface Puller {
  readonly response: ServerResponse
  readonly most: number
}

interface UnderWay {
  readonly message: FakeMessage
  deadline: NodeJS.Timeout
}

interface PubSubQueue extends Queue<Puller> {
  readonly consumers: Set<Puller>
  readonly waiting: Array<FakeMessage>
  readonly unsettled: Map<string, UnderWay>
}

interface Asked {
  readonly maxMessages: number
  readonly returnImmediately?: boolean
  readonly ackIds: ReadonlyArray<string>
  readonly ackDeadlineSeconds: number
}

const shown = ({ body, contentType, headers, id, routingKey }: FakeMessage, ackId: string): object => ({
  ackId,
  message: {
    data: Buffer.from(body).toString("base64"),
    attributes: { content_type: contentType ?? "application/json", ...headers },
    messageId: id,
    publishTime: "2026-01-02T03:04:05.678Z",
    ...(routingKey === undefined ? {} : { orderingKey: routingKey })
  }
})

const refusal = (code: number, status: string, message: string): string =>
  JSON.stringify({ error: { code, status, message } })

export class FakePubSub {
  readonly account = "gateway@project.example"
  readonly #queues = new Map<string, PubSubQueue>()
  readonly #server: Server
  /** How often each message was delivered. */
  readonly delivered = new Map<string, number>()
  /** The deadlines that were asked for, in seconds, by message: zero gives it back. */
  readonly deadlines: Array<readonly [id: string, seconds: number]> = []
  /** The tokens that were given out, in order, and those that are not taken any more. */
  readonly tokens: Array<string> = []
  readonly revoked = new Set<string>()
  /** The answer to every call of a subscription instead of the service's own; null: it answers itself. */
  instead: { readonly status: number; readonly body: string } | null = null
  readonly #key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
    type: "pkcs8",
    format: "pem"
  })
  #handles = 0

  private constructor() {
    this.#server = createServer((request, response) => {
      // Those who have hung up get nothing.
      this.#answer(request, response).catch(() => response.destroy())
    })
  }

  static start(): Promise<FakePubSub> {
    const service = new FakePubSub()
    return new Promise((resolve) => service.#server.listen(0, "127.0.0.1", () => resolve(service)))
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`
  }

  /** The credentials of an account. Only one is known here. */
  auth(account = this.account): Record<string, string> {
    return { client_email: account, token_uri: `${this.origin}/token`, private_key: this.#key }
  }

  queue(name: string): PubSubQueue {
    let queue = this.#queues.get(name)
    if (queue === undefined) {
      queue = { consumers: new Set(), settled: [], dead: [], mostUnsettled: 0, waiting: [], unsettled: new Map() }
      this.#queues.set(name, queue)
    }
    return queue
  }

  publish(name: string, ...messages: ReadonlyArray<FakeMessage>): void {
    const queue = this.queue(name)
    queue.waiting.push(...messages)
    for (const puller of queue.consumers) this.#deliver(queue, puller)
  }

  /** Cuts all connections. The deadlines of messages that were not acknowledged are over. */
  cut(): void {
    this.#server.closeAllConnections()
    for (const queue of this.#queues.values()) {
      for (const ackId of [...queue.unsettled.keys()].toReversed()) this.#release(queue, ackId)
    }
  }

  close(): Promise<void> {
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  /** The deadline of a message is over. */
  #release(queue: PubSubQueue, ackId: string): void {
    const underWay = queue.unsettled.get(ackId)
    if (underWay === undefined) return
    clearTimeout(underWay.deadline)
    queue.unsettled.delete(ackId)
    queue.waiting.unshift(underWay.message)
    for (const puller of queue.consumers) this.#deliver(queue, puller)
  }

  #deliver(queue: PubSubQueue, puller: Puller): void {
    const taken = queue.waiting.splice(0, puller.most)
    if (taken.length === 0) return
    queue.consumers.delete(puller)
    const receivedMessages = taken.map((message) => {
      const ackId = `ack-${++this.#handles}`
      const deadline = setTimeout(() => this.#release(queue, ackId), 10_000).unref()
      queue.unsettled.set(ackId, { message, deadline })
      this.delivered.set(message.id, (this.delivered.get(message.id) ?? 0) + 1)
      return shown(message, ackId)
    })
    queue.mostUnsettled = Math.max(queue.mostUnsettled, queue.unsettled.size)
    puller.response.end(JSON.stringify({ receivedMessages }))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Array<Buffer> = []
    for await (const part of request) parts.push(part as Buffer)
    const body = Buffer.concat(parts).toString()
    response.setHeader("content-type", "application/json")
    if (request.url === "/token") {
      const { iss, scope } = decodeJwt(new URLSearchParams(body).get("assertion") ?? "")
      if (scope !== "https://www.googleapis.com/auth/pubsub") throw new Error(`a token for ${String(scope)}`)
      const access_token = `token-${this.tokens.length}-of-${iss}`
      this.tokens.push(access_token)
      response.end(JSON.stringify({ access_token, token_type: "Bearer", expires_in: 3_599 }))
      return
    }
    const [, name = "", verb = ""] =
      /^\/v1\/projects\/my-shop\/(?:subscriptions|topics)\/([\w.~+-]+):(\w+)$/.exec(request.url ?? "") ?? []
    const token = request.headers.authorization?.replace(/^Bearer /, "") ?? ""
    if (!this.tokens.includes(token) || this.revoked.has(token) || !token.endsWith(this.account)) {
      response.statusCode = 401
      response.end(refusal(401, "UNAUTHENTICATED", `Request had invalid authentication credentials: ${token}`))
      return
    }
    if (this.instead !== null) {
      response.statusCode = this.instead.status
      response.end(this.instead.body)
      return
    }
    if (verb === "publish") return this.#published(name, body, response)
    const asked = JSON.parse(body) as Asked
    const queue = this.queue(name)
    if (verb === "pull") return this.#pull(queue, asked, response)
    for (const ackId of asked.ackIds) {
      const underWay = queue.unsettled.get(ackId)
      if (underWay === undefined) continue
      const { id } = underWay.message
      if (verb === "acknowledge") {
        clearTimeout(underWay.deadline)
        queue.unsettled.delete(ackId)
        queue.settled.push(id)
      } else {
        this.deadlines.push([id, asked.ackDeadlineSeconds])
        clearTimeout(underWay.deadline)
        const ends = asked.ackDeadlineSeconds * 1_000
        if (ends === 0) this.#release(queue, ackId)
        else underWay.deadline = setTimeout(() => this.#release(queue, ackId), ends).unref()
      }
    }
    response.end("{}")
  }

  /** A topic has a subscription of the same name. */
  #published(name: string, body: string, response: ServerResponse): void {
    const { messages } = JSON.parse(body) as {
      readonly messages: ReadonlyArray<{ readonly data: string; readonly attributes: Record<string, string> }>
    }
    const published = messages.map(({ attributes, data }): FakeMessage => ({
      id: `p${++this.#handles}`,
      body: Buffer.from(data, "base64"),
      headers: attributes
    }))
    response.end(JSON.stringify({ messageIds: published.map(({ id }) => id) }))
    this.publish(name, ...published)
  }

  #pull(queue: PubSubQueue, { maxMessages, returnImmediately }: Asked, response: ServerResponse): void {
    const puller: Puller = { response, most: maxMessages }
    queue.consumers.add(puller)
    this.#deliver(queue, puller)
    if (response.writableEnded) return
    if (returnImmediately === true) {
      queue.consumers.delete(puller)
      response.end("{}")
      return
    }
    response.once("close", () => queue.consumers.delete(puller))
  }
}
