import type { Schema } from "effect"

/**
 * Whether a value nests deeper than `levels` (at most some thousand, for this goes down with it). Asked before JSON is
 * written on the gateway's own loop: at a depth of three million, which six megabytes of brackets reach, V8 takes nine seconds.
 */
export const isDeeper = (value: Schema.Json, levels: number): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((item: Schema.Json) => isDeeper(item, levels - 1))
  for (const item of Object.values(value)) if (isDeeper(item, levels - 1)) return true
  return false
}
