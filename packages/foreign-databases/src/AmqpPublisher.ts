import type { AmqpExchange, AmqpMessage, BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { bodyFrames, headerFrame, methodFrame, methods, octet, short, shortText, type Values } from "./AmqpFrames.ts"
import { AmqpLine, channel, refusal } from "./AmqpLine.ts"
import { idIn, propertiesOf } from "./AmqpProperties.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"
import { ServerFault } from "./ServerFrames.ts"

/** A message that the broker has not confirmed yet. */
interface Pending {
  readonly id: string
  done: (result: Published) => void
  /** Why the broker has returned it, before it confirms that. */
  returned: BrokerRefusal | null
}

const unasked = (what: string): ServerFault => new ServerFault("PROTOCOL_ERROR", `the broker sends ${what}`)

class AmqpPublisher implements Publisher<AmqpMessage> {
  readonly #exchange: string
  readonly #amqp: AmqpLine
  #signedIn: ((failure: BrokerRefusal | SessionFailure | null) => void) | null
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
    this.#exchange = place.exchange
    this.#signedIn = signedIn
    this.#amqp = new AmqpLine(
      guard,
      place,
      {
        opened: () => this.#amqp.line.write([methodFrame(channel, methods.select, octet(0))]),
        method: (method, values) => this.#take(method, values),
        header: (payload) => this.#takeHeader(payload),
        body: () => undefined,
        ended: (failure) => this.#end(failure)
      },
      { bodies: "dropped", isWatched: false }
    )
  }

  isOpen(): boolean {
    return this.#amqp.line.isOpen
  }

  close(): void {
    this.#amqp.close()
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
    this.#amqp.line.ask(
      [
        methodFrame(
          channel,
          methods.publish,
          short(0),
          shortText(this.#exchange),
          shortText(routingKey),
          octet(Number(mandatory))
        ),
        headerFrame(channel, propertiesOf(message), body.length),
        ...bodyFrames(channel, body, this.#amqp.longest)
      ],
      // A message that is returned comes back as a whole.
      body.length
    )
    return () => {
      pending.done = () => undefined
    }
  }

  /** Every message that is under way has failed. The broker does not say which one it does not like. */
  #end(why: BrokerRefusal | SessionFailure): void {
    const failure = why._tag === "BrokerRefusal" ? refusal(why.code, why.said, this.#pending.size > 1) : why
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

  #take(method: number, values: Values): void {
    if (this.#signedIn !== null) {
      if (method !== methods.selectOk) {
        throw unasked("something else than the answer to the sign-in")
      }
      return this.#settle(null)
    }
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
        throw unasked("what a publisher is not answered by")
    }
  }

  #takeHeader(payload: Buffer): void {
    const why = this.#returning
    if (why === null) throw unasked("a message that nobody has asked for")
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
}

export const amqp: Protocol<"amqp"> = {
  connect: (guard, place, signedIn) => new AmqpPublisher(guard, place, signedIn)
}
