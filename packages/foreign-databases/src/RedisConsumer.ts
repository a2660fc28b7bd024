import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { cancelled, type SessionFailure } from "@tidegate/connectors/Failure"
import type { Received, RedisStreamConsumer, Settled } from "@tidegate/connectors/Subscriptions"
import type { Guard } from "@tidegate/egress/Egress"
import { streamHeader } from "@tidegate/model/BrokerSource"
import { BrokerLine } from "./BrokerLine.ts"
import type { Consumer, ConsumerEvents, Subscribing } from "./Consumer.ts"
import { command, signInTo } from "./RedisFrames.ts"
import { bytesOfReply, type Entry, type Expected, longestText, RedisReplies, type Reply } from "./RedisReplies.ts"
import { breach, ServerFault } from "./ServerFrames.ts"

/** How long (ms) a read waits for entries at the server, how much later its reply may come, and the least time until another one that got none. */
const blockMs = 20_000
const lateMs = 15_000
const againMs = 1_000
/** After a reply with more bytes the next read asks for one entry, and from there on for more. */
const muchOfReply = bytesOfReply / 2
/** Where the entries begin that the consumer has been given and has not acknowledged, and where a look for those of others begins. */
const first = "0-0"

interface Asked extends Expected {
  readonly answered: (reply: Exclude<Reply, BrokerRefusal>) => void
  /** What becomes of a refusal that does not end the subscription. */
  readonly accepts?: string
}

/**
 * Reads a stream as a consumer of a group. First come the entries that were given to this consumer before, then new ones; those of other consumers
 * are taken over from time to time. A read waits at the server only while nothing is unsettled, because the server would take no acknowledgement
 * meanwhile.
 */
class RedisConsumer implements Consumer {
  readonly #place: RedisStreamConsumer
  readonly #events: ConsumerEvents
  readonly #line: BrokerLine
  readonly #replies: RedisReplies
  readonly #asked: Array<Asked> = []
  #late: NodeJS.Timeout | undefined
  #pause: NodeJS.Timeout | undefined
  #isSubscribed = false
  #isReading = false
  #isOver = false
  /** The own entries behind this one are read; null: new ones are. */
  #after: string | null = first
  /** Whether there was nothing new, while something was unsettled. */
  #isDry = false
  /** How many entries the next read asks for. */
  #count = 1
  #claimFrom = first
  #claimAt = 0
  #receipt = 0
  /** Ids of entries that were delivered and are not settled. */
  readonly #unsettled = new Map<number, string>()
  #waiting: Array<Received> = []

