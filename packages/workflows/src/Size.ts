import { Predicate } from "effect"
import { idOf, type IssueCode, type Issues } from "./Issue.ts"
import { limits } from "./Limits.ts"

/**
 * How much a definition amounts to, which does not show in its length: a mebibyte holds half a million values, and each of them is looked at
 * when it is judged, compiled, compared and hashed. It is counted before anything else, and the count stops at the limit.
 */

/** The values in one: itself, its members and elements. Null: more than `most`. */
export const valuesWithin = (root: unknown, most: number): number | null => {
  let count = 0
  const open: Array<unknown> = [root]
  while (open.length > 0) {
    const value = open.pop()
    if (++count > most) return null
    if (Array.isArray(value)) {
      if (count + open.length + value.length > most) return null
      for (const element of value) open.push(element)
    } else if (Predicate.isReadonlyObject(value)) {
      for (const name of Object.keys(value)) open.push(value[name])
      if (count + open.length > most) return null
    }
  }
  return count
}

/** Characters of the patterns in a condition. */
const patternsIn = (condition: unknown): number => {
  let length = 0
  const open: Array<unknown> = [condition]
  while (open.length > 0) {
    const value = open.pop()
    if (Array.isArray(value)) for (const element of value) open.push(element)
    else if (Predicate.isReadonlyObject(value)) {
      for (const name of Object.keys(value)) {
        const operand = value[name]
        if ((name === "$regex" || name === "regex") && Predicate.isString(operand)) length += operand.length
        else open.push(operand)
      }
    }
  }
  return length
}

const member = (of: unknown, name: string): unknown =>
  Predicate.isReadonlyObject(of) && Object.hasOwn(of, name) ? of[name] : undefined

/** Where a step, or an edge, may have conditions. */
const conditionsOf = (written: unknown): ReadonlyArray<readonly [field: string, condition: unknown]> => {
  const config = member(written, "config")
  const paths = member(config, "paths")
  return [
    ["condition", member(written, "condition")],
    ["config.conditions", member(config, "conditions")],
    ...(Array.isArray(paths) ? paths.slice(0, limits.paths) : []).map(
      (path, i) => [`config.paths[${i}].conditions`, member(path, "conditions")] as const
    )
  ]
}

type Told = (code: IssueCode, field: string | null, message: string) => void

/** Counts down what definitions may hold in all. */
class Size {
  private values: number = limits.values
  private patterns: number = limits.allPatterns

  take(written: unknown, invalid: IssueCode, told: Told): void {
    const values = valuesWithin(written, limits.partValues)
    if (values === null) {
      return told(invalid, null, `holds more than ${limits.partValues} values: members, elements, and what is in them`)
    }
    this.values -= values
    for (const [field, condition] of conditionsOf(written)) {
      const length = patternsIn(condition)
      this.patterns -= length
      if (length > limits.patterns) {
        told("CONDITION_INVALID", field, `its patterns hold more than ${limits.patterns} characters`)
      }
    }
  }

  end(told: Told): void {
    if (this.values < 0) {
      told("STEP_LIMIT_EXCEEDED", null, `the steps and edges hold more than ${limits.values} values`)
    }
    if (this.patterns < 0) {
      told("CONDITION_INVALID", null, `the patterns of all conditions hold more than ${limits.allPatterns} characters`)
    }
  }
}

/** Whether a definition is within what one may amount to; otherwise what is not is in `issues`. Of more parts than there may be the graph tells. */
export const isWithinSize = (steps: ReadonlyArray<unknown>, edges: ReadonlyArray<unknown>, issues: Issues): boolean => {
  const size = new Size()
  for (const step of steps.slice(0, limits.steps)) {
    size.take(step, "STEP_INVALID", (code, field, message) => issues.step(code, idOf(step), field, message))
  }
  for (const edge of edges.slice(0, limits.edges)) {
    size.take(edge, "EDGE_INVALID", (code, field, message) => issues.edge(code, idOf(edge), field, message))
  }
  size.end((code, _, message) => issues.graph(code, message))
  return issues.all.length === 0
}
