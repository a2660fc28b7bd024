import type { Matcher } from "re2js"
import { mapped, option, select, text } from "../engine/Fields.ts"
import { array, bool, int, nullable, object, operation, type Output } from "../engine/Operation.ts"
import { patternField, patternLimits, patternOptions, searchIn } from "./Patterns.ts"
import { lengthOf, whichOf } from "./Search.ts"

const mostMatches = 1000

const none = { matched: false, start: null, end: null, groups: {}, named: {} } as const

/** A match, with its places counted in characters. */
const matchOf = (input: string, matcher: Matcher, names: ReadonlyArray<string>): Output => {
  const groups: Record<string, string | null> = {}
  for (let at = 0; at <= matcher.groupCount(); at++) groups[at] = matcher.group(at)
  const start = lengthOf(input.slice(0, matcher.start()))
  return {
    matched: true,
    start,
    end: start + lengthOf(input.slice(matcher.start(), matcher.end())),
    groups,
    named: Object.fromEntries(names.map((name) => [name, matcher.group(name)]))
  }
}

export const extractPattern = operation({
  key: "text.extract_pattern",
  label: "Extract a pattern",
  description: "What a pattern finds, with its groups: `0` is all of it",
  fields: {
    input: mapped(text("Text", { required: true, long: true })),
    pattern: patternField,
    ...patternOptions,
    which: option(select("Which", whichOf, "first"))
  },
  lines: "map",
  linesFor: ({ which }) => (which === "all" ? "reject" : "map"),
  output: {
    matched: bool,
    start: nullable(int),
    end: nullable(int),
    groups: object,
    named: object,
    matches: array(object)
  },
  optional: ["matches"],
  empty: none,
  warnings: ["NO_MATCH"],
  errors: ["FORMATTER_PATTERN_INVALID"],
  limits: { ...patternLimits, matches: mostMatches },
  cost: { character: 100 },
  sample: {
    inputs: { input: "Order A-17", pattern: "([A-Z])-(?P<number>\\d+)" },
    options: {},
    output: { matched: true, start: 6, end: 10, groups: { "0": "A-17", "1": "A", "2": "17" }, named: { number: "17" } }
  },
  run: ({ input, pattern, which, ...flags }, call) => {
    const { find, matcher, names } = searchIn(pattern, flags, input, call)
    let found: Output | null = null
    const matches: Array<Output> = []
    let count = 0
    while (count < mostMatches && find()) {
      count++
      // The last is known when there is none after it: those before need no reading twice.
      if (which !== "first") call.spend(2 + input.length / 500)
      found = matchOf(input, matcher, names)
      if (which === "first") break
      if (which === "all") matches.push(found)
    }
    if (found === null) call.warn("NO_MATCH", "the pattern was not found", "input")
    return which === "all" ? { ...(matches[0] ?? none), matches } : (found ?? none)
  }
})
