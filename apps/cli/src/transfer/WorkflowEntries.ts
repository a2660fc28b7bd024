import { isSameMember } from "../workflows/Difference.ts"
import { resourceOfStep } from "../workflows/StepResources.ts"
import type { Entry, KindOf } from "./Kind.ts"
import { referenceIn, referenceOf, type Target } from "./References.ts"
import { isObject, type Json, type JsonObject } from "./Json.ts"

/*
 * Workflows in a file. `source_id` and the `resource_id` of a step are names, as in the files of `workflows push`. Inside they are
 * references like all others.
 */

const refer = (target: Target | null, value: Json | undefined): Json | undefined =>
  target !== null && typeof value === "string" ? referenceOf(target, value) : value

/** The name, where the place says what is named. */
const nameAt = (target: Target | null, value: Json | undefined): Json | undefined => {
  const reference = referenceIn(value)
  return reference !== null && reference.target === target ? reference.name : value
}

const converted =
  (convert: typeof refer) =>
  (entry: Entry): Entry => {
    const { source_id, steps } = entry
    const ofStep = (step: Json): Json => {
      if (!isObject(step) || step["resource_id"] === undefined) return step
      return { ...step, resource_id: convert(resourceOfStep(step["kind"]), step["resource_id"])! }
    }
    return {
      ...entry,
      ...(source_id === undefined ? {} : { source_id: convert("source", source_id)! }),
      ...(Array.isArray(steps) ? { steps: (steps as ReadonlyArray<Json>).map(ofStep) } : {})
    }
  }

export const kindOfWorkflow = {
  singular: "workflow",
  members: ["description", "status", "source_id", "run_label", "triggers", "steps", "edges"],
  needed: ["steps"],
  refers: ["source_id", "triggers", "steps", "edges"],
  entry: (): JsonObject => ({}),
  isSame: (member: string, current: Entry, wanted: Entry) => isSameMember(current, wanted, member),
  read: converted(refer),
  write: converted(nameAt)
} satisfies KindOf
