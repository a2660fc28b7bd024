import { Effect } from "effect"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { Database } from "@tidegate/storage/Database"
import type { Facts } from "@tidegate/workflows/RunState"
import type { Workflow } from "@tidegate/workflows/Workflow"

/** The compiled version of a workflow; null: it cannot be compiled any more. */
export type PlanOf = (version: number) => Effect.Effect<Workflow | null, unknown, Database>

/** A change of a stored run evaluates no expression, so it needs neither the run's request nor the outputs. */
export const noFacts: Facts = {
  trigger: { headers: {}, body: null, query: {}, path: "" },
  run: {},
  workflow: {},
  source: {}
}

/** The plan of a run of this version, and the index of a step in it. */
export const plannedStep = Effect.fnUntraced(function* (
  planOf: PlanOf,
  version: number,
  step_id: string
): Effect.fn.Return<{ readonly plan: Workflow; readonly index: number }, GatewayError, Database> {
  const plan = yield* Effect.orElseSucceed(planOf(version), () => null)
  if (plan === null) {
    const message = `version ${version}, by which the run goes, cannot be carried out any more`
    return yield* fail("WORKFLOW_NOT_EXECUTABLE", message, { issues: [] })
  }
  const index = plan.plan.findIndex(({ step }) => step.id === step_id)
  return index < 0 ? yield* notFound("workflow_step", step_id) : { plan, index }
})
