import { isUpTo } from "@tidegate/model/Characters"
import { bytesOfProgram } from "@tidegate/runtime/HeldBytes"
import { patternCost } from "@tidegate/runtime/PatternCost"
import type { Matcher, RE2JS } from "re2js"
import { Fault, tooMuch } from "../engine/Fault.ts"
import { flag, judged, option, pattern } from "../engine/Fields.ts"
import { re2 } from "../engine/Libraries.ts"
import { limits } from "../engine/Limits.ts"
import { memo } from "../engine/Memo.ts"
import type { Call } from "../engine/Operation.ts"

/**
 * Searches with patterns in RE2 syntax. One search takes time in proportion to the length of the text and the size of the pattern's program,
 * but each of many searches may read all of the remaining text. So searching is resumable, and stops by processor time, which other work on the
 * machine does not affect.
 */

export const patternLimits = {
  pattern: 512,
  subject_bytes: 65_536,
  /** Instructions of the program times characters of the text, for one search. It cannot be interrupted, and takes at most 20 ns for each. */
  program_steps: 10_000_000
} as const

/** Number of characters from which a search runs in a separate thread. */
export const apartFrom = 4096

/** Steps of a search on the event loop. */
const maxStepsOnLoop = 2_000_000

/** Microseconds that are counted at once: less than the limit of an element. */
const spentAtOnce = 30_000

/** Maximum cost of compiling a pattern: a few milliseconds. */
const maxCompiling = 6_000

/** Milliseconds of processor time between two yields; a running search is not interrupted. */
const partMillis = 10

/** The options of a pattern. */
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

const compile = (key: string): Compiled => {
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
}

const compiled = memo(200, compile, (key) => bytesOfProgram(key.slice(3), key[0] === "i"))

/** The compiled pattern; `flags` has one letter for each flag. */
const programOf = (flags: string, pattern: string): RE2JS => {
  const cost = patternCost(pattern, flags.startsWith("i"))
  if (cost > maxCompiling) {
    throw new Fault("FORMATTER_LIMIT_EXCEEDED", "the pattern takes too long to compile", {
      field: "pattern",
      limit: maxCompiling,
      actual: Math.ceil(cost)
    })
  }
  const { fault, pattern: program } = compiled(flags + pattern)
  if (program === null) throw new Fault("FORMATTER_PATTERN_INVALID", fault, { field: "pattern" })
  return program
}

export const patternField = judged(pattern("Pattern"), (text) => {
  if (isUpTo(text, patternLimits.pattern)) programOf("---", text)
})

interface Search {
  readonly matcher: Matcher
  /** Finds the next match; yields first if enough time has passed. */
  readonly find: () => Generator<void, boolean, void>
  readonly names: ReadonlyArray<string>
}

/** Begins a search in a text. */
export const searchIn = function* (
  pattern: string,
  flags: PatternFlags,
  input: string,
  call: Call
): Generator<void, Search, void> {
  if (input.length * 3 > patternLimits.subject_bytes) {
    const actual = Buffer.byteLength(input)
    if (actual > patternLimits.subject_bytes)
      throw tooMuch("the text is too long for a pattern", patternLimits.subject_bytes, actual, "input")
  }
  const { dot_all, ignore_case, multi_line } = flags
  const program = programOf(`${ignore_case ? "i" : "-"}${multi_line ? "m" : "-"}${dot_all ? "s" : "-"}`, pattern)
  const steps = program.programSize() * (input.length + 1)
  const maxSteps = input.length < apartFrom ? maxStepsOnLoop : patternLimits.program_steps
  if (steps > maxSteps) {
    throw new Fault("FORMATTER_LIMIT_EXCEEDED", "the pattern is too large for a text of this length", {
      field: "pattern",
      limit: maxSteps,
      actual: steps
    })
  }
  for (let micros = 20 + steps / 100; micros > 0; micros -= spentAtOnce) {
    call.spend(Math.min(micros, spentAtOnce))
    if (micros > spentAtOnce) yield
  }
  const matcher = program.matcher(input)
  /** Time used before the last yield, and when the present section began. */
  let taken = 0
  let begun = call.clock()
  return {
    matcher,
    find: function* (this: void): Generator<void, boolean, void> {
      const part = call.clock() - begun
      if (taken + part > limits.cpu_ms) {
        throw new Fault("FORMATTER_TIMEOUT", "the pattern takes too long on this text", {
          field: "pattern",
          limit: limits.cpu_ms
        })
      }
      if (part > partMillis) {
        yield
        taken += part
        begun = call.clock()
      }
      return matcher.find()
    },
    names: Object.keys(program.namedGroups())
  }
}
