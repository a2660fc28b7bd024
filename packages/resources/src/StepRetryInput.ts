import { Schema } from "effect"
import { Id } from "./Members.ts"
import { bodyOf } from "./Resource.ts"

/** The step of a run to retry. */
export const stepRetryBody = bodyOf(
  Schema.Struct({ step_id: Id.annotate({ description: "A step that failed" }) }).annotate({
    identifier: "StepRetryInput"
  })
)

export const example = { step_id: "to_crm" } as const
