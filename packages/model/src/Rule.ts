import { Effect, Schema } from "effect"

/** A JSON value as a sender or an operator wrote it. */
export type Json = Schema.Json

/**
 * A predicate over one JSON value: a plain value (equality), an object of fields, an object of operators, or a list. The rules
 * package defines the language; here it is any JSON, kept as it was written.
 */
export const Condition = Schema.Json
export type Condition = Schema.Json

const conditionTargets = {
  headers: Schema.optionalKey(Condition),
  body: Schema.optionalKey(Condition),
  query: Schema.optionalKey(Condition),
  path: Schema.optionalKey(Condition)
}

/** The conditions of a filter on a request. Every present target must match; a filter without any is invalid. */
export const FilterConditions = Schema.Struct(conditionTargets)
export type FilterConditions = typeof FilterConditions.Type

/**
 * Within `window` ms, requests of one connection that have the same values in the chosen fields are duplicates of the first one
 * and are ignored.
 */
export const DeduplicateRule = Schema.Struct({
  type: Schema.Literal("deduplicate"),
  /** Milliseconds from the first accepted request; it does not slide. */
  window: Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 3_600_000 })),
  include_fields: Schema.optionalKey(Schema.Array(Schema.String).check(Schema.isBetweenLength(1, 50))),
  exclude_fields: Schema.optionalKey(Schema.Array(Schema.String).check(Schema.isBetweenLength(1, 50))),
  /** With predicates, the rule applies only to the requests that match them. */
  headers: conditionTargets.headers,
  body: conditionTargets.body
})
export type DeduplicateRule = typeof DeduplicateRule.Type

/** A transformation written inside the rule: the API upserts it by name and stores its id instead. */
export const InlineTransformation = Schema.Struct({
  name: Schema.NonEmptyString,
  code: Schema.NonEmptyString,
  env: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})
export type InlineTransformation = typeof InlineTransformation.Type

export const LinkedTransformRule = Schema.Struct({
  type: Schema.Literal("transform"),
  transformation_id: Schema.String.check(
    Schema.isPattern(/^trs_[A-Za-z0-9_-]+$/, { expected: "a transformation id (trs_…)" })
  )
})
export const InlineTransformRule = Schema.Struct({
  type: Schema.Literal("transform"),
  transformation: InlineTransformation
})

/** Changes the request. `type` may also be written as `transformation`; it is read back as `transform`. */
export const TransformRule = Schema.Union([LinkedTransformRule, InlineTransformRule])
export type TransformRule = typeof TransformRule.Type

/** What remains of a deleted stored filter, beside its conditions, in a rule or step that named it. */
export const DetachedFilter = Schema.Struct({ id: Schema.String, name: Schema.String, detached_at: Schema.String })
export type DetachedFilter = typeof DetachedFilter.Type

/**
 * Accepts requests that match every target. A rule linked to a stored filter has `filter_id` and a copy of that filter's
 * conditions (`filter_snapshot` names the version); routing reads only the copy.
 */
export const FilterRule = Schema.Struct({
  type: Schema.Literal("filter"),
  ...conditionTargets,
  filter_id: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^flt_[A-Za-z0-9_-]+$/, { expected: "a stored filter's id (flt_…)" }))
  ),
  filter_snapshot: Schema.optionalKey(
    Schema.Struct({ name: Schema.String, hash: Schema.String, captured_at: Schema.String })
  ),
  detached_from_filter: Schema.optionalKey(DetachedFilter)
})
export type FilterRule = typeof FilterRule.Type

/** Delays every event once, by `delay` milliseconds from its creation. */
export const DelayRule = Schema.Struct({
  type: Schema.Literal("delay"),
  delay: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400_000 }))
})
export type DelayRule = typeof DelayRule.Type

export const RetryStrategy = Schema.Literals(["linear", "exponential"])
export type RetryStrategy = typeof RetryStrategy.Type

/** Retries after a failure: `count` retries after the first attempt, with `interval` milliseconds as the base. */
export const RetryRule = Schema.Struct({
  type: Schema.Literal("retry"),
  strategy: RetryStrategy.pipe(Schema.withDecodingDefaultKey(Effect.succeed("exponential" as const))),
  count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(5))
  ),
  interval: Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 604_800_000 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(60_000))
  ),
  /** `404`, `"500-599"`, `">400"`, `">=500"`, `"<=499"`, each with a leading `!` to exclude. Absent: every non-2xx. */
  response_status_codes: Schema.optionalKey(
    Schema.Array(Schema.Union([Schema.String, Schema.Int])).check(Schema.isBetweenLength(1, 10))
  )
})
export type RetryRule = typeof RetryRule.Type

/** One rule of a connection, as stored and read back. */
export const Rule = Schema.Union([
  DeduplicateRule,
  LinkedTransformRule,
  InlineTransformRule,
  FilterRule,
  DelayRule,
  RetryRule
])
export type Rule = typeof Rule.Type
export type RuleType = Rule["type"]
