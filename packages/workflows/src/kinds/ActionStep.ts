import { Schema } from "effect"
import { stepKind } from "../StepKind.ts"

/** Calls an action, a saved one or one written into the step. What it takes, and whether it is pure, its action says. */
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
  settings: ["timeout_ms", "retry", "on_error", "for_each"],
  resource: "act_",
  callsAction: true,
  notTaken: "path_not_taken",
  inline: true,
  inputs: () => null,
  output: null,
  ports: () => ["out"],
  portRequired: false,
  compile: null
})
