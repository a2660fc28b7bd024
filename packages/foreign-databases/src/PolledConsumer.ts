import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import type { Received, Settled } from "@tidegate/connectors/Subscriptions"
import type { Answer, Egress } from "@tidegate/egress/Egress"
import type { Consumer, ConsumerEvents } from "./Consumer.ts"

/** Subscriptions at services that are asked for messages by HTTP: one call at a time, which waits at the service for messages. */

export type Fault = BrokerRefusal | SessionFailure

/** A message that was received, and by what it is settled. */
export interface Polled {
  readonly handle: string
  readonly message: Omit<Received, "receipt">
}

/** What a call for messages has got. "much": more bytes than one answer may have. "late": it has not been answered in its time. */
export type Poll =
  | { readonly kind: "messages"; readonly messages: ReadonlyArray<Polled>; readonly bytes: number }
  | { readonly kind: "much" }
  | { readonly kind: "late" }
  | { readonly kind: "failed"; readonly fault: Fault }

/** How the service is kept from delivering messages again that are under way. */
export interface Extending {
  /** How long (ms) it waits at least after it has delivered a message, and after each call. */
  readonly firstMs: number
  readonly extendedMs: number
  readonly extend: (handles: ReadonlyArray<string>) => Promise<Fault | null>
  /** The service may deliver these again at once. Nobody waits for it. */
  readonly release: (handles: ReadonlyArray<string>) => void
}

/** A service of messages. Its promises do not reject. */
export interface PolledService {
  /** Messages of one call, and messages that are under way at a time: those that wait, and those that are being stored. */
  readonly maxOfCall: number
  readonly maxUnsettled: number
  /** `waits`: the call may wait for messages. Otherwise it is answered at once. */
  readonly poll: (count: number, waits: boolean, signal: AbortSignal) => Promise<Poll>
  /** Tells the service that it can forget messages. */
  readonly settle: (handles: ReadonlyArray<string>) => Promise<Fault | null>
  /** Absent: each message has its time, and the service delivers it again after that. */
  readonly extending?: Extending
}

/** After an answer of more bytes, the next call asks for one message, and from there on for more. */
const muchOfAnswer = 1024 * 1024
/** The least time (ms) until another call after one that got nothing. */
const againMs = 1_000
/** How often (ms) it is looked which messages the service would deliver again soon. */
const lookMs = 4_000

interface Unsettled {
  readonly handle: string
  isSettling: boolean
  /** Until when the service does not deliver it again, by the clock of `performance`. */
  until: number
}

export const failed = (code: SessionFailure["code"], message: string): SessionFailure =>
  new SessionFailure({ code, message, final: false, broken: true })

/**
 * Sends a call and passes its answer to `take`, which ends it by a text that says why. As a stream: a call that waits must not take a
 * connection from the deliveries to the same service.
 */
export const streamed = (
  egress: Egress["Service"],
  call: Parameters<Egress["Service"]["stream"]>[0],
  take: (chunk: Buffer) => string | null
): Promise<Answer> =>
  new Promise((resolve) => {
    const streaming = egress.stream(call, {
      onHeaders: () => undefined,
      onData: (chunk) => {
        const why = take(chunk)
        if (why !== null) streaming.cancel(why)
        return true
      },
      onEnd: resolve
    })
  })

export class PolledConsumer implements Consumer {
  readonly #service: PolledService
  readonly #events: ConsumerEvents
  readonly #closing = new AbortController()
  #isSubscribed = false
  #isOver = false
  #isPolling = false
  #isExtending = false
  /** Whether the next call may wait: the first one says at once whether the source is let in, and the one after silence whether the service is there. */
  #mayWait = false
  /** How many messages the next call asks for. */
  #count = 1
  #receipt = 0
  readonly #unsettled = new Map<number, Unsettled>()
  #waiting: Array<Received> = []
  #pause: NodeJS.Timeout | undefined
  readonly #looking: NodeJS.Timeout | undefined

  constructor(service: PolledService, events: ConsumerEvents) {
    this.#service = service
    this.#events = events
    const { extending } = service
    if (extending !== undefined) this.#looking = setInterval(() => void this.#extend(extending), lookMs).unref()
    this.#poll()
  }

  taken(): ReadonlyArray<Received> {
    const taken = this.#waiting
    this.#waiting = []
    this.#poll()
    return taken
  }

