import { Predicate, Result, type Schema } from "effect"
import { Fault } from "./engine/Fault.ts"
import { templatesOf } from "./formula/Tokens.ts"
import type { Operation } from "./engine/Operation.ts"

/**
 * A template within a formula becomes a variable that is named by the template, so its value is never parsed as a formula. It is resolved as a
 * separate input of that name, and passed among the variables.
 */

const formulaOf = ({ fields }: Operation): string | undefined =>
  Object.keys(fields).find((name) => fields[name]!.type === "formula")

const isBound = (name: string): boolean => name.startsWith("{{")

/** The inputs whose templates are to be resolved; a fault if the formula cannot be parsed. */
export const bound = <Value>(
  operation: Operation,
  inputs: Readonly<Record<string, Value>>
): Result.Result<Readonly<Record<string, Value | string>>, Fault> => {
  const name = formulaOf(operation)
  const formula = name !== undefined && Object.hasOwn(inputs, name) ? inputs[name] : undefined
  if (typeof formula !== "string") return Result.succeed(inputs)
  try {
    const templates = templatesOf(formula)
    if (templates.length === 0) return Result.succeed(inputs)
    const variables = Object.fromEntries(templates.map((template) => [template, template]))
    return Result.succeed({ ...inputs, [name!]: formula.replaceAll("{{", "\\{{"), ...variables })
  } catch (cause) {
    if (cause instanceof Fault) return Result.fail(cause)
    throw cause
  }
}

/**
 * Checks inputs before their templates are resolved: returns a fault if an input is invalid whatever its values are. A formula is checked
 * with its templates, which count as names.
 */
export const judgedAsWritten = (
  { fields }: Operation,
  inputs: Readonly<Record<string, unknown>>
): Result.Result<void, Fault> => {
  try {
    for (const [name, { judge, type }] of Object.entries(fields)) {
      const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined
      if (judge === null || typeof value !== "string" || value.trim() === "") continue
      if (type === "formula" || !value.includes("{{")) judge(value, name)
    }
    return Result.void
  } catch (cause) {
    if (cause instanceof Fault) return Result.fail(cause)
    throw cause
  }
}

/** The input in which a bound value was written. */
export const shownAt = (operation: Operation, path: string): string =>
  isBound(path) ? (formulaOf(operation) ?? path) : path

/** The valid input names of an operation. */
export const namesOf = ({ elements, fields }: Operation): ReadonlyArray<string> => [
  ...Object.keys(fields).filter((name) => fields[name]!.mappable),
  ...Object.values(elements).flat()
]

/** Collects inputs that are elements of a list into the list input. If the list input is given, too, they stay, and are refused later. */
const gathered = ({ elements }: Operation, inputs: Schema.JsonObject): Schema.JsonObject => {
  let all = inputs
  for (const [list, names] of Object.entries(elements)) {
    const given = names.filter((name) => Object.hasOwn(inputs, name))
    if (given.length === 0 || Object.hasOwn(inputs, list)) continue
    const others = Object.entries(all).filter(([name]) => !given.includes(name))
    const values = given.map((name) => inputs[name]!)
    all = Object.fromEntries([...others, [list, values.length === 1 ? values[0]! : values]])
  }
  return all
}

/** Converts resolved inputs to the form that the engine takes. */
export const unbound = (operation: Operation, inputs: Schema.JsonObject): Schema.JsonObject => {
  const resolved = gathered(operation, inputs)
  const templates = Object.keys(resolved).filter(isBound)
  if (templates.length === 0) return resolved
  const others = Object.fromEntries(Object.entries(resolved).filter(([name]) => !isBound(name)))
  const hidden = templates.map((template) => [template, resolved[template]!] as const)
  return { ...others, variables: joined(others["variables"] ?? {}, hidden) }
}

/** Adds the hidden variables to the given ones. An invalid value stays, and is refused later. */
const joined = (variables: Schema.Json, hidden: ReadonlyArray<readonly [string, Schema.Json]>): Schema.Json => {
  if (Array.isArray(variables)) return [...(variables as ReadonlyArray<Schema.Json>), ...hidden]
  return Predicate.isReadonlyObject(variables)
    ? Object.fromEntries([...Object.entries(variables as Schema.JsonObject), ...hidden])
    : variables
}
