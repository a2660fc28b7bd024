import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { NatsStreamConsumer, Received, Settled } from "@tidegate/connectors/Subscriptions"
import type { Guard } from "@tidegate/egress/Egress"
import { maxMessageBody, subjectHeader } from "@tidegate/model/BrokerSource"
import type { Consumer, ConsumerEvents, Subscribing } from "./Consumer.ts"
import { consumerIn, deliveryIn, headersIn, messageIn, type NatsReceived, type PullLimits } from "./NatsFrames.ts"
import { NatsLine, refusal } from "./NatsLine.ts"
import { ServerFault } from "./ServerFrames.ts"

/** A NATS server takes no larger message, and no more headers beside a message. */
const largest = 64 * 1024 * 1024
const besideBody = 128 * 1024
/** Bytes of the messages of one pull. Nothing is pulled while messages wait, so no more than these wait. */
const bytesOfPull = maxMessageBody + besideBody
/** How long (ms) a pull waits for messages at the server, how long after that its end may take, and the least time until another one. */
const pullMs = 30_000
const lateMs = 15_000
const againMs = 1_000

/** A pull that ended for this reason is made again. The consumer refuses any other one. */
const passing = /^(?:leadership change|server shutdown|exceeded maxwaiting|batch completed)/i
const tooLarge = /^message size exceeds maxbytes/i
const gone = /^consumer (?:deleted|is push based)/i

const fault = (message: string): ServerFault => new ServerFault("PROTOCOL_ERROR", message)

/** Pulls messages from a durable consumer of a stream, one pull at a time. */
class NatsConsumer implements Consumer {
  readonly #place: NatsStreamConsumer
  readonly #events: ConsumerEvents
  readonly #nats: NatsLine
  /** Null: the server has not said what the consumer is. */
  #limits: PullLimits | null = null
  /** The subjects to which messages are acknowledged that were delivered and are not settled. */
  readonly #unsettled = new Map<number, string>()
  #receipt = 0
  #waiting: Array<Received> = []
  /** Messages of the pull that may still arrive; 0: there is none under way. */
  #awaited = 0
  #hasArrived = false
  /** The next message is larger than a pull: it is pulled alone, however large it is. */
  #isLarge = false
  #pulledAt = 0
  #pullUntil: NodeJS.Timeout | undefined
  #pause: NodeJS.Timeout | undefined

  constructor(guard: Guard, place: NatsStreamConsumer, events: ConsumerEvents) {
    this.#place = place
    this.#events = events
    this.#nats = new NatsLine(
      guard,
      place,
      {
        opened: () => this.#ask(`CONSUMER.INFO.${place.stream}.${place.consumer}`, "info", "", besideBody),
        message: (line, body) => this.#take(messageIn(line, body), body),
        forbidden: (_, why) => this.#nats.leave(why),
        ended: (failure) => {
          clearTimeout(this.#pullUntil)
          clearTimeout(this.#pause)
          this.#waiting = []
          events.ended(failure)
        }
      },
      { longest: largest, longestKept: bytesOfPull, underWay: () => 0 }
    )
  }

  taken(): ReadonlyArray<Received> {
    const taken = this.#waiting
    this.#waiting = []
    this.#pull()
    return taken
  }

  settle({ rejected, stored }: Settled): void {
    this.#nats.line.write([...this.#answers(stored, "+ACK"), ...this.#answers(rejected, "+TERM")])
    this.#pull()
  }

  close(): void {
    // So the server delivers them at once, and not after the time that it gives for an acknowledgement.
    this.#nats.close(Buffer.concat(this.#answers([...this.#unsettled.keys()], "-NAK")))
  }

  #answers(receipts: ReadonlyArray<number>, word: string): ReadonlyArray<Buffer> {
    return receipts.flatMap((receipt) => {
      const subject = this.#unsettled.get(receipt)
      this.#unsettled.delete(receipt)
      return subject === undefined ? [] : [Buffer.from(`PUB ${subject} ${word.length}\r\n${word}\r\n`)]
    })
  }

