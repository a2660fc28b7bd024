import { canonicalNumber, isExactNumber, isJsonObject, plainNumber } from "@tidegate/json/ExactNumber"
import { hash } from "node:crypto"
import type { Edge, Step } from "./Definition.ts"

/** JSON in the one way that RFC 8785 allows: names in the order of their code units, nothing between. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (isExactNumber(value)) return plainNumber(value) ?? canonicalNumber(value)
  if (!isJsonObject(value)) return JSON.stringify(value)
  const names = Object.keys(value).toSorted((left, right) => (left < right ? -1 : 1))
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`
}

/**
 * What a graph that runs is known by: not where its steps stand on the canvas, nor what is noted beside them. These two and nothing else are left
 * out, as the contract says, so that whoever makes it of what is shown comes to the same.
 */
export const definitionHash = (steps: ReadonlyArray<Step>, edges: ReadonlyArray<Edge>): string => {
  const running = steps.map(({ config, position: _position, ...step }) => {
    const { note: _note, ...settings } = config
    return { ...step, config: settings }
  })
  return `sha256:${hash("sha256", canonical({ steps: running, edges }), "hex")}`
}
