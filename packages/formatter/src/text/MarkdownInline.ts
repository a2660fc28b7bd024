import type { Resumable } from "@tidegate/runtime/Resumable"
import { arranged } from "./MarkdownEmphasis.ts"
import { commonOf, inTurns, type Item, type Items, type Mark, type Marks } from "./MarkdownItems.ts"
import { markdownCode, markdownLine, markdownText } from "./MarkdownText.ts"

/** Writes arranged items. */
class LineWriter {
  readonly #starred: ReadonlySet<Mark>
  readonly #isHeading: boolean
  readonly #lines: Array<string> = []
  #line: Array<string> = []
  #open: Marks = []
  /** What is not written yet: items of one kind and the same marks are escaped as one. */
  #kind: Item["kind"] = "made"
  #gathered: Array<string> = []
  /** What is gathered stands where a line begins. */
  #isFirst = true

  constructor(starred: ReadonlySet<Mark>, isHeading: boolean) {
    this.#starred = starred
    this.#isHeading = isHeading
  }

  add({ before, kind, marks, value }: Item): void {
    const common = commonOf(this.#open, marks)
    const isBreak = before.startsWith("\n")
    const isSame = kind === this.#kind && common === this.#open.length && common === marks.length && !isBreak
    if (isSame && (kind === "text" || (kind === "code" && before === ""))) {
      this.#gathered.push(before, value)
      return
    }
    this.#close(common)
    const space = isBreak ? before.slice(1) : before
    if (isBreak && !this.#isHeading) {
      this.#line.push("  ")
      this.#endLine()
    } else if (isBreak) this.#line.push(" ")
    if (space !== "") this.#line.push(space)
    for (const mark of marks.slice(common)) this.#begin(mark)
    if (kind === "made" && value.startsWith("[")) this.#bracket()
    this.#open = marks
    this.#kind = kind
    this.#gathered = [value]
    this.#isFirst = this.#line.length === 0
  }

  end(): ReadonlyArray<string> {
    this.#close(0)
    this.#endLine()
    return this.#lines
  }

  #endLine(): void {
    this.#lines.push(this.#line.join(""))
    this.#line = []
  }

  #begin(mark: Mark): void {
    if (mark.kind === "link") this.#bracket()
    this.#line.push(mark.kind === "link" ? "[" : this.#sign(mark))
  }

  /** An exclamation mark before a link would make an image of it. */
  #bracket(): void {
    const last = this.#line.at(-1)
    if (last?.endsWith("!") === true) this.#line.splice(-1, 1, last.slice(0, -1), "\\!")
  }

  /** Writes what is gathered, and ends the marks from a place on, the innermost first. */
  #close(from: number): void {
    const text = this.#gathered.join("")
    if (text !== "") {
      const shown = this.#kind === "made" ? text : this.#kind === "code" ? markdownCode(text) : markdownText(text)
      this.#line.push(this.#kind === "text" && this.#isFirst ? markdownLine(shown) : shown)
    }
    this.#gathered = []
    for (const mark of this.#open.slice(from).toReversed()) {
      this.#line.push(mark.kind === "link" ? `](${mark.target})` : this.#sign(mark))
    }
  }

  #sign(mark: Mark): string {
    return mark.kind === "strong" ? "**" : this.#starred.has(mark) ? "*" : "_"
  }
}

/** The lines of a paragraph. A heading has one line. `spend`: microseconds. */
export function* markdownLines(
  read: Items,
  isHeading: boolean,
  spend: (micros: number) => void
): Resumable<ReadonlyArray<string>> {
  const { items, starred } = yield* arranged(read, spend)
  const lines = new LineWriter(starred, isHeading)
  yield* inTurns(items, spend, (item) => lines.add(item))
  return lines.end()
}
