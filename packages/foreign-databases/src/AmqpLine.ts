import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { cancelled, type SessionFailure } from "@tidegate/connectors/Failure"
import type { ServerSignIn } from "@tidegate/connectors/Server"
import type { Guard } from "@tidegate/egress/Egress"
import {
  type Frame,
  frameKinds,
  FrameReader,
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
import { BrokerLine } from "./BrokerLine.ts"
import { ServerFault } from "./ServerFrames.ts"

const protocolHeader = Buffer.from("AMQP\0\0\u0009\u0001", "latin1")

/** The only channel of a connection: there is one destination, or one source, behind it. */
export const channel = 1

/** The longest time (s) between two heartbeats that is agreed on. */
const slowestHeartbeat = 60
/** So many half heartbeats without a byte of the broker, and it is taken for gone. The protocol says four; a busy process may be late. */
const maxSilent = 6

const clientProperties = table({
  product: "tidegate",
  capabilities: {
    publisher_confirms: true,
    consumer_cancel_notify: true,
    "basic.nack": true,
    "connection.blocked": true,
    // Otherwise a refused sign-in is a connection that ends without a reason.
    authentication_failure_close: true
  }
})

/** The method that a broker answers with at each step of the sign-in. */
const steps = [methods.start, methods.tune, methods.openOk, methods.channelOpenOk] as const

export interface AmqpPlace extends ServerSignIn {
  readonly vhost: string
}

export interface AmqpEvents {
  /** The channel is open: the line can be used. */
  readonly opened: () => void
  /** May throw, as the next two. */
  readonly method: (method: number, values: Values) => void
  readonly header: (payload: Buffer) => void
  readonly body: (payload: Buffer) => void
  /** Called once, however the line ends. */
  readonly ended: (failure: BrokerRefusal | SessionFailure) => void
}

export interface AmqpOptions {
  readonly bodies: "kept" | "dropped"
  /** Whether a broker that says nothing for some heartbeats is taken for gone. */
  readonly isWatched: boolean
}

export const refusal = (code: number | string, said: string, shared = false): BrokerRefusal =>
  new BrokerRefusal({ code: String(code), said, shared })

/** A connection to a broker that speaks AMQP 0-9-1, with one channel: signs in, keeps it alive, and says why it has ended. */
export class AmqpLine {
  readonly line: BrokerLine
  /** The longest frame, once both sides have agreed. */
  longest = longestFrame
  readonly #place: AmqpPlace
  readonly #events: AmqpEvents
  readonly #options: AmqpOptions
  readonly #reader: FrameReader
  #step = 0
  #heartbeat: NodeJS.Timeout | undefined
  #silent = 0
  #isPaused = false
  #isOver = false

  constructor(guard: Guard, place: AmqpPlace, events: AmqpEvents, options: AmqpOptions) {
    this.#place = place
    this.#events = events
    this.#options = options
    this.#reader = new FrameReader((frame) => this.#take(frame), options.bodies)
    this.line = new BrokerLine(guard, place, {
      opened: () => this.line.write([protocolHeader]),
      read: (chunk) => {
        this.#silent = 0
        this.#reader.read(chunk)
      },
      ended: (failure) => this.#end(failure)
    })
  }

  close(): void {
    this.line.close(methodFrame(0, methods.close, short(200), shortText(""), short(0), short(0)), cancelled)
  }

  /** Ends the line for this reason. */
  leave(why: BrokerRefusal): void {
    this.#end(why)
    this.close()
  }

  pause(): void {
    this.#isPaused = true
    this.line.pause()
  }
  resume(): void {
    this.#isPaused = false
    this.line.resume()
  }

  #end(failure: BrokerRefusal | SessionFailure): void {
    clearInterval(this.#heartbeat)
    if (this.#isOver) return
    this.#isOver = true
    this.#events.ended(failure)
  }

  #take({ kind, payload }: Frame): void {
    switch (kind) {
      case frameKinds.heartbeat:
        return
      case frameKinds.header:
        return this.#events.header(payload)
      case frameKinds.body:
        return this.#events.body(payload)
    }
    const values = new Values(payload)
    const method = values.long()
    if (method === methods.close || method === methods.channelClose) return this.#refused(method, values)
    if (this.#step < steps.length) return this.#signIn(method, values)
    this.#events.method(method, values)
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
        return this.line.write([methodFrame(channel, methods.channelOpen, shortText(""))])
      default:
        return this.#events.opened()
    }
  }

  #start(values: Values): void {
    values.short()
    values.skipTable()
    if (!values.longText().split(" ").includes("PLAIN")) {
      throw new ServerFault("AUTH_REJECTED", "the broker does not take a user name and a password (PLAIN)")
    }
    const { password, username } = this.#place
    this.line.write([
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
    this.longest = longest === 0 ? longestFrame : Math.min(longest, longestFrame)
    if (this.longest < shortestMax)
      throw new ServerFault("PROTOCOL_ERROR", "the broker wants frames that are too short")
    this.#reader.longest = this.longest
    const seconds = Math.min(heartbeat, slowestHeartbeat)
    if (seconds > 0) {
      this.#heartbeat = setInterval(() => this.#beat(), seconds * 500)
      this.#heartbeat.unref()
    }
    this.line.write([
      methodFrame(0, methods.tuneOk, short(channel), long(this.longest), short(seconds)),
      methodFrame(0, methods.open, shortText(this.#place.vhost), shortText(""), octet(0))
    ])
  }

  #beat(): void {
    this.line.write([heartbeatFrame])
    if (!this.#options.isWatched) return
    // The broker's own heartbeats, on a connection that may have nothing else to say for days.
    this.line.grant(2 * heartbeatFrame.length)
    if (this.#isPaused || ++this.#silent <= maxSilent) return
    this.line.fail(new ServerFault("TIMEOUT", "the broker has said nothing for some time"))
  }

  /** The broker has closed the connection or the channel. Which message it does not like, it does not say. */
  #refused(method: number, values: Values): void {
    this.#end(refusal(values.short(), values.shortText()))
    this.line.close(
      method === methods.close
        ? methodFrame(0, methods.closeOk)
        : methodFrame(0, methods.close, short(200), shortText(""), short(0), short(0)),
      cancelled
    )
  }
}
