import { parseQuery, type Values } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import { Result } from "effect"
import type { Context, StepError } from "./StepKind.ts"

/** The inputs of steps that take the parts of a request. Parts without an input are the trigger's. */

export const textOf = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)

/** Values by name; a list stays a list, so a header or parameter may be repeated. */
export const valuesOf = (given: unknown): Values =>
  typeof given === "object" && given !== null && !Array.isArray(given)
    ? Object.fromEntries(
        Object.entries(given).map(([name, value]) => [name, Array.isArray(value) ? value.map(textOf) : textOf(value)])
      )
    : {}

export const byLowerName = (headers: Values): Values =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

export const queryText = (given: unknown): string =>
  typeof given === "string"
    ? given.replace(/^\?/, "")
    : new URLSearchParams(
        Object.entries(valuesOf(given)).flatMap(([name, value]) =>
          (typeof value === "string" ? [value] : value).map((one) => [name, one])
        )
      ).toString()

type Inputs = Readonly<Record<string, Json>>

export const givenOf = (inputs: Inputs, name: string): Json | undefined =>
  Object.hasOwn(inputs, name) ? inputs[name] : undefined

export const invalid = (message: string): StepError => ({ code: "INPUT_INVALID", message })

/**
 * The largest number of headers or parameters as inputs: a template may make them from a whole body, and each is processed on its
 * own.
 */
const maxValues = 5_000

/** The failure of a step whose named inputs exceed the limits; null: none do. */
export const excessOf = (inputs: Inputs): StepError | null => {
  for (const name of ["headers", "query"]) {
    const values = givenOf(inputs, name)
    if (typeof values === "string") {
      if (values.split("&", maxValues + 1).length > maxValues) return tooMany(name)
    } else if (typeof values === "object" && values !== null) {
      let count = 0
      for (const value of Object.values(values)) {
        count += Array.isArray(value) ? value.length : 1
        if (count > maxValues) return tooMany(name)
      }
    }
  }
  return null
}

const tooMany = (name: string): StepError => invalid(`${name} has more than ${maxValues} values`)

/** The request in the form that conditions read. */
export const requestGiven = (
  inputs: Inputs,
  trigger: Context["trigger"]
): Result.Result<Context["trigger"], StepError> => {
  const excess = excessOf(inputs)
  if (excess !== null) return Result.fail(excess)
  const [headers, method, path, query] = ["headers", "method", "path", "query"].map((name) => givenOf(inputs, name))
  const { body = trigger.body } = inputs
  return Result.succeed({
    ...trigger,
    body,
    ...(headers == null ? {} : { headers: byLowerName(valuesOf(headers)) }),
    ...(method == null ? {} : { method: textOf(method) }),
    ...(path == null ? {} : { path: textOf(path) }),
    ...(query === undefined ? {} : { query: parseQuery(queryText(query)) })
  })
}
