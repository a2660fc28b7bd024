import { createServer, type Server, type Socket } from "node:net"
import {
  bodyFrames,
  type Frame,
  frameKinds,
  FrameReader,
  headerFrame,
  long,
  longLong,
  longText,
  methodFrame,
  methods,
  octet,
  short,
  shortText,
  table,
  Values
} from "../src/AmqpFrames.ts"
import { propertiesOf } from "../src/AmqpProperties.ts"

/**
 * A broker with queues that speaks AMQP 0-9-1 to consumers, as far as they use it. It delivers as many messages as are prefetched, and again those
 * that were not settled when their connection ended.
 */

export interface FakeMessage {
  /** Empty: it has none. */
  readonly id: string
  readonly body: Uint8Array | string
  readonly headers?: Readonly<Record<string, string>>
  readonly contentType?: string | null
  readonly routingKey?: string
}

/** What a fake broker knows of its queue. */
export interface Queue<C = unknown> {
  readonly consumers: ReadonlySet<C>
  /** Ids of messages that were acknowledged, and of those that were rejected. */
  readonly settled: Array<string>
  readonly dead: Array<string>
  /** The largest number of messages that were delivered and not settled at a time. */
  mostUnsettled: number
}

interface RabbitQueue extends Queue<Consumer> {
  readonly consumers: Set<Consumer>
  readonly waiting: Array<FakeMessage>
}

interface Consumer {
  readonly socket: Socket
  readonly unsettled: Map<number, FakeMessage>
  prefetch: number
  tag: number
}

const channel = 1
const largestFrame = 131_072

const deliveryOf = (tag: number, message: FakeMessage): ReadonlyArray<Uint8Array> => {
  const { contentType = "application/json", headers = {}, id, routingKey = "order.paid" } = message
  const body = Buffer.from(message.body)
  return [
    methodFrame(
      channel,
      methods.deliver,
      shortText("tidegate"),
      longLong(tag),
      octet(0),
      shortText("orders"),
      shortText(routingKey)
    ),
    headerFrame(
      channel,
      propertiesOf({
        id,
        body,
        headers,
        routingKey,
        contentType,
        contentEncoding: null,
        persistent: true,
        mandatory: false
      }),
      body.length
    ),
    ...bodyFrames(channel, body, largestFrame)
  ]
}

export class FakeRabbit {
  readonly password: string
  readonly #queues = new Map<string, RabbitQueue>()
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  /** Sign-ins that it has taken. */
  signIns = 0

  private constructor(password: string) {
    this.password = password
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static start(password = "wr1ter-p4ssword"): Promise<FakeRabbit> {
    const broker = new FakeRabbit(password)
    return new Promise((resolve) => broker.#server.listen(0, "127.0.0.1", () => resolve(broker)))
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  queue(name: string): RabbitQueue {
    let queue = this.#queues.get(name)
    if (queue === undefined) {
      queue = { waiting: [], consumers: new Set(), settled: [], dead: [], mostUnsettled: 0 }
      this.#queues.set(name, queue)
    }
    return queue
  }

  publish(name: string, ...messages: ReadonlyArray<FakeMessage>): void {
    const queue = this.queue(name)
    queue.waiting.push(...messages)
    this.#pump(queue)
  }

  /** Cuts all connections. Consumers may come again. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): Promise<void> {
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #pump(queue: RabbitQueue): void {
    for (const consumer of queue.consumers) {
      while (queue.waiting.length > 0 && consumer.unsettled.size < consumer.prefetch) {
        const message = queue.waiting.shift()!
        const tag = ++consumer.tag
        consumer.unsettled.set(tag, message)
        queue.mostUnsettled = Math.max(queue.mostUnsettled, consumer.unsettled.size)
        for (const part of deliveryOf(tag, message)) consumer.socket.write(part)
      }
    }
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    const consumer: Consumer = { socket, unsettled: new Map(), prefetch: 0, tag: 0 }
    let queue: RabbitQueue | null = null
    socket.on("error", () => undefined)
    socket.once("close", () => {
      this.#sockets.delete(socket)
      if (queue === null) return
      queue.consumers.delete(consumer)
      queue.waiting.unshift(...consumer.unsettled.values())
      this.#pump(queue)
    })
    const settle = (values: Values, to: "settled" | "dead"): void => {
      const tag = values.longLong()
      const message = consumer.unsettled.get(tag)
      if (queue === null || message === undefined) return void socket.destroy()
      consumer.unsettled.delete(tag)
      queue[to].push(message.id)
      this.#pump(queue)
    }
    const answer = (frame: Frame): void => {
      if (frame.kind !== frameKinds.method) return
      const values = new Values(frame.payload)
      switch (values.long()) {
        case methods.startOk: {
          values.skipTable()
          values.shortText()
          if (!values.longText().endsWith(`\0${this.password}`)) {
            socket.end(methodFrame(0, methods.close, short(403), shortText("ACCESS_REFUSED"), short(0), short(0)))
            return
          }
          this.signIns++
          return void socket.write(methodFrame(0, methods.tune, short(10), long(largestFrame), short(60)))
        }
        case methods.open:
          return void socket.write(methodFrame(0, methods.openOk, shortText("")))
        case methods.channelOpen:
          return void socket.write(methodFrame(channel, methods.channelOpenOk, longText("")))
        case methods.qos:
          values.long()
          consumer.prefetch = values.short()
          return void socket.write(methodFrame(channel, methods.qosOk))
        case methods.consume:
          values.short()
          queue = this.queue(values.shortText())
          queue.consumers.add(consumer)
          socket.write(methodFrame(channel, methods.consumeOk, shortText("tidegate")))
          return this.#pump(queue)
        case methods.ack:
          return settle(values, "settled")
        case methods.reject:
          return settle(values, "dead")
        case methods.close:
          return void socket.end(methodFrame(0, methods.closeOk))
      }
    }
    const reader = new FrameReader(answer)
    reader.longest = largestFrame
    socket.once("data", (first: Buffer) => {
      socket.write(
        methodFrame(0, methods.start, short(9), table({ product: "fake" }), longText("PLAIN"), longText("en_US"))
      )
      reader.read(first.subarray(8))
      socket.on("data", (chunk: Buffer) => reader.read(chunk))
    })
  }
}
