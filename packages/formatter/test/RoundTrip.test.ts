import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { outcomeOf } from "./Run.ts"

const resultOf = (operation: string, input: string): string => {
  const { failed, output } = outcomeOf(operation, { input })
  expect(failed).toBeUndefined()
  return output!["result"] as string
}

const back = (html: string): string => resultOf("text.markdown_to_html", resultOf("text.html_to_markdown", html))

/** The words of HTML: white space is shown as the browser likes. */
const wordsOf = (html: string): string => resultOf("text.strip_html", html).replaceAll(/\s/g, "")

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
  "[x](y)"
]

/** A small document from a tape. */
class Pages {
  readonly #tape: ReadonlyArray<number>
  #at = 0
  constructor(tape: ReadonlyArray<number>) {
    this.#tape = tape
  }

  #draw(of: number): number {
    return (this.#tape[this.#at++] ?? 0) % of
  }

  #text(): string {
    return Array.from({ length: 1 + this.#draw(3) }, () => texts[this.#draw(texts.length)]!).join("")
  }

  #inline(): string {
    const text = this.#text()
    return [
      text,
      text,
      `<code>${text}</code>`,
      `<a href="https://x.example/a\\\`(b)&lt;c&amp;copy;">w${text}</a>`,
      `${text}<br>${this.#text()}`,
      `<img src="y&lt;b&gt;.png)" alt="">${text}`
    ][this.#draw(6)]!
  }

  #block(): string {
    const inline = Array.from({ length: 1 + this.#draw(3) }, () => this.#inline()).join(" ")
    return [
      `<p>${inline}</p>`,
      `<h2>w ${this.#text()}</h2>`,
      `<ul><li>${inline}</li><li>${this.#inline()}</li></ul>`,
      `<ol><li>${inline}</li></ol>`,
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
  maxLength: 60
})

describe("HTML that becomes Markdown and HTML again", () => {
  it.prop(
    "says the same",
    { numbers: tape },
    ({ numbers }) => {
      const page = new Pages(numbers).page()
      expect(wordsOf(back(page)), page).toBe(wordsOf(page))
    },
    { arbitrary: { runs: 500, size: 60 } }
  )
})
