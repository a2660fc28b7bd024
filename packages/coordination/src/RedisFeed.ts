import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { Redis as Client } from "ioredis"
import { type Feed, longestMessage, Subscribers, receivedOf } from "./Feed.ts"
import { type RedisConnection, usualDeadlineMs } from "./RedisConnection.ts"

/** Interval of pings (ms): without published messages the connection is idle. */
const heartbeatMs = 5_000

interface Channel {
  readonly text: string
  /** Resolves when Redis has confirmed the subscription; rejects if the connection is lost first. */
  subscribed: Promise<unknown>
  subscribers: number
}

/**
 * A feed of all processes, over its own connection. A process notifies its own subscribers directly, so that they receive messages while Redis
 * is down, and ignores its own messages that return from Redis.
 */
export class RedisFeed {
  private readonly origin = randomBytes(8).toString("hex")
  private readonly subscribers = new Subscribers()
  private readonly channels = new Map<string, Channel>()
  private readonly connection: RedisConnection
  private readonly client: Client
  private readonly nameOf: (text: string) => string
  private readonly heartbeat: NodeJS.Timeout
  /** Resolves at the first connection. */
  readonly started: Promise<void>

  constructor(connection: RedisConnection, client: Client, nameOf: (text: string) => string) {
    this.connection = connection
    this.client = client
    this.nameOf = nameOf
    client.on("message", (name: string, sent: string) => this.receive(name, sent))
    client.on("ready", () => this.subscribeAgain())
    this.started = new Promise((resolve) => client.once("ready", () => resolve()))
    this.heartbeat = setInterval(() => {
      if (client.status === "ready") client.ping().catch(() => {})
    }, heartbeatMs)
  }

  readonly service: Feed["Service"] = {
    publish: (channel, message) =>
      Effect.sync(() => {
        const received = receivedOf(message)
        this.subscribers.notify(channel, received)
        const sent = `${this.origin}:${received.kind === "message" ? `m${received.text}` : "g"}`
        // Fails open, because a message is only a wake-up notification, and subscribers read SQL at intervals.
        this.connection.send("PUBLISH", [this.nameOf(channel), sent]).catch(() => {})
      }),
    subscribe: (channel) =>
      Effect.gen({ self: this }, function* () {
        const stream = yield* this.subscribers.add(channel)
        const subscribed = yield* Effect.acquireRelease(
          Effect.sync(() => this.listen(channel)),
          () => Effect.sync(() => this.leave(channel))
        )
        const inTime = Effect.as(Effect.ignore(Effect.tryPromise(() => subscribed)), true)
        const isInTime = yield* Effect.timeoutOrElse(inTime, {
          duration: usualDeadlineMs,
          orElse: () => Effect.succeed(false)
        })
        if (!isInTime) {
          subscribed.then(
            () => this.subscribers.notify(channel, { kind: "gap" }),
            () => {}
          )
        }
        return stream
      })
  }

  /** Sends a gap to all subscribers: messages of other processes may be lost, whichever side Redis did not answer. */
  gap(): void {
    for (const { text } of this.channels.values()) this.subscribers.notify(text, { kind: "gap" })
  }

  close(): void {
    clearInterval(this.heartbeat)
    this.client.disconnect()
  }

  private listen(text: string): Promise<unknown> {
    const name = this.nameOf(text)
    const known = this.channels.get(name)
    if (known !== undefined) {
      known.subscribers++
      return known.subscribed
    }
    const subscribed = this.client.subscribe(name)
    // On failure there is no connection; the reconnection subscribes.
    subscribed.catch(() => {})
    this.channels.set(name, { text, subscribed, subscribers: 1 })
    return subscribed
  }

  private leave(text: string): void {
    const name = this.nameOf(text)
    const channel = this.channels.get(name)
    if (channel === undefined || --channel.subscribers > 0) return
    this.channels.delete(name)
    this.client.unsubscribe(name).catch(() => {})
  }

  private subscribeAgain(): void {
    for (const [name, channel] of this.channels) {
      const subscribed = this.client.subscribe(name)
      channel.subscribed = subscribed
      subscribed.then(
        () => this.subscribers.notify(channel.text, { kind: "gap" }),
        () => {}
      )
    }
  }

  private receive(name: string, sent: string): void {
    const channel = this.channels.get(name)
    const [, origin, kind, text] = /^([0-9a-f]{16}):([mg])(.*)$/s.exec(sent) ?? []
    if (channel === undefined || origin === undefined || origin === this.origin) return
    // The length is checked again, because any client of Redis may have sent the message.
    const isWhole = kind === "m" && text!.length <= longestMessage
    this.subscribers.notify(channel.text, isWhole ? receivedOf(text!) : { kind: "gap" })
  }
}
