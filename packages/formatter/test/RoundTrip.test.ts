import { createRequire } from "node:module"
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { outcomeOf } from "./Run.ts"

const { Parser } = createRequire(import.meta.url)("htmlparser2") as typeof import("htmlparser2")

const resultOf = (operation: string, input: string): string => {
  const { failed, output } = outcomeOf(operation, { input })
  expect(failed).toBeUndefined()
  return output!["result"] as string
}

const back = (html: string): string => resultOf("text.markdown_to_html", resultOf("text.html_to_markdown", html))

/** The words of HTML: white space is shown as the browser likes. */
const wordsOf = (html: string): string => resultOf("text.strip_html", html).replaceAll(/\s/g, "")

/** A character, the elements around it, and what stands before it: a space, a line break, or the edge of a block. */
interface Read {
  readonly before: string
  readonly character: string
  readonly marks: ReadonlyArray<string>
}

const blocks = new Set("blockquote h2 li ol p pre ul".split(" "))
const same: Readonly<Record<string, string>> = { b: "strong", i: "em", p: "", pre: "code", span: "" }

/** The characters of HTML that are not white space. */
const readingOf = (html: string): ReadonlyArray<Read> => {
  const read: Array<Read> = []
  const open: Array<string> = []
  let before = "edge"
  const parser = new Parser({
    onopentag: (name) => {
      if (blocks.has(name)) before = "edge"
      else if (name === "br" && before !== "edge") before = "break"
      open.push(same[name] ?? name)
    },
    onclosetag: (name) => {
      open.pop()
      if (blocks.has(name)) before = "edge"
    },
    ontext: (text) => {
      for (const character of text) {
        if (!/\s/.test(character)) read.push({ before, character, marks: [...new Set(open)].sort() })
        before = /\s/.test(character) ? (before === "" ? "space" : before) : ""
      }
    }
  })
  parser.end(html)
  return read
}

/** Text that has the shape of something, as HTML writes it. */
const texts = [
  ..."\\`*_[]()!#>~-+=|:.1x & ".split(""),
  " ",
  "two words",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  "&lt;/p&gt;",
  "&lt;!--",
  "&lt;?x",
  "&lt;",
  "&amp;lt;b&amp;gt;",
  "&amp;#60;",
  "&amp;copy;",
  "a &lt; b",
  "1. x",
  "2) x",
  "# x",
  "- x",
  "~~x~~",
  "```",
  "**x**",
  "[x](y)",
  "a!"
]

const marks = ["b", "i", "strong", "em", "a", "span"]

/** A small document from a tape. `isApart`: between an element and the text beside it is a space, as people write. */
class Pages {
  readonly #tape: ReadonlyArray<number>
  readonly #isApart: boolean
  #at = 0
  constructor(tape: ReadonlyArray<number>, isApart: boolean) {
    this.#tape = tape
    this.#isApart = isApart
  }

  #draw(of: number): number {
    return (this.#tape[this.#at++] ?? 0) % of
  }

  #text(): string {
    return Array.from({ length: 1 + this.#draw(3) }, () => texts[this.#draw(texts.length)]!).join("")
  }

  #space(): string {
    return this.#isApart ? " " : ["", " ", "x"][this.#draw(3)]!
  }

  /** Text in elements in elements, with text beside them. */
  #marked(levels: number): string {
    const name = marks[this.#draw(marks.length)]!
    const within = levels === 0 ? this.#text() : `${this.#marked(levels - 1)}${this.#space()}${this.#text()}`
    const tag = name === "a" ? 'a href="u"' : name
    return `${this.#text()}${this.#space()}<${tag}>${within}</${name}>${this.#space()}${this.#text()}`
  }

  #inline(): string {
    const text = this.#text()
    return [
      text,
      text,
      `<code>${text}</code>`,
      `<a href="https://x.example/a\\\`(b)&lt;c&amp;copy;">w${text}</a>`,
      `${text}<br>${this.#text()}`,
      `<img src="y&lt;b&gt;.png)" alt="">${text}`,
      this.#marked(this.#draw(3)),
      this.#marked(this.#draw(3))
    ][this.#draw(8)]!
  }

  #block(): string {
    const inline = Array.from({ length: 1 + this.#draw(3) }, () => this.#inline()).join(" ")
    return [
      `<p>${inline}</p>`,
      `<h2>w ${this.#text()}</h2>`,
      `<ul><li>${inline}</li><li>${this.#inline()}</li></ul>`,
      `<ol><li>${inline}<ul><li>${this.#inline()}</li></ul></li></ol>`,
      `<blockquote>${inline}</blockquote>`,
      `<pre><code>${this.#text()}\n${this.#text()}</code></pre>`
    ][this.#draw(6)]!
  }

  page(): string {
    return Array.from({ length: 1 + this.#draw(3) }, () => this.#block()).join("")
  }
}

const tape = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5_039 }))), {
  minLength: 10,
  maxLength: 90
})
const arbitrary = { runs: 500, size: 90 }

describe("HTML converted to Markdown and back", () => {
  it.prop(
    "HTML converted to Markdown and back has the same words",
    { numbers: tape },
    ({ numbers }) => {
      const page = new Pages(numbers, false).page()
      expect(wordsOf(back(page)), page).toBe(wordsOf(page))
    },
    { arbitrary }
  )

  it.prop(
    "HTML converted to Markdown and back has no additional formatting",
    { numbers: tape },
    ({ numbers }) => {
      const page = new Pages(numbers, false).page()
      const written = readingOf(page)
      const added = readingOf(back(page)).filter(({ marks }, at) =>
        marks.some((mark) => !written[at]!.marks.includes(mark))
      )
      expect(added, page).toEqual([])
    },
    { arbitrary }
  )

  it.prop(
    "HTML converted to Markdown and back is the same if spaces surround its elements",
    { numbers: tape },
    ({ numbers }) => {
      const page = new Pages(numbers, true).page()
      expect(readingOf(back(page)), page).toEqual(readingOf(page))
    },
    { arbitrary }
  )
})
