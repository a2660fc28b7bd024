import type { Schema } from "effect"
import { stepKinds } from "@tidegate/workflows/StepKinds"

/** JSON Schemas of the outputs of the kinds of steps, by name. The output of an action step has the schema of its action. */
export const stepOutputs: Readonly<Record<string, Schema.JsonObject>> = Object.fromEntries(
  stepKinds.flatMap(({ kind, output }) => {
    const description = `The output of a ${kind} step: {{steps.<id>.output}}`
    return output === null ? [] : [[`Output_${kind}`, Object.assign({ description }, output)]]
  })
)
