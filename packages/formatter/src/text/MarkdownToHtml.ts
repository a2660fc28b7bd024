import type { MarkdownIt } from "markdown-it"
import { tooMuch } from "../engine/Fault.ts"
import { flag, mapped, option, text } from "../engine/Fields.ts"
import { markdownIt } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"
import { mostNesting, safeScheme } from "./Html.ts"

let dropped = false

const renderer = (breaks: boolean, links: boolean): MarkdownIt => {
  const renderer = new (markdownIt())({ html: false, breaks, linkify: links, maxNesting: mostNesting })
  renderer.validateLink = (address: string) => {
    const safe = safeScheme(address)
    dropped ||= !safe
    return safe
  }
  return renderer
}

const renderers = new Map<string, MarkdownIt>()

export const markdownToHtml = operation({
  key: "text.markdown_to_html",
  label: "Markdown to HTML",
  description: "CommonMark with tables. HTML within is shown as it is written, and not taken",
  fields: {
    input: mapped(text("Markdown", { required: true, long: true })),
    breaks: option(flag("Every line break counts")),
    linkify: option(flag("Link addresses"))
  },
  lines: "map",
  output: { result: string },
  warnings: ["LINK_SCHEME_REMOVED"],
  // 2 µs a character where all of them are brackets.
  limits: { characters: 12_288, nesting: mostNesting },
  cost: { call: 20, character: 2400 },
  sample: {
    inputs: { input: "# Hello *you*" },
    options: {},
    output: { result: "<h1>Hello <em>you</em></h1>\n" }
  },
  run: ({ breaks, input, linkify }, call) => {
    const deepest = /^(?:[ \t]*(?:>|[-*+]|\d+[.)])){101}/m.exec(input)
    if (deepest !== null) throw tooMuch("blocks are nested too deep", mostNesting, mostNesting + 1, "input")
    const key = `${breaks}${linkify}`
    const kept = renderers.get(key) ?? renderer(breaks, linkify)
    renderers.set(key, kept)
    dropped = false
    const result = kept.render(input)
    if (dropped) call.warn("LINK_SCHEME_REMOVED", "a link with a dangerous scheme was dropped", "input")
    return { result }
  }
})
