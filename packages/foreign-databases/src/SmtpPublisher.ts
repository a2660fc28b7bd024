import { BrokerRefusal, type SmtpLetter, type SmtpServer } from "@tidegate/connectors/Brokers"
import { cancelled } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { BrokerLine } from "./BrokerLine.ts"
import { LineCutter } from "./LineCutter.ts"
import { type Ended, OneAtATime } from "./OneAtATime.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"
import { ServerFault } from "./ServerFrames.ts"
import {
  type Abilities,
  abilitiesIn,
  type Command,
  command,
  hello,
  refusal,
  type Reply,
  signInBy,
  transactionOf
} from "./SmtpCommands.ts"

/** The standard has 512 bytes. */
const longestLine = 4_096
const maxLines = 100

const quit = Buffer.from("QUIT\r\n")
const interrupted = new ServerFault("NETWORK_REQUEST_CANCELED", "interrupted by the gateway")

/**
 * As much of SMTP (RFC 5321) as it takes to send letters. The client library opens its sockets itself, encrypts them past the guard, and
 * keeps what a server says without a limit.
 */
class SmtpPublisher implements Publisher<SmtpLetter> {
  readonly #place: SmtpServer
  readonly #line: BrokerLine
  readonly #cutter = new LineCutter(longestLine, () => null)
  readonly #letters: OneAtATime<SmtpLetter>
  /** Lines of a reply whose last line has not come. */
  #lines: Array<string> = []
  #code = ""
  /** Who waits for the next reply: the protocol has one command at a time. */
  #replied: ((reply: Reply) => void) | null = null
  #isSecuring = false
  #abilities: Abilities = new Map()

  constructor(guard: Guard, place: SmtpServer, signedIn: (failure: Ended | null) => void) {
    this.#place = place
    this.#letters = new OneAtATime({
      start: (letter) => this.#send(letter),
      interrupt: () => this.#line.fail(interrupted),
      ambiguous: "after it had got the whole letter: it may have taken it",
      signedIn
    })
    const { host, port, tls, tlsFirst } = place
    this.#expect({ name: "GREETING", goesOn: "2", parts: [] }, () => this.#greet(tls && !tlsFirst), this.#refused)
    this.#line = new BrokerLine(
      guard,
      { host, port, tls, tlsLater: !tlsFirst },
      {
        opened: () => this.#opened(),
        read: (chunk) => this.#cutter.read(chunk, (line) => this.#take(line)),
        ended: (failure) => this.#letters.end(failure)
      }
    )
  }

  isOpen(): boolean {
    return this.#line.isOpen
  }

  close(): void {
    // The farewell would become a part of a letter that is under way.
    if (this.#letters.isBusy) this.#line.fail(interrupted)
    else this.#line.close(quit, cancelled)
  }

  publish(letter: SmtpLetter, done: (result: Published) => void): () => void {
    return this.#letters.publish(letter, done)
  }

  /** Says hello, over TLS if the server has to be asked for it first. */
  #greet(isPlain: boolean): void {
    this.#run(
      [hello],
      (reply) => {
        this.#abilities = abilitiesIn(reply)
        if (!isPlain) return this.#signIn()
        if (!this.#abilities.has("STARTTLS")) {
          throw new ServerFault("ERR_SSL_WRONG_VERSION_NUMBER", "the server speaks no TLS")
        }
        this.#run(
          [command("STARTTLS", "STARTTLS")],
          () => {
            this.#isSecuring = true
            this.#line.secure()
          },
          this.#refused
        )
      },
      this.#refused
    )
  }

  #opened(): void {
    if (!this.#isSecuring) return
    // What came in plain text may have been injected by an attacker.
    if (!this.#cutter.isBetween || this.#lines.length > 0) {
      return this.#line.fail(new ServerFault("PROTOCOL_ERROR", "the server speaks before TLS"))
    }
    this.#greet(false)
  }

  #signIn(): void {
    const { password, username } = this.#place
    const commands = username === "" && password === "" ? [] : signInBy(this.#abilities.get("AUTH") ?? "", this.#place)
    if (commands === null) return this.#refused(refusal("MECHANISM"))
    this.#run(commands, () => this.#letters.ready(), this.#refused)
  }

  #send(letter: SmtpLetter): void {
    const commands = transactionOf(letter, this.#abilities)
    if (commands instanceof BrokerRefusal) return this.#letters.finish(commands)
    this.#run(
      commands,
      ({ code, lines }) => this.#letters.finish(`${code} ${lines.join(" ")}`),
      (refused) => {
        this.#letters.answer(refused)
        // To all recipients or to none: those that were taken before the refused one are forgotten.
        this.#run([command("RSET", "RSET")], () => this.#letters.free(), this.#refused)
      }
    )
  }

  /** Sends the commands one after the other. `done` gets the last reply, `failed` the first refusal. */
  #run(
    commands: ReadonlyArray<Command>,
    done: (reply: Reply) => void,
    failed: (refusal: BrokerRefusal) => void,
    last: Reply = { code: "", lines: [] }
  ): void {
    const [next, ...others] = commands
    if (next === undefined) return done(last)
    this.#expect(next, (reply) => this.#run(others, done, failed, reply), failed)
    this.#letters.isSent = next.isLetter === true
    this.#line.ask(next.parts, 0)
  }

  #expect({ goesOn, name }: Command, done: (reply: Reply) => void, failed: (refusal: BrokerRefusal) => void): void {
    this.#replied = (reply) => {
      if (reply.code.startsWith(goesOn)) return done(reply)
      if (!/^[45]/.test(reply.code)) throw new ServerFault("PROTOCOL_ERROR", "the server does not answer as SMTP does")
      const refused = refusal(`${name} ${reply.code}`, reply.lines.join(" "))
      // It shuts down.
      if (reply.code === "421") return this.#refused(refused)
      failed(refused)
    }
  }

  #take(line: string): void {
    const [, code, sign, text = ""] = /^(\d{3})(?:([ -])(.*))?$/s.exec(line) ?? []
    const lines = this.#lines
    if (code === undefined || (lines.length > 0 && code !== this.#code)) {
      throw new ServerFault("PROTOCOL_ERROR", "the server does not answer as SMTP does")
    }
    if (lines.length === maxLines) throw new ServerFault("RESPONSE_TOO_LARGE", "the server answers in too many lines")
    this.#code = code
    lines.push(text)
    if (sign === "-") return
    this.#lines = []
    const replied = this.#replied
    this.#replied = null
    if (replied !== null) return replied({ code, lines })
    if (code !== "421") throw new ServerFault("PROTOCOL_ERROR", "the server answers what nobody has asked")
    this.#refused(refusal(`MAIL ${code}`, lines.join(" ")))
  }

  /** The connection is of no use any more. */
  readonly #refused = (refused: BrokerRefusal): void => {
    this.#letters.end(refused)
    this.#line.close(quit, cancelled)
  }
}

export const smtp: Protocol<"smtp"> = {
  connect: (guard, place, signedIn) => new SmtpPublisher(guard, place, signedIn)
}
