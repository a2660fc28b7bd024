import type Turndown from "turndown"
import { tooMuch } from "../engine/Fault.ts"
import { mapped, option, select, text } from "../engine/Fields.ts"
import { htmlparser, turndown } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"
import { escapeHtml, maxNesting, readHtml, safeScheme } from "./Html.ts"
import { markdownAddress, markdownText, markdownTitle } from "./MarkdownText.ts"

/** What is asked of an element of the converter's document: the types of a browser are not there. */
interface Attributed {
  readonly getAttribute: (name: string) => string | null
}

/** A node of it among its neighbours. */
interface Neighbour {
  readonly nodeName: string
  readonly nodeType: number
  readonly data?: string
}

interface Beside {
  readonly nextSibling: Neighbour | null
  readonly previousSibling: Neighbour | null
}

const isEmphasis = (node: Neighbour | null): boolean =>
  node !== null && (node.nodeName === "EM" || node.nodeName === "I")

/** The text that stands directly beside an element; that of another element begins with marks of its own. */
const textBeside = (node: Neighbour | null): string => (node?.nodeType === 3 ? (node.data ?? "") : "")

/** `language-js` and `lang-js` among the classes of code, as highlighters write them. */
const languageIn = (classes: string | undefined): string | null =>
  /(?:^|\s)lang(?:uage)?-([\w+#.-]{1,30})(?=\s|$)/.exec((classes ?? "").slice(0, 500))?.[1] ?? null

const converters = new Map<string, Turndown>()

const converter = (headingStyle: "atx" | "setext", bulletListMarker: "-" | "*" | "+"): Turndown => {
  const key = headingStyle + bulletListMarker
  const kept = converters.get(key)
  if (kept !== undefined) return kept
  const made = new (turndown())({ headingStyle, bulletListMarker, codeBlockStyle: "fenced" })
  // It is asked of what stands in no code, where a backslash would be shown.
  made.escape = markdownText
  // The converter's own rule does not ask it.
  made.addRule("image", {
    filter: "img",
    replacement: (_, node) => {
      const [alt, src] = ["alt", "src"].map((name) => (node as Attributed).getAttribute(name) ?? "")
      const address = src!.replaceAll(/[<>()]/g, "\\$&")
      const title = (node as Attributed).getAttribute("title") ?? ""
      const shown = title === "" ? "" : ` "${title.replaceAll('"', '\\"')}"`
      return address === "" ? "" : `![${markdownText(alt!.replaceAll(/\s+/g, " "))}](${address}${shown})`
    }
  })
  // Underscores within a word are letters to Markdown: there, and beside another emphasis, asterisks are what marks it.
  made.addRule("emphasis", {
    filter: ["em", "i"],
    replacement: (content, node) => {
      if (content.trim() === "") return ""
      const { nextSibling, previousSibling } = node as unknown as Beside
      const isWithin =
        isEmphasis(previousSibling) ||
        /[\p{L}\p{N}_]$/u.test(textBeside(previousSibling)) ||
        /^[\p{L}\p{N}_]/u.test(textBeside(nextSibling))
      const mark = isWithin ? "*" : "_"
      return mark + content + mark
    }
  })
  converters.set(key, made)
  return made
}

/** Elements that have no end. */
const empty = new Set([
  "area",
  "base",
  "br",
  "col",
  "embed",
  "hr",
  "img",
  "input",
  "link",
  "meta",
  "source",
  "track",
  "wbr"
])

/** What Markdown can say; of others only the text is kept. */
const known = new Set(
  "a b blockquote br code del div em h1 h2 h3 h4 h5 h6 hr i img li ol p pre strong ul table tr td th section article".split(
    " "
  )
)

/** Elements that are nothing without what is in them. */
const dropped = new Set(["b", "div", "em", "i", "p", "strong", "section", "article"])

/** Levels of elements that the converter is given: it takes the square of them. */
const maxLevels = 24

/** Elements of one piece that the converter is given. */
const maxElements = 500

/** Characters, and elements, that are enough for a piece: the converter takes the square of elements, and some time for each piece. */
const enough = 2048
const enoughElements = 48

/** Elements of which only the text is kept where they stand in none, and that what is before and behind them is apart from. */
const apart = new Set(
  "address article aside body center dd details div dl dt fieldset figcaption figure footer form header html main nav section summary table tbody td tfoot th thead tr".split(
    " "
  )
)

/** Elements that what is before and behind them is apart from. */
const blocks = new Set("blockquote h1 h2 h3 h4 h5 h6 hr li ol p pre ul".split(" "))

/** Characters of white space beside each other: the converter takes the square of more. */
const maxSpace = 200

/** HTML that is converted by itself, and what stands before it in the Markdown. */
interface Piece {
  readonly html: string
  readonly before: string
  /** Microseconds that the converter takes. */
  readonly cost: number
}

/** HTML as it grows, piece by piece. */
class Growing {
  readonly pieces: Array<Piece> = []
  readonly #tags: Array<string> = []
  /** Where text begins that stands in no block. */
  #loose = 0
  #elements = 0
  #deepest = 0
  #length = 0
  #before = ""
  /** What the piece begins with, as soon as there is something in it: the list or quotation that goes on. */
  #again = ""

  add(html: string): void {
    if (this.#again !== "" && html.trim() !== "") {
      this.#tags.push(this.#again)
      this.#again = ""
    }
    this.#tags.push(html)
    this.#length += html.length
  }

  element(tag: string, depth: number): void {
    if (++this.#elements > maxElements)
      throw tooMuch("there are too many elements in one", maxElements, this.#elements, "input")
    this.#deepest = Math.max(this.#deepest, depth)
    this.add(tag)
  }

  /** Takes back the tag of an element that has nothing in it: the converter looks at all of what there is for each. */
  takeBack(tag: string): boolean {
    if (this.#tags.at(-1) !== tag) return false
    this.#tags.pop()
    return true
  }

  get isLong(): boolean {
    return this.#length > enough || this.#elements > enoughElements
  }

  /** The list or quotation has its end: where it had one in the piece before, there is nothing to close. */
  close(tag: string): void {
    if (this.#again === "") this.add(tag)
    else this.end()
  }

  /** What comes is apart from what there is. `isBlock`: that is a block already. */
  part(isBlock: boolean): void {
    if (!isBlock && this.#tags.slice(this.#loose).some((tag) => tag.trim() !== "")) {
      this.#tags.splice(this.#loose, 0, "<div>")
      this.#tags.push("</div>")
      this.#elements++
    }
    this.#loose = this.#tags.length
    if (this.isLong) this.end()
  }

  /** Ends the piece; the next one begins with `again`, and stands behind `before`. */
  end(before = "\n\n", again = ""): void {
    const html = this.#tags.join("")
    if (html.trim() !== "") {
      const escapes = html.split("&").length - 1
      const length = html.length + escapes * 6
      const cost = 60 + this.#elements * (6 + this.#elements / 10) + (length * (2 + this.#deepest)) / 20
      this.pieces.push({ html, before: this.#before, cost })
    }
    this.#tags.length = 0
    this.#loose = 0
    this.#elements = 0
    this.#deepest = 0
    this.#length = 0
    this.#before = before
    this.#again = again
  }
}

/**
 * HTML that is well nested, of what Markdown can say, in pieces: a browser's parser may make a thousand elements of ten characters that are not.
 * `unsafe` is called for links that are dropped.
 */
function* tidied(
  html: string,
  unsafe: () => void,
  spend: (micros: number) => void
): Generator<void, ReadonlyArray<Piece>, void> {
  const growing = new Growing()
  /** Of each element that is open, its name where it is kept. */
  const open: Array<string | null> = []
  /** Those of them that are kept. */
  const kept: Array<string> = []
  /** The number of the next item of the list that stands in nothing, and whether the one before has blocks in it. */
  let number = 0
  let hasBlocks = false
  /** What the code of the block is written in, where the block says so. */
  let language: string | null = null
  let spaces = 0
  const bounded = (piece: string): string =>
    piece.replaceAll(/\s+|\S+/g, (run) => {
      if (run.trim() !== "") {
        spaces = 0
        return run
      }
      const taken = run.slice(0, maxSpace - spaces)
      spaces += taken.length
      return taken
    })
  const listener = {
    text: (piece: string) => {
      growing.add(escapeHtml(bounded(piece)))
    },
    open: (name: string, attributes: Readonly<Record<string, string>>) => {
      const isOuter = kept.length === 0
      if (isOuter && (apart.has(name) || blocks.has(name))) growing.part(false)
      if (apart.has(name) || blocks.has(name)) hasBlocks ||= name !== "li"
      const taken = known.has(name) && !(isOuter && apart.has(name)) && (kept.length < maxLevels || empty.has(name))
      if (!empty.has(name)) {
        open.push(taken ? name : null)
        if (taken) kept.push(name)
      }
      if (!taken) return
      const address = name === "a" ? "href" : name === "img" ? "src" : null
      let shown = ""
      if (address !== null) {
        const target = attributes[address] ?? ""
        if (target !== "" && !safeScheme(target)) unsafe()
        else if (target !== "") shown += ` ${address}="${escapeHtml(markdownAddress(target))}"`
        if (name === "img") shown += ` alt="${escapeHtml(attributes["alt"] ?? "")}"`
        const title = markdownTitle(attributes["title"] ?? "")
        if (title !== "") shown += ` title="${escapeHtml(title)}"`
      }
      if (name === "pre") language = languageIn(attributes["class"]) ?? languageIn(`lang-${attributes["lang"] ?? ""}`)
      if (name === "code" && kept.at(-2) === "pre") {
        const own = languageIn(attributes["class"]) ?? language
        if (own !== null) shown += ` class="language-${own}"`
      }
      const start = name === "ol" && /^\d{1,9}$/.test(attributes["start"] ?? "") ? attributes["start"]! : null
      if (start !== null) shown += ` start="${start}"`
      if (isOuter && name === "ol") number = Number(start ?? 1)
      if (kept.length === 2 && name === "li") hasBlocks = false
      growing.element(`<${name}${shown}>`, kept.length)
      if (isOuter && name === "hr") growing.part(true)
    },
    close: (name: string) => {
      if (empty.has(name)) return
      if (open.pop() === null) {
        if (kept.length === 0 && apart.has(name)) growing.part(false)
        return
      }
      kept.pop()
      const isGone = dropped.has(name) && growing.takeBack(`<${name}>`)
      if (!isGone) growing.close(`</${name}>`)
      const [outer] = kept
      if (outer === undefined && blocks.has(name)) growing.part(true)
      if (kept.length !== 1) return
      // A list or a quotation goes on in another piece, behind an item or a paragraph.
      const isItem = name === "li" && (outer === "ol" || outer === "ul")
      if (isItem && outer === "ol") number++
      if (!growing.isLong) return
      if (isItem) {
        growing.add(`</${outer}>`)
        growing.end(hasBlocks ? "\n\n" : "\n", outer === "ol" ? `<ol start="${number}">` : "<ul>")
      } else if (outer === "blockquote" && (apart.has(name) || blocks.has(name))) {
        growing.add("</blockquote>")
        growing.end("\n> \n", "<blockquote>")
      }
    }
  }
  yield* readHtml(html, listener, spend, 0.3)
  growing.part(false)
  growing.end()
  return growing.pieces
}

export const htmlToMarkdown = operation({
  key: "text.html_to_markdown",
  label: "HTML to Markdown",
  description: "What Markdown can say of HTML; of the rest, the text",
  fields: {
    input: mapped(text("HTML", { required: true, long: true })),
    heading_style: option(select("Headings", { atx: "# Heading", setext: "Underlined" }, "atx")),
    bullet: option(select("Bullets", { "-": "-", "*": "*", "+": "+" }, "-"))
  },
  lines: "map",
  output: { result: string },
  warnings: ["LINK_SCHEME_REMOVED"],
  limits: { elements: maxElements, nesting: maxNesting },
  loads: [htmlparser, turndown],
  cost: { call: 100, character: 60, apart: 2048 },
  sample: { inputs: { input: "<h1>Hello <em>you</em></h1>" }, options: {}, output: { result: "# Hello _you_" } },
  run: function* ({ bullet, heading_style, input }, call) {
    let unsafe = false
    const dropLink = (): void => {
      unsafe = true
    }
    const pieces = yield* tidied(input, dropLink, call.spend)
    if (unsafe) call.warn("LINK_SCHEME_REMOVED", "a link with a dangerous scheme was dropped", "input")
    let result = ""
    for (const { before, cost, html } of pieces) {
      yield
      call.spend(cost)
      const markdown = converter(heading_style, bullet).turndown(html)
      if (markdown !== "") result += result === "" ? markdown : before + markdown
    }
    return { result }
  }
})
