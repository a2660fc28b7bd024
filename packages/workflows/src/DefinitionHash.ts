import { canonicalNumber, isExactNumber, isJsonObject, plainNumber } from "@tidegate/json/ExactNumber"
import { hash } from "node:crypto"
import type { Edge, Step } from "./Definition.ts"

/** Canonical JSON by RFC 8785: names ordered by code units, without white space. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (isExactNumber(value)) return plainNumber(value) ?? canonicalNumber(value)
  if (!isJsonObject(value)) return JSON.stringify(value)
  const names = Object.keys(value).toSorted((left, right) => (left < right ? -1 : 1))
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`
}

/**
 * The hash that identifies a graph: without the positions of steps on the canvas and without notes. The contract says that
 * exactly these two are left out, so anyone can compute the same hash from the shown graph.
 */
export const definitionHash = (steps: ReadonlyArray<Step>, edges: ReadonlyArray<Edge>): string => {
  const running = steps.map(({ config, position: _position, ...step }) => {
    const { note: _note, ...settings } = config
    return { ...step, config: settings }
  })
  return `sha256:${hash("sha256", canonical({ steps: running, edges }), "hex")}`
}
