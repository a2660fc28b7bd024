import { Schema } from "effect"
import { Id } from "./Members.ts"
import { bodyOf } from "./Resource.ts"

/** Which step of a run is to be tried again. */
export const stepRetryBody = bodyOf(
  Schema.Struct({ step_id: Id.annotate({ description: "A step that failed" }) }).annotate({
    identifier: "StepRetryInput"
  })
)

export const example = { step_id: "to_crm" } as const
