import { AnyJson, needed, setting, text } from "@tidegate/connectors/Settings"
import { type ExactNumber, isJsonNumber } from "@tidegate/json/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import { Result, Schema } from "effect"
import { none } from "../AuthModes.ts"
import { calling, invalid, type Provider } from "../Provider.ts"

const maxValueBytes = 25_600

const key = needed(
  text
    .check(Schema.isPattern(/^[^\p{Cc}\p{Cs}]{1,256}$/u, { message: "must be 1 to 256 characters" }))
    .annotate({ description: "Of the team: every workflow of it sees the same value" }),
  "the key"
)

const numbers = "must be a number"

/** With all digits, also those that a JavaScript number cannot hold. */
const AnyNumber = Schema.Unknown.check(
  Schema.makeFilter((value) => isJsonNumber(value) || numbers, { toJsonSchema: () => ({ type: "number" }) })
) as unknown as Schema.Codec<number | ExactNumber>

/** A text has at most as many characters as bytes, so a long value need not be encoded to know that it is too large. */
const isTooLarge = (value: Json): boolean =>
  jsonLengthWithin(value, maxValueBytes) === null || Buffer.byteLength(JSON.stringify(value)) > maxValueBytes

const valueOutput = {
  type: "object",
  properties: { key: { type: "string" }, value: { description: "What it is now" } },
  required: ["key", "value"]
} as const

export const storage: Provider = {
  key: "storage",
  name: "Storage",
  description: `Keeps values of at most ${maxValueBytes / 1_024} KiB for the team, by key.`,
  icon_key: "database",
  manifest_version: "1.0.0",
  auth: [none],
  actions: [
    calling({
      key: "get",
      name: "Get a value",
      description: "Gives the value of a key; `found` is false where there is none.",
      category: "core",
      version: "1.0.0",
      inputs: { key },
      output: {
        type: "object",
        properties: { found: { type: "boolean" }, value: { description: "null where there is none" } },
        required: ["found", "value"]
      },
      primary_output: "value",
      sample: { inputs: { key: "last_order" }, output: { found: true, value: "o_1" } },
      rate_limit: null,
      call: (inputs) => Result.succeed({ kind: "store", operation: { name: "get", key: inputs.key } })
    }),
    calling({
      key: "set",
      name: "Set a value",
      description: "Keeps a value under a key, in the place of what was there.",
      category: "core",
      version: "1.0.0",
      inputs: { key, value: needed(AnyJson, "what is kept: JSON other than null", "must be JSON") },
      output: valueOutput,
      primary_output: "value",
      sample: { inputs: { key: "last_order", value: "o_1" }, output: { key: "last_order", value: "o_1" } },
      rate_limit: null,
      call: (inputs) =>
        isTooLarge(inputs.value)
          ? Result.fail(invalid([{ path: "value", message: `has more than ${maxValueBytes} bytes as JSON` }]))
          : Result.succeed({ kind: "store", operation: { name: "set", key: inputs.key, value: inputs.value } })
    }),
    calling({
      key: "increment",
      name: "Count up",
      description: "Adds to the number under a key, once however often the step is tried; where there is none, to 0.",
      category: "core",
      version: "1.0.0",
      inputs: {
        key,
        by: setting(
          AnyNumber.annotate({ description: "What is added, with all its digits; may be negative", message: numbers }),
          1,
          numbers
        )
      },
      output: valueOutput,
      primary_output: "value",
      sample: { inputs: { key: "orders" }, output: { key: "orders", value: 1 } },
      rate_limit: null,
      call: (inputs) =>
        Result.succeed({ kind: "store", operation: { name: "increment", key: inputs.key, by: inputs.by ?? 1 } })
    }),
    calling({
      key: "delete",
      name: "Delete a value",
      description: "Forgets a key; `deleted` says whether there was a value.",
      category: "core",
      version: "1.0.0",
      inputs: { key },
      output: { type: "object", properties: { deleted: { type: "boolean" } }, required: ["deleted"] },
      primary_output: "deleted",
      sample: { inputs: { key: "last_order" }, output: { deleted: true } },
      rate_limit: null,
      call: (inputs) => Result.succeed({ kind: "store", operation: { name: "delete", key: inputs.key } })
    })
  ]
}
