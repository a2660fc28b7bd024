import { patternCost } from "@tidegate/model/PatternCost"
import type { RE2JS } from "re2js"
import { isLonger } from "../engine/Characters.ts"
import { Fault, tooMuch } from "../engine/Fault.ts"
import { flag, judged, option, pattern } from "../engine/Fields.ts"
import { re2 } from "../engine/Libraries.ts"
import { memo } from "../engine/Memo.ts"
import type { Call } from "../engine/Operation.ts"

/**
 * Patterns in the syntax of RE2. One search takes time that is linear in the text, by the size of the pattern's program; many searches can each
 * look at all that is left, and are stopped by the caller's clock.
 */

export const patternLimits = { pattern: 512, subject_bytes: 65_536, program_steps: 2_000_000 } as const

/** What a pattern may cost to compile: some milliseconds. */
const mostCompiling = 6_000

/** Milliseconds of all searches in one text. */
const searchMillis = 40

/** How a pattern is read. */
export const patternOptions = {
  ignore_case: option(flag("Case does not matter")),
  multi_line: option(flag("^ and $ at every line")),
  dot_all: option(flag(". takes line breaks, too"))
}

export interface PatternFlags {
  readonly ignore_case: boolean
  readonly multi_line: boolean
  readonly dot_all: boolean
}

type Compiled = { readonly pattern: RE2JS; readonly fault: null } | { readonly pattern: null; readonly fault: string }

const compiled = memo(200, (key: string): Compiled => {
  const { RE2JS } = re2()
  const flags =
    (key[0] === "i" ? RE2JS.CASE_INSENSITIVE : 0) |
    (key[1] === "m" ? RE2JS.MULTILINE : 0) |
    (key[2] === "s" ? RE2JS.DOTALL : 0)
  try {
    return { pattern: RE2JS.compile(key.slice(3), flags), fault: null }
  } catch {
    return { pattern: null, fault: "the pattern is not one of RE2 (which has no look-around and no back-references)" }
  }
})

/** The program of a pattern; `flags` are a letter each. */
const programOf = (flags: string, pattern: string): RE2JS => {
  const cost = patternCost(pattern, flags.startsWith("i"))
  if (cost > mostCompiling) {
    throw new Fault("FORMATTER_LIMIT_EXCEEDED", "the pattern takes too long to compile", {
      field: "pattern",
      limit: mostCompiling,
      actual: Math.ceil(cost)
    })
  }
  const { fault, pattern: program } = compiled(flags + pattern)
  if (program === null) throw new Fault("FORMATTER_PATTERN_INVALID", fault, { field: "pattern" })
  return program
}

export const patternField = judged(pattern("Pattern"), (text) => {
  if (!isLonger(text, patternLimits.pattern)) programOf("---", text)
})

/** A search in a text. */
export const searchIn = (pattern: string, flags: PatternFlags, input: string, call: Call) => {
  if (input.length * 3 > patternLimits.subject_bytes) {
    const actual = Buffer.byteLength(input)
    if (actual > patternLimits.subject_bytes)
      throw tooMuch("the text is too long for a pattern", patternLimits.subject_bytes, actual, "input")
  }
  const { dot_all, ignore_case, multi_line } = flags
  const program = programOf(`${ignore_case ? "i" : "-"}${multi_line ? "m" : "-"}${dot_all ? "s" : "-"}`, pattern)
  const steps = program.programSize() * (input.length + 1)
  if (steps > patternLimits.program_steps) {
    throw new Fault("FORMATTER_LIMIT_EXCEEDED", "the pattern is too large for a text of this length", {
      field: "pattern",
      limit: patternLimits.program_steps,
      actual: steps
    })
  }
  call.spend(20 + steps / 100)
  const matcher = program.matcher(input)
  const end = call.clock() + searchMillis
  return {
    matcher,
    find: (): boolean => {
      if (call.clock() > end) {
        throw new Fault("FORMATTER_TIMEOUT", "the pattern takes too long on this text", {
          field: "pattern",
          limit: searchMillis
        })
      }
      return matcher.find()
    },
    names: Object.keys(program.namedGroups())
  }
}
