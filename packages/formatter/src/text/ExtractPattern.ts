import type { Matcher } from "re2js"
import * as Characters from "@tidegate/model/Characters"
import { mapped, option, select, text } from "../engine/Fields.ts"
import { array, bool, int, nullable, object, operation, type Output } from "../engine/Operation.ts"
import { apartFrom, patternField, patternLimits, patternOptions, searchIn } from "./Patterns.ts"
import { whichOf } from "./Search.ts"

const maxMatches = 1000

const none = { matched: false, start: null, end: null, groups: {}, named: {} } as const

/** A match, with its positions in UTF-16 units. */
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

/**
 * Converts the positions of matches to characters. Matches must come in the order of the text: each part of it is counted once, however many
 * matches there are.
 */
const countedIn = (input: string): ((found: Found) => Output) => {
  let units = 0
  let characters = 0
  return ({ end, groups, named, start }) => {
    const from = characters + Characters.count(input.slice(units, start))
    const to = from + Characters.count(input.slice(start, end))
    units = end
    characters = to
    return { matched: true, start: from, end: to, groups, named }
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
  warnings: ["NO_MATCH", "OUTPUT_CAPPED"],
  errors: ["FORMATTER_PATTERN_INVALID"],
  limits: { ...patternLimits, matches: maxMatches },
  cost: { character: 100, apart: apartFrom },
  sample: {
    inputs: { input: "Order A-17", pattern: "([A-Z])-(?P<number>\\d+)" },
    options: {},
    output: { matched: true, start: 6, end: 10, groups: { "0": "A-17", "1": "A", "2": "17" }, named: { number: "17" } }
  },
  run: function* ({ input, pattern, which, ...flags }, call) {
    const { find, matcher, names } = yield* searchIn(pattern, flags, input, call)
    const matchOf = countedIn(input)
    let found: Found | null = null
    const matches: Array<Output> = []
    while (yield* find()) {
      if (matches.length === maxMatches) {
        call.warn("OUTPUT_CAPPED", `the first ${maxMatches} are given`, "input")
        break
      }
      found = foundBy(matcher, names)
      if (which === "first") break
      call.spend(2)
      if (which === "all") matches.push(matchOf(found))
    }
    if (found === null) {
      call.warn("NO_MATCH", "the pattern was not found", "input")
      return which === "all" ? { ...none, matches } : none
    }
    return which === "all" ? { ...matches[0]!, matches } : matchOf(found)
  }
})
