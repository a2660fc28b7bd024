import { Schema } from "effect"
import { Connection } from "@tidegate/model/Connection"
import { DetachedFilter } from "@tidegate/model/Rule"
import { Condition, NamedCondition, TextCondition } from "../Condition.ts"
import { closed, describedAs } from "../DescribedAs.ts"
import { Name, optional, setting } from "../Members.ts"
import { DestinationRecord } from "../destination/DestinationDocument.ts"
import { SourceRecord } from "../source/SourceDocument.ts"
import { ids } from "../ExampleIds.ts"
import { Code, Env } from "../Transformation.ts"
import { example, rules } from "./Example.ts"

/** Rules for the document. `RuleSet` validates what is written, and refuses unknown members. */

const fields = (description: string) =>
  optional(
    Schema.Array(Schema.String)
      .check(Schema.isMinLength(1), Schema.isMaxLength(50))
      .annotate({ description, examples: [["body.id"]] })
  )

export const DeduplicateRule = Schema.Struct({
  type: Schema.Literal("deduplicate"),
  window: Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 3_600_000 })).annotate({
    description: "The window in milliseconds: equal requests within it after the first are ignored"
  }),
  include_fields: fields("What must agree; with exclude_fields it cannot be used"),
  exclude_fields: fields("What need not agree"),
  headers: setting(NamedCondition),
  body: setting(Condition)
})
  .check(closed)
  .annotate({ identifier: "DeduplicateRule" })

const transformation_id = Schema.String.check(Schema.isPattern(/^trs_[A-Za-z0-9_-]+$/u)).annotate({
  examples: [ids.transformation]
})

const TransformRule = Schema.Struct({
  type: Schema.Literals(["transform", "transformation"]),
  transformation_id
})
  .check(closed)
  .annotate({ identifier: "TransformRule", description: "Read back as `transform`." })

const ShownTransformRule = Schema.Struct({ type: Schema.Literal("transform"), transformation_id })
  .check(closed)
  .annotate({ identifier: "ShownTransformRule" })

const InlineTransformRule = Schema.Struct({
  type: Schema.Literals(["transform", "transformation"]),
  transformation: Schema.Struct({ name: Name, code: Code, env: optional(Env) }).check(closed)
})
  .check(closed)
  .annotate({
    identifier: "InlineTransformRule",
    description: "Creates the transformation, or replaces the one with this name; the stored rule has its id."
  })

const FilterRule = Schema.Struct({
  type: Schema.Literal("filter"),
  headers: setting(NamedCondition),
  body: setting(Condition),
  query: setting(NamedCondition),
  path: setting(TextCondition),
  filter_id: optional(
    Schema.String.check(Schema.isPattern(/^flt_[A-Za-z0-9_-]+$/u)).annotate({
      description: "A stored filter whose conditions the rule uses, instead of its own",
      examples: [ids.filter]
    })
  ),
  filter_snapshot: optional(
    Schema.Struct({ name: Schema.String, hash: Schema.String, captured_at: Schema.String }).annotate({
      description: "The version of the stored filter from which the conditions are copied"
    })
  ),
  detached_from_filter: optional(
    DetachedFilter.annotate({ description: "The deleted filter from which the conditions were copied" })
  )
})
  .check(closed, Schema.isMinProperties(2))
  .annotate({
    identifier: "FilterRule",
    description:
      "Passes requests that meet all conditions; filter_id or one of headers, body, query and path is required."
  })

const DelayRule = Schema.Struct({
  type: Schema.Literal("delay"),
  delay: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400_000 })).annotate({
    description: "Milliseconds from the event's creation to its first attempt"
  })
})
  .check(closed)
  .annotate({ identifier: "DelayRule" })

const RetryRule = Schema.Struct({
  type: Schema.Literal("retry"),
  strategy: optional(Schema.Literals(["linear", "exponential"]).annotate({ description: "Default: exponential" })),
  count: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 })).annotate({
      description: "The number of retries after the first attempt (default: 5)"
    })
  ),
  interval: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 604_800_000 })).annotate({
      description:
        "Milliseconds to the first retry (default: 60000); with `exponential` each wait is twice the previous one"
    })
  ),
  response_status_codes: optional(
    Schema.Array(
      Schema.Union([
        Schema.String.check(Schema.isPattern(/^!?(?:\d{3}(?:-\d{3})?|(?:>=|<=|>|<)\d{3})$/u)),
        Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 999 }))
      ])
    )
      .check(Schema.isMinLength(1), Schema.isMaxLength(10))
      .annotate({
        description: "Which response statuses are retried; a leading ! excludes (default: all that are not 2xx)",
        examples: [["429", "500-599", ">=500", "!501"]]
      })
  )
})
  .check(closed)
  .annotate({ identifier: "RetryRule" })

export const Rules = Schema.Array(
  Schema.Union([DeduplicateRule, TransformRule, InlineTransformRule, FilterRule, DelayRule, RetryRule])
)
  .check(Schema.isMaxLength(50))
  .annotate({
    description:
      "At most one of each type, but any number of filters. Stored in the order deduplicate, transform, filter, delay, retry.",
    examples: [rules]
  })

const ShownRule = Schema.Union([DeduplicateRule, ShownTransformRule, FilterRule, DelayRule, RetryRule]).annotate({
  identifier: "ConnectionRule"
})

/** A connection as it is returned. */
export const ConnectionRecord = Schema.Struct({
  ...Connection.fields,
  source: SourceRecord,
  destination: DestinationRecord,
  rules: Connection.fields.rules.pipe(describedAs(Schema.Array(ShownRule)))
}).annotate({
  identifier: "Connection",
  description: "A connection with its source and its destination; its rules are in the order in which they run.",
  examples: [example.record]
})
