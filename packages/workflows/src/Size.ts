import { visitJson } from "@tidegate/json/VisitJson"
import { idOf, type Issues } from "./Issue.ts"
import { limits } from "./Limits.ts"

/**
 * The size of a definition in JSON values, which its length does not show: a mebibyte may have half a million values, and each of
 * them is examined when the definition is checked, compiled, compared and hashed. They are counted before anything else, and
 * counting stops at the limit.
 */

/** The number of values: itself, its members and elements, and theirs. Null: more than `most`. */
export const valuesWithin = (root: unknown, most: number): number | null => {
  let count = 0
  return visitJson(root, () => ++count <= most) ? count : null
}

/**
 * Whether a definition is within its limits; otherwise `issues` has the faults. The check of the graph reports too many steps or
 * edges.
 */
export const isWithinSize = (steps: ReadonlyArray<unknown>, edges: ReadonlyArray<unknown>, issues: Issues): boolean => {
  const one = `holds more than ${limits.partValues} values: members, elements, and what is in them`
  let all = 0
  const take = (written: unknown, refuse: () => void): void => {
    const values = valuesWithin(written, limits.partValues)
    if (values === null) refuse()
    all += values ?? 0
  }
  for (const step of steps.slice(0, limits.steps)) {
    take(step, () => issues.step("STEP_INVALID", idOf(step), null, one))
  }
  for (const edge of edges.slice(0, limits.edges)) {
    take(edge, () => issues.edge("EDGE_INVALID", idOf(edge), null, one))
  }
  if (all > limits.values) {
    issues.graph("STEP_LIMIT_EXCEEDED", `the steps and edges hold more than ${limits.values} values`)
  }
  return issues.all.length === 0
}
