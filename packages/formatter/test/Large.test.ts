import { createRequire } from "node:module"
import { findPhoneNumbersInText } from "libphonenumber-js/max"
import { describe, expect, it } from "vitest"
import type { Call } from "../src/engine/Operation.ts"
import { phonesIn } from "../src/number/Phones.ts"
import { emailsIn, urlsIn } from "../src/text/Addresses.ts"
import { piecesOf } from "../src/text/MarkdownBlocks.ts"
import { outcomeOf } from "./Run.ts"

/** Texts as long as a text may be, and that what is read in pieces says what it says as a whole. */

const load = createRequire(import.meta.url)
const MarkdownIt = load("markdown-it") as typeof import("markdown-it").default
const { LinkifyIt } = load("linkify-it") as typeof import("linkify-it")

const fill = (piece: string): string => piece.repeat(Math.floor(131_072 / Buffer.byteLength(piece)))

describe("Text of 128 KiB", () => {
  it.each([
    [
      "text.html_to_markdown",
      "<p>Hello <b>you</b>, this is text, and more of it that follows the first.</p>\n",
      "Hello **you**"
    ],
    [
      "text.html_to_markdown",
      "<tr><td>a word</td><td>and another one in a table of a mail</td></tr>",
      "a word\n\nand another"
    ],
    ["text.markdown_to_html", "Hello *you*, this is [text](http://a.com), and more.\n\n", "<p>Hello <em>you</em>"],
    ["text.markdown_to_html", "one paragraph ", "<p>one paragraph one"],
    ["text.strip_html", "<p>Hello <b>you</b></p>\n", "Hello you\n"],
    ["text.extract_phone", "words that follow each other, 12 of them, ", ""],
    ["text.extract_url", "words that follow each other ", ""],
    ["text.extract_email", "words that follow each other ", ""],
    ["text.to_ascii", "Ærøskøbing 中 ", "Aeroskobing Zhong"],
    ["text.slugify", "Ærøskøbing ", "aeroskobing-aeroskobing"]
  ])("Formatter operation %s accepts 128 KiB of %j", (operation, piece, begins) => {
    const result = outcomeOf(operation, { input: fill(piece) }).output?.["result"]
    expect(typeof result === "string" ? result.slice(0, begins.length) : result).toBe(begins)
  })

  it("Last phone number and last URL in a text of 128 KiB are found", () => {
    const input = `${"words that follow each other ".repeat(4000)} +49 30 901820 and www.example.com/a.`
    expect(outcomeOf("text.extract_phone", { input }).output).toEqual({ result: "+49 30 901820" })
    expect(outcomeOf("text.extract_url", { input }, { which: "last" }).output).toEqual({ result: "www.example.com/a" })
  })
})

/** The same numbers in every run. */
const drawing = (seed: number) => {
  let state = seed
  return <A>(from: ReadonlyArray<A>): A => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0
    return from[Math.floor((state / 2 ** 32) * from.length)]!
  }
}
const drawn = (pick: ReturnType<typeof drawing>, from: ReadonlyArray<string>, most: number): string =>
  Array.from({ length: pick(Array.from({ length: most }, (_, at) => at + 1)) }, () => pick(from)).join("")

const spent = { spend: () => {} } as unknown as Call

const drained = <A>(work: Generator<void, A, void>): A => {
  for (;;) {
    const part = work.next()
    if (part.done === true) return part.value
  }
}

describe("Text read in pieces", () => {
  it("Markdown read in pieces gives the same HTML as Markdown read at once", () => {
    const md = new MarkdownIt({ html: false, linkify: true })
    const [normalize, block, ...inline] = md.core.ruler.getRules("")
    const lines =
      "para one|word *em* `c`|[a][ref] and [b]|[ref]: http://x.y|[b]: /u|- item|  continued|    code|1. one|> quote|> ```|```|~~~|~~~~|   ```|  ```|---|===|# head|\\|a|b|\\|-|-|<div>|  ||   - nested|     in nested|a  |*a|b*|`code|x`|http://a.com|\u00a0|\f|```\u00a0|~~~ \t".split(
        "|"
      )
    const pick = drawing(7)
    let split = 0
    for (let at = 0; at < 3000; at++) {
      const text = Array.from({ length: 12 }, () => pick(lines) + pick(["\n", "\n\n", "\n \n"])).join("")
      const links = {}
      const states = piecesOf(text, 1).map((piece) => {
        const state = new md.core.State(piece, md, links)
        normalize!(state)
        block!(state)
        return state
      })
      if (states.length > 1) split++
      const shown = states.map((state) => {
        for (const rule of inline) rule(state)
        return md.renderer.render(state.tokens, md.options, links)
      })
      expect(shown.join(""), text).toBe(md.render(text))
    }
    expect(split).toBeGreaterThan(1000)
  })

  it("Text read in pieces has the same phone numbers as text read at once", () => {
    const pick = drawing(5)
    const words =
      "800-555-1212|(800) 555-1212|+1 800 555 1212| |\n| ext. 12|call|+49 30 901820|1|12/12/2026|. |, |-|030 901820|;ext=5|+|(|words and words and words and more|7|#12|12:30".split(
        "|"
      )
    for (let at = 0; at < 3000; at++) {
      const text = drawn(pick, words, 25)
      const found = drained(phonesIn(text, "DE", () => true, Infinity, spent))
      expect(found.map((one) => one.text)).toEqual(
        findPhoneNumbersInText(text, { defaultCountry: "DE" }).map(({ endsAt, startsAt }) =>
          text.slice(startsAt, endsAt)
        )
      )
    }
  })

  it("Text read in pieces has the same URLs as text read at once", () => {
    const linkify = new LinkifyIt({ fuzzyLink: true })
    const pick = drawing(3)
    const words = "http://a.com|www.b.org/x|example.com| | |\n|(|)|.|,|//|text|>|ftp://x|-|[|]|1.2.3.4".split("|")
    for (let at = 0; at < 60; at++) {
      const text = Array.from({ length: 4000 }, () => pick(words)).join("")
      expect(emailsIn(text)).toEqual([])
      expect(drained(urlsIn(text, spent))).toEqual((linkify.match(text) ?? []).map(({ raw }) => raw))
    }
  })
})
