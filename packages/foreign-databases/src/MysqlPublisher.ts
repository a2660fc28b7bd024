import type { BrokerRefusal, MysqlRow, MysqlTable } from "@tidegate/connectors/Brokers"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { BrokerLine } from "./BrokerLine.ts"
import { FrameCutter } from "./FrameCutter.ts"
import {
  execution,
  farewell,
  greetingIn,
  header,
  packet,
  prepare,
  preparedIn,
  proofOf,
  refusal,
  refusalIn,
  rowsIn,
  set,
  signInTo,
  sizeIn,
  statementOf,
  switchIn,
  tlsRequest
} from "./MysqlFrames.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"
import { ServerFault } from "./ServerFrames.ts"

const interrupted = new ServerFault("NETWORK_REQUEST_CANCELED", "interrupted by the gateway")

/** The first bytes of a packet. */
const ok = 0x00
const more = 0x01
const otherWay = 0xfe
const error = 0xff
/** What follows `more`: the password is known, or is wanted whole. */
const isKnown = 3
const wantsPassword = 4

/** The server has the row, and has not said what it does with it. */
const ambiguous = ({ broken, code, final, message }: SessionFailure): SessionFailure =>
  new SessionFailure({
    code,
    message: `${message}, after it had got the row: it may have inserted it`,
    final,
    broken
  })

interface Job {
  readonly row: MysqlRow
  done: (result: Published) => void
}

type Ended = BrokerRefusal | SessionFailure

/**
 * As much of the protocol of MySQL as it takes to insert rows. The client libraries encrypt their sockets past the guard, and keep what a
 * server says without a limit.
 */
class MysqlPublisher implements Publisher<MysqlRow> {
  readonly #place: MysqlTable
  readonly #line: BrokerLine
  readonly #cutter = new FrameCutter(header, (head) => ({ size: sizeIn(head), isDropped: false }))
  #signedIn: ((failure: Ended | null) => void) | null
  /** Why the connection has ended; null if it has not. */
  #ended: Ended | null = null
  /** Who waits for the next packet, without its header; null: nobody has asked for one. */
  #answered: ((packet: Buffer, number: number) => void) | null = (packet) => this.#greeted(packet)
  /** Signs in over TLS, once the line is encrypted. */
  #secured: (() => void) | null = null
  /** The prepared statement; null: it is prepared with the first row. */
  #statement: Buffer | null = null
  /** The row that is under way, and those behind it. */
  readonly #jobs: Array<Job> = []
  #isBusy = true
  /** Whether the server has the row that is under way. */
  #isSent = false

