import { Result, Schema } from "effect"
import { OnFailure, type Ordering } from "@tidegate/model/Ordering"
import { maxPathLength } from "@tidegate/json/JsonPath"
import { compileOrdering } from "@tidegate/rules/Ordering"
import { optional } from "../Members.ts"
import { ordering } from "./Example.ts"

const Key = Schema.String.annotate({ message: "must be a string" })
  .check(
    Schema.makeFilter(
      (path: string) =>
        Result.match(compileOrdering(path), { onSuccess: () => true, onFailure: ({ message }) => message }),
      { toJsonSchema: () => ({ maxLength: maxPathLength, pattern: String.raw`^(\$\.)?(body|headers|query)[.\[]` }) }
    )
  )
  .annotate({ description: "A path to one value of the request as it came, in its body, headers or query" })

/** An ordering as it is written. */
export const OrderingWrite = Schema.NullOr(
  Schema.Struct({
    key: Key,
    on_failure: optional(
      OnFailure.annotate({
        message: "must be one of block, skip",
        description:
          "What those behind an event do that has failed and will be tried again: wait for it (`block`, the default), or go on (`skip`)"
      })
    )
  }).annotate({ identifier: "Ordering", examples: [ordering] })
).annotate({
  message: "must be an object with a key, or null",
  description:
    "Events with the same value at `key` are delivered one at a time, in the order in which they arrived. Null: in any order"
})

/** The ordering that is stored. */
export const orderingOf = (written: typeof OrderingWrite.Type): Ordering | null =>
  written === null ? null : { key: written.key, on_failure: written.on_failure ?? "block" }
