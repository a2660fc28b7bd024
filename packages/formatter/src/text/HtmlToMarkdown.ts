import type Turndown from "turndown"
import { tooMuch } from "../engine/Fault.ts"
import { mapped, option, select, text } from "../engine/Fields.ts"
import { htmlparser, turndown } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"
import { escapeHtml, mostNesting, readHtml, safeScheme } from "./Html.ts"

const converters = new Map<string, Turndown>()

const converter = (headingStyle: "atx" | "setext", bulletListMarker: "-" | "*" | "+"): Turndown => {
  const key = headingStyle + bulletListMarker
  const kept = converters.get(key) ?? new (turndown())({ headingStyle, bulletListMarker, codeBlockStyle: "fenced" })
  converters.set(key, kept)
  return kept
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
const mostLevels = 24

/** Elements that the converter is given. */
const mostElements = 500

/**
 * HTML that is well nested, of what Markdown can say: a browser's parser may make a thousand elements of ten characters that are not. `unsafe` is called for
 * links that are dropped.
 */
const tidied = (html: string, unsafe: () => void): string => {
  const tidy: Array<string> = []
  const open: Array<boolean> = []
  let levels = 0
  let elements = 0
  // The converter takes the square of line breaks that follow each other: two of them are kept.
  let breaks = 0
  const kept = (piece: string): string => {
    let text = ""
    for (const char of piece) {
      breaks = char === "\n" || char === "\r" ? breaks + 1 : 0
      if (breaks <= 2) text += char
    }
    return text
  }
  readHtml(html, {
    text: (piece) => {
      tidy.push(escapeHtml(kept(piece)))
    },
    open: (name, attributes) => {
      const taken = known.has(name) && (levels < mostLevels || empty.has(name))
      if (!empty.has(name)) {
        open.push(taken)
        if (taken) levels++
      }
      if (!taken) return
      if (++elements > mostElements) throw tooMuch("there are too many elements", mostElements, elements, "input")
      const address = name === "a" ? "href" : name === "img" ? "src" : null
      let shown = ""
      if (address !== null) {
        const target = attributes[address] ?? ""
        if (target !== "" && !safeScheme(target)) unsafe()
        else if (target !== "") shown += ` ${address}="${escapeHtml(target.trim().replaceAll(/\s/g, "%20"))}"`
        if (name === "img") shown += ` alt="${escapeHtml(attributes["alt"] ?? "")}"`
      }
      if (name === "ol" && /^\d{1,9}$/.test(attributes["start"] ?? "")) shown += ` start="${attributes["start"]}"`
      tidy.push(`<${name}${shown}>`)
    },
    close: (name) => {
      if (empty.has(name)) return
      if (open.pop() !== true) return
      levels--
      // The converter looks at all of what there is for each that is empty.
      if (dropped.has(name) && tidy.at(-1) === `<${name}>`) tidy.pop()
      else tidy.push(`</${name}>`)
    }
  })
  return tidy.join("")
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
  limits: { characters: 4096, elements: mostElements, nesting: mostNesting },
  loads: [htmlparser, turndown],
  cost: { call: 100, character: 9000 },
  sample: { inputs: { input: "<h1>Hello <em>you</em></h1>" }, options: {}, output: { result: "# Hello _you_" } },
  run: ({ bullet, heading_style, input }, call) => {
    let unsafe = false
    const tidy = tidied(input, () => {
      unsafe = true
    })
    if (unsafe) call.warn("LINK_SCHEME_REMOVED", "a link with a dangerous scheme was dropped", "input")
    return { result: tidy === "" ? "" : converter(heading_style, bullet).turndown(tidy) }
  }
})
