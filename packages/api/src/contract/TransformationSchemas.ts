import { Schema } from "effect"
import { Values } from "@tidegate/model/Values"
import { Code, Env } from "@tidegate/resources/Transformation"
import { runBody } from "./Examples.ts"
import { Id, optional, setting } from "@tidegate/resources/Members"

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
