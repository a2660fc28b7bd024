import { Schema } from "effect"
import { objectOf } from "../OutputNames.ts"
import { envelopeInputs, stepKind } from "../StepKind.ts"

/** Runs a transformation in the sandbox: nothing leaves the installation, but another process evaluates it. */
export const transformationKind = stepKind({
  kind: "transformation",
  config: Schema.Struct({}),
  settings: ["on_error"],
  resource: "trs_",
  callsAction: false,
  notTaken: "path_not_taken",
  inline: false,
  inputs: () => envelopeInputs,
  output: objectOf(...envelopeInputs),
  ports: ["out"],
  portRequired: false,
  compile: null
})
