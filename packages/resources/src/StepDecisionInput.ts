import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { bodyOf } from "./Resource.ts"

/** The decision that a step of a run waits for. */
export const stepDecisionBody = bodyOf(
  Schema.Struct({
    decision: Schema.Literals(["approve", "reject"]),
    comment: Schema.optionalKey(
      Schema.NullOr(Schema.String.check(Characters.upTo(2_000))).annotate({
        description: "It is in the output of the step, and is kept as long as the run's record"
      })
    )
  }).annotate({ identifier: "StepDecisionInput" })
)

export const example = { decision: "approve", comment: "The customer has confirmed it" } as const
