import { Fault } from "../engine/Fault.ts"
import { mapped, option, select, symbols, text } from "../engine/Fields.ts"
import { limits } from "../engine/Limits.ts"
import { operation, string } from "../engine/Operation.ts"
import { apartFrom, patternField, patternLimits, patternOptions, searchIn } from "./Patterns.ts"

/** `$1`, `${name}`, `$$`; unknown groups are empty. */
const group = /\$(?:(\d{1,2})|\{(\w{1,64})\}|\$)/g

/** The parts of a replacement: texts, and groups by number or name. */
type Piece = { readonly text: string } | { readonly group: number | string }

const piecesOf = (replace: string, groups: number, names: ReadonlyArray<string>): ReadonlyArray<Piece> => {
  const pieces: Array<Piece> = []
  let text = ""
  let from = 0
  for (const { 0: whole, 1: number, 2: name, index } of replace.matchAll(group)) {
    text += replace.slice(from, index)
    from = index + whole.length
    const named = number === undefined ? name : Number(number)
    if (named === undefined) text += whole.slice(1)
    else if (typeof named === "number" ? named <= groups : names.includes(named)) {
      if (text !== "") pieces.push({ text })
      text = ""
      pieces.push({ group: named })
    }
  }
  text += replace.slice(from)
  return text === "" ? pieces : [...pieces, { text }]
}

export const replacePattern = operation({
  key: "text.replace_pattern",
  label: "Replace a pattern",
  description: "Another text in place of what a pattern finds; `$1` and `${name}` are its groups",
  fields: {
    input: mapped(text("Text", { required: true })),
    pattern: patternField,
    replace: symbols("Replace with", { default: "" }),
    ...patternOptions,
    occurrences: option(select("Which", { all: "All", first: "First" }, "all"))
  },
  lines: "map",
  output: { result: string },
  warnings: ["NO_MATCH"],
  errors: ["FORMATTER_PATTERN_INVALID"],
  limits: patternLimits,
  cost: { character: 100, apart: apartFrom },
  sample: {
    inputs: { input: "2026-01-31", pattern: "(\\d+)-(\\d+)-(\\d+)", replace: "$3.$2.$1" },
    options: {},
    output: { result: "31.01.2026" }
  },
  run: function* ({ input, occurrences, pattern, replace, ...flags }, call) {
    const { find, matcher, names } = yield* searchIn(pattern, flags, input, call)
    const pieces = piecesOf(replace, matcher.groupCount(), names)
    let result = ""
    let from = 0
    // Checked before each part is added, because a short text can become very long.
    const add = (piece: string): void => {
      if (result.length + piece.length > limits.output_bytes) {
        throw new Fault("FORMATTER_OUTPUT_TOO_LARGE", "the output is too large", {
          limit: limits.output_bytes,
          actual: result.length + piece.length
        })
      }
      result += piece
    }
    while (yield* find()) {
      call.spend(pieces.length / 20)
      add(input.slice(from, matcher.start()))
      for (const piece of pieces) add("text" in piece ? piece.text : (matcher.group(piece.group) ?? ""))
      from = matcher.end()
      if (occurrences === "first") break
    }
    if (from === 0 && result === "") call.warn("NO_MATCH", "the pattern was not found", "input")
    return { result: result + input.slice(from) }
  }
})