  constructor(guard: Guard, place: RedisStreamConsumer, events: ConsumerEvents) {
    this.#place = place
    this.#events = events
    this.#replies = new RedisReplies(
      place.bodyField,
      () => this.#asked[0],
      (reply) => this.#answered(reply)
    )
    this.#line = new BrokerLine(guard, place, {
      opened: () => this.#signIn(),
      read: (chunk) => this.#replies.read(chunk),
      ended: (failure) => this.#end(failure)
    })
  }

  taken(): ReadonlyArray<Received> {
    const taken = this.#waiting
    this.#waiting = []
    this.#read()
    return taken
  }

  /** A rejected entry is acknowledged like a stored one: a group has no other word for it. The stream keeps both. */
  settle({ rejected, stored }: Settled): void {
    const ids = [...stored, ...rejected].flatMap((receipt) => this.#unsettled.get(receipt) ?? [])
    for (const receipt of [...stored, ...rejected]) this.#unsettled.delete(receipt)
    this.#acknowledge(ids)
    this.#isDry = false
    this.#read()
  }

  close(): void {
    this.#line.close(Buffer.concat(command("QUIT")), cancelled)
  }

  #end(failure: BrokerRefusal | SessionFailure): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#late)
    clearTimeout(this.#pause)
    this.#waiting = []
    this.#events.ended(failure)
  }

  #leave(why: BrokerRefusal): void {
    this.#end(why)
    this.close()
  }

  /** `bytes`: what the reply may have beside the usual number. */
  #ask(asked: Asked, bytes: number, parts: ReadonlyArray<string>): void {
    this.#asked.push(asked)
    this.#line.grant(bytes)
    this.#line.ask(command(...parts), 0)
    if (this.#asked.length === 1) this.#watch()
  }

  /** The reply to the first command that is under way must come in time. */
  #watch(): void {
    clearTimeout(this.#late)
    if (this.#asked.length === 0) return
    this.#late = setTimeout(
      () => this.#line.fail(new ServerFault("TIMEOUT", "the server does not answer a command")),
      blockMs + lateMs
    ).unref()
  }

  #answered(reply: Reply): void {
    const asked = this.#asked.shift()
    this.#watch()
    if (reply instanceof BrokerRefusal) {
      if (asked?.accepts !== reply.code) return this.#leave(reply)
      return asked.answered({ kind: "word" })
    }
    asked!.answered(reply)
  }

  #signIn(): void {
    const { createAt, group, stream } = this.#place
    for (const parts of signInTo(this.#place)) {
      this.#asked.push({ kind: "word", most: 0, answered: () => undefined })
      this.#line.ask(parts, 0)
    }
    this.#watch()
    if (createAt !== null) {
      const from = createAt === "oldest" ? "0" : "$"
      const isThere = { kind: "word", most: 0, accepts: "BUSYGROUP", answered: () => undefined } as const
      this.#ask(isThere, 0, ["XGROUP", "CREATE", stream, group, from, "MKSTREAM"])
    }
    this.#read()
  }

  #acknowledge(ids: ReadonlyArray<string>): void {
    if (ids.length === 0) return
    const { group, stream } = this.#place
    this.#ask({ kind: "word", most: 0, answered: () => undefined }, 0, ["XACK", stream, group, ...ids])
  }

  #read(): void {
    const isBusy = this.#isReading || this.#pause !== undefined || this.#waiting.length > 0
    if (isBusy || this.#isOver || !this.#line.isOpen) return
    const isSettled = this.#unsettled.size === 0
    const untilClaim = this.#claimAt - performance.now()
    // Only while nothing is unsettled: an entry of its own that waits for the database would be taken over as well.
    if (this.#after === null && untilClaim <= 0) return isSettled ? this.#claim() : undefined
    const { consumer, group, prefetch, stream } = this.#place
    const most = Math.min(this.#count, prefetch - this.#unsettled.size)
    if (most <= 0 || (this.#isDry && !isSettled)) return
    const waits = this.#after === null && isSettled
    const block = waits ? ["BLOCK", String(Math.ceil(Math.max(againMs, Math.min(blockMs, untilClaim))))] : []
    const since = performance.now()
    this.#isReading = true
    this.#ask({ kind: "entries", most, answered: (reply) => this.#arrived(reply, waits ? since : null) }, longestText, [
      "XREADGROUP",
      "GROUP",
      group,
      consumer,
      "COUNT",
      String(most),
      ...block,
      "STREAMS",
      stream,
      this.#after ?? ">"
    ])
  }

  /** `waitedSince`: when a read that waits was begun; null: it was answered at once. */
  #arrived(reply: Exclude<Reply, BrokerRefusal>, waitedSince: number | null): void {
    if (reply.kind !== "entries") throw breach("the server does not answer as Redis does")
    const { entries, isCut, kept } = reply
    this.#isReading = false
    const isOwn = this.#after !== null
    const last = entries.at(-1)?.id ?? null
    if (isOwn || isCut) this.#after = last
    this.#count = isCut || kept > muchOfReply ? 1 : Math.min(2 * this.#count, this.#place.prefetch)
    this.#isDry = !isOwn && last === null && waitedSince === null
    for (const entry of entries) this.#deliver(entry)
    // Nothing can be stored of what was deleted.
    this.#acknowledge(entries.flatMap(({ content, id }) => (content === null ? [id] : [])))
    if (!this.#isSubscribed) {
      this.#isSubscribed = true
      this.#events.subscribed()
    }
    if (this.#waiting.length > 0) return this.#events.arrived()
    // A server that ends each wait at once is not asked without a pause.
    if (waitedSince !== null && performance.now() - waitedSince < againMs) this.#rest()
    this.#read()
  }

  #deliver({ content, id }: Entry): void {
    if (content === null) return
    const receipt = ++this.#receipt
    this.#unsettled.set(receipt, id)
    const { stream } = this.#place
    this.#waiting.push({ receipt, id: `${stream}:${id}`, facts: { [streamHeader]: stream }, ...content })
  }

  /** Takes over what others have not acknowledged. It is then read as what is its own. */
  #claim(): void {
    const { claimAfter, consumer, group, prefetch, stream } = this.#place
    this.#isReading = true
    this.#ask(
      {
        kind: "claimed",
        most: prefetch,
        answered: (reply) => {
          if (reply.kind !== "claimed") throw breach("the server does not answer as Redis does")
          this.#isReading = false
          this.#claimFrom = reply.next
          // There are more of them to look at, or this was the last of them.
          this.#claimAt =
            performance.now() + (reply.next === first ? claimAfter * 1_000 : reply.count > 0 ? 0 : againMs)
          if (reply.count > 0) this.#after = first
          this.#read()
        }
      },
      0,
      [
        "XAUTOCLAIM",
        stream,
        group,
        consumer,
        String(claimAfter * 1_000),
        this.#claimFrom,
        "COUNT",
        String(prefetch),
        "JUSTID"
      ]
    )
  }

  #rest(): void {
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      this.#read()
    }, againMs).unref()
  }
}

export const redisConsumer: Subscribing<"redis"> = {
  subscribe: ({ guard }, place, events) => new RedisConsumer(guard, place, events)
}
