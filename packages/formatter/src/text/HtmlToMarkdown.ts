import type Turndown from "turndown"
import { tooMuch } from "../engine/Fault.ts"
import { mapped, option, select, text } from "../engine/Fields.ts"
import { htmlparser, turndown } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"
import { escapeHtml, maxNesting, readHtml, safeScheme } from "./Html.ts"
import { markdownAddress, markdownText, markdownTitle } from "./MarkdownText.ts"

/** The used part of an element in the converter's document; the browser's types are not available. */
interface Attributed {
  readonly getAttribute: (name: string) => string | null
}

/** A node next to an element in that document. */
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

/** The text directly next to an element; other elements begin with marks of their own. */
const textBeside = (node: Neighbour | null): string => (node?.nodeType === 3 ? (node.data ?? "") : "")

/** The language in the CSS classes of a code element: `language-js` or `lang-js`, as syntax highlighters write them. */
const languageIn = (classes: string | undefined): string | null =>
  /(?:^|\s)lang(?:uage)?-([\w+#.-]{1,30})(?=\s|$)/.exec((classes ?? "").slice(0, 500))?.[1] ?? null

const converters = new Map<string, Turndown>()

const converter = (headingStyle: "atx" | "setext", bulletListMarker: "-" | "*" | "+"): Turndown => {
  const key = headingStyle + bulletListMarker
  const kept = converters.get(key)
  if (kept !== undefined) return kept
  const made = new (turndown())({ headingStyle, bulletListMarker, codeBlockStyle: "fenced" })
  // Called for text outside of code; in code a backslash would be visible.
  made.escape = markdownText
  // The converter's own rule does not escape the alternative text.
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
  // Within a word, Markdown treats underscores as letters: there, and next to another emphasis, asterisks are required.
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

/** Elements without an end tag. */
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

/** Elements that Markdown can express; of others only the text is kept. */
const known = new Set(
  "a b blockquote br code del div em h1 h2 h3 h4 h5 h6 hr i img li ol p pre strong ul table tr td th section article".split(
    " "
  )
)

/** Elements that are dropped if they are empty. */
const dropped = new Set(["b", "div", "em", "i", "p", "strong", "section", "article"])

/** Maximum nesting for the converter, whose time grows with the square of it. */
const maxLevels = 24

/** Maximum number of elements in one piece for the converter. */
const maxElements = 500

/**
 * Characters and elements after which a piece ends: the converter's time grows with the square of the elements, but each piece also costs some
 * time.
 */
const enough = 2048
const enoughElements = 48

/** Elements that separate the text before and after them. Outside of all kept elements only their text is kept. */
const apart = new Set(
  "address article aside body center dd details div dl dt fieldset figcaption figure footer form header html main nav section summary table tbody td tfoot th thead tr".split(
    " "
  )
)

/** Block elements, which separate the text before and after them. */
const blocks = new Set("blockquote h1 h2 h3 h4 h5 h6 hr li ol p pre ul".split(" "))

/** Maximum adjacent white space characters: the converter's time grows with the square of them. */
const maxSpace = 200

/** HTML that is converted separately, and the text that precedes it in the Markdown. */
interface Piece {
  readonly html: string
  readonly before: string
  /** The converter's time in microseconds. */
  readonly cost: number
}

/** Collects HTML and divides it into pieces. */
class Growing {
  readonly pieces: Array<Piece> = []
  readonly #tags: Array<string> = []
  /** Index at which text outside of blocks begins. */
  #loose = 0
  #elements = 0
  #deepest = 0
  #length = 0
  #before = ""
  /** The tag with which the piece begins once it has content: the list or quotation that continues. */
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

  /** Removes the tag of an empty element: for each such element the converter would search the whole document. */
  takeBack(tag: string): boolean {
    if (this.#tags.at(-1) !== tag) return false
    this.#tags.pop()
    return true
  }

  get isLong(): boolean {
    return this.#length > enough || this.#elements > enoughElements
  }

  /** Closes a list or quotation; if it was already closed in the previous piece, nothing is written. */
  close(tag: string): void {
    if (this.#again === "") this.add(tag)
    else this.end()
  }

  /** Separates the following content. `isBlock`: the preceding content is a block already. */
  part(isBlock: boolean): void {
    if (!isBlock && this.#tags.slice(this.#loose).some((tag) => tag.trim() !== "")) {
      this.#tags.splice(this.#loose, 0, "<div>")
      this.#tags.push("</div>")
      this.#elements++
    }
    this.#loose = this.#tags.length
    if (this.isLong) this.end()
  }

  /** Ends the piece; the next one begins with `again`, and `before` precedes it in the Markdown. */
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
 * Converts HTML to well-nested HTML of elements that Markdown can express, in pieces. (A browser's parser may create a thousand elements from
 * ten characters of invalid HTML.) `unsafe` is called for links that are dropped.
 */
function* tidied(
  html: string,
  unsafe: () => void,
  spend: (micros: number) => void
): Generator<void, ReadonlyArray<Piece>, void> {
  const growing = new Growing()
  /** The name of each open element; null if it is not kept. */
  const open: Array<string | null> = []
  /** The kept ones of these. */
  const kept: Array<string> = []
  /** The number of the next item in the outermost list, and whether the last item contains blocks. */
  let number = 0
  let hasBlocks = false
  /** The language of the code block; null if it is unknown. */
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
      // A list or quotation may continue in the next piece, after an item or a paragraph.
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
