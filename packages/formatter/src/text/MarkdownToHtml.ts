import type { MarkdownIt } from "markdown-it"
import { tooMuch } from "../engine/Fault.ts"
import { flag, mapped, option, text } from "../engine/Fields.ts"
import { markdownIt, refusingFirst } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"
import { maxNesting, safeScheme } from "./Html.ts"
import { piecesOf } from "./MarkdownBlocks.ts"

/** Maximum number of marks in a piece that cannot be divided at an empty line: marks determine the library's time. */
const maxMarks = 8192

let dropped = false

const renderer = (breaks: boolean, links: boolean): MarkdownIt => {
  const renderer = new (markdownIt())({ html: false, breaks, linkify: links, maxNesting: maxNesting })
  refusingFirst(renderer.linkify)
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
  limits: { marks: maxMarks, nesting: maxNesting },
  cost: { call: 20, character: 60, apart: 2048 },
  sample: {
    inputs: { input: "# Hello *you*" },
    options: {},
    output: { result: "<h1>Hello <em>you</em></h1>\n" }
  },
  run: function* ({ breaks, input, linkify }, call) {
    const deepest = /^(?:[ \t]*(?:>|[-*+]|\d+[.)])){101}/m.exec(input)
    if (deepest !== null) throw tooMuch("blocks are nested too deep", maxNesting, maxNesting + 1, "input")
    const key = `${breaks}${linkify}`
    const kept = renderers.get(key) ?? renderer(breaks, linkify)
    renderers.set(key, kept)
    const [normalize, block, ...inline] = kept.core.ruler.getRules("")
    let unsafe = false
    /** Runs a step of the library and records whether it dropped links. */
    const step = (cost: number, work: () => void): void => {
      call.spend(cost)
      dropped = false
      work()
      unsafe ||= dropped
    }
    // Link definitions apply to the whole document: all blocks are parsed before their inline content.
    const links = {}
    const blocks: Array<{ readonly state: InstanceType<typeof kept.core.State>; readonly cost: number }> = []
    for (const piece of piecesOf(input.replaceAll(/\r\n?/g, "\n"), 4096)) {
      const marks = piece.match(/[^\p{L}\p{N} ,.]/gu)?.length ?? 0
      if (marks > maxMarks) throw tooMuch("a list, a table or another block is too long", maxMarks, marks, "input")
      const state = new kept.core.State(piece, kept, links)
      const plain = (piece.length - marks) / 10
      step(marks * 0.8 + plain, () => {
        normalize!(state)
        block!(state)
      })
      const addresses = linkify ? piece.split("@").length - 1 : 0
      blocks.push({ state, cost: marks * 2.4 + addresses * 12 + plain * (linkify ? 2 : 1) })
      yield
    }
    let result = ""
    for (const { cost, state } of blocks) {
      step(cost, () => {
        for (const rule of inline) rule(state)
        result += kept.renderer.render(state.tokens, kept.options, links)
      })
      yield
    }
    if (unsafe) call.warn("LINK_SCHEME_REMOVED", "a link with a dangerous scheme was dropped", "input")
    return { result }
  }
})
