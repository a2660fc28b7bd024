import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { Redis as Client } from "ioredis"
import { type Feed, longestMessage, Subscribers, toldOf } from "./Feed.ts"
import { type RedisConnection, usualDeadlineMs } from "./RedisConnection.ts"

/** How often the connection is asked whether it lives: it has nothing to say while nothing is published (ms). */
const heartbeatMs = 5_000

interface Channel {
  readonly text: string
  /** Settles when Redis has taken the subscription; fails when the connection is lost first. */
  subscribed: Promise<unknown>
  subscribers: number
}

/**
 * A feed of all processes, over a connection of its own. A process tells its own subscribers by itself, so that they hear of it
 * while Redis is away, and leaves out what comes back from there.
 */
export class RedisFeed {
  private readonly origin = randomBytes(8).toString("hex")
  private readonly subscribers = new Subscribers()
  private readonly channels = new Map<string, Channel>()
  private readonly connection: RedisConnection
  private readonly client: Client
  private readonly nameOf: (text: string) => string
  private readonly heartbeat: NodeJS.Timeout
  /** When it is connected for the first time. */
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
        const told = toldOf(message)
        this.subscribers.tell(channel, told)
        const sent = `${this.origin}:${told.kind === "message" ? `m${told.text}` : "g"}`
        // Fails open: it is a hint, and whoever waits for it reads SQL now and then.
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
            () => this.subscribers.tell(channel, { kind: "gap" }),
            () => {}
          )
        }
        return stream
      })
  }

  /** What others published may not have come, whoever it was that Redis did not answer. */
  gap(): void {
    for (const { text } of this.channels.values()) this.subscribers.tell(text, { kind: "gap" })
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
    // When it fails there is no connection, and its return subscribes.
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
        () => this.subscribers.tell(channel.text, { kind: "gap" }),
        () => {}
      )
    }
  }

  private receive(name: string, sent: string): void {
    const channel = this.channels.get(name)
    const [, origin, kind, text] = /^([0-9a-f]{16}):([mg])(.*)$/s.exec(sent) ?? []
    if (channel === undefined || origin === undefined || origin === this.origin) return
    // No longer one than we would send ourselves, whoever sent it.
    const isWhole = kind === "m" && text!.length <= longestMessage
    this.subscribers.tell(channel.text, isWhole ? toldOf(text!) : { kind: "gap" })
  }
}
