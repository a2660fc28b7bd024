import { Predicate, type Schema } from "effect"
import { templatesOf } from "./formula/Tokens.ts"
import type { Step } from "./engine/Step.ts"

/**
 * Inputs whose texts are templates, all but a formula: a template within a formula is a variable that is named by it. What it stands for is
 * never pasted into the formula, and so never read as one. Whoever resolves a step's inputs compiles `mapping` and gives `inputs` what came of it.
 */
export interface Templated {
  /** What is compiled as a mapping of templates. The formula is not in it. */
  readonly mapping: Readonly<Record<string, unknown>>
  /** The inputs, of what the mapping was resolved to. */
  readonly inputs: (resolved: Schema.Json) => Schema.JsonObject
  /** The input that a path of the mapping is in. */
  readonly fieldAt: (path: string) => string
}

type Members = Readonly<Record<string, Schema.Json>>

/** Throws a `Fault` where the formula is none that could be read. */
export const templated = (step: Pick<Step, "inputs">, inputs: Readonly<Record<string, unknown>>): Templated => {
  const [name = ""] = step.inputs.find(([, { type }]) => type === "formula") ?? []
  const fieldAt = (path: string): string => (path.startsWith("hidden") ? name : path.replace(/^given\.?/, ""))
  if (name === "" || !Object.hasOwn(inputs, name)) {
    return { mapping: { given: inputs }, fieldAt, inputs: (resolved) => (resolved as { given: Members }).given }
  }
  const { [name]: formula, ...given } = inputs
  const tokens = typeof formula === "string" ? templatesOf(formula) : []
  return {
    mapping: { given, hidden: Object.fromEntries(tokens.map((token) => [token, token])) },
    fieldAt,
    inputs: (resolved) => {
      const value = resolved as { readonly given: Members; readonly hidden: Members }
      const kept = { ...value.given, [name]: formula as Schema.Json }
      return tokens.length === 0 ? kept : { ...kept, variables: joined(value.given["variables"] ?? {}, value.hidden) }
    }
  }
}

/** Variables with the hidden ones behind them. What is none is left to be refused. */
const joined = (variables: Schema.Json, hidden: Members): Schema.Json => {
  if (Array.isArray(variables)) return [...(variables as ReadonlyArray<Schema.Json>), ...Object.entries(hidden)]
  return Predicate.isReadonlyObject(variables) ? { ...(variables as Members), ...hidden } : variables
}
