import type { Schema } from "effect"
import { maxJsonValues } from "./BodyLimits.ts"

/** Deeper than this, what walks a value by recursion could run out of stack. */
const nestAtMost = 200

/** Whether a value has too many values, or too many levels, to be walked value by value. */
export const isUnwieldy = (root: Schema.Json): boolean => {
  const open: Array<readonly [value: Schema.Json, depth: number]> = [[root, 0]]
  let count = 1
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const [value, depth] = at
    if (typeof value !== "object" || value === null) continue
    const inner = Object.values(value)
    count += inner.length
    if (count > maxJsonValues || depth === nestAtMost) return true
    for (const one of inner) if (typeof one === "object" && one !== null) open.push([one, depth + 1])
  }
  return false
}
