import type { Resumable } from "@tidegate/runtime/Resumable"

/** What stands in one paragraph or heading, as it is read: text with the elements around it. */

/** An element that marks text. Two elements are two marks, though they may say the same. */
export interface Mark {
  readonly kind: "em" | "link" | "strong"
  /** The address and title of a link. */
  readonly target: string
}

/** The marks around a text, the outermost first: at most one of each kind. */
export type Marks = ReadonlyArray<Mark>

/** Marks with one more: what says the same already is enough, and a link ends the one around it, as in browsers. */
export const withMark = (marks: Marks, mark: Mark): Marks => {
  if (mark.kind === "link") return [...marks.filter(({ kind }) => kind !== "link"), mark]
  return marks.some(({ kind }) => kind === mark.kind) ? marks : [...marks, mark]
}

/** Text as it is read, the code of one element, or Markdown that is made. */
export interface Item {
  readonly kind: "code" | "made" | "text"
  readonly element: object | null
  value: string
  /** The white space before it; with a line feed, it is a line break. */
  before: string
  marks: Marks
}

export type Items = ReadonlyArray<Item>

/** The items of a paragraph while it is read. */
export class InlineReader {
  /** How many items were read, of all paragraphs. */
  read = 0
  #items: Array<Item> = []
  #space: Array<string> = []
  #endsWithSpace = true
  #breaks = 0

  /** Line breaks between what there is and what comes next. */
  get breaks(): number {
    return this.#breaks
  }

  /** `code`: the element whose code it is. */
  text(raw: string, marks: Marks, code: object | null): void {
    const core = raw.trim()
    const from = raw.length - raw.trimStart().length
    this.#white(raw.slice(0, from))
    if (core === "") return
    this.#add(code === null ? "text" : "code", code, core.replaceAll(/[ \t\r\n\f]+/g, " "), marks)
    this.#white(raw.slice(from + core.length))
  }

  made(markdown: string, marks: Marks): void {
    this.#add("made", null, markdown, marks)
  }

  lineBreak(): void {
    if (this.#items.length > 0) this.#breaks++
    this.#forget()
  }

  /** All items, which the next paragraph begins without. White space and line breaks at the end say nothing. */
  take(): Items {
    const items = this.#items
    this.#items = []
    this.#forget()
    this.#breaks = 0
    return items
  }

  #forget(): void {
    this.#space.length = 0
    this.#endsWithSpace = true
  }

  /** What is shown as one space is one, across the edges of elements, and none where a line begins. Other white space is kept. */
  #white(raw: string): void {
    if (raw === "") return
    const shown = raw.replaceAll(/[ \t\r\n\f]+/g, " ")
    this.#space.push(this.#endsWithSpace && shown.startsWith(" ") ? shown.slice(1) : shown)
    this.#endsWithSpace = shown.endsWith(" ")
  }

  #add(kind: Item["kind"], element: object | null, value: string, marks: Marks): void {
    this.read++
    const before = (this.#breaks > 0 ? "\n" : "") + this.#space.join("")
    const last = this.#items.at(-1)
    // A text that is looked at while it grows is copied at every look.
    if (
      kind !== "made" &&
      last?.kind === kind &&
      last.element === element &&
      last.marks === marks &&
      this.#breaks === 0
    )
      last.value += before + value
    else this.#items.push({ kind, element, value, before, marks })
    this.#forget()
    this.#endsWithSpace = false
    this.#breaks = 0
  }
}

/** How many marks go on from one item to the next. */
export const commonOf = (some: Marks, others: Marks): number => {
  let common = 0
  while (common < some.length && some[common] === others[common]) common++
  return common
}

/** Items that are looked at in one go. */
const turn = 1024

/** What an item takes at each look, in microseconds. */
const itemMicros = 0.5

/** Looks at each item, in parts: what a part takes is spent before it begins. */
export function* inTurns<A>(
  items: ReadonlyArray<A>,
  spend: (micros: number) => void,
  look: (item: A) => void
): Resumable<void> {
  for (let from = 0; from < items.length; from += turn) {
    if (from > 0) yield
    const to = Math.min(from + turn, items.length)
    spend((to - from) * itemMicros)
    for (let at = from; at < to; at++) look(items[at]!)
  }
}
