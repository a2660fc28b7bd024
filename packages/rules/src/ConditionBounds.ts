import { isExactNumber } from "@tidegate/json/ExactNumber"
import { Predicate } from "effect"
import { below, refuse } from "./ConditionInvalid.ts"
import { isComposite } from "./Equality.ts"
import { operatorOf } from "./Operators.ts"

/** Nesting levels of one condition. */
const maxDepth = 10
/** Values in all conditions of a filter; a list of plain values under an operator such as `$in` counts once. */
const maxNodes = 200
/** Bytes of all conditions of a filter, as JSON. */
const maxBytes = 65_536
/** Limit of stored conditions: an older version limited characters, of which each takes up to six bytes, and two quotes. */
const maxStored = 8 * maxBytes + 1_024

/**
 * The limits of one filter's conditions, checked before anything is compiled. They limit the cost of compiling, storing and matching, and
 * allow later code to use recursion. They have their own search, because plain values under an operator count once, and because the
 * first fault in reading order is reported.
 */
export class ConditionBounds {
  private readonly most: number
  private nodes = 0
  private bytes = 0

  constructor(isStored: boolean) {
    this.most = isStored ? maxStored : maxBytes
  }

  /** Throws `ConditionInvalid` if `condition`, at `path`, exceeds a limit or is not JSON. */
  check(condition: unknown, path: string): void {
    this.value(condition, path, 1)
  }

  private value(value: unknown, path: string, depth: number): void {
    this.nodes++
    if (this.nodes > maxNodes) refuse(path, `the conditions have more than ${maxNodes} nodes`)
    if (!Predicate.isObjectOrArray(value) || isExactNumber(value)) return this.scalar(value, path)
    if (depth > maxDepth) refuse(path, `is nested deeper than ${maxDepth} levels`)
    this.add(2, path)
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) this.value(value[i], below(path, i), depth + 1)
      return
    }
    for (const key of Object.keys(value)) {
      const at = below(path, key)
      const operand = value[key]
      this.scalar(key, at)
      if (Array.isArray(operand) && operatorOf(key) !== undefined && !operand.some(isComposite)) {
        this.add(2, at)
        for (const member of operand) this.scalar(member, at)
      } else {
        this.value(operand, at, depth + 1)
      }
    }
  }

  private scalar(value: unknown, path: string): void {
    const json =
      value === null ||
      typeof value === "string" ||
      typeof value === "boolean" ||
      Number.isFinite(value) ||
      isExactNumber(value)
    if (!json) refuse(path, "is not a JSON value")
    // Plus the separator after it. A text that is too long anyway is not written as JSON.
    const isLong = typeof value === "string" && value.length > this.most
    this.add(isLong ? value.length : Buffer.byteLength(JSON.stringify(value)) + 1, path)
  }

  private add(bytes: number, path: string): void {
    this.bytes += bytes
    if (this.bytes > this.most) refuse(path, `the conditions hold more than ${this.most} bytes`)
  }
}
