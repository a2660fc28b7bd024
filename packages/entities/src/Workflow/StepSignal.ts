import { Clock, Effect } from "effect"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Database } from "@tidegate/storage/Database"
import { query } from "@tidegate/storage/Transaction"
import { readSignalled, storeSignal } from "@tidegate/storage/workflows/RunSignal"
import { partsOf, readRunning } from "@tidegate/storage/workflows/Runs"
import { awaitedBy, type Signaller } from "@tidegate/workflows/kinds/WaitStep"
import { linesOf, partOf, progressText } from "@tidegate/workflows/Progress"
import { decide } from "@tidegate/workflows/Run"
import type { Occurrence } from "@tidegate/workflows/RunState"
import { noFacts, type PlanOf, plannedStep } from "./PlannedStep.ts"
import { storedState } from "./RunRecord.ts"

/** The step that is signalled. */
export interface SignalledStep {
  readonly team_id: string
  readonly run_id: string
  readonly step_id: string
}

export interface Signalling {
  readonly planOf: PlanOf
  /** Whether an occurrence has changed a run in hand and is stored; null: the run is not in hand. */
  readonly tell: (runId: string, occurrence: Occurrence) => Effect.Effect<boolean | null>
}

type Signalled = Extract<Occurrence, { readonly type: "signalled" }>

/** How often it is tried again when the run has moved on meanwhile, because other steps of it end. */
const tries = 10

/**
 * Gives a step the signal that it waits for, and returns its time (Unix ms). The signal is a journal entry of the run, with the entry's
 * number as its fence: so of two signals, or of a signal and the time-out, exactly one is stored, and the caller learns which. A run in
 * hand stores it itself, because otherwise its calls under way would be lost.
 */
export const signalStep = Effect.fnUntraced(function* (
  workflowId: string,
  { planOf, tell }: Signalling,
  { run_id, step_id, team_id }: SignalledStep,
  awaited: Signaller,
  signalAt: (now: number) => Omit<Signalled, "type" | "step">
): Effect.fn.Return<number, GatewayError, Database> {
  const workflow = yield* query(readRunning(workflowId))
  if (workflow === null || workflow.deleted || workflow.team_id !== team_id) {
    return yield* notFound("workflow", workflowId)
  }
  for (let attempt = 0; attempt < tries; attempt++) {
    const run = yield* query(readSignalled(team_id, workflowId, run_id))
    if (run === null) return yield* notFound("workflow_run", run_id)
    const { index, plan } = yield* plannedStep(planOf, run.version, step_id)
    const parts = yield* query(partsOf([run_id]))
    const before = yield* inSlices(storedState(plan, parts))
    const now = yield* Clock.currentTimeMillis
    const signalled: Signalled = { type: "signalled", step: index, ...signalAt(now) }
    const isAwaited = awaitedBy(plan.plan[index]!.step) === awaited
    const state = isAwaited ? decide(plan, noFacts, before, signalled, now).state : before
    if (state === before) {
      const { status } = before.steps[index]!
      const what = { approval: "decision", callback: "callback", event: "request", run: "run" }[awaited]
      const message = `the step is ${status} and does not wait for a ${what}`
      return yield* fail("STEP_NOT_WAITING", message, { step_status: status })
    }
    const told = yield* tell(run_id, signalled)
    // When the run has moved on since it was read, its number is higher, and nothing is stored.
    const part = run.parts + 1
    const { outputs, progress } = partOf(before, state)
    const record = {
      runId: run_id,
      part,
      partId: newId(prefixes.workflowPart, now),
      at: now,
      steps: progressText(progress),
      outputs: yield* inSlices(linesOf(outputs))
    }
    if (told ?? (yield* query(storeSignal(record)))) return now
  }
  return yield* fail("RUN_ACTIVE", "other steps of the run end at this moment: repeat the call")
})
