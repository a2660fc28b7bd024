import { Result, Schema } from "effect"
import { fail, type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import type { MessageHead } from "@tidegate/model/Message"
import { Timestamp } from "@tidegate/model/Timestamp"
import { compilingDeduplication } from "@tidegate/rules/Deduplication"
import { requestInput } from "@tidegate/rules/RequestInput"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { DeduplicateRule } from "./connection/Document.ts"
import { checkingRules } from "./connection/Rules.ts"
import { at, ids } from "./ExampleIds.ts"
import { isObject, judgeBody, type Members } from "./Input.ts"
import { optional } from "./Members.ts"

/** A test of a deduplicate rule on the stored requests of a source. */

/** The requests that one test looks at, and the bytes of all their bodies. */
export const maxTested = 100
export const maxTestedBytes = 32 * 1024 * 1024

const limitMessage = `must be a whole number from 1 to ${maxTested}`
const Limit = Schema.Number.check(
  Schema.isInt({ message: limitMessage }).abort(),
  Schema.isBetween({ minimum: 1, maximum: maxTested }, { message: limitMessage })
)

const Message = Schema.Struct({ rule: Schema.Json, limit: Schema.optionalKey(Limit) })

export interface DeduplicationTestMessage {
  /** As it was written. */
  readonly rule: Schema.Json
  readonly limit: number
}

export const deduplicationTestExample = {
  rule: { type: "deduplicate", window: 60_000, include_fields: ["body.id"] },
  limit: 100
} as const

export const deduplicationTestBody = {
  described: Schema.Struct({
    rule: DeduplicateRule.annotateKey({ description: "The rule as a connection has it" }),
    limit: optional(
      Limit.annotate({ description: `How many of the latest requests are compared. Default: ${maxTested}` })
    )
  }).annotate({ identifier: "DeduplicationTestInput", examples: [deduplicationTestExample] }),
  judge: (written: Members): Result.Result<DeduplicationTestMessage, GatewayError> =>
    Result.mapBoth(
      judgeBody(Message, written, (message) => Result.succeed(message)),
      {
        onSuccess: ({ limit = maxTested, rule }) => ({ rule, limit }),
        onFailure: (faults) => invalid(faults)
      }
    )
}

/** A rule that is ready to be tried. */
export interface TriedDeduplication {
  /** Milliseconds after the first request with a key in which further ones are duplicates. */
  readonly windowMs: number
  /** What equal requests have in common; null: the rule does not apply to the request. Resumable, because a body may be large. */
  readonly keying: (head: MessageHead, body: Uint8Array) => Resumable<string | null>
}

const prefixed = ({ message, path }: FieldError): FieldError => ({
  path: path === "" ? "rule" : `rule.${path}`,
  message
})

/** A rule as it was written; resumable. Its faults are those that a connection with it would have. */
export function* judgingDeduplication(
  written: Schema.Json
): Resumable<Result.Result<TriedDeduplication, GatewayError>> {
  const members: Members | null = isObject(written) ? written : null
  const type = members === null ? "deduplicate" : members["type"]
  // Without its type it is checked as what it has to be: then a misspelt `type` is found, too.
  const judged = yield* checkingRules([members === null ? written : { ...members, type: "deduplicate" }])
  if (type !== "deduplicate") {
    const further = type === undefined && Result.isFailure(judged) ? judged.failure.map(prefixed) : []
    return Result.fail(invalid([{ path: "rule.type", message: "must be deduplicate" }, ...further]))
  }
  if (Result.isFailure(judged)) {
    const { message, path } = prefixed(judged.failure[0] ?? { path: "", message: "is invalid" })
    return Result.fail(
      fail("RULE_INVALID", `${path} ${message}`, { rule_index: null, path, message, fields: [{ path, message }] })
    )
  }
  const [rule] = judged.success
  if (rule?.type !== "deduplicate") return Result.fail(invalid([{ path: "rule.type", message: "must be deduplicate" }]))
  const { key, windowMs } = yield* compilingDeduplication(rule)
  return Result.succeed({
    windowMs,
    *keying(head, body) {
      const input = requestInput(head, body)
      yield* input.parsing()
      return key(input)
    }
  })
}

const Duplicate = Schema.Struct({
  request_id: Schema.String,
  ingested_at: Timestamp,
  first_request_id: Schema.String.annotate({ description: "The request that it repeats" }),
  first_ingested_at: Timestamp
}).annotate({ identifier: "TestedDuplicate" })

/** The answer of a test. */
export const DeduplicationTest = Schema.Struct({
  source_id: Schema.String,
  tested: Schema.Int.annotate({ description: "Requests that were compared" }),
  unavailable: Schema.Int.annotate({
    description:
      "Requests that were not compared: their content is not stored any more, or the bodies of the later ones have 32 MiB"
  }),
  without_key: Schema.Int.annotate({
    description:
      "Compared requests to which the rule does not apply: they have none of its fields, do not meet its conditions, or are replays"
  }),
  duplicates: Schema.Array(Duplicate)
    .check(Schema.isMaxLength(maxTested))
    .annotate({ description: "The requests that the rule would ignore, oldest first" })
}).annotate({ identifier: "DeduplicationTest" })

export const deduplicationTestAnswer = {
  source_id: ids.source,
  tested: 2,
  unavailable: 0,
  without_key: 0,
  duplicates: [{ request_id: ids.request, ingested_at: at, first_request_id: ids.request, first_ingested_at: at }]
}
