import { mapped, option, select, text } from "../engine/Fields.ts"
import { htmlparser } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"
import { maxNesting, readHtml, safeScheme } from "./Html.ts"
import { type Mark, type Marks, withMark } from "./MarkdownItems.ts"
import { type List, MarkdownPage } from "./MarkdownPage.ts"
import { markdownAddress, markdownFence, markdownText, markdownTitle } from "./MarkdownText.ts"

type Attributes = Readonly<Record<string, string>>

/** What an element does where it ends. */
type End = () => void

/** `language-js` and `lang-js` among the classes of code, as highlighters write them. */
const languageIn = (classes: string | undefined): string | null =>
  /(?:^|\s)lang(?:uage)?-([\w+#.-]{1,30})(?=\s|$)/.exec((classes ?? "").slice(0, 500))?.[1] ?? null

/** Elements of which only the text is kept, and that what is before and behind them is apart from. */
const blocks = new Set(
  "address article aside body caption center dd details dir div dl dt fieldset figcaption figure footer form header hgroup html legend main menu nav option p section summary table tbody td tfoot th thead tr".split(
    " "
  )
)

/** A block of preformatted text as it is read. */
class Preformatted {
  language: string | null
  readonly #pieces: Array<string> = []
  #isLineOver = true
  /** Whether nothing was read since the start tag: a line end there is none in HTML. */
  #isFresh = true

  constructor(language: string | null) {
    this.language = language
  }

  text(piece: string): void {
    this.#pieces.push(this.#isFresh ? piece.replace(/^\r?\n/, "") : piece)
    this.#isFresh = false
    this.#isLineOver = piece.endsWith("\n")
  }

  /** An element begins or ends. Blocks have lines of their own. */
  tag(isBlock: boolean): void {
    this.#isFresh = false
    if (isBlock && !this.#isLineOver) this.text("\n")
  }

  /** The last line end is the fence's. */
  get code(): string {
    return this.#pieces.join("").replaceAll(/\r\n?/g, "\n").replace(/\n$/, "")
  }
}

/** Takes the events of a parser for a page. Every element is one step at its start and one at its end, however deep it stands. */
class Reader {
  readonly #page: MarkdownPage
  readonly #bullet: string
  readonly #dropped: () => void
  readonly #ends: Array<End> = []
  #marks: Marks = []
  /** The element whose code is read. */
  #code: object | null = null
  #preformatted: Preformatted | null = null
  /** The list that is read, and in no item of it. */
  #list: List | null = null

  constructor(page: MarkdownPage, bullet: string, dropped: () => void) {
    this.#page = page
    this.#bullet = bullet
    this.#dropped = dropped
  }

  readonly text = (raw: string): void => {
    if (this.#preformatted !== null) this.#preformatted.text(raw)
    else this.#page.inline.text(raw, this.#marks, this.#code)
  }

  readonly open = (name: string, attributes: Attributes): void => {
    this.#ends.push(this.#begin(name, attributes) ?? (() => {}))
  }

  readonly close = (): void => {
    this.#ends.pop()!()
  }

  #begin(name: string, attributes: Attributes): End | null {
    if (this.#preformatted !== null) return this.#withinPreformatted(this.#preformatted, name, attributes)
    const page = this.#page
    switch (name) {
      case "a":
        return this.#link(attributes)
      case "b":
      case "strong":
        return this.#mark("strong", "")
      case "em":
      case "i":
        return this.#mark("em", "")
      case "blockquote":
        return this.#within(null, () => page.quote())
      case "br":
        page.lineBreak()
        return null
      case "code":
        return this.#codeSpan()
      case "h1":
      case "h2":
      case "h3":
      case "h4":
      case "h5":
      case "h6":
        return this.#heading(Number(name.slice(1)))
      case "hr":
        page.end(true)
        // Asterisks would be one rule with the bullet before them.
        page.lines([this.#bullet === "*" && page.beginsItem ? "---" : "* * *"])
        return null
      case "img":
        return this.#image(attributes)
      case "li": {
        const list = this.#list ?? page.list(null, this.#bullet, null)
        return this.#within(null, () => page.item(list))
      }
      case "ol":
        return this.#listOf(/^\d{1,9}$/.test(attributes["start"] ?? "") ? Number(attributes["start"]) : 1)
      case "pre":
        return this.#preformattedBlock(attributes)
      case "ul":
        return this.#listOf(null)
      default:
        if (!blocks.has(name)) return null
        page.end(true)
        return () => page.end(true)
    }
  }

  /** A quotation or an item, which the items within do not belong to. */
  #within(list: List | null, enter: () => void): End {
    const around = this.#list
    enter()
    this.#list = list
    return () => {
      this.#page.leave()
      this.#list = around
    }
  }

  #listOf(number: number | null): End {
    const around = this.#list
    const list = this.#page.list(number, this.#bullet, around)
    this.#list = list
    return () => {
      this.#page.endList(list)
      this.#list = around
    }
  }

  #heading(level: number): End {
    const page = this.#page
    page.end(true)
    const around = page.level
    page.level = level
    return () => {
      page.end(true)
      page.level = around
    }
  }

  #mark(kind: Mark["kind"], target: string): End {
    const around = this.#marks
    this.#marks = withMark(around, { kind, target })
    return () => {
      this.#marks = around
    }
  }

  #codeSpan(): End {
    const around = this.#code
    this.#code ??= {}
    return () => {
      this.#code = around
    }
  }

  /** The address of a link or an image; empty if there is none, or a dangerous one. */
  #address(given: string | undefined): string {
    const address = markdownAddress(given ?? "")
    if (address === "" || safeScheme(given!)) return address
    this.#dropped()
    return ""
  }

  #link({ href, title }: Attributes): End | null {
    const address = this.#address(href)
    if (address === "") return null
    const { inline } = this.#page
    const target = address + markdownTitle(title ?? "")
    const around = this.#marks
    const { read } = inline
    const end = this.#mark("link", target)
    return () => {
      end()
      // Its address is all that there is of it.
      const isEmpty = inline.read === read
      if (isEmpty)
        inline.made(
          `[](${target})`,
          around.filter(({ kind }) => kind !== "link")
        )
    }
  }

  #image({ alt, src, title }: Attributes): null {
    const address = this.#address(src)
    const shown = markdownText((alt ?? "").replaceAll(/\s+/g, " "))
    if (address !== "") this.#page.inline.made(`![${shown}](${address}${markdownTitle(title ?? "")})`, this.#marks)
    return null
  }

  #preformattedBlock({ class: classes, lang }: Attributes): End {
    const page = this.#page
    page.end(true)
    const preformatted = new Preformatted(languageIn(classes) ?? languageIn(`lang-${lang ?? ""}`))
    this.#preformatted = preformatted
    return () => {
      this.#preformatted = null
      const { code } = preformatted
      if (code.trim() !== "") page.lines(markdownFence(code, preformatted.language ?? ""))
    }
  }

  #withinPreformatted(preformatted: Preformatted, name: string, attributes: Attributes): End | null {
    const isBlock = blocks.has(name) || /^(?:blockquote|h[1-6]|hr|li|ol|pre|ul)$/.test(name)
    preformatted.tag(isBlock)
    if (name === "br") preformatted.text("\n")
    if (name === "code") preformatted.language = languageIn(attributes["class"]) ?? preformatted.language
    return () => preformatted.tag(isBlock)
  }
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
  limits: { nesting: maxNesting },
  loads: [htmlparser],
  cost: { call: 10, character: 60, apart: 4096 },
  sample: { inputs: { input: "<h1>Hello <em>you</em></h1>" }, options: {}, output: { result: "# Hello _you_" } },
  run: function* ({ bullet, heading_style, input }, call) {
    let unsafe = false
    const page = new MarkdownPage(heading_style === "setext")
    const reader = new Reader(page, bullet, () => {
      unsafe = true
    })
    const reading = readHtml(input, reader, call.spend, 0.3)
    while (reading.next().done !== true) {
      yield* page.write(call.spend)
      yield
    }
    page.end(false)
    yield* page.write(call.spend)
    if (unsafe) call.warn("LINK_SCHEME_REMOVED", "a link with a dangerous scheme was dropped", "input")
    return { result: page.markdown }
  }
})