  /** `answer`: bytes of the answer beside the usual ones. */
  #ask(call: string, place: "info" | "pull", text: string, answer: number): void {
    this.#nats.line.grant(answer)
    this.#nats.line.ask(
      [Buffer.from(`PUB $JS.API.${call} ${this.#nats.inbox}${place} ${Buffer.byteLength(text)}\r\n${text}\r\n`)],
      0
    )
  }

  #pull(): void {
    const { consumer, prefetch, stream } = this.#place
    const limits = this.#limits
    const free = prefetch - this.#unsettled.size
    const isBusy = this.#awaited > 0 || this.#pause !== undefined || this.#waiting.length > 0
    if (limits === null || isBusy || free <= 0 || !this.#nats.line.isOpen) return
    const atMost = (value: number, limit: number): number => (limit === 0 ? value : Math.min(value, limit))
    const batch = this.#isLarge ? 1 : atMost(free, limits.batch)
    const request = {
      batch,
      ...(this.#isLarge ? {} : { max_bytes: atMost(bytesOfPull, limits.bytes) }),
      expires: atMost(pullMs * 1e6, limits.expires)
    }
    this.#awaited = batch
    this.#hasArrived = false
    this.#pulledAt = performance.now()
    this.#pullUntil = setTimeout(
      () => this.#nats.line.fail(new ServerFault("TIMEOUT", "the server does not say that a pull is over")),
      pullMs + lateMs
    ).unref()
    const bytes = this.#isLarge ? largest : bytesOfPull
    this.#ask(`CONSUMER.MSG.NEXT.${stream}.${consumer}`, "pull", JSON.stringify(request), bytes + besideBody)
  }

  #take(message: NatsReceived, whole: Buffer): void {
    const { inbox } = this.#nats
    if (!message.subject.startsWith(inbox)) return this.#deliver(message, whole)
    if (message.subject === `${inbox}info` && this.#limits === null) return this.#known(message)
    if (message.subject === `${inbox}pull` && this.#awaited > 0) return this.#over(message)
    throw fault("the server answers what it was not asked")
  }

  #known({ content, status }: NatsReceived): void {
    const limits = status === "503" ? refusal("NO_RESPONDERS", "") : consumerIn(content)
    if (limits instanceof BrokerRefusal) return this.#nats.leave(limits)
    this.#limits = limits
    this.#events.subscribed()
    this.#pull()
  }

  /** The server delivers nothing more for the pull. */
  #over({ said, status }: NatsReceived): void {
    if (status === "503") return this.#nats.leave(refusal("NO_RESPONDERS", ""))
    if (status === "409" && gone.test(said)) return this.#nats.leave(refusal("CONSUMER_GONE", said))
    const isTooLarge = status === "409" && tooLarge.test(said) && !this.#isLarge
    const isPassing = status === "404" || status === "408" || (status === "409" && passing.test(said))
    if (!isTooLarge && !isPassing) return this.#nats.leave(refusal(status ?? "NO_STREAM", said))
    this.#ended()
    if (isTooLarge) {
      this.#isLarge = !this.#hasArrived
      return this.#pull()
    }
    if (performance.now() - this.#pulledAt >= againMs) return this.#pull()
    // A server that ends each pull at once is not asked without a pause.
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      this.#pull()
    }, againMs).unref()
  }

  #ended(): void {
    clearTimeout(this.#pullUntil)
    this.#awaited = 0
  }

  #deliver({ content, head, reply, size, subject }: NatsReceived, whole: Buffer): void {
    const id = deliveryIn(reply)
    if (id === null || this.#awaited === 0) throw fault("the server sends a message that nobody has asked for")
    const isKept = whole.length === size && content.length <= maxMessageBody
    const receipt = ++this.#receipt
    this.#unsettled.set(receipt, reply)
    this.#waiting.push({
      receipt,
      id,
      contentType: null,
      contentEncoding: null,
      facts: { [subjectHeader]: subject },
      headers: headersIn(head),
      body: isKept ? content : null,
      size: whole.length === size ? content.length : size
    })
    this.#hasArrived = true
    this.#isLarge = false
    if (--this.#awaited === 0) this.#ended()
    this.#events.arrived()
  }
}

export const natsConsumer: Subscribing<"nats"> = {
  subscribe: ({ guard }, place, events) => new NatsConsumer(guard, place, events)
}
