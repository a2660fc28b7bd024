import type { Call, Output } from "../engine/Operation.ts"

export const maxMatches = 1000

/** Returns the first, the last, or all matches; without a match an empty text and a warning. */
export const chosen = (found: ReadonlyArray<string | number>, which: "first" | "last" | "all", call: Call): Output => {
  if (found.length === 0) call.warn("NO_MATCH", "nothing was found", "input")
  if (which !== "all") return { result: found.at(which === "first" ? 0 : -1) ?? "" }
  if (found.length > maxMatches) call.warn("OUTPUT_CAPPED", `the first ${maxMatches} are given`, "input")
  return { result: found.slice(0, maxMatches) }
}
