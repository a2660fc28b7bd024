import { Result, Schema } from "effect"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { parseQuery, type Values } from "@tidegate/model/Message"
import type { FilterConditions } from "@tidegate/model/Rule"
import { storedPayload } from "@tidegate/model/StoredPayload"
import { type Explanation, explain } from "@tidegate/rules/Explanation"
import type { FilterInput } from "@tidegate/rules/Filter"
import { shownOf } from "@tidegate/redaction/Redaction"
import { Conditions, judgeConditions, refusedConditions } from "./Filter.ts"
import { fieldError, type FieldErrors, judgeBody, type Members } from "./Input.ts"
import { Id, optional } from "./Members.ts"
import { isQueryTooLong, longestQuery, queryOf, RequestSample, ShownRequestSample } from "./RequestParts.ts"
import { ids } from "./ExampleIds.ts"

/** A test of a filter, written or stored, on a request, written or stored. */

const id = Schema.optionalKey(Id)

const Message = Schema.Struct({
  conditions: Schema.optionalKey(Schema.Json),
  filter: Schema.optionalKey(Schema.Json),
  filter_id: id,
  request: Schema.optionalKey(RequestSample),
  input: Schema.optionalKey(RequestSample),
  request_id: id
})

/** The body of a test. */
export interface FilterTrial {
  readonly filter: { readonly conditions: FilterConditions } | { readonly id: string }
  readonly request: FilterInput | { readonly id: string }
}

export const trialExample = {
  conditions: { body: { total: { $gte: 100 } } },
  request: {
    headers: { "content-type": "application/json" },
    body: { total: "120.00" },
    query: {},
    path: "/orders"
  }
} as const

export const explanationExample = {
  matched: true,
  targets: { headers: null, body: true, query: null, path: null },
  explanation: [{ target: "body", path: "total", operator: "$gte", expected: 100, actual: "120.00", matched: true }]
} as const

const FilterTestInput = Schema.Struct({
  conditions: optional(Conditions),
  filter: optional(Conditions),
  filter_id: optional(Id.annotate({ description: "A stored filter, instead of conditions", examples: [ids.filter] })),
  request: optional(ShownRequestSample),
  input: optional(ShownRequestSample),
  request_id: optional(Id.annotate({ description: "A request that was received, instead of one that is written" }))
}).annotate({
  identifier: "FilterTestInput",
  description:
    "What to ask, and what about: one of `conditions`, its alias `filter`, and `filter_id`; one of `request`, its alias `input`, and `request_id`.",
  examples: [trialExample]
})

/** Header names of a sample become lower case, as in real requests. */
const inputOf = (sample: RequestSample): FilterInput => {
  const { body = null, headers = {}, path = "/" } = sample
  const named: Values = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return { headers: named, query: parseQuery(queryOf(sample)), path, body: () => body }
}

/** At most one of these members may be present. */
const oneOf = (body: Members, names: ReadonlyArray<string>): FieldErrors => {
  const [first, ...others] = names.filter((name) => body[name] !== undefined)
  return others.map((path) => ({ path, message: `cannot be used together with ${first}` }))
}

const judge = (written: Members): Result.Result<FilterTrial, GatewayError> => {
  const checked = judgeBody(Message, written, (message): Result.Result<typeof Message.Type, FieldErrors> => {
    const faults = [
      ...oneOf(written, ["conditions", "filter", "filter_id"]),
      ...oneOf(written, ["request", "input", "request_id"])
    ]
    if (faults.length > 0) return Result.fail(faults)
    return isQueryTooLong(message.request ?? message.input ?? {})
      ? fieldError(
          message.request === undefined ? "input.query" : "request.query",
          `must be at most ${longestQuery} characters as a query string`
        )
      : Result.succeed(message)
  })
  if (Result.isFailure(checked)) return Result.fail(invalid(checked.failure))
  const { filter, filter_id, input, request, request_id } = checked.success
  const conditions = checked.success.conditions ?? filter
  const asked = request_id === undefined ? inputOf(request ?? input ?? {}) : { id: request_id }
  if (filter_id !== undefined) return Result.succeed({ filter: { id: filter_id }, request: asked })
  return Result.mapBoth(judgeConditions(conditions ?? null, filter === undefined ? "conditions" : "filter"), {
    onSuccess: (conditions): FilterTrial => ({ filter: { conditions }, request: asked }),
    onFailure: (fault) => refusedConditions([fault])
  })
}

export const filterTrialBody = { described: FilterTestInput, judge }

/** The result, as resumable work. Values are shown with their secrets masked. */
export function* tried(
  conditions: FilterConditions,
  input: FilterInput
): Generator<void, Result.Result<Explanation, GatewayError>, void> {
  const explained = yield* explain(conditions, input, shownOf())
  return Result.mapError(explained, ({ message, path }) =>
    fail("RULE_INVALID", `${path} ${message}`, { rule_index: null, path, message })
  )
}

const target = (what: string) =>
  Schema.NullOr(Schema.Boolean).annotate({ description: `Whether ${what} matches. Null: there is no condition on it` })

/** The answer of a test. */
export const FilterTest = Schema.Struct({
  matched: Schema.Boolean,
  targets: Schema.Struct({
    headers: target("the header"),
    body: target("the body"),
    query: target("the query"),
    path: target("the path")
  }),
  explanation: Schema.Array(
    Schema.Struct({
      target: Schema.Literals(["headers", "body", "query", "path"]),
      path: Schema.String.annotate({ description: "The place in it; empty: the whole" }),
      operator: Schema.NullOr(Schema.String).annotate({
        description: "Null: each item of a list is met by some element, or all of an object by one element"
      }),
      expected: Schema.Json,
      actual: Schema.Json.annotate({
        description: "What is there, without what is secret; null when nothing is",
        ...storedPayload
      }),
      matched: Schema.Boolean
    })
  )
    .check(Schema.isMaxLength(50))
    .annotate({ description: "Each operator by itself, at most 50; values are cut at 200 characters" })
}).annotate({ identifier: "FilterTest", examples: [explanationExample] })
