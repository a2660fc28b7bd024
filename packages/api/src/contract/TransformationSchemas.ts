import { Schema } from "effect"
import { maxCode } from "@tidegate/model/BodyLimits"
import { Values } from "@tidegate/model/Values"
import { runBody, transformationBody } from "./Examples.ts"
import { Id, Name, optional, setting } from "./Members.ts"

export const Code = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(maxCode)).annotate({
  description: "JavaScript that calls addHandler with what makes one request of another; at most 1 MiB"
})

const Variables = Schema.Record(
  Schema.String.check(Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]*$/u)),
  Schema.String
).check(Schema.isMaxProperties(100))

/** Variables of the code. */
export const Env = Schema.NullOr(Variables).annotate({
  description: "Variables, as process.env and context.env; replaced whole. At most 100, and 64 KiB"
})

const env = optional(Env)

export const TransformationWrite = Schema.Struct({ name: Name, code: Code, env }).annotate({
  identifier: "TransformationWrite",
  examples: [transformationBody]
})

export const TransformationPatch = Schema.Struct({
  name: optional(Name),
  code: optional(Code),
  env
}).annotate({ identifier: "TransformationPatch" })

const scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])

const Sample = Schema.Struct({
  headers: optional(Values),
  body: optional(Schema.Json),
  query: optional(
    Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Union([scalar, Schema.Array(scalar)]))]).annotate({
      description: "A query string or an object; the answer has it in the same form"
    })
  ),
  path: optional(
    Schema.String.check(Schema.isPattern(/^\//u), Schema.isMaxLength(2048)).annotate({ description: "/ unless told" })
  ),
  method: optional(
    Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]).annotate({
      description: "POST unless told"
    })
  )
}).annotate({ identifier: "RequestSample" })

const id = setting(Id)

export const TransformationRunInput = Schema.Struct({
  transformation_id: setting(Id.annotate({ description: "A stored transformation; goes before code" })),
  code: setting(Code),
  env: optional(Env.annotate({ description: "Instead of the variables that are stored with the transformation" })),
  request: optional(Sample),
  timestamp: optional(Schema.String.annotate({ description: "What the code takes for now: ISO 8601" })),
  context: optional(Schema.Struct({ connection_id: id, source_id: id, destination_id: id, request_id: id }))
}).annotate({
  identifier: "TransformationRunInput",
  description: "What to run, by id or as code, and on what.",
  examples: [runBody]
})
