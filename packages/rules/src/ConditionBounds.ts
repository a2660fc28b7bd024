import { Predicate } from "effect"
import { below, refuse } from "./ConditionInvalid.ts"
import { operatorOf } from "./Operators.ts"

/** Levels of objects and lists in one condition. */
const maxDepth = 10
/** Values in all conditions of a filter; a list of plain values under an operator, like `$in`'s, counts once. */
const maxNodes = 200
/** Characters of keys and values in all conditions of a filter. */
const maxCharacters = 65_536

/**
 * What the conditions of one filter may amount to, checked before anything is compiled: it bounds compiling, storing
 * and matching, and everything after it may recurse over a condition.
 */
export class ConditionBounds {
  private nodes = 0
  private characters = 0

  /** Throws `ConditionInvalid` where `condition`, standing at `path`, goes beyond a limit or is not JSON. */
  check(condition: unknown, path: string): void {
    this.value(condition, path, 1)
  }

  private value(value: unknown, path: string, depth: number): void {
    this.nodes++
    if (this.nodes > maxNodes) refuse(path, `the conditions have more than ${maxNodes} nodes`)
    if (!Predicate.isObjectOrArray(value)) return this.scalar(value, path)
    if (depth > maxDepth) refuse(path, `is nested deeper than ${maxDepth} levels`)
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) this.value(value[i], below(path, i), depth + 1)
      return
    }
    for (const key of Object.keys(value)) {
      const at = below(path, key)
      const operand = value[key]
      this.scalar(key, at)
      if (Array.isArray(operand) && operatorOf(key) !== undefined && !operand.some(Predicate.isObjectOrArray)) {
        for (const member of operand) this.scalar(member, at)
      } else {
        this.value(operand, at, depth + 1)
      }
    }
  }

  private scalar(value: unknown, path: string): void {
    const json = value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)
    if (!json) refuse(path, "is not a JSON value")
    this.characters += typeof value === "string" ? value.length + 1 : 8
    if (this.characters > maxCharacters) refuse(path, `the conditions hold more than ${maxCharacters} characters`)
  }
}
