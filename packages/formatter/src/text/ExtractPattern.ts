import type { Matcher } from "re2js"
import * as Characters from "@tidegate/model/Characters"
import { mapped, option, select, text } from "../engine/Fields.ts"
import { array, bool, int, nullable, object, operation, type Output } from "../engine/Operation.ts"
import { patternField, patternLimits, patternOptions, searchIn } from "./Patterns.ts"
import { whichOf } from "./Search.ts"

const mostMatches = 1000

const none = { matched: false, start: null, end: null, groups: {}, named: {} } as const

/** A match as it is found: counting its places in characters takes as long as the text is, and is done for those that are given. */
interface Found {
  readonly start: number
  readonly end: number
  readonly groups: Output
  readonly named: Output
}

const foundBy = (matcher: Matcher, names: ReadonlyArray<string>): Found => {
  const groups: Record<string, string | null> = {}
  for (let at = 0; at <= matcher.groupCount(); at++) groups[at] = matcher.group(at)
  const named = Object.fromEntries(names.map((name) => [name, matcher.group(name)]))
  return { start: matcher.start(), end: matcher.end(), groups, named }
}

const matchOf = (input: string, { end, groups, named, start }: Found): Output => {
  const from = Characters.count(input.slice(0, start))
  return { matched: true, start: from, end: from + Characters.count(input.slice(start, end)), groups, named }
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
  warnings: ["NO_MATCH", "OUTPUT_CAPPED"],
  errors: ["FORMATTER_PATTERN_INVALID"],
  limits: { ...patternLimits, matches: mostMatches },
  cost: { character: 100, apart: 4096 },
  sample: {
    inputs: { input: "Order A-17", pattern: "([A-Z])-(?P<number>\\d+)" },
    options: {},
    output: { matched: true, start: 6, end: 10, groups: { "0": "A-17", "1": "A", "2": "17" }, named: { number: "17" } }
  },
  run: function* ({ input, pattern, which, ...flags }, call) {
    const { find, matcher, names } = searchIn(pattern, flags, input, call)
    let found: Found | null = null
    const matches: Array<Output> = []
    while (yield* find()) {
      if (matches.length === mostMatches) {
        call.warn("OUTPUT_CAPPED", `the first ${mostMatches} are given`, "input")
        break
      }
      found = foundBy(matcher, names)
      if (which === "first") break
      call.spend(which === "last" ? 2 : 2 + input.length / 500)
      if (which === "all") matches.push(matchOf(input, found))
    }
    if (found === null) {
      call.warn("NO_MATCH", "the pattern was not found", "input")
      return which === "all" ? { ...none, matches } : none
    }
    return which === "all" ? { ...matches[0]!, matches } : matchOf(input, found)
  }
})
