import { Schema } from "effect"
import { objectOf } from "../OutputNames.ts"
import { envelopeInputs, stepKind } from "../StepKind.ts"

/** Sends to a destination, with its rate limit, credentials and egress guard. */
export const destinationKind = stepKind({
  kind: "destination",
  config: Schema.Struct({}),
  settings: ["timeout_ms", "retry", "on_error", "for_each", "concurrency", "compensate"],
  resource: "des_",
  callsAction: false,
  notTaken: "path_not_taken",
  inline: false,
  inputs: () => envelopeInputs,
  output: objectOf("status", "headers", "body", "duration_ms"),
  ports: ["out"],
  portRequired: false,
  compile: null
})
