import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { FakeMessage, Queue } from "./FakeRabbit.ts"

/**
 * Queues of SQS, as far as one receives from them and deletes. Nothing is ever in `dead`, because SQS is not told that a message is of no use. A
 * message that was not deleted is delivered again after its time, or after a cut.
 */

interface Receiver {
  readonly response: ServerResponse
  readonly most: number
  /** Seconds until a message is delivered again that was not deleted. */
  readonly visibility: number
}

interface SqsQueue extends Queue<Receiver> {
  readonly consumers: Set<Receiver>
  readonly waiting: Array<FakeMessage>
  readonly unsettled: Map<string, FakeMessage>
}

interface Asked {
  readonly QueueUrl: string
  readonly MaxNumberOfMessages: number
  readonly WaitTimeSeconds: number
  readonly VisibilityTimeout: number
  readonly Entries: ReadonlyArray<{ readonly Id: string; readonly ReceiptHandle: string }>
}

const shown = (message: FakeMessage, handle: string): object => ({
  MessageId: message.id,
  ReceiptHandle: handle,
  Body: message.body.toString(),
  ...(message.routingKey === undefined ? {} : { Attributes: { MessageGroupId: message.routingKey } }),
  MessageAttributes: Object.fromEntries(
    Object.entries({ "Content-Type": message.contentType ?? "application/json", ...message.headers }).map(
      ([name, StringValue]) => [name, { DataType: "String", StringValue }]
    )
  )
})

export class FakeSqs {
  /** The id of the only key that it knows. It does not look at signatures. */
  readonly keyId = "AKIA0000000000000000"
  readonly #queues = new Map<string, SqsQueue>()
  readonly #server: Server
  /** How often each message was delivered. */
  readonly delivered = new Map<string, number>()
  #handles = 0

  private constructor() {
    this.#server = createServer((request, response) => {
      // Those who have hung up get nothing.
      this.#answer(request, response).catch(() => response.destroy())
    })
  }

  static start(): Promise<FakeSqs> {
    const service = new FakeSqs()
    return new Promise((resolve) => service.#server.listen(0, "127.0.0.1", () => resolve(service)))
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  url(name: string): string {
    return `http://127.0.0.1:${this.port}/123456789012/${name}`
  }

  queue(name: string): SqsQueue {
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
    for (const receiver of queue.consumers) this.#deliver(queue, receiver)
  }

  /** Cuts all connections. The time of messages that were not deleted is over. */
  cut(): void {
    this.#server.closeAllConnections()
    for (const queue of this.#queues.values()) {
      for (const handle of [...queue.unsettled.keys()].toReversed()) this.#release(queue, handle)
    }
  }

  close(): Promise<void> {
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  /** The time of a message is over. */
  #release(queue: SqsQueue, handle: string): void {
    const message = queue.unsettled.get(handle)
    if (message === undefined) return
    queue.unsettled.delete(handle)
    queue.waiting.unshift(message)
    for (const receiver of queue.consumers) this.#deliver(queue, receiver)
  }

  #deliver(queue: SqsQueue, receiver: Receiver): void {
    const { most, response, visibility } = receiver
    const taken = queue.waiting.splice(0, most)
    if (taken.length === 0) return
    queue.consumers.delete(receiver)
    const Messages = taken.map((message) => {
      const handle = `handle-${++this.#handles}`
      queue.unsettled.set(handle, message)
      setTimeout(() => this.#release(queue, handle), visibility * 1_000).unref()
      this.delivered.set(message.id, (this.delivered.get(message.id) ?? 0) + 1)
      return shown(message, handle)
    })
    queue.mostUnsettled = Math.max(queue.mostUnsettled, queue.unsettled.size)
    response.end(JSON.stringify({ Messages }))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Array<Buffer> = []
    for await (const part of request) parts.push(part as Buffer)
    const asked = JSON.parse(Buffer.concat(parts).toString()) as Asked
    response.setHeader("content-type", "application/x-amz-json-1.0")
    if (request.headers.authorization?.includes(`Credential=${this.keyId}/`) !== true) {
      response.statusCode = 403
      response.end(JSON.stringify({ __type: "com.amazon.coral.service#UnrecognizedClientException", message: "no" }))
      return
    }
    const queue = this.queue(asked.QueueUrl.split("/").at(-1)!)
    if (request.headers["x-amz-target"] === "AmazonSQS.DeleteMessageBatch") {
      for (const { ReceiptHandle } of asked.Entries) {
        const message = queue.unsettled.get(ReceiptHandle)
        queue.unsettled.delete(ReceiptHandle)
        if (message !== undefined) queue.settled.push(message.id)
      }
      response.end(JSON.stringify({ Successful: asked.Entries.map(({ Id }) => ({ Id })), Failed: [] }))
      return
    }
    const receiver: Receiver = { response, most: asked.MaxNumberOfMessages, visibility: asked.VisibilityTimeout }
    queue.consumers.add(receiver)
    this.#deliver(queue, receiver)
    if (response.writableEnded) return
    const nothing = (): void => void response.end("{}")
    const waiting = setTimeout(nothing, asked.WaitTimeSeconds * 1_000)
    response.once("close", () => {
      clearTimeout(waiting)
      queue.consumers.delete(receiver)
    })
  }
}
