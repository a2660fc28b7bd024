import { randomBytes } from "node:crypto"
import { BrokerRefusal, type NatsMessage, type NatsServer } from "@tidegate/connectors/Brokers"
import { cancelled, type SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { BrokerLine } from "./BrokerLine.ts"
import { LineCutter } from "./LineCutter.ts"
import { confirmationIn, errorIn, followingIn, greetingIn, longestLine, messageIn, signInTo } from "./NatsFrames.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"
import { ServerFault } from "./ServerFrames.ts"

/** A message that no stream has confirmed yet. */
interface Pending {
  readonly subject: string
  done: (result: Published) => void
}

const refusal = (code: string, said: string, shared = false): BrokerRefusal => new BrokerRefusal({ code, said, shared })

/** Publishes to streams, which confirm each message at a subject of its own. The server names other servers, which are not used. */
class NatsPublisher implements Publisher<NatsMessage> {
  readonly #place: NatsServer
  readonly #line: BrokerLine
  readonly #cutter = new LineCutter(longestLine, (line) => followingIn(line, this.#state === "ready"))
  #signedIn: ((failure: BrokerRefusal | SessionFailure | null) => void) | null
  /** What is waited for: the greeting, TLS, the answer to the sign-in, or nothing. */
  #state: "greeting" | "securing" | "signing" | "ready" = "greeting"
  #nonce = ""
  #largest = 0
  /** Why the connection has ended; null if it has not. */
  #ended: BrokerRefusal | SessionFailure | null = null
  /** Confirmations come to this subject with a number behind it. Nobody else can guess it. */
  readonly #inbox = `_INBOX.${randomBytes(16).toString("hex")}.`
  readonly #pending = new Map<number, Pending>()
  #number = 0

  constructor(guard: Guard, place: NatsServer, signedIn: (failure: BrokerRefusal | SessionFailure | null) => void) {
    this.#place = place
    this.#signedIn = signedIn
    const { host, port, tls, tlsFirst } = place
    this.#line = new BrokerLine(
      guard,
      { host, port, tls, tlsLater: !tlsFirst },
      {
        opened: () => this.#opened(),
        read: (chunk) => this.#cutter.read(chunk, (line, body) => this.#take(line, body)),
        ended: (failure) => this.#end(failure)
      }
    )
  }

  isOpen(): boolean {
    return this.#line.isOpen
  }

  close(): void {
    this.#line.close(Buffer.alloc(0), cancelled)
  }

  publish({ body, headers, subject }: NatsMessage, done: (result: Published) => void): () => void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const head = Buffer.from(`NATS/1.0\r\n${lines.join("")}\r\n`)
    const size = head.length + body.length
    const unable = this.#ended ?? (size > this.#largest ? refusal("PAYLOAD", "") : null)
    if (unable !== null) {
      queueMicrotask(() => done(unable))
      return () => undefined
    }
    const number = ++this.#number
    this.#pending.set(number, { subject, done })
    const command = `HPUB ${subject} ${this.#inbox}${number} ${head.length} ${size}\r\n`
    this.#line.ask([Buffer.from(command), head, body, Buffer.from("\r\n")], 0)
    return () => {
      this.#pending.delete(number)
    }
  }

  #say(...lines: ReadonlyArray<string>): void {
    this.#line.write(lines.map((line) => Buffer.from(`${line}\r\n`)))
  }

  #opened(): void {
    if (this.#state !== "securing") return
    // What came in plain text after the greeting may have been injected by an attacker.
    if (!this.#cutter.isBetween)
      return this.#line.fail(new ServerFault("PROTOCOL_ERROR", "the server speaks before TLS"))
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
        return this.#say("PONG")
      case "PONG":
        this.#state = "ready"
        return this.#settle(null)
      case "MSG":
      case "HMSG":
        return this.#confirmed(line, body)
      // More news of other servers, and that a command was understood.
      default:
    }
  }

  #greeted(line: string): void {
    const { hasHeaders, hasTls, largest, nonce, needsTls } = greetingIn(line)
    const { tls, tlsFirst } = this.#place
    if (!hasHeaders)
      throw new ServerFault("PROTOCOL_ERROR", "the server takes no headers: it is too old, or they are off")
    this.#largest = largest
    this.#nonce = nonce
    if (!tls && needsTls) throw new ServerFault("ERR_SSL_WRONG_VERSION_NUMBER", "the server wants TLS")
    if (!tls || tlsFirst) return this.#signIn()
    if (!hasTls) throw new ServerFault("ERR_SSL_WRONG_VERSION_NUMBER", "the server speaks no TLS")
    this.#state = "securing"
    this.#line.secure()
  }

  #signIn(): void {
    this.#state = "signing"
    this.#say(`CONNECT ${signInTo(this.#place, this.#nonce)}`, `SUB ${this.#inbox}* 1`, "PING")
  }

  #confirmed(line: string, body: Buffer): void {
    const { content, status, subject } = messageIn(line, body)
    if (!subject.startsWith(this.#inbox)) {
      throw new ServerFault("PROTOCOL_ERROR", "the server sends a message that nobody has asked for")
    }
    const number = Number(subject.slice(this.#inbox.length))
    const pending = this.#pending.get(number)
    this.#pending.delete(number)
    pending?.done(status === "503" ? refusal("NO_RESPONDERS", "") : confirmationIn(content))
  }

  #refused(line: string): void {
    const { code, said, subject } = errorIn(line)
    if (this.#state !== "ready" || code !== "PERMISSIONS" || subject === null) {
      // Which message it does not like, the server does not say.
      const failure = refusal(code, said, this.#pending.size > 1)
      this.#end(failure)
      return this.close()
    }
    // The connection is still good.
    for (const [number, pending] of this.#pending) {
      if (pending.subject !== subject) continue
      this.#pending.delete(number)
      pending.done(refusal(code, said))
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
