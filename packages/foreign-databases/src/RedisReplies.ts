import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import { LineCutter } from "./LineCutter.ts"
import { type EntryContent, EntryFields } from "./RedisEntry.ts"
import { longestLine, refusalOf } from "./RedisFrames.ts"
import { breach, ServerFault } from "./ServerFrames.ts"

/** What a consumer of a stream is answered by, read as it arrives: no reply is held as a whole. */

/** Bytes of the entries of one reply that are kept. Entries behind these are asked for again. */
export const bytesOfReply = maxMessageBody + 128 * 1024
/** Redis has no longer text. */
export const longestText = 512 * 1024 * 1024

export interface Entry {
  readonly id: string
  /** Null: it was deleted from the stream after it had been given to the consumer. */
  readonly content: EntryContent | null
}

export type Reply =
  | BrokerRefusal
  | { readonly kind: "word" }
  | { readonly kind: "claimed"; readonly count: number; readonly next: string }
  /** `isCut`: the reply had entries behind these. */
  | { readonly kind: "entries"; readonly entries: ReadonlyArray<Entry>; readonly isCut: boolean; readonly kept: number }

/** The kind of the next reply. `most`: how many entries were asked for. */
export interface Expected {
  readonly kind: Exclude<Reply, BrokerRefusal>["kind"]
  readonly most: number
}

const idForm = /^\d{1,20}-\d{1,20}$/
const strange = (): ServerFault => breach("the server does not answer as Redis does")
const tooMany = (): ServerFault => breach("the server gives more entries than were asked for")

/** The number of elements of an array; -1: it is null. */
const lengthIn = (line: string): number => {
  if (!/^\*(?:-1|\d{1,10})$/.test(line)) throw strange()
  return Number(line.slice(1))
}

/** The number of bytes of a text. */
const sizeIn = (line: string): number => {
  if (!line.startsWith("$") || line === "$-1") throw strange()
  return Number(line.slice(1))
}

const following = (line: string): number | null => {
  if (!line.startsWith("$") || line === "$-1") return null
  if (!/^\$\d{1,10}$/.test(line)) throw strange()
  const size = Number(line.slice(1))
  if (size > longestText) throw new ServerFault("RESPONSE_TOO_LARGE", "the server sends a text that is too long")
  return size
}

/** Reads the replies of an untrusted server, and what is in them by its depth. */
export class RedisReplies {
  readonly #bodyField: string
  readonly #expected: () => Expected | undefined
  readonly #pass: (reply: Reply) => void
  readonly #cutter = new LineCutter(longestLine, following, maxMessageBody)
  /** How many elements are still to come of each array that is open, from the outermost. */
  readonly #left: Array<number> = []
  #entries: Array<Entry> = []
  #fields: EntryFields | null = null
  #id = ""
  #kept = 0
  #isCut = false
  #claimed = 0
  #next = ""

  /** `expected`: what the next reply must be; undefined: nothing was asked. */
  constructor(bodyField: string, expected: () => Expected | undefined, pass: (reply: Reply) => void) {
    this.#bodyField = bodyField
    this.#expected = expected
    this.#pass = pass
  }

  read(chunk: Buffer): void {
    this.#cutter.read(chunk, (line, text) => this.#take(line, text))
  }

  #take(line: string, text: Buffer): void {
    const expected = this.#expected()
    if (this.#left.length === 0 && line.startsWith("-")) return this.#pass(refusalOf(line))
    switch (expected?.kind) {
      case "word":
        if (!/^[+:]/.test(line)) throw strange()
        return this.#pass({ kind: "word" })
      case "claimed":
        return this.#takeClaimed(line, text, expected.most)
      case "entries":
        return this.#takeEntries(line, text, expected.most)
      default:
        throw breach("the server answers what nobody has asked")
    }
  }

  /** A cursor, the ids that were claimed, and in newer versions those that were deleted. */
  #takeClaimed(line: string, text: Buffer, most: number): void {
    const depth = this.#left.length
    if (depth === 0) {
      if (line !== "*2" && line !== "*3") throw strange()
      this.#claimed = 0
      this.#next = ""
      return this.#open(lengthIn(line))
    }
    if (depth === 1 && this.#next !== "") {
      const length = lengthIn(line)
      // Deleted ones are not limited by the number that is asked for, but by the entries that are looked at.
      if (length > most * 10) throw tooMany()
      return this.#open(length)
    }
    sizeIn(line)
    const id = text.toString("latin1")
    if (!idForm.test(id)) throw strange()
    if (depth === 1) this.#next = id
    else this.#claimed++
    this.#closeElement()
  }

  /** Streams, of each its key and its entries, of each of these its id and its fields. */
  #takeEntries(line: string, text: Buffer, most: number): void {
    const left = this.#left.at(-1)!
    switch (this.#left.length) {
      case 0: {
        this.#entries = []
        this.#kept = 0
        this.#isCut = false
        const length = lengthIn(line)
        if (length > 1) throw strange()
        return this.#open(length)
      }
      case 1:
      case 3:
        if (line !== "*2") throw strange()
        return this.#open(2)
      case 2: {
        if (left === 2) {
          sizeIn(line)
          return this.#closeElement()
        }
        const length = lengthIn(line)
        if (length > most) throw tooMany()
        return this.#open(length)
      }
      case 4:
        return left === 2 ? this.#beginEntry(line, text) : this.#beginFields(line)
      default: {
        const size = sizeIn(line)
        if (left % 2 === 0) this.#fields?.name(size, text)
        else this.#fields?.value(size, text)
        return this.#closeElement()
      }
    }
  }

  #beginEntry(line: string, text: Buffer): void {
    sizeIn(line)
    this.#id = text.toString("latin1")
    if (!idForm.test(this.#id)) throw strange()
    this.#isCut ||= this.#kept >= bytesOfReply
    this.#closeElement()
  }

  #beginFields(line: string): void {
    const length = line === "$-1" ? -1 : lengthIn(line)
    if (length > 0) {
      if (length % 2 === 1) throw strange()
      this.#fields = this.#isCut ? null : new EntryFields(this.#bodyField)
    } else if (!this.#isCut) {
      this.#entries.push({ id: this.#id, content: null })
    }
    this.#open(length)
  }

  #endFields(): void {
    if (this.#fields === null) return
    this.#entries.push({ id: this.#id, content: this.#fields.made() })
    this.#kept += this.#fields.kept
    this.#fields = null
  }

  #open(length: number): void {
    if (length > 0) this.#left.push(length)
    else this.#closeElement()
  }

  /** An element is complete, and with it the arrays whose last one it is. */
  #closeElement(): void {
    for (;;) {
      const depth = this.#left.length
      if (depth === 0) return this.#complete()
      if (--this.#left[depth - 1]! > 0) return
      this.#left.pop()
      if (depth === 5) this.#endFields()
    }
  }

  #complete(): void {
    const isClaimed = this.#expected()!.kind === "claimed"
    const reply: Reply = isClaimed
      ? { kind: "claimed", count: this.#claimed, next: this.#next }
      : { kind: "entries", entries: this.#entries, isCut: this.#isCut, kept: this.#kept }
    this.#entries = []
    this.#pass(reply)
  }
}
