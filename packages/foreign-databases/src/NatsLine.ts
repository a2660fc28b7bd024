import { randomBytes } from "node:crypto"
import { BrokerRefusal, type NatsServer } from "@tidegate/connectors/Brokers"
import { cancelled, type SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { BrokerLine } from "./BrokerLine.ts"
import { LineCutter } from "./LineCutter.ts"
import { errorIn, followingIn, greetingIn, longestLine, signInTo } from "./NatsFrames.ts"
import { ServerFault } from "./ServerFrames.ts"

export const refusal = (code: string, said: string, shared = false): BrokerRefusal =>
  new BrokerRefusal({ code, said, shared })

export interface NatsEvents {
  /** The server has let the gateway in. */
  readonly opened: () => void
  /** A message, with its headers before its content. Its body is empty if it is longer than `longestKept`. May throw. */
  readonly message: (line: string, body: Buffer) => void
  /** The server does not like a message to this subject. The connection is still good. */
  readonly forbidden: (subject: string, refusal: BrokerRefusal) => void
  /** Called once, however the line ends. */
  readonly ended: (failure: BrokerRefusal | SessionFailure) => void
}

export interface NatsOptions {
  /** Bytes of the longest message that the server may send, and of the longest that is not dropped as it arrives. */
  readonly longest: number
  readonly longestKept: number
  /** Messages that are under way: a refusal that names none may be about any of them. */
  readonly underWay: () => number
}

const pong = Buffer.from("PONG\r\n")

/** A connection to a NATS server: signs in, keeps it alive, and says why it has ended. The server names other servers, which are not used. */
export class NatsLine {
  readonly line: BrokerLine
  /** What is sent to this subject, with one word behind it, arrives here. Nobody else can guess it. */
  readonly inbox = `_INBOX.${randomBytes(16).toString("hex")}.`
  /** Bytes of a message that the server takes. */
  largest = 0
  readonly #place: NatsServer
  readonly #events: NatsEvents
  readonly #options: NatsOptions
  readonly #cutter: LineCutter
  /** What is waited for: the greeting, TLS, the answer to the sign-in, or nothing. */
  #state: "greeting" | "securing" | "signing" | "ready" = "greeting"
  #nonce = ""
  /** Whether the answer to a ping is on its way. */
  #isAnswering = false
  #isOver = false

  constructor(guard: Guard, place: NatsServer, events: NatsEvents, options: NatsOptions) {
    this.#place = place
    this.#events = events
    this.#options = options
    this.#cutter = new LineCutter(
      longestLine,
      (line) => followingIn(line, this.#state === "ready", options.longest),
      options.longestKept
    )
    const { host, port, tls, tlsFirst } = place
    this.line = new BrokerLine(
      guard,
      { host, port, tls, tlsLater: !tlsFirst },
      {
        opened: () => this.#opened(),
        read: (chunk) => this.#cutter.read(chunk, (line, body) => this.#take(line, body)),
        ended: (failure) => this.#end(failure)
      }
    )
  }

  close(words: Uint8Array = Buffer.alloc(0)): void {
    this.line.close(words, cancelled)
  }

  /** Ends the line for this reason. */
  leave(why: BrokerRefusal): void {
    this.#end(why)
    this.close()
  }

  #say(...lines: ReadonlyArray<string>): void {
    this.line.write(lines.map((line) => Buffer.from(`${line}\r\n`)))
  }

  /** One answer is on its way at a time: it is one to all pings before it, and a server that does not read must not fill the memory. */
  #answer(): void {
    if (this.#isAnswering) return
    this.#isAnswering = true
    this.line.write([pong], () => {
      this.#isAnswering = false
    })
  }

  #opened(): void {
    if (this.#state !== "securing") return
    // What came in plain text after the greeting may have been injected by an attacker.
    if (!this.#cutter.isBetween)
      return this.line.fail(new ServerFault("PROTOCOL_ERROR", "the server speaks before TLS"))
    this.#signIn()
  }

  #take(line: string, body: Buffer): void {
    const word = line.split(/[ \t]/, 1)[0]!.toUpperCase()
    if (this.#state === "greeting" && word === "INFO") return this.#greeted(line)
    if (word === "-ERR") return this.#refused(line)
    if (this.#state === "greeting" || this.#state === "securing") {
      throw new ServerFault("PROTOCOL_ERROR", "the server does not greet as NATS does")
    }
    switch (word) {
      case "PING":
        return this.#answer()
      case "PONG":
        if (this.#state === "ready") return
        this.#state = "ready"
        return this.#events.opened()
      case "MSG":
      case "HMSG":
        return this.#events.message(line, body)
      // More news of other servers, and that a command was understood.
      default:
    }
  }

  #greeted(line: string): void {
    const { hasHeaders, hasTls, largest, needsTls, nonce } = greetingIn(line)
    const { tls, tlsFirst } = this.#place
    if (!hasHeaders)
      throw new ServerFault("PROTOCOL_ERROR", "the server takes no headers: it is too old, or they are off")
    this.largest = largest
    this.#nonce = nonce
    if (!tls && needsTls) throw new ServerFault("ERR_SSL_WRONG_VERSION_NUMBER", "the server wants TLS")
    if (!tls || tlsFirst) return this.#signIn()
    if (!hasTls) throw new ServerFault("ERR_SSL_WRONG_VERSION_NUMBER", "the server speaks no TLS")
    this.#state = "securing"
    this.line.secure()
  }

  #signIn(): void {
    this.#state = "signing"
    this.#say(`CONNECT ${signInTo(this.#place, this.#nonce)}`, `SUB ${this.inbox}* 1`, "PING")
  }

  #refused(line: string): void {
    const { code, said, subject } = errorIn(line)
    if (this.#state !== "ready" || code !== "PERMISSIONS" || subject === null) {
      // Which message it does not like, the server does not say.
      return this.leave(refusal(code, said, this.#options.underWay() > 1))
    }
    this.#events.forbidden(subject, refusal(code, said))
  }

  #end(failure: BrokerRefusal | SessionFailure): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#events.ended(failure)
  }
}
