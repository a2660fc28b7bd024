import { flag, mapped, option, select, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"

const isSpace = (char: string | undefined): boolean => char !== undefined && /[\s\ufeff\u0085\u180e\u200b]/u.test(char)

export const trim = operation({
  key: "text.trim",
  label: "Trim white space",
  description: "Without the white space at its ends",
  fields: {
    input: mapped(text("Text", { required: true })),
    side: option(select("Side", { both: "Both", start: "Start", end: "End" }, "both")),
    collapse_inner: option(flag("One space within", false, "Runs of white space become one space"))
  },
  lines: "map",
  output: { result: string },
  cost: { character: 100 },
  sample: { inputs: { input: "  a  b " }, options: { collapse_inner: true }, output: { result: "a b" } },
  run: ({ collapse_inner, input, side }) => {
    let start = 0
    let end = input.length
    if (side !== "end") while (start < end && isSpace(input[start])) start++
    if (side !== "start") while (end > start && isSpace(input[end - 1])) end--
    const kept = input.slice(start, end)
    if (!collapse_inner) return { result: kept }
    // What stands at an end that is not trimmed is not within.
    const [head = ""] = /^\s*/u.exec(kept) ?? []
    const body = kept.slice(head.length)
    let tail = body.length
    while (tail > 0 && isSpace(body[tail - 1])) tail--
    return { result: head + body.slice(0, tail).replaceAll(/\s+/gu, " ") + body.slice(tail) }
  }
})