  settle({ rejected, stored }: Settled): void {
    // No service can be told that a message is of no use: a dead-letter queue gets only what was received too often.
    const receipts = [...stored, ...rejected].filter((receipt) => this.#unsettled.has(receipt))
    for (const receipt of receipts) this.#unsettled.get(receipt)!.isSettling = true
    const { maxOfCall } = this.#service
    for (let i = 0; i < receipts.length; i += maxOfCall) void this.#settle(receipts.slice(i, i + maxOfCall))
  }

  close(): void {
    this.#end(cancelled)
  }

  #end(fault: Fault): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#pause)
    clearInterval(this.#looking)
    this.#closing.abort()
    this.#waiting = []
    const left = [...this.#unsettled.values()].filter(({ isSettling }) => !isSettling)
    if (left.length > 0) this.#service.extending?.release(left.map(({ handle }) => handle))
    this.#events.ended(fault)
  }

  #poll(): void {
    const isBusy = this.#isPolling || this.#pause !== undefined || this.#waiting.length > 0
    const { maxOfCall, maxUnsettled } = this.#service
    const count = Math.min(this.#count, maxOfCall, maxUnsettled - this.#unsettled.size)
    if (isBusy || count <= 0 || this.#isOver) return
    this.#isPolling = true
    const since = performance.now()
    void this.#service.poll(count, this.#mayWait, this.#closing.signal).then((poll) => this.#polled(poll, count, since))
  }

  #polled(poll: Poll, count: number, since: number): void {
    this.#isPolling = false
    if (this.#isOver) return
    if (poll.kind === "failed") return this.#end(poll.fault)
    if (poll.kind === "late") {
      if (!this.#mayWait) return this.#end(failed("TIMEOUT", "the service does not answer"))
      this.#mayWait = false
      return this.#poll()
    }
    if (poll.kind === "much") {
      if (count === 1)
        return this.#end(failed("RESPONSE_TOO_LARGE", "the service answers with more than a message has"))
      // What is in it comes again when its time is over.
      this.#count = 1
      return this.#poll()
    }
    const { bytes, messages } = poll
    if (messages.length > count) {
      return this.#end(failed("PROTOCOL_ERROR", "the service sends more messages than it was asked for"))
    }
    this.#count = bytes > muchOfAnswer ? 1 : Math.min(2 * this.#count, this.#service.maxOfCall)
    for (const one of messages) this.#deliver(one)
    const couldWait = this.#mayWait
    this.#mayWait = true
    if (!this.#isSubscribed) {
      this.#isSubscribed = true
      this.#events.subscribed()
    } else if (couldWait && messages.length === 0 && performance.now() - since < againMs) {
      // A service that answers at once that there is nothing is not asked without a pause.
      this.#pause = setTimeout(() => {
        this.#pause = undefined
        this.#poll()
      }, againMs).unref()
    }
    if (messages.length > 0) this.#events.arrived()
    this.#poll()
  }

  #deliver({ handle, message }: Polled): void {
    const receipt = ++this.#receipt
    const until = performance.now() + (this.#service.extending?.firstMs ?? 0)
    this.#unsettled.set(receipt, { handle, isSettling: false, until })
    this.#waiting.push({ receipt, ...message })
  }

  /** A call that was sent is not ended by the end of the subscription: what it settles need not be delivered again. */
  async #settle(receipts: ReadonlyArray<number>): Promise<void> {
    const fault = await this.#service.settle(receipts.map((receipt) => this.#unsettled.get(receipt)!.handle))
    if (fault !== null) return this.#end(fault)
    // A message that could not be settled, because its time is over, comes again, and is known then.
    for (const receipt of receipts) this.#unsettled.delete(receipt)
    this.#poll()
  }

  async #extend({ extend, extendedMs }: Extending): Promise<void> {
    if (this.#isExtending) return
    const now = performance.now()
    const due = [...this.#unsettled.values()].filter(({ isSettling, until }) => !isSettling && until - now < 2 * lookMs)
    if (due.length === 0) return
    this.#isExtending = true
    const fault = await extend(due.map(({ handle }) => handle))
    this.#isExtending = false
    if (fault !== null) return this.#end(fault)
    for (const one of due) one.until = now + extendedMs
  }
}
