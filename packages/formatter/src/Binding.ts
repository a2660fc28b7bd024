import { Predicate, type Schema } from "effect"
import { templateInFormula } from "./formula/Tokens.ts"
import type { Operation } from "./engine/Operation.ts"

/**
 * A template within a formula is a variable that is named by it: what it stands for is never read as a formula. So it is resolved as
 * an input of its own, of its own name, and handed over among the variables.
 */

const formulaOf = ({ fields }: Operation): string | undefined =>
  Object.keys(fields).find((name) => fields[name]!.type === "formula")

const isBound = (name: string): boolean => name.startsWith("{{")

/** Inputs as their templates are to be resolved. */
export const bound = <Value>(
  operation: Operation,
  inputs: Readonly<Record<string, Value>>
): Readonly<Record<string, Value | string>> => {
  const name = formulaOf(operation)
  const formula = name !== undefined && Object.hasOwn(inputs, name) ? inputs[name] : undefined
  const templates = typeof formula === "string" ? (formula.match(templateInFormula) ?? []) : []
  if (templates.length === 0) return inputs
  const variables = Object.fromEntries(templates.map((template) => [template, template]))
  return { ...inputs, [name!]: (formula as string).replaceAll("{{", "\\{{"), ...variables }
}

/** Where an input was written that has been bound. */
export const shownAt = (operation: Operation, path: string): string =>
  isBound(path) ? (formulaOf(operation) ?? path) : path

/** Inputs that were bound, resolved, as the engine takes them. */
export const unbound = (resolved: Schema.JsonObject): Schema.JsonObject => {
  const templates = Object.keys(resolved).filter(isBound)
  if (templates.length === 0) return resolved
  const inputs = Object.fromEntries(Object.entries(resolved).filter(([name]) => !isBound(name)))
  const given = inputs["variables"]
  const named = Predicate.isReadonlyObject(given) ? (given as Schema.JsonObject) : {}
  const variables = Object.fromEntries(templates.map((template) => [template, resolved[template]!]))
  return { ...inputs, variables: { ...named, ...variables } }
}
