import { flag, mapped, option, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { maxNesting, readHtml } from "./Html.ts"

/** Elements that end a line. */
const blocks = new Set(
  "address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul".split(
    " "
  )
)

export const stripHtml = operation({
  key: "text.strip_html",
  label: "Remove HTML tags",
  description: "The text of HTML",
  fields: {
    input: mapped(text("HTML", { required: true, long: true })),
    keep_line_breaks: option(flag("Keep line breaks", false, "Paragraphs and <br> become line breaks"))
  },
  lines: "map",
  output: { result: string },
  limits: { nesting: maxNesting },
  cost: { call: 10, character: 60, apart: 8192 },
  sample: { inputs: { input: "<p>Ada &amp; Co</p>" }, options: {}, output: { result: "Ada & Co" } },
  run: function* ({ input, keep_line_breaks }, call) {
    // Pieces are joined at the end: reading a string while it grows would copy it each time.
    const pieces: Array<string> = []
    let atLine = true
    const add = (piece: string): void => {
      if (piece === "") return
      pieces.push(piece)
      atLine = piece.endsWith("\n")
    }
    const breakLine = (name: string): void => {
      if (keep_line_breaks && blocks.has(name) && !atLine) add("\n")
    }
    const listener = {
      text: add,
      open: (name: string) => {
        if (name === "br" && keep_line_breaks) add("\n")
        else breakLine(name)
      },
      close: (name: string) => {
        if (name !== "br") breakLine(name)
      }
    }
    yield* readHtml(input, listener, call.spend, 0.3)
    const result = pieces.join("")
    if (!keep_line_breaks) return { result }
    let end = result.length
    while (result[end - 1] === "\n") end--
    return { result: result.slice(0, end) }
  }
})
