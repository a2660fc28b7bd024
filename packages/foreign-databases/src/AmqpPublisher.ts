import { type AmqpExchange, type AmqpMessage, BrokerRefusal } from "@tidegate/connectors/Brokers"
import { cancelled, type SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import {
  bodyFrames,
  type Frame,
  frameKinds,
  FrameReader,
  headerFrame,
  heartbeatFrame,
  long,
  longestFrame,
  longText,
  methodFrame,
  methods,
  octet,
  short,
  shortestMax,
  shortText,
  table,
  Values
} from "./AmqpFrames.ts"
import { idIn, propertiesOf } from "./AmqpProperties.ts"
import { BrokerLine } from "./BrokerLine.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"
import { ServerFault } from "./ServerFrames.ts"

const protocolHeader = Buffer.from("AMQP\0\0\u0009\u0001", "latin1")

/** The only channel: all messages of a destination go to one exchange. */
const channel = 1

/** The longest time (s) between two heartbeats that is agreed on. */
const slowestHeartbeat = 60

const clientProperties = table({
  product: "tidegate",
  capabilities: {
    publisher_confirms: true,
    "basic.nack": true,
    "connection.blocked": true,
    // Otherwise a refused sign-in is a connection that ends without a reason.
    authentication_failure_close: true
  }
})

/** A message that the broker has not confirmed yet. */
interface Pending {
  readonly id: string
  done: (result: Published) => void
  /** Why the broker has returned it, before it confirms that. */
  returned: BrokerRefusal | null
}

const refusal = (code: number | string, said: string, shared = false): BrokerRefusal =>
  new BrokerRefusal({ code: String(code), said, shared })

/** The method that a broker answers with at each step of the sign-in. */
const steps = [methods.start, methods.tune, methods.openOk, methods.channelOpenOk, methods.selectOk] as const

class AmqpPublisher implements Publisher<AmqpMessage> {
  readonly #place: AmqpExchange
  readonly #line: BrokerLine
  readonly #reader = new FrameReader((frame) => this.#take(frame))
  #signedIn: ((failure: BrokerRefusal | SessionFailure | null) => void) | null
  #step = 0
  #longest = longestFrame
  #heartbeat: NodeJS.Timeout | undefined
  /** Why the broker takes no messages now; null if it does. */
  #blocked: string | null = null
  /** Why the broker has returned a message whose header frame is still to come. */
  #returning: BrokerRefusal | null = null
  /** Why the connection has ended; null if it has not. */
  #ended: BrokerRefusal | SessionFailure | null = null
  /** By delivery tag, in their order. */
  readonly #pending = new Map<number, Pending>()
  #tag = 0

  constructor(guard: Guard, place: AmqpExchange, signedIn: (failure: BrokerRefusal | SessionFailure | null) => void) {
    this.#place = place
    this.#signedIn = signedIn
    this.#line = new BrokerLine(guard, place, {
      opened: () => this.#line.write([protocolHeader]),
      read: (chunk) => this.#reader.read(chunk),
      ended: (failure) => this.#end(failure)
    })
  }

  isOpen(): boolean {
    return this.#line.isOpen
  }

  close(): void {
    this.#line.close(methodFrame(0, methods.close, short(200), shortText(""), short(0), short(0)), cancelled)
  }

  publish(message: AmqpMessage, done: (result: Published) => void): () => void {
    const unable = this.#ended ?? (this.#blocked === null ? null : refusal("BLOCKED", this.#blocked))
    if (unable !== null) {
      queueMicrotask(() => done(unable))
      return () => undefined
    }
    const tag = ++this.#tag
    const pending: Pending = { id: message.id, done, returned: null }
    this.#pending.set(tag, pending)
    const { body, mandatory, routingKey } = message
    this.#line.ask(
      [
        methodFrame(
          channel,
          methods.publish,
          short(0),
          shortText(this.#place.exchange),
          shortText(routingKey),
          octet(Number(mandatory))
        ),
        headerFrame(channel, propertiesOf(message), body.length),
        ...bodyFrames(channel, body, this.#longest)
      ],
      // A message that is returned comes back as a whole.
      body.length
    )
    return () => {
      pending.done = () => undefined
    }
  }

  /** Every message that is under way has failed. */
  #end(failure: BrokerRefusal | SessionFailure): void {
    clearInterval(this.#heartbeat)
    this.#ended ??= failure
    const waiting = [...this.#pending.values()]
    this.#pending.clear()
    for (const { done } of waiting) done(failure)
    this.#settle(failure)
  }

  #settle(failure: BrokerRefusal | SessionFailure | null): void {
    this.#signedIn?.(failure)
    this.#signedIn = null
  }

  #take({ kind, payload }: Frame): void {
    if (kind === frameKinds.heartbeat) return
    if (kind === frameKinds.header) return this.#takeHeader(payload)
    const values = new Values(payload)
    const method = values.long()
    if (method === methods.close || method === methods.channelClose) return this.#refused(method, values)
    if (this.#step < steps.length) return this.#signIn(method, values)
    switch (method) {
      case methods.ack:
        return this.#confirmed(values.longLong(), values.octet(), null)
      case methods.nack:
        return this.#confirmed(values.longLong(), values.octet(), refusal("NACK", ""))
      case methods.returned:
        this.#returning = refusal(values.short(), values.shortText())
        return
      case methods.blocked:
        this.#blocked = values.shortText()
        return
      case methods.unblocked:
        this.#blocked = null
        return
      default:
        throw new ServerFault("PROTOCOL_ERROR", "the broker sends what a publisher is not answered by")
    }
  }

  #signIn(method: number, values: Values): void {
    if (method !== steps[this.#step]) {
      throw new ServerFault("PROTOCOL_ERROR", "the broker does not answer the sign-in in the order of the protocol")
    }
    this.#step++
    switch (method) {
      case methods.start:
        return this.#start(values)
      case methods.tune:
        return this.#tune(values)
      case methods.openOk:
        return this.#line.write([methodFrame(channel, methods.channelOpen, shortText(""))])
      case methods.channelOpenOk:
        return this.#line.write([methodFrame(channel, methods.select, octet(0))])
      default:
        return this.#settle(null)
    }
  }

  #start(values: Values): void {
    values.short()
    values.skipTable()
    if (!values.longText().split(" ").includes("PLAIN")) {
      throw new ServerFault("AUTH_REJECTED", "the broker does not take a user name and a password (PLAIN)")
    }
    const { password, username } = this.#place
    this.#line.write([
      methodFrame(
        0,
        methods.startOk,
        clientProperties,
        shortText("PLAIN"),
        longText(`\0${username}\0${password}`),
        shortText("en_US")
      )
    ])
  }

  #tune(values: Values): void {
    values.short()
    const longest = values.long()
    const heartbeat = values.short()
    // Zero means that the broker has no limit.
    this.#longest = longest === 0 ? longestFrame : Math.min(longest, longestFrame)
    if (this.#longest < shortestMax)
      throw new ServerFault("PROTOCOL_ERROR", "the broker wants frames that are too short")
    this.#reader.longest = this.#longest
    const seconds = Math.min(heartbeat, slowestHeartbeat)
    if (seconds > 0) {
      this.#heartbeat = setInterval(() => this.#line.write([heartbeatFrame]), seconds * 500)
      this.#heartbeat.unref()
    }
    this.#line.write([
      methodFrame(0, methods.tuneOk, short(channel), long(this.#longest), short(seconds)),
      methodFrame(0, methods.open, shortText(this.#place.vhost), shortText(""), octet(0))
    ])
  }

  #takeHeader(payload: Buffer): void {
    const why = this.#returning
    if (why === null) throw new ServerFault("PROTOCOL_ERROR", "the broker sends a message that nobody has asked for")
    this.#returning = null
    const id = idIn(payload)
    for (const pending of this.#pending.values()) if (pending.id === id) pending.returned = why
  }

  /** Bit 0 of `bits`: all messages up to this one. */
  #confirmed(tag: number, bits: number, refused: BrokerRefusal | null): void {
    if ((bits & 1) === 0) return this.#finish(tag, refused)
    for (const one of this.#pending.keys()) {
      // Zero means all.
      if (one > tag && tag !== 0) return
      this.#finish(one, refused)
    }
  }

  #finish(tag: number, refused: BrokerRefusal | null): void {
    const pending = this.#pending.get(tag)
    this.#pending.delete(tag)
    pending?.done(refused ?? pending.returned ?? "")
  }

  /** The broker has closed the connection or the channel. Which message it does not like, it does not say. */
  #refused(method: number, values: Values): void {
    const why = refusal(values.short(), values.shortText(), this.#pending.size > 1)
    this.#end(why)
    this.#line.close(
      method === methods.close
        ? methodFrame(0, methods.closeOk)
        : methodFrame(0, methods.close, short(200), shortText(""), short(0), short(0)),
      cancelled
    )
  }
}

export const amqp: Protocol<"amqp"> = {
  connect: (guard, place, signedIn) => new AmqpPublisher(guard, place, signedIn)
}
