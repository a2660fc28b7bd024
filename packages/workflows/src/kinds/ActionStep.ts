import { Schema } from "effect"
import { stepKind } from "../StepKind.ts"

/** Calls an action, saved or written into the step. The action defines its inputs, and whether it is pure. */
export const actionKind = stepKind({
  kind: "action",
  config: Schema.Struct({
    formatter: Schema.optionalKey(
      Schema.Struct({
        engine_version: Schema.optionalKey(Schema.String),
        options: Schema.optionalKey(
          Schema.Record(Schema.String, Schema.Json.annotate({ description: "As the operation's catalog entry has it" }))
        )
      })
    )
  }),
  settings: ["timeout_ms", "retry", "on_error", "for_each", "concurrency", "compensate"],
  resource: "act_",
  callsAction: true,
  notTaken: "path_not_taken",
  inline: true,
  inputs: () => null,
  output: null,
  ports: ["out"],
  portRequired: false,
  compile: null
})
