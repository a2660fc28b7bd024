import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { describedAs } from "./DescribedAs.ts"
import { optional } from "./Members.ts"

/** The filter language for the document. Any JSON is accepted here; the compiler of conditions validates it. */

const scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])
const comparable = Schema.Union([Schema.Finite, Schema.String])
const texts = Schema.Union([Schema.String, Schema.Array(Schema.String)])
const reference = Schema.Struct({ $ref: Schema.String })
/** Its items are conditions. If the schema said that, generated types would directly refer to themselves. */
const list = Schema.Array(Schema.Json)
const orReference = <S extends Schema.Top>(schema: S) => optional(Schema.Union([schema, reference]))

const self = Schema.suspend((): Schema.Codec<Schema.Json> => Condition).annotate({ identifier: "NestedCondition" })

const Operators = Schema.StructWithRest(
  Schema.Struct({
    $eq: optional(Schema.Json),
    $neq: optional(Schema.Json),
    $gt: orReference(comparable),
    $gte: orReference(comparable),
    $lt: orReference(comparable),
    $lte: orReference(comparable),
    $in: orReference(Schema.Union([Schema.Array(scalar), comparable])),
    $nin: orReference(Schema.Union([Schema.Array(scalar), comparable])),
    $contains: orReference(comparable),
    $startsWith: orReference(texts),
    $endsWith: orReference(texts),
    $regex: optional(Schema.String.check(Characters.upTo(512)).annotate({ description: "RE2 syntax, unanchored" })),
    $exist: optional(Schema.Boolean),
    $or: optional(Schema.Array(self)),
    $and: optional(Schema.Array(self)),
    $not: optional(self),
    $ref: optional(Schema.String.annotate({ description: "A path in the same document: equality with what is there" }))
  }),
  [Schema.Record(Schema.String, self)]
).annotate({
  identifier: "ConditionOperators",
  description: "Operators and field names; all must hold. Names may also be written in snake case, and without the $."
})

/** A value to equal, a list in which each item has to match some element, or an object of fields and operators. */
export const Condition: Schema.Codec<Schema.Json> = Schema.Json.pipe(
  describedAs(Schema.Union([scalar, list, Operators]))
).annotate({
  identifier: "Condition",
  description:
    "The condition on a value: a plain value (equality), a list (some element matches each item), or an object of fields and operators."
})

/** The same for a text: the path or the method. */
export const TextCondition: Schema.Codec<Schema.Json> = Schema.Json.pipe(
  describedAs(Schema.Union([Schema.String, Operators]))
).annotate({ identifier: "TextCondition", description: "The condition on a text: an equal text, or operators." })

/** The same for headers or a query: an object by name. */
export const NamedCondition: Schema.Codec<Schema.Json> = Schema.Json.pipe(
  describedAs(Schema.Union([list, Operators]))
).annotate({
  identifier: "NamedCondition",
  description: "What headers or a query have to meet: conditions by name, and operators."
})
