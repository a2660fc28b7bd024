import type { BrokerRefusal, NatsMessage, NatsServer } from "@tidegate/connectors/Brokers"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { confirmationIn, messageIn } from "./NatsFrames.ts"
import { NatsLine, refusal } from "./NatsLine.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"
import { ServerFault } from "./ServerFrames.ts"

/** A message that no stream has confirmed yet. */
interface Pending {
  readonly subject: string
  done: (result: Published) => void
}

/** A confirmation has about a hundred bytes. */
const longestConfirmation = 16 * 1024

/** Publishes to streams, which confirm each message at a subject of its own. */
class NatsPublisher implements Publisher<NatsMessage> {
  readonly #nats: NatsLine
  #signedIn: ((failure: BrokerRefusal | SessionFailure | null) => void) | null
  /** Why the connection has ended; null if it has not. */
  #ended: BrokerRefusal | SessionFailure | null = null
  readonly #pending = new Map<number, Pending>()
  #number = 0

  constructor(guard: Guard, place: NatsServer, signedIn: (failure: BrokerRefusal | SessionFailure | null) => void) {
    this.#signedIn = signedIn
    this.#nats = new NatsLine(
      guard,
      place,
      {
        opened: () => this.#settle(null),
        message: (line, body) => this.#confirmed(line, body),
        forbidden: (subject, why) => this.#refused(subject, why),
        ended: (failure) => this.#end(failure)
      },
      { longest: longestConfirmation, longestKept: longestConfirmation, underWay: () => this.#pending.size }
    )
  }

  isOpen(): boolean {
    return this.#nats.line.isOpen
  }

  close(): void {
    this.#nats.close()
  }

  publish({ body, headers, subject }: NatsMessage, done: (result: Published) => void): () => void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const head = Buffer.from(`NATS/1.0\r\n${lines.join("")}\r\n`)
    const size = head.length + body.length
    const unable = this.#ended ?? (size > this.#nats.largest ? refusal("PAYLOAD", "") : null)
    if (unable !== null) {
      queueMicrotask(() => done(unable))
      return () => undefined
    }
    const number = ++this.#number
    this.#pending.set(number, { subject, done })
    const command = `HPUB ${subject} ${this.#nats.inbox}${number} ${head.length} ${size}\r\n`
    this.#nats.line.ask([Buffer.from(command), head, body, Buffer.from("\r\n")], 0)
    return () => {
      this.#pending.delete(number)
    }
  }

  #confirmed(line: string, body: Buffer): void {
    const { content, status, subject } = messageIn(line, body)
    const { inbox } = this.#nats
    if (!subject.startsWith(inbox)) {
      throw new ServerFault("PROTOCOL_ERROR", "the server sends a message that nobody has asked for")
    }
    const number = Number(subject.slice(inbox.length))
    const pending = this.#pending.get(number)
    this.#pending.delete(number)
    pending?.done(status === "503" ? refusal("NO_RESPONDERS", "") : confirmationIn(content))
  }

  #refused(subject: string, why: BrokerRefusal): void {
    for (const [number, pending] of this.#pending) {
      if (pending.subject !== subject) continue
      this.#pending.delete(number)
      pending.done(why)
    }
  }

  /** Every message that is under way has failed. */
  #end(failure: BrokerRefusal | SessionFailure): void {
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
}

export const nats: Protocol<"nats"> = {
  connect: (guard, place, signedIn) => new NatsPublisher(guard, place, signedIn)
}
