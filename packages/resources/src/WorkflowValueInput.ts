import { Result, Schema } from "effect"
import { invalid } from "@tidegate/model/GatewayError"
import { isStorable, isStoreKey, storeLimits } from "@tidegate/workflows/kinds/StoreStep"
import { bodyOf } from "./Resource.ts"

const Value = Schema.Json.check(
  Schema.makeFilter((value) => isStorable(value) || `must be at most ${storeLimits.value} bytes as JSON`)
).annotate({ description: "Any JSON, at most 16 KiB" })

/** A value for a workflow's steps. */
export const workflowValueBody = bodyOf(
  Schema.Struct({
    value: Value,
    expires_in_seconds: Schema.optionalKey(
      Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: storeLimits.seconds }))).annotate({
        description: "Seconds until it expires, at most a year. Absent or null: it stays until it is deleted"
      })
    )
  }).annotate({ identifier: "WorkflowValueInput" })
)

/** The key in a path. */
export const judgeValueKey = (key: string) =>
  isStoreKey(key)
    ? Result.succeed(key)
    : Result.fail(invalid([{ path: "key", message: `must be 1 to ${storeLimits.key} characters` }]))

export const example = { value: 41, expires_in_seconds: 86_400 } as const
