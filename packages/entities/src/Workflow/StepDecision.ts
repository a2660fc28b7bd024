import { Clock, Effect } from "effect"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { StepDecision } from "@tidegate/model/WorkflowRun"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Database } from "@tidegate/storage/Database"
import { query } from "@tidegate/storage/Transaction"
import { readSignalled, storeSignal } from "@tidegate/storage/workflows/RunSignal"
import { partsOf, readRunning } from "@tidegate/storage/workflows/Runs"
import { decided, portsDecided } from "@tidegate/workflows/kinds/WaitStep"
import { partOf } from "@tidegate/workflows/Progress"
import { decide, type Facts, type Occurrence } from "@tidegate/workflows/Run"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { storedState } from "./RunRecord.ts"

export interface DecisionAsked {
  readonly team_id: string
  readonly run_id: string
  readonly step_id: string
  readonly approves: boolean
  readonly comment: string | null
  /** Who decides; null: an API key. */
  readonly user_id: string | null
}

interface Deciding {
  readonly planOf: (version: number) => Effect.Effect<Workflow | null, unknown, Database>
  /** Whether an occurrence has changed a run in hand and is stored; null: the run is not in hand. */
  readonly tell: (runId: string, occurrence: Occurrence) => Effect.Effect<boolean | null>
}

/** A signal evaluates no expression, so it needs neither the run's request nor the outputs. */
const noFacts: Facts = {
  trigger: { headers: {}, body: null, query: {}, path: "" },
  run: {},
  workflow: {},
  source: {}
}

/** How often it is tried again when the run has moved on meanwhile, because other steps of it end. */
const tries = 10

/**
 * Ends the wait of a step by somebody's decision. The decision is a journal entry of the run, with the entry's number as its fence:
 * so of two decisions, or of a decision and the time-out, exactly one is stored, and the caller learns which. A run in hand stores
 * it itself, because otherwise its calls under way would be lost.
 */
export const decideStep = Effect.fnUntraced(function* (
  workflowId: string,
  { planOf, tell }: Deciding,
  { approves, comment, run_id, step_id, team_id, user_id }: DecisionAsked
): Effect.fn.Return<StepDecision, GatewayError, Database> {
  const workflow = yield* query(readRunning(workflowId))
  if (workflow === null || workflow.deleted || workflow.team_id !== team_id) {
    return yield* notFound("workflow", workflowId)
  }
  for (let attempt = 0; attempt < tries; attempt++) {
    const run = yield* query(readSignalled(team_id, workflowId, run_id))
    if (run === null) return yield* notFound("workflow_run", run_id)
    const plan = yield* Effect.orElseSucceed(planOf(run.version), () => null)
    if (plan === null) {
      const message = `version ${run.version}, by which the run goes, cannot be carried out any more`
      return yield* fail("WORKFLOW_NOT_EXECUTABLE", message, { issues: [] })
    }
    const index = plan.plan.findIndex(({ step }) => step.id === step_id)
    if (index < 0) return yield* notFound("workflow_step", step_id)
    const parts = yield* query(partsOf([run_id]))
    const before = yield* inSlices(storedState(plan, parts))
    const now = yield* Clock.currentTimeMillis
    const output = decided(approves, comment, user_id, now)
    const signalled: Occurrence = { type: "signalled", step: index, output, ports: portsDecided(approves) }
    const { state } = decide(plan, noFacts, before, signalled, now)
    if (state === before) {
      const { status } = before.steps[index]!
      const message = `the step is ${status} and does not wait for a decision`
      return yield* fail("STEP_NOT_WAITING", message, { step_status: status })
    }
    const told = yield* tell(run_id, signalled)
    // When the run has moved on since it was read, its number is higher, and nothing is stored.
    const part = run.parts + 1
    const steps = JSON.stringify(partOf(before, state).progress)
    const record = { runId: run_id, part, partId: newId(prefixes.workflowPart, now), at: now, steps }
    if (told ?? (yield* query(storeSignal(record)))) {
      const decision = approves ? "approved" : "rejected"
      const when = new Date(now).toISOString()
      return {
        run_id,
        workflow_id: workflowId,
        step_id,
        decision,
        comment,
        decided_by_user_id: user_id,
        decided_at: when
      }
    }
  }
  return yield* fail("RUN_ACTIVE", "other steps of the run end at this moment: repeat the call")
})
