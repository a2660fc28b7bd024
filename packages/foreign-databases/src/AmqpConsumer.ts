import type { AmqpQueue, Received, Settled } from "@tidegate/connectors/Subscriptions"
import type { Guard } from "@tidegate/egress/Egress"
import { exchangeHeader, maxMessageBody, routingKeyHeader } from "@tidegate/model/BrokerSource"
import { long, longLong, methodFrame, methods, octet, short, shortText, table, Values } from "./AmqpFrames.ts"
import { AmqpLine, channel, refusal } from "./AmqpLine.ts"
import { messageIn } from "./AmqpProperties.ts"
import type { Consumer, ConsumerEvents, Subscribing } from "./Consumer.ts"
import { ServerFault } from "./ServerFrames.ts"

/** The name of the subscription on its channel, which has no other. */
const tagName = "tidegate"

/** While messages with more bytes wait, nothing is read: so the broker waits, and not the memory of the process. */
const maxWaiting = maxMessageBody
/** RabbitMQ takes no larger message. */
const largest = 512 * 1024 * 1024
/** What a broker may send with each message beside its body: the method, the properties, and the heads of frames of usual lengths. */
const besideBody = 192 * 1024
const shareOfHeads = 8

/** A message whose body has not arrived completely. */
interface Incoming {
  readonly message: Omit<Received, "body">
  /** Bytes of its properties and headers. */
  readonly besides: number
  /** Null: it is too large, and is dropped. */
  readonly parts: Array<Buffer> | null
  left: number
}

const fault = (message: string): ServerFault => new ServerFault("PROTOCOL_ERROR", message)

class AmqpConsumer implements Consumer {
  readonly #place: AmqpQueue
  readonly #events: ConsumerEvents
  readonly #amqp: AmqpLine
  #state: "opening" | "limiting" | "subscribing" | "subscribed" = "opening"
  /** Tags of messages that were delivered and are not settled. */
  readonly #unsettled = new Set<number>()
  /** What the last delivery has said, before its header. */
  #delivered: { readonly receipt: number; readonly facts: Received["facts"] } | null = null
  #incoming: Incoming | null = null
  #waiting: Array<Received> = []
  #waitingBytes = 0

  constructor(guard: Guard, place: AmqpQueue, events: ConsumerEvents) {
    this.#place = place
    this.#events = events
    this.#amqp = new AmqpLine(
      guard,
      place,
      {
        opened: () => {
          this.#state = "limiting"
          this.#amqp.line.write([methodFrame(channel, methods.qos, long(0), short(place.prefetch), octet(0))])
        },
        method: (method, values) => this.#take(method, values),
        header: (payload) => this.#begin(payload),
        body: (payload) => this.#append(payload),
        ended: (failure) => {
          this.#waiting = []
          events.ended(failure)
        }
      },
      { bodies: "kept", isWatched: true }
    )
  }

  taken(): ReadonlyArray<Received> {
    const taken = this.#waiting
    this.#waiting = []
    if (this.#waitingBytes > maxWaiting) this.#amqp.resume()
    this.#waitingBytes = 0
    return taken
  }

  settle({ rejected, stored }: Settled): void {
    for (const tag of [...stored, ...rejected]) this.#unsettled.delete(tag)
    this.#amqp.line.write([
      ...stored.map((tag) => methodFrame(channel, methods.ack, longLong(tag), octet(0))),
      // Not to be delivered again: the broker dead-letters it, where the queue says so.
      ...rejected.map((tag) => methodFrame(channel, methods.reject, longLong(tag), octet(0)))
    ])
  }

  close(): void {
    this.#amqp.close()
  }

  #take(method: number, values: Values): void {
    switch (method) {
      case methods.qosOk:
        return this.#consume()
      case methods.consumeOk:
        if (this.#state !== "subscribing") throw fault("the broker answers what it was not asked")
        this.#state = "subscribed"
        // Messages may follow in the same bytes.
        return this.#events.subscribed()
      case methods.deliver:
        return this.#deliver(values)
      case methods.cancel:
        // The queue is gone, or has moved. A new connection finds out which.
        return this.#amqp.leave(refusal("CANCELLED", ""))
      case methods.blocked:
      case methods.unblocked:
        // It takes no messages now, but delivers.
        return
      default:
        throw fault("the broker sends what a consumer is not answered by")
    }
  }

  #consume(): void {
    if (this.#state !== "limiting") throw fault("the broker answers what it was not asked")
    this.#state = "subscribing"
    this.#amqp.line.write([
      methodFrame(
        channel,
        methods.consume,
        short(0),
        shortText(this.#place.queue),
        shortText(tagName),
        octet(0),
        table({})
      )
    ])
  }

  #deliver(values: Values): void {
    if (this.#state !== "subscribed" || this.#delivered !== null || this.#incoming !== null) {
      throw fault("the broker delivers a message before the one before it is complete")
    }
    values.shortText()
    const receipt = values.longLong()
    values.octet()
    const exchange = values.shortText()
    const routingKey = values.shortText()
    if (this.#unsettled.has(receipt) || this.#unsettled.size >= this.#place.prefetch) {
      throw fault("the broker delivers more messages than it was asked for")
    }
    this.#unsettled.add(receipt)
    this.#amqp.line.grant(besideBody)
    this.#delivered = { receipt, facts: { [exchangeHeader]: exchange, [routingKeyHeader]: routingKey } }
  }

  #begin(payload: Buffer): void {
    const delivered = this.#delivered
    if (delivered === null) throw fault("the broker sends a message that nobody has asked for")
    this.#delivered = null
    const { size, ...message } = messageIn(payload)
    if (size > largest) throw new ServerFault("RESPONSE_TOO_LARGE", "the broker sends a message that is too large")
    this.#amqp.line.grant(size + Math.ceil(size / shareOfHeads))
    this.#incoming = {
      message: { ...delivered, ...message, size },
      besides: payload.length,
      parts: size > maxMessageBody ? null : [],
      left: size
    }
    if (size === 0) this.#complete(this.#incoming)
  }

  #append(payload: Buffer): void {
    const incoming = this.#incoming
    if (incoming === null || payload.length > incoming.left) throw fault("the broker sends more than the message has")
    incoming.parts?.push(payload)
    incoming.left -= payload.length
    if (incoming.left === 0) this.#complete(incoming)
  }

  #complete({ besides, message, parts }: Incoming): void {
    this.#incoming = null
    const body = parts === null ? null : parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    this.#waiting.push({ ...message, body })
    const before = this.#waitingBytes
    this.#waitingBytes += besides + (body?.length ?? 0)
    if (before <= maxWaiting && this.#waitingBytes > maxWaiting) this.#amqp.pause()
    this.#events.arrived()
  }
}

export const amqpConsumer: Subscribing<"amqp"> = {
  subscribe: ({ guard }, place, events) => new AmqpConsumer(guard, place, events)
}
