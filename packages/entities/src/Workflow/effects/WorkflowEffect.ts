import { Effect } from "effect"
import { Sharding } from "effect/cluster"
import { storedHeaders } from "@tidegate/model/Message"
import type { Database } from "@tidegate/storage/Database"
import { callWorkflow, childLimits, type NotCalled } from "@tidegate/storage/workflows/ChildRuns"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import { longestCall, waitingForRun } from "@tidegate/workflows/kinds/WorkflowStep"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import { wakeUps } from "../../dispatch/WakeUps.ts"
import { shardOf } from "../../Shards.ts"
import { unreached } from "./StoreCall.ts"

const refused: { readonly [why in NotCalled]: StepError } = {
  gone: { code: "RESOURCE_DELETED", message: "the workflow was deleted", final: true },
  inactive: { code: "WORKFLOW_NOT_EXECUTABLE", message: "the workflow is a draft or disabled", final: true },
  too_deep: {
    code: "CALL_LIMIT_REACHED",
    message: `workflows call each other more than ${childLimits.depth} deep`,
    final: true
  },
  too_many: {
    code: "CALL_LIMIT_REACHED",
    message: `a run calls at most ${childLimits.children} workflows, and ${childLimits.tree} with those that they call`,
    final: true
  },
  ended: { code: "RUN_ENDED", message: "the run has ended", final: true }
}

/** Begins the run of another workflow. Its end is an arrival for this workflow, which continues the step (`Arrivals.ts`). */
export const makeWorkflowStep = Effect.gen(function* () {
  const stored = yield* Effect.context<Database>()
  const sharding = yield* Sharding.Sharding
  const { wakeWorkflow } = yield* wakeUps
  return Effect.fnUntraced(function* (
    { context, inputs, startedAt, step }: StepEffect,
    run: DueRun
  ): Effect.fn.Return<Outcome> {
    const { id, team_id } = run
    const workflow_id = String(context.workflow["id"])
    const child_workflow_id = step.step.resource_id!
    const called = yield* callWorkflow({
      team_id,
      parent_run_id: id,
      step_id: step.step.id,
      beganAt: startedAt,
      workflow_id,
      shard: shardOf(sharding, workflow_id),
      child_workflow_id,
      child_shard: shardOf(sharding, child_workflow_id),
      input: JSON.stringify(inputs.values["input"] ?? {}),
      headers: storedHeaders(run)
    }).pipe(
      Effect.provideContext(stored),
      Effect.catchTag("SqlError", () => Effect.succeed(null))
    )
    if (called === null) return { kind: "failed", error: unreached }
    if (typeof called === "string") return { kind: "failed", error: refused[called] }
    // If it is lost, the poller finds the run.
    yield* Effect.forkDetach(wakeWorkflow(child_workflow_id))
    return waitingForRun(startedAt + longestCall(step.step.config))
  })
})
