import { Redacted } from "effect"
import { Redis as Client } from "ioredis"
import { metrics } from "@tidegate/telemetry/Metrics"
import type { RedisAddress } from "./RedisAddress.ts"

/** Longest wait for an answer (ms). */
export const usualDeadlineMs = 250
/** A connection that has not answered for this time is closed (ms). */
const silentMs = 2_000
/** Interval of pings while no other command is sent (ms). */
const heartbeatMs = 5_000
/** Pause after a failure (ms): it doubles each time, unless Redis has answered for a minute in between. */
const [shortestHoldMs, longestHoldMs, steadyMs] = [250, 30_000, 60_000] as const
/** Maximum number of commands without an answer, so that a slow Redis does not fill memory. */
const maxUnderWay = 1_000

export type Reason = "away" | "deadline" | "lost" | "refused" | "busy"

/** Redis did not carry out a command. The error contains neither the command nor the reply. */
export class Unanswered extends Error {
  override readonly name = "Unanswered"
  readonly reason: Reason

  constructor(reason: Reason) {
    super(`Redis: ${reason}`)
    this.reason = reason
  }
}

/** A connection that reconnects by itself. While it is down, commands fail at once. */
export const connect = ({ database, host, isEncrypted, password, port, username }: RedisAddress): Client => {
  const client = new Client({
    host,
    port,
    db: database,
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password: Redacted.value(password) }),
    ...(isEncrypted ? { tls: {} } : {}),
    lazyConnect: true,
    connectTimeout: 5_000,
    disconnectTimeout: 500,
    socketTimeout: silentMs,
    enableOfflineQueue: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // A former primary is now a replica: its host name already points to the new primary.
    reconnectOnError: ({ message }) => message.startsWith("READONLY"),
    retryStrategy: (times) => Math.min(50 * 2 ** times, 2_000) * (0.5 + Math.random() / 2)
  })
  // Errors are reported by the commands that fail; the text of this one may contain sent data.
  client.on("error", () => {})
  client.connect().catch(() => {})
  return client
}

/** Receives changes of Redis's availability. */
export interface Listener {
  readonly up: () => void
  readonly down: (reason: Reason) => void
}

/**
 * Sends commands to a Redis that may be stopped, frozen or slow. The first command without an answer in time opens the circuit breaker: from
 * then on commands fail at once, until Redis answers again.
 */
export class RedisConnection {
  private readonly client: Client
  private readonly listener: Listener
  private readonly deadlineMs: number
  private readonly heartbeat: NodeJS.Timeout
  private retry: NodeJS.Timeout | undefined
  private isUp = false
  private isClosed = false
  private upAt = 0
  private holdMs: number = shortestHoldMs
  private holdsUntil = 0
  private underWay = 0

  constructor(address: RedisAddress, deadlineMs: number, listener: Listener) {
    this.listener = listener
    this.deadlineMs = deadlineMs
    this.client = connect(address)
    this.client.on("ready", () => this.probe())
    this.client.on("close", () => this.fall("lost"))
    this.heartbeat = setInterval(() => {
      if (this.isUp) this.send("PING", []).catch(() => {})
    }, heartbeatMs)
    metrics.redisUp.set(0)
  }

  /** Whether commands are sent to Redis. */
  get answers(): boolean {
    return this.isUp
  }

  async send(command: string, args: ReadonlyArray<string>): Promise<unknown> {
    const reason: Reason | null = this.isUp ? (this.underWay < maxUnderWay ? null : "busy") : "away"
    if (reason !== null) {
      metrics.redisUnanswered.at(reason).add()
      throw new Unanswered(reason)
    }
    try {
      return await this.answer(command, args)
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT")) throw error
      const failure = error instanceof Unanswered ? error : new Unanswered(isReply(error) ? "refused" : "lost")
      metrics.redisUnanswered.at(failure.reason).add()
      this.fall(failure.reason)
      throw failure
    }
  }

  close(): void {
    this.isClosed = true
    clearInterval(this.heartbeat)
    clearTimeout(this.retry)
    this.client.disconnect()
  }

  private async answer(command: string, args: ReadonlyArray<string>): Promise<unknown> {
    const sent = this.client.call(command, ...args)
    this.underWay++
    // A command counts until it is answered or its connection is closed, even if its caller has stopped waiting.
    const over = (): void => void this.underWay--
    sent.then(over, over)
    let timer: NodeJS.Timeout | undefined
    const deadline = new Promise<never>((_, reject) => {
      // An answer that arrived while this process was busy is read before the deadline counts.
      timer = setTimeout(() => setImmediate(() => reject(new Unanswered("deadline"))), this.deadlineMs)
    })
    try {
      return await Promise.race([sent, deadline])
    } finally {
      clearTimeout(timer)
    }
  }

  private fall(reason: Reason): void {
    if (!this.isUp || this.isClosed) return
    this.isUp = false
    metrics.redisUp.set(0)
    this.holdMs = performance.now() - this.upAt > steadyMs ? shortestHoldMs : Math.min(2 * this.holdMs, longestHoldMs)
    this.holdsUntil = performance.now() + this.holdMs
    this.probeLater()
    this.listener.down(reason)
  }

  /** Checks whether Redis answers again, after the pause and once the connection is up. */
  private probe(): void {
    if (this.isUp || this.isClosed) return
    if (performance.now() < this.holdsUntil || this.client.status !== "ready") return this.probeLater()
    this.client.ping().then(
      () => this.rise(),
      () => this.probeLater()
    )
  }

  private probeLater(): void {
    clearTimeout(this.retry)
    this.retry = setTimeout(() => this.probe(), this.holdMs)
  }

  private rise(): void {
    if (this.isUp || this.isClosed) return
    clearTimeout(this.retry)
    this.isUp = true
    this.upAt = performance.now()
    metrics.redisUp.set(1)
    this.listener.up()
  }
}

const isReply = (error: unknown): boolean => error instanceof Error && error.name === "ReplyError"
