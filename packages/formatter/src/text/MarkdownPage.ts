import type { Resumable } from "@tidegate/runtime/Resumable"
import { Fault } from "../engine/Fault.ts"
import { limits } from "../engine/Limits.ts"
import { markdownLines } from "./MarkdownInline.ts"
import { InlineReader, type Items } from "./MarkdownItems.ts"

/** The blocks of Markdown, in the quotations and lists that they stand in. A block is written once, and what it costs follows from its length. */

export interface List {
  /** The number of its next item; null if it has bullets. */
  number: number | null
  /** Its bullet, or what stands behind its numbers. */
  readonly sign: string
  /** The blocks of the page where its last item ended; null while it has none. */
  ended: number | null
}

/** A quotation or an item of a list. */
interface Container {
  /** What its first line begins with, behind what is around it. */
  readonly first: string
  /** What its other lines begin with, what is around it included. */
  readonly rest: string
  /** Of an item: its list, and whether it may begin directly behind a paragraph that is not of its list. */
  readonly item: { readonly list: List; readonly interrupts: boolean } | null
  hasBlocks: boolean
}

interface Block {
  /** What stands before it: line ends, and what its first line begins with. */
  readonly first: string
  readonly rest: string
  readonly content: ReadonlyArray<string> | { readonly items: Items; readonly level: number }
}

/** What a block takes beside its text, in microseconds. */
const blockMicros = 2

/** Blocks that are written in one go. */
const turn = 1024

/** Numbers that CommonMark knows. */
const maxNumber = 999_999_999

export class MarkdownPage {
  readonly inline = new InlineReader()
  /** The level of the heading that is read; 0 in none. */
  level = 0
  readonly #isSetext: boolean
  readonly #containers: Array<Container> = []
  /** Blocks that are read and not written. */
  #read: Array<Block> = []
  #blocks = 0
  /** Whether an empty line has to stand before the next block. */
  #isApart = false
  /** The numbered list that was the last to end: one that follows it directly has other signs, or it would go on. */
  #last: List | null = null
  readonly #written: Array<string> = []
  #length = 0

  constructor(isSetext: boolean) {
    this.#isSetext = isSetext
  }

  /** The paragraph has its end. `isApart`: so that an empty line follows. */
  end(isApart: boolean): void {
    const items = this.inline.take()
    if (items.length > 0) this.#add({ items, level: this.level })
    // What an item or a quotation begins with is not apart from what stands before that.
    if (isApart && this.#containers.at(-1)?.hasBlocks !== false) this.#isApart = true
  }

  /** Two line breaks end a paragraph: an empty line does in Markdown. A heading has one line. */
  lineBreak(): void {
    this.inline.lineBreak()
    if (this.inline.breaks > 1 && this.level === 0) this.end(false)
  }

  /** A block of lines that are as they are. */
  lines(lines: ReadonlyArray<string>): void {
    this.end(true)
    this.#add(lines)
    this.#isApart = true
  }

  /** A list of numbers, or of bullets. `around`: the list that it stands in, and in no item of it. */
  list(number: number | null, bullet: string, around: List | null): List {
    this.end(!this.#isInItem)
    if (number === null) return { number, sign: bullet, ended: null }
    const before = around ?? (this.#last?.ended === this.#blocks ? this.#last : null)
    return { number, sign: before?.sign === "." ? ")" : ".", ended: null }
  }

  endList(list: List): void {
    this.end(!this.#isInItem)
    if (list.ended !== null && list.number !== null) this.#last = list
  }

  quote(): void {
    this.end(true)
    this.#enter("> ", "> ", null)
  }

  item(list: List): void {
    this.end(false)
    const { number, sign } = list
    const first = number === null ? `${sign}   ` : `${number}${sign}  `
    if (number !== null) list.number = Math.min(number + 1, maxNumber)
    this.#enter(first, " ".repeat(first.length), { list, interrupts: number === null || number === 1 })
  }

  /** The innermost quotation or item has its end. */
  leave(): void {
    this.end(!this.#isInItem)
    const { hasBlocks, item } = this.#containers.pop()!
    if (item !== null && hasBlocks) item.list.ended = this.#blocks
  }

  /** Whether the next block is the first of an item: a line of asterisks would be one with its bullet. */
  get beginsItem(): boolean {
    return this.#isInItem && this.#containers.at(-1)?.hasBlocks === false
  }

  /** Writes what is read, in parts. `spend`: microseconds. */
  *write(spend: (micros: number) => void): Resumable<void> {
    const read = this.#read
    this.#read = []
    for (const [at, { content, first, rest }] of read.entries()) {
      if (at > 0 && at % turn === 0) yield
      spend(blockMicros)
      if (!("items" in content)) this.#lines(first, rest, content)
      else {
        const { items, level } = content
        const lines = yield* markdownLines(items, level > 0, spend)
        this.#lines(first, rest, level > 0 ? this.#heading(lines[0]!, level) : lines)
      }
    }
  }

  get markdown(): string {
    return this.#written.join("")
  }

  get #isInItem(): boolean {
    return (this.#containers.at(-1)?.item ?? null) !== null
  }

  #enter(first: string, rest: string, item: Container["item"]): void {
    const around = this.#containers.at(-1)?.rest ?? ""
    this.#containers.push({ first, rest: around + rest, item, hasBlocks: false })
  }

  #add(content: Block["content"]): void {
    let from = this.#containers.length
    while (from > 0 && !this.#containers[from - 1]!.hasBlocks) from--
    const around = this.#containers[from - 1]?.rest ?? ""
    const begun = this.#containers.slice(from)
    const item = begun[0]?.item ?? null
    // Without an empty line before it, anything but an item goes on with the paragraph before.
    const isTight = !this.#isApart && item !== null && (item.interrupts || item.list.ended === this.#blocks)
    const before = this.#blocks === 0 ? "" : isTight ? "\n" : `\n${around}\n`
    for (const container of begun) container.hasBlocks = true
    const first = before + around + begun.map((container) => container.first).join("")
    this.#read.push({ first, rest: this.#containers.at(-1)?.rest ?? "", content })
    this.#blocks++
    this.#isApart = false
  }

  #heading(line: string, level: number): ReadonlyArray<string> {
    // Dashes below a line with a bar would be a table in many dialects.
    if (this.#isSetext && (level === 1 || (level === 2 && !line.includes("|"))))
      return [line, (level === 1 ? "=" : "-").repeat(line.length)]
    // Number signs at the end would be taken for the heading's own.
    return [`${"#".repeat(level)} ${line.replace(/ #+$/, (end) => ` \\${end.slice(1)}`)}`]
  }

  /** Refuses what is longer than any output, before more of it is held: deep quotations make much of few characters. */
  #lines(first: string, rest: string, lines: ReadonlyArray<string>): void {
    for (const [at, line] of lines.entries()) {
      const begin = at === 0 ? first : `\n${rest}`
      this.#length += begin.length + line.length
      if (this.#length > limits.output_bytes) {
        const details = { limit: limits.output_bytes, actual: this.#length }
        throw new Fault("FORMATTER_OUTPUT_TOO_LARGE", "the output is too large", details)
      }
      this.#written.push(begin, line)
    }
  }
}