  constructor(guard: Guard, place: MysqlTable, signedIn: (failure: Ended | null) => void) {
    this.#place = place
    this.#signedIn = signedIn
    const { host, port, tls } = place
    this.#line = new BrokerLine(
      guard,
      { host, port, tls, tlsLater: true },
      {
        opened: () => this.#opened(),
        read: (chunk) => this.#cutter.read(chunk, (frame) => this.#take(frame)),
        ended: (failure) => this.#end(failure)
      }
    )
  }

  isOpen(): boolean {
    return this.#line.isOpen
  }

  close(): void {
    if (this.#isBusy) this.#line.fail(interrupted)
    else this.#line.close(farewell, cancelled)
  }

  publish(row: MysqlRow, done: (result: Published) => void): () => void {
    const ended = this.#ended
    if (ended !== null) {
      queueMicrotask(() => done(ended))
      return () => undefined
    }
    const job: Job = { row, done }
    this.#jobs.push(job)
    queueMicrotask(() => this.#next())
    return () => {
      const at = this.#jobs.indexOf(job)
      if (at === -1) return
      job.done = () => undefined
      // The answer to it would be taken for that to the next row.
      if (at === 0 && this.#isBusy) this.#line.fail(interrupted)
      else this.#jobs.splice(at, 1)
    }
  }

  #take(frame: Buffer): void {
    const answered = this.#answered
    this.#answered = null
    const content = frame.subarray(header)
    if (answered !== null) return answered(content, frame[3]!)
    if (content[0] !== error) throw new ServerFault("PROTOCOL_ERROR", "the server answers what nobody has asked")
    // It says why it hangs up: it shuts down, for example.
    this.#refused(refusalIn(content))
  }

  #ask(parts: ReadonlyArray<Uint8Array>, answered: (packet: Buffer, number: number) => void): void {
    this.#answered = answered
    this.#line.ask(parts, 0)
  }

  #greeted(greeting: Buffer): void {
    if (greeting[0] === error) return this.#refused(refusalIn(greeting))
    const { challenge, hasTls, plugin } = greetingIn(greeting)
    const { tls } = this.#place
    if (!tls) return this.#signIn(1, plugin, challenge)
    if (!hasTls) throw new ServerFault("ERR_SSL_WRONG_VERSION_NUMBER", "the server speaks no TLS")
    this.#secured = () => this.#signIn(2, plugin, challenge)
    this.#line.write(tlsRequest())
    this.#line.secure()
  }

  #opened(): void {
    if (this.#secured === null) return
    // What came in plain text may have been injected by an attacker.
    if (!this.#cutter.isBetween) {
      return this.#line.fail(new ServerFault("PROTOCOL_ERROR", "the server speaks before TLS"))
    }
    this.#secured()
  }

  #signIn(number: number, plugin: string, challenge: Buffer): void {
    const { password } = this.#place
    // The server names its usual way. Whoever has another one is asked again.
    const way = proofOf(plugin, password, challenge) === null ? "mysql_native_password" : plugin
    const proof = proofOf(way, password, challenge)!
    this.#ask(signInTo(this.#place, number, way, proof), (answer, at) => this.#judge(answer, at, true))
  }

  /** `maySwitch`: the server may ask for another way once. */
  #judge(answer: Buffer, number: number, maySwitch: boolean): void {
    const { password, tls } = this.#place
    if (answer[0] === ok) return this.#settings()
    if (answer[0] === error) return this.#refused(refusalIn(answer))
    if (answer[0] === otherWay && maySwitch) {
      const { challenge, plugin } = switchIn(answer)
      const proof = proofOf(plugin, password, challenge)
      if (proof === null) return this.#refused(refusal("MECHANISM", plugin))
      return this.#ask(packet(number + 1, proof), (next, at) => this.#judge(next, at, false))
    }
    if (answer[0] === more && answer[1] === isKnown) {
      this.#answered = (next, at) => this.#judge(next, at, false)
      return
    }
    if (answer[0] === more && answer[1] === wantsPassword) {
      if (!tls) {
        throw new ServerFault("AUTH_REJECTED", "the server wants the whole password, which is sent by TLS alone")
      }
      return this.#ask(packet(number + 1, Buffer.from(`${password}\0`)), (next, at) => this.#judge(next, at, false))
    }
    throw new ServerFault("PROTOCOL_ERROR", "the server signs in as MySQL does not")
  }

  #settings(): void {
    this.#ask(set, (answer) => {
      if (answer[0] === error) return this.#refused(refusalIn(answer))
      if (answer[0] !== ok) throw new ServerFault("PROTOCOL_ERROR", "the server answers a setting with rows")
      this.#isBusy = false
      this.#settle(null)
      this.#next()
    })
  }

  /** Inserts the next row, if none is under way. */
  #next(): void {
    const [job] = this.#jobs
    if (job === undefined || this.#isBusy || this.#ended !== null) return
    this.#isBusy = true
    if (this.#statement === null) this.#prepare(job)
    else this.#insert(job, this.#statement)
  }

  #prepare(job: Job): void {
    const parameters = this.#place.columns.length
    this.#ask(prepare(statementOf(this.#place)), (answer) => {
      if (answer[0] === error) return this.#done(refusalIn(answer))
      const statement = preparedIn(answer, parameters)
      // The definitions of the parameters, and a packet that ends them.
      let left = parameters + 1
      const skip = (): void => {
        if (--left > 0) {
          this.#answered = skip
          return
        }
        this.#statement = statement
        this.#insert(job, statement)
      }
      this.#answered = skip
    })
  }

  #insert({ row }: Job, statement: Buffer): void {
    const parts = execution(statement, row.values)
    if (parts === null) return this.#done(refusal("SIZE"))
    this.#isSent = true
    this.#ask(parts, (answer) => {
      if (answer[0] === ok) return this.#done(String(rowsIn(answer)))
      if (answer[0] !== error) throw new ServerFault("PROTOCOL_ERROR", "the server answers a row with rows")
      const refused = refusalIn(answer)
      // The server has forgotten the statement, or a pooler has gone to another server.
      if (refused.code.startsWith("1243 ")) this.#statement = null
      // Without the right to update: `on duplicate key update` would want it.
      const isThere = refused.code.startsWith("1062 ") && this.#place.ignoresDuplicates
      this.#done(isThere ? "0" : refused)
    })
  }

  #done(result: Published): void {
    this.#isBusy = false
    this.#isSent = false
    this.#jobs.shift()?.done(result)
    this.#next()
  }

  /** The connection is of no use any more. */
  #refused(refused: BrokerRefusal): void {
    this.#end(refused)
    this.#line.close(Buffer.alloc(0), cancelled)
  }

  #end(failure: Ended): void {
    this.#ended ??= failure
    const first = this.#isSent && failure instanceof SessionFailure ? ambiguous(failure) : failure
    for (const [at, job] of this.#jobs.splice(0).entries()) job.done(at === 0 ? first : failure)
    this.#settle(failure)
  }

  #settle(failure: Ended | null): void {
    this.#signedIn?.(failure)
    this.#signedIn = null
  }
}

export const mysql: Protocol<"mysql"> = {
  connect: (guard, place, signedIn) => new MysqlPublisher(guard, place, signedIn)
}
