import type { BrokerRefusal, RedisDatabase, RedisEntry } from "@tidegate/connectors/Brokers"
import { cancelled, type SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { BrokerLine } from "./BrokerLine.ts"
import { LineCutter } from "./LineCutter.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"
import { command, longestLine, refusalOf, signInTo } from "./RedisFrames.ts"
import { ServerFault } from "./ServerFrames.ts"

/**
 * As much of the protocol of Redis (RESP) as it takes to add entries. The client library opens its sockets itself, and would follow a
 * cluster to other hosts.
 */

/** The id of an entry has at most 41 bytes. */
const longestText = 256

/** How many bytes follow a line: only texts have any. */
const following = (line: string): number | null => {
  switch (line[0]) {
    case "+":
    case "-":
      return null
    case "$": {
      if (!/^\$\d{1,10}$/.test(line)) break
      const size = Number(line.slice(1))
      if (size > longestText)
        throw new ServerFault("RESPONSE_TOO_LARGE", "the server says more than an entry is answered by")
      return size
    }
    default:
  }
  throw new ServerFault("PROTOCOL_ERROR", "the server does not answer as Redis does")
}

class RedisPublisher implements Publisher<RedisEntry> {
  readonly #line: BrokerLine
  readonly #cutter = new LineCutter(longestLine, following)
  #signedIn: ((failure: BrokerRefusal | SessionFailure | null) => void) | null
  /** Why the connection has ended; null if it has not. */
  #ended: BrokerRefusal | SessionFailure | null = null
  /** Who waits for the next answers: they come in the order of the commands. */
  readonly #waiting: Array<(result: Published) => void> = []

  constructor(guard: Guard, place: RedisDatabase, signedIn: (failure: BrokerRefusal | SessionFailure | null) => void) {
    this.#signedIn = signedIn
    this.#line = new BrokerLine(guard, place, {
      opened: () => this.#signIn(place),
      read: (chunk) => this.#cutter.read(chunk, (line, text) => this.#answered(line, text)),
      ended: (failure) => this.#end(failure)
    })
  }

  isOpen(): boolean {
    return this.#line.isOpen
  }

  close(): void {
    this.#line.close(Buffer.concat(command("QUIT")), cancelled)
  }

  publish({ fields, maxLength, stream }: RedisEntry, done: (result: Published) => void): () => void {
    const ended = this.#ended
    if (ended !== null) {
      queueMicrotask(() => done(ended))
      return () => undefined
    }
    const limit = maxLength === null ? [] : ["MAXLEN", "~", String(maxLength)]
    let told = done
    this.#ask(command("XADD", stream, ...limit, "*", ...fields.flat()), (result) => told(result))
    return () => {
      told = () => undefined
    }
  }

  #ask(parts: ReadonlyArray<Uint8Array>, answered: (result: Published) => void): void {
    this.#waiting.push(answered)
    this.#line.ask(parts, 0)
  }

  #signIn(place: RedisDatabase): void {
    const commands = signInTo(place)
    let left = commands.length
    for (const parts of commands) {
      this.#ask(parts, (result) => {
        if (typeof result !== "string") return this.#settle(result)
        if (--left === 0) this.#settle(null)
      })
    }
  }

  #answered(line: string, text: Buffer): void {
    const answered = this.#waiting.shift()
    const isError = line.startsWith("-")
    if (answered !== undefined) {
      return answered(isError ? refusalOf(line) : line.startsWith("$") ? text.toString("utf8") : line.slice(1))
    }
    if (!isError) throw new ServerFault("PROTOCOL_ERROR", "the server answers what nobody has asked")
    // It says why it hangs up: it has too many clients, for example.
    this.#end(refusalOf(line))
    this.close()
  }

  /** Every entry that is under way has failed. */
  #end(failure: BrokerRefusal | SessionFailure): void {
    this.#ended ??= failure
    for (const answered of this.#waiting.splice(0)) answered(failure)
    this.#settle(failure)
  }

  #settle(failure: BrokerRefusal | SessionFailure | null): void {
    this.#signedIn?.(failure)
    this.#signedIn = null
  }
}

export const redis: Protocol<"redis"> = {
  connect: (guard, place, signedIn) => new RedisPublisher(guard, place, signedIn)
}
