import { randomBytes } from "node:crypto"
import { BrokerRefusal, type KafkaPlace } from "@tidegate/connectors/Brokers"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import { kafkaError } from "@tidegate/connectors/KafkaErrors"
import type { Guard } from "@tidegate/egress/Egress"
import { BrokerLine } from "./BrokerLine.ts"
import { FrameCutter, type FrameHead } from "./FrameCutter.ts"
import {
  apiVersions,
  type Authenticated,
  saslAuthenticate,
  saslHandshake,
  type Server,
  type Versions
} from "./KafkaCalls.ts"
import { type KafkaCall, KafkaValues, requestOf } from "./KafkaFrames.ts"
import { scram } from "./Scram.ts"
import { breach, ServerFault } from "./ServerFrames.ts"

/** How long (ms) a broker may take for an answer: longer than it waits for its replicas. */
const usualPatience = 10_000

/** Part of a session's lifetime for which it is used. */
const usedPart = 0.8

interface Waiting {
  readonly call: KafkaCall<unknown>
  readonly version: number
  readonly correlation: number
  readonly timer: NodeJS.Timeout
  readonly done: (answer: unknown) => void
  readonly fail: (failure: unknown) => void
}

/** Of a call that the broker has refused with this code. */
export const refusalOf = (code: number, said = ""): BrokerRefusal =>
  new BrokerRefusal({ code: kafkaError(code).name, said, shared: false })

/** A connection with one broker. Calls are answered in their order, and reject with a `BrokerRefusal` or a `SessionFailure`. */
export class KafkaLine {
  readonly #as: KafkaPlace
  readonly #line: BrokerLine
  readonly #cutter = new FrameCutter(4, (head) => this.#begin(head))
  readonly #waiting: Array<Waiting> = []
  readonly #opened = Promise.withResolvers<void>()
  #versions: Versions = new Map([[apiVersions.key, [0, 0]]])
  #correlation = 0
  /** Why the connection has ended; null if it has not. */
  #ended: SessionFailure | null = null
  /** When the broker ends the session, as `performance.now`. */
  #until = Infinity

  /** `ended` is called once, however the connection ends. */
  constructor(guard: Guard, { host, port }: Server, as: KafkaPlace, ended: () => void) {
    this.#as = as
    this.#line = new BrokerLine(
      guard,
      { host, port, tls: as.tls },
      {
        opened: () => this.#opened.resolve(),
        read: (chunk) => this.#cutter.read(chunk, (frame) => this.#answered(frame)),
        ended: (failure) => {
          this.#end(failure)
          ended()
        }
      }
    )
  }

  /** Connects and signs in. Called once. */
  async open(): Promise<void> {
    const timer = setTimeout(
      () => this.#line.fail(new ServerFault("TIMEOUT", "not connected and signed in in time (connect_timeout)")),
      // Half of it, if there is another server to ask when this one does not answer.
      this.#as.connectTimeout * (this.#as.servers.length > 1 ? 500 : 1_000)
    ).unref()
    try {
      await this.#opened.promise
      await this.#signIn(this.#as)
    } catch (failure) {
      this.close()
      throw failure
    } finally {
      clearTimeout(timer)
    }
  }

  get isOpen(): boolean {
    return this.#ended === null
  }

  /** Whether the broker will end the session soon. */
  get isOld(): boolean {
    return performance.now() > this.#until
  }

  close(): void {
    this.#line.close(Buffer.alloc(0), cancelled)
  }

  ask<A>(call: KafkaCall<A>): Promise<A> {
    return new Promise<A>((done, fail) => {
      if (this.#ended !== null) return fail(this.#ended)
      const version = this.#versionOf(call)
      if (version === null) {
        return fail(
          new SessionFailure({
            code: "PROTOCOL_ERROR",
            message: "the broker is too old: it does not speak the versions of Kafka's protocol that are used here",
            final: false,
            broken: true
          })
        )
      }
      const correlation = this.#correlation++ & 0x7fffffff
      const { patience = usualPatience } = call
      const timer = setTimeout(
        () =>
          this.#line.fail(new ServerFault("TIMEOUT", `the broker has not answered for ${patience / 1_000} seconds`)),
        patience
      ).unref()
      this.#waiting.push({ call, version, correlation, timer, fail, done: done as (answer: unknown) => void })
      this.#line.ask(requestOf(call, version, correlation), call.longest)
    })
  }

  #versionOf({ key, versions: [lowest, highest] }: KafkaCall<unknown>): number | null {
    const [from, to] = this.#versions.get(key) ?? [0, -1]
    const version = Math.min(highest, to)
    return version < Math.max(lowest, from) ? null : version
  }

  #begin(head: Buffer): FrameHead {
    const [next] = this.#waiting
    if (next === undefined) throw breach("the broker answers what nobody has asked")
    const length = head.readInt32BE(0)
    if (length < 4 || (length > next.call.longest && next.call.key === apiVersions.key)) {
      throw breach("the server does not answer as Kafka does")
    }
    if (length > next.call.longest) {
      throw new ServerFault("RESPONSE_TOO_LARGE", "the broker says more than a call is answered by")
    }
    return { size: length + 4, isDropped: false }
  }

  #answered(frame: Buffer): void {
    const next = this.#waiting[0]!
    const values = new KafkaValues(frame.subarray(4))
    if (values.int32() !== next.correlation) throw breach("the broker answers another call than the next one")
    const answer = next.call.read(values, next.version)
    this.#waiting.shift()
    clearTimeout(next.timer)
    next.done(answer)
  }

  /** Every call that is under way has failed. */
  #end(failure: SessionFailure): void {
    this.#ended = failure
    for (const { fail, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      fail(failure)
    }
    this.#opened.reject(failure)
  }

  async #signIn({ mechanism, password, username }: KafkaPlace): Promise<void> {
    const { error, versions } = await this.ask(apiVersions)
    if (error !== 0) throw refusalOf(error)
    this.#versions = versions
    if (username === "") return
    const handshake = await this.ask(saslHandshake(mechanism))
    if (handshake.error !== 0) throw refusalOf(handshake.error, `it offers ${handshake.mechanisms.join(", ")}`)
    const { lifetimeMs } =
      mechanism === "PLAIN"
        ? await this.#say(`\0${username}\0${password}`)
        : await this.#prove(mechanism === "SCRAM-SHA-256" ? "sha256" : "sha512", username, password)
    if (lifetimeMs > 0) this.#until = performance.now() + lifetimeMs * usedPart
  }

  async #prove(hash: "sha256" | "sha512", username: string, password: string): Promise<Authenticated> {
    try {
      const exchange = scram(hash, username, password, randomBytes(24).toString("base64url"))
      const { bytes } = await this.#say(exchange.first)
      const proof = await exchange.proof(bytes.toString("utf8"))
      const last = await this.#say(proof.words)
      proof.verify(last.bytes.toString("utf8"))
      return last
    } catch (fault) {
      if (fault instanceof ServerFault) this.#line.fail(fault)
      throw this.#ended ?? fault
    }
  }

  async #say(words: string): Promise<Authenticated> {
    const answer = await this.ask(saslAuthenticate(Buffer.from(words)))
    if (answer.error !== 0) throw refusalOf(answer.error, answer.said)
    return answer
  }
}
