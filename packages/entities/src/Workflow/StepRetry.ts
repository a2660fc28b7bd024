import { Clock, Effect } from "effect"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { RetriedStep } from "@tidegate/model/WorkflowRun"
import type { Database } from "@tidegate/storage/Database"
import { readRetryable, storeRetry } from "@tidegate/storage/workflows/RunRetry"
import { partsOf, readRunning } from "@tidegate/storage/workflows/Runs"
import { query } from "@tidegate/storage/Transaction"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { limits } from "@tidegate/workflows/Limits"
import { linesOf, partOf, progressText } from "@tidegate/workflows/Progress"
import { decide } from "@tidegate/workflows/Run"
import { mayRetry } from "@tidegate/workflows/RunState"
import { isUndone } from "@tidegate/workflows/Undo"
import { noFacts, type PlanOf, plannedStep } from "./PlannedStep.ts"
import { countsOf, storedState } from "./RunRecord.ts"

/** The step and run to retry. `retry_id`: made once by the caller; a repeated request with the same one changes nothing. */
export interface StepRetryAsked {
  readonly team_id: string
  readonly run_id: string
  readonly step_id: string
  readonly retry_id: string
}

/**
 * Queues an ended run again, from one of its failed steps, or from one with failed elements of its list. Succeeded steps and
 * elements stay. The step and all steps that follow from it begin again, with the same version and trigger.
 */
export const retryStep = Effect.fnUntraced(function* (
  workflowId: string,
  shard: number,
  planOf: PlanOf,
  { retry_id, run_id, step_id, team_id }: StepRetryAsked
): Effect.fn.Return<RetriedStep, GatewayError, Database> {
  const workflow = yield* query(readRunning(workflowId))
  if (workflow === null || workflow.deleted || workflow.team_id !== team_id) {
    return yield* notFound("workflow", workflowId)
  }
  const run = yield* query(readRetryable(team_id, workflowId, run_id))
  if (run === null) return yield* notFound("workflow_run", run_id)
  const answer = (name: string): RetriedStep => ({
    id: run.id,
    workflow_id: workflowId,
    workflow_version: run.version,
    status: "queued",
    retry_outbox_id: retry_id,
    retry_step: { step_id, name }
  })
  if (workflow.status === "disabled" || workflow.status === "draft") {
    return yield* fail("WORKFLOW_NOT_EXECUTABLE", `the workflow is ${workflow.status}`, { issues: [] })
  }
  const { index, plan } = yield* plannedStep(planOf, run.version, step_id)
  const name = plan.plan[index]!.step.name
  if (run.retry_id === retry_id) return answer(name)
  const active = fail("RUN_ACTIVE", "the run is not at its end: a step can be tried again then")
  if (run.status === "queued" || run.status === "running") return yield* active
  const parts = yield* query(partsOf([run_id]))
  const before = yield* inSlices(storedState(plan, parts))
  const { status } = before.steps[index]!
  if (!mayRetry(plan, before, index)) {
    const message = isUndone(plan, before.steps)
      ? "the run was undone: only a compensation that has not succeeded can be tried again. Begin the run again instead"
      : `the step is ${status}: one that failed can be tried again`
    return yield* fail("STEP_NOT_RETRYABLE", message, { step_status: status })
  }
  if (run.attempts >= limits.beginnings) {
    const message = `the run was begun ${run.attempts} times: it is not taken up again`
    return yield* fail("STEP_NOT_RETRYABLE", message, { step_status: status })
  }
  if (run.expired_at !== null) {
    const expired_at = run.expired_at.toISOString()
    return yield* fail("RUN_PAYLOAD_EXPIRED", "retention took what the run began with", { expired_at })
  }
  const now = yield* Clock.currentTimeMillis
  const { state } = decide(plan, noFacts, before, { type: "retried", step: index }, now)
  const { outputs, progress } = partOf(before, state)
  const counts = countsOf(state)
  const retry = storeRetry({
    id: retry_id,
    runId: run_id,
    stepId: step_id,
    shard,
    part: run.parts + 1,
    partId: newId(prefixes.workflowPart, now),
    at: now,
    succeeded: counts.succeeded,
    failed: counts.failed,
    skipped: counts.skipped,
    steps: progressText(progress),
    outputs: yield* inSlices(linesOf(outputs))
  })
  return (yield* query(retry)) ? answer(name) : yield* active
})
