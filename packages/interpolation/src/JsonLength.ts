import { isExactNumber } from "@tidegate/json/ExactNumber"
import type { Schema } from "effect"

/**
 * The length of a value as compact JSON, in characters, without writing it. Escapes are not counted, so the text can be
 * longer. Null if it exceeds `limit`; counting stops there, so the cost depends on the limit and not on the value. It has its own
 * loop, because every step of a workflow runs it, and `visitJson` takes half as long again.
 */
export const jsonLengthWithin = (root: Schema.Json, limit: number): number | null => {
  let length = 0
  const open: Array<Schema.Json> = [root]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === "string") length += value.length + 2
    else if (isExactNumber(value)) length += String(value).length
    else if (typeof value !== "object" || value === null) length += String(value).length
    else if (Array.isArray(value)) {
      // Each element takes at least one character and a comma.
      length += value.length + 1
      if (length > limit) return null
      for (const element of value) open.push(element)
    } else {
      length += 2
      for (const key of Object.keys(value)) {
        length += key.length + 4
        if (length > limit) return null
        open.push((value as { readonly [name: string]: Schema.Json })[key]!)
      }
    }
    if (length > limit) return null
  }
  return length
}
