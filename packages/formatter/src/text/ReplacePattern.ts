import { Fault } from "../engine/Fault.ts"
import { mapped, option, pattern, select, symbols, text } from "../engine/Fields.ts"
import { limits } from "../engine/Limits.ts"
import { operation, string } from "../engine/Operation.ts"
import { patternLimits, patternOptions, searchIn } from "./Patterns.ts"

/** `$1`, `${name}`, `$$`; what names no group is nothing. */
const group = /\$(?:(\d{1,2})|\{(\w{1,64})\}|\$)/g

export const replacePattern = operation({
  key: "text.replace_pattern",
  label: "Replace a pattern",
  description: "Another text in place of what a pattern finds; `$1` and `${name}` are its groups",
  fields: {
    input: mapped(text("Text", { required: true })),
    pattern: pattern("Pattern"),
    replace: symbols("Replace with", { default: "" }),
    ...patternOptions,
    occurrences: option(select("Which", { all: "All", first: "First" }, "all"))
  },
  lines: "map",
  output: { result: string },
  warnings: ["NO_MATCH"],
  errors: ["FORMATTER_PATTERN_INVALID"],
  limits: patternLimits,
  cost: { character: 100 },
  sample: {
    inputs: { input: "2026-01-31", pattern: "(\\d+)-(\\d+)-(\\d+)", replace: "$3.$2.$1" },
    options: {},
    output: { result: "31.01.2026" }
  },
  run: ({ input, occurrences, pattern, replace, ...flags }, call) => {
    const { find, matcher, names } = searchIn(pattern, flags, input, call)
    const groups = matcher.groupCount()
    let result = ""
    let from = 0
    while (find()) {
      const shown = replace.replaceAll(group, (whole, number: string | undefined, name: string | undefined) => {
        if (number !== undefined) return Number(number) <= groups ? (matcher.group(Number(number)) ?? "") : ""
        if (name !== undefined) return names.includes(name) ? (matcher.group(name) ?? "") : ""
        return whole.slice(1)
      })
      result += input.slice(from, matcher.start()) + shown
      from = matcher.end()
      if (result.length > limits.output_bytes) {
        throw new Fault("FORMATTER_OUTPUT_TOO_LARGE", "the output is too large", {
          limit: limits.output_bytes,
          actual: result.length
        })
      }
      if (occurrences === "first") break
    }
    if (from === 0 && result === "") call.warn("NO_MATCH", "the pattern was not found", "input")
    return { result: result + input.slice(from) }
  }
})
