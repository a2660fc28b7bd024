import { Result, Schema } from "effect"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { isObject } from "./Input.ts"
import { nameUpTo, optional, setting } from "./Members.ts"
import { bodyOf, type Situation } from "./Resource.ts"
import { workflow, type WorkflowFields } from "./Workflow.ts"

/** The change of one step of a workflow, which leaves the others as they are. */

const version = optional(
  Schema.Int.annotate({
    message: "must be a whole number",
    description: "The version that the change is based on: refused when there is a later one"
  })
)

/** The check of the definition says what is wrong with a step. */
const Members = Schema.Record(
  Schema.String,
  Schema.Json.annotate({ description: "As in the step of a workflow" })
).annotate({ message: "must be an object" })

export const stepPatchBody = bodyOf(
  Schema.Struct({
    name: optional(nameUpTo(155)),
    resource_id: setting(Schema.String),
    action: setting(Members),
    invocation_inputs: setting(Members),
    config: optional(Members),
    position: optional(Members),
    version
  }).annotate({ identifier: "WorkflowStepPatch" })
)

export const stepPatchExample = { name: "CRM of the shop" } as const

/** `patch`: null removes the step. */
export const stepChangeMessage = Schema.Struct({
  patch: Schema.NullOr(stepPatchBody.message),
  version: Schema.NullOr(Schema.Int)
})
export type StepChange = typeof stepChangeMessage.Type

const idOf = (part: Schema.Json): Schema.Json | undefined => (isObject(part) ? part["id"] : undefined)

const touches = (edge: Schema.Json, stepId: string): boolean =>
  isObject(edge) && (edge["source_step_id"] === stepId || edge["target_step_id"] === stepId)

/** A removed step takes its edges with it; a chain closes again. */
export const changeStep =
  (stepId: string, { patch, version }: StepChange, situation: Situation) =>
  (stored: WorkflowFields): ReturnType<ReturnType<typeof workflow.change>> => {
    const isBasedOn = workflow.change(version === null ? {} : { version }, situation)(stored)
    if (Result.isFailure(isBasedOn)) return isBasedOn
    if (!stored.steps.some((step) => idOf(step) === stepId)) {
      return Result.fail<GatewayError>(notFound("workflow_step", stepId))
    }
    if (patch === null) {
      const steps = stored.steps.filter((step) => idOf(step) !== stepId)
      const removed = workflow.change({ steps }, situation)(stored)
      // The edges of a chain have been made anew.
      return Result.map(removed, (next) =>
        next.edges === stored.edges ? { ...next, edges: stored.edges.filter((edge) => !touches(edge, stepId)) } : next
      )
    }
    const { version: _, ...members } = patch
    const steps = stored.steps.map((step) => (idOf(step) === stepId ? Object.assign({}, step, members) : step))
    return workflow.change({ steps }, situation)(stored)
  }
