import type { BrokerRefusal, MysqlRows, MysqlTable } from "@tidegate/connectors/Brokers"
import { cancelled } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { BrokerLine } from "./BrokerLine.ts"
import { FrameCutter } from "./FrameCutter.ts"
import {
  execution,
  farewell,
  forget,
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
import { type Ended, OneAtATime } from "./OneAtATime.ts"
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
/** Bytes of the definition of a parameter, about. */
const longestDefinition = 64

/**
 * As much of the protocol of MySQL as it takes to insert rows. The client libraries encrypt their sockets past the guard, and keep what a
 * server says without a limit.
 */
class MysqlPublisher implements Publisher<MysqlRows> {
  readonly #place: MysqlTable
  readonly #line: BrokerLine
  readonly #cutter = new FrameCutter(header, (head) => ({ size: sizeIn(head), isDropped: false }))
  readonly #rows: OneAtATime<MysqlRows>
  /** Who waits for the next packet, without its header; null: nobody has asked for one. */
  #answered: ((packet: Buffer, number: number) => void) | null = (packet) => this.#greeted(packet)
  /** Signs in over TLS, once the line is encrypted. */
  #secured: (() => void) | null = null
  /** The prepared statements by their number of rows: the one of a single row, and the last one of several. */
  readonly #statements = new Map<number, Buffer>()

  constructor(guard: Guard, place: MysqlTable, signedIn: (failure: Ended | null) => void) {
    this.#place = place
    this.#rows = new OneAtATime({
      start: (message) => {
        const statement = this.#statements.get(message.rows.length)
        if (statement === undefined) this.#prepare(message)
        else this.#insert(message, statement)
      },
      // The answer to it would be taken for that to the next row.
      interrupt: () => this.#line.fail(interrupted),
      ambiguous: "after it had got the row: it may have inserted it",
      signedIn
    })
    const { host, port, tls } = place
    this.#line = new BrokerLine(
      guard,
      { host, port, tls, tlsLater: true },
      {
        opened: () => this.#opened(),
        read: (chunk) => this.#cutter.read(chunk, (frame) => this.#take(frame)),
        ended: (failure) => this.#rows.end(failure)
      }
    )
  }

  isOpen(): boolean {
    return this.#line.isOpen
  }

  close(): void {
    if (this.#rows.isBusy) this.#line.fail(interrupted)
    else this.#line.close(farewell, cancelled)
  }

  publish(message: MysqlRows, done: (result: Published) => void): () => void {
    return this.#rows.publish(message, done)
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

  /** `most`: how many bytes the answer may have beside the usual number. */
  #ask(parts: ReadonlyArray<Uint8Array>, answered: (packet: Buffer, number: number) => void, most = 0): void {
    this.#answered = answered
    this.#line.ask(parts, most)
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
      this.#rows.ready()
    })
  }

  #prepare(message: MysqlRows): void {
    const count = message.rows.length
    const parameters = count * this.#place.columns.length
    this.#ask(
      prepare(statementOf(this.#place, count)),
      (answer) => {
        if (answer[0] === error) return this.#rows.finish(refusalIn(answer))
        const statement = preparedIn(answer, parameters)
        // The definitions of the parameters, and a packet that ends them.
        let left = parameters + 1
        const skip = (): void => {
          if (--left > 0) {
            this.#answered = skip
            return
          }
          this.#keep(count, statement)
          this.#insert(message, statement)
        }
        this.#answered = skip
      },
      parameters * longestDefinition
    )
  }

  /** A server keeps few statements: it forgets the last one of several rows. */
  #keep(count: number, statement: Buffer): void {
    for (const [other, id] of this.#statements) {
      if (other === 1 || count === 1) continue
      this.#statements.delete(other)
      this.#line.write(forget(id))
    }
    this.#statements.set(count, statement)
  }

  #insert({ rows }: MysqlRows, statement: Buffer): void {
    const parts = execution(statement, rows.flat())
    if (parts === null) return this.#rows.finish(refusal("SIZE"))
    this.#rows.isSent = true
    this.#ask(parts, (answer) => {
      if (answer[0] === ok) return this.#rows.finish(String(rowsIn(answer, rows.length)))
      if (answer[0] !== error) throw new ServerFault("PROTOCOL_ERROR", "the server answers a row with rows")
      const refused = refusalIn(answer)
      // The server has forgotten the statement, or a pooler has gone to another server.
      if (refused.code.startsWith("1243 ")) this.#statements.clear()
      // Without the right to update: `on duplicate key update` would want it. Of several rows, nobody knows which one is there.
      const isThere = rows.length === 1 && refused.code.startsWith("1062 ") && this.#place.ignoresDuplicates
      this.#rows.finish(isThere ? "0" : refused)
    })
  }

  /** The connection is of no use any more. */
  #refused(refused: BrokerRefusal): void {
    this.#rows.end(refused)
    this.#line.close(Buffer.alloc(0), cancelled)
  }
}

export const mysql: Protocol<"mysql"> = {
  connect: (guard, place, signedIn) => new MysqlPublisher(guard, place, signedIn)
}
