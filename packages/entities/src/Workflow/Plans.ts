import { Effect, Result } from "effect"
import { catalogFor } from "@tidegate/storage/ActionCatalog"
import { readVersion } from "@tidegate/storage/Runs"
import { compileWorkflow, type Workflow } from "@tidegate/workflows/Workflow"

/** Versions that runs are still on. */
const mostPlans = 16

/** What runs of a version go by. */
export interface Plan {
  readonly workflow: Workflow
  readonly name: string
}

/** The plans of a workflow's versions, compiled once as long as they are in use; null: it cannot be read, or compiles no more. */
export const plansOf = (id: string) => {
  const plans = new Map<number, Plan>()
  return Effect.fnUntraced(function* (version: number) {
    const known = plans.get(version)
    if (known !== undefined) return known
    const definition = yield* readVersion(id, version)
    if (definition === null) return null
    const { edges, name, steps } = definition
    const compiled = compileWorkflow(steps, edges, yield* catalogFor(steps))
    if (Result.isFailure(compiled)) {
      yield* Effect.logError("a workflow's version does not compile any more", { workflow_id: id, version })
      return null
    }
    if (plans.size >= mostPlans) plans.delete(plans.keys().next().value!)
    const plan = { workflow: compiled.success, name }
    plans.set(version, plan)
    return plan
  })
}
