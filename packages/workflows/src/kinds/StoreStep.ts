import { isJsonNumber, type ExactNumber } from "@tidegate/json/ExactNumber"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import type { Json } from "@tidegate/model/Rule"
import { Result, Schema } from "effect"
import { objectOf } from "../OutputNames.ts"
import { memberOf, type StepError, stepKind } from "../StepKind.ts"

const names = ["get", "set", "delete", "increment", "compare_and_set"] as const
type Name = (typeof names)[number]

/** The inputs of each operation. One that has no effect is refused when the workflow is written. */
const inputsOf: Readonly<Record<Name, ReadonlyArray<string>>> = {
  get: ["key"],
  set: ["key", "value", "expires_in_seconds"],
  delete: ["key"],
  increment: ["key", "by", "expires_in_seconds"],
  compare_and_set: ["key", "expected", "value", "expires_in_seconds"]
}

/** What a step does with the values of its workflow. `seconds`: how long the value is kept; null: until it is deleted. */
export type StoreOperation =
  | { readonly name: "get"; readonly key: string }
  | { readonly name: "delete"; readonly key: string; readonly seconds: null }
  | { readonly name: "set"; readonly key: string; readonly value: Json; readonly seconds: number | null }
  | {
      readonly name: "increment"
      readonly key: string
      readonly by: number | ExactNumber
      readonly seconds: number | null
    }
  | {
      readonly name: "compare_and_set"
      readonly key: string
      readonly expected: Json
      readonly value: Json
      readonly seconds: number | null
    }

/** Limits of a value: characters of its key, bytes of its JSON, and seconds until it expires. */
export const storeLimits = { key: 100, value: 16_384, seconds: 31_536_000 } as const

const invalid = (message: string): Result.Result<never, StepError> =>
  Result.fail({ code: "INPUT_INVALID", message, final: true })

/** Whether a text can be a key. */
export const isStoreKey = (key: Json): key is string =>
  typeof key === "string" &&
  key.length > 0 &&
  key.length <= storeLimits.key &&
  !key.includes("\u0000") &&
  key.isWellFormed()

/** Whether a value is short enough to be stored. */
export const isStorable = (value: Json): boolean =>
  // A text has at most as many characters as bytes, so a long value need not be encoded.
  jsonLengthWithin(value, storeLimits.value) !== null && Buffer.byteLength(JSON.stringify(value)) <= storeLimits.value

/** The operation of a step, by its inputs. */
export const storeOperation = (
  config: unknown,
  inputs: { readonly [input: string]: Json }
): Result.Result<StoreOperation, StepError> => {
  const { operation: name } = config as { readonly operation: Name }
  const { by = 1, expected = null, expires_in_seconds = null, key = null, value = null } = inputs
  if (!isStoreKey(key)) return invalid(`key: is a text of 1 to ${storeLimits.key} characters`)
  if (name === "get") return Result.succeed({ name, key })
  if (name === "delete") return Result.succeed({ name, key, seconds: null })
  const seconds = expires_in_seconds === null ? null : Number(expires_in_seconds)
  if (seconds !== null && !(Number.isInteger(seconds) && seconds >= 1 && seconds <= storeLimits.seconds)) {
    return invalid(`expires_in_seconds: is a whole number from 1 to ${storeLimits.seconds}`)
  }
  if (name === "increment") {
    return isJsonNumber(by) ? Result.succeed({ name, key, by, seconds }) : invalid("by: is no number")
  }
  if (!isStorable(value)) return invalid(`value: has more than ${storeLimits.value} bytes as JSON`)
  if (name === "set") return Result.succeed({ name, key, value, seconds })
  return isStorable(expected)
    ? Result.succeed({ name, key, expected, value, seconds })
    : invalid(`expected: has more than ${storeLimits.value} bytes as JSON`)
}

const output = { key: "", found: false, value: null, conflict: false }

/** Where a step that has this output goes on. */
export const portsStored = (conflict: boolean): ReadonlyArray<string> => [conflict ? "conflict" : "out"]

/** Reads or changes a value that the workflow keeps between its runs. */
export const storeKind = stepKind({
  kind: "store",
  config: Schema.Struct({ operation: Schema.Literals(names) }),
  settings: ["retry", "on_error", "for_each", "compensate"],
  resource: null,
  callsAction: false,
  notTaken: "path_not_taken",
  inline: true,
  inputs: ({ config }) => inputsOf[config["operation"] as Name] ?? ["key"],
  output: objectOf(...Object.keys(output)),
  ports: {
    by: "operation",
    of: {
      get: ["out"],
      set: ["out"],
      delete: ["out"],
      increment: ["out"],
      compare_and_set: ["out", "conflict"]
    } satisfies Record<Name, ReadonlyArray<string>>
  },
  portRequired: false,
  portsOf: (given) => portsStored(memberOf(given, "conflict") === true),
  // A test stores nothing, so the step finds nothing.
  sample: () => output,
  compile: null
})
