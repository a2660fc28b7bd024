import { Clock, Effect } from "effect"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { runEnds } from "@tidegate/model/RunEnds"
import type { CancelledRun, StartedRerun } from "@tidegate/model/WorkflowRun"
import { changeOf, keepsBody, type RerunInput } from "@tidegate/resources/RerunInput"
import type { Database } from "@tidegate/storage/Database"
import { query } from "@tidegate/storage/Transaction"
import type { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import { readRunning } from "@tidegate/storage/workflows/Runs"
import { readSteered, storeRerun } from "@tidegate/storage/workflows/RunSteering"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { giveUp } from "./GiveUp.ts"

/** What people do with a single run: they cancel it, or begin it again. */

const cancelled = { code: runEnds.cancelled, message: "the run was cancelled" }

/** How often a cancel reads a run again that has moved on meanwhile. Its calls are aborted first, so once is the rule. */
const attempts = 10

const present = Effect.fnUntraced(function* (workflowId: string, team_id: string) {
  const workflow = yield* query(readRunning(workflowId))
  if (workflow === null || workflow.deleted || workflow.team_id !== team_id) {
    return yield* notFound("workflow", workflowId)
  }
  return workflow
})

/**
 * Ends an unfinished run from its stored state, whatever it waits for. `abort` interrupts the run if this process has it in hand: its
 * calls are aborted. A call whose answer has not come may have had its effect. If the process dies after that, the run goes on
 * elsewhere, and the caller repeats the cancel.
 */
export const cancelRun = Effect.fnUntraced(function* (
  workflowId: string,
  { run_id, team_id }: { readonly team_id: string; readonly run_id: string },
  abort: (runId: string, part: number) => Effect.Effect<void>
): Effect.fn.Return<CancelledRun, GatewayError, Database | RunJournal> {
  yield* present(workflowId, team_id)
  const answer: CancelledRun = { id: run_id, workflow_id: workflowId, status: "failed", outcome: "cancelled" }
  for (let tried = 0; tried < attempts; tried++) {
    const run = yield* query(readSteered(team_id, workflowId, run_id))
    if (run === null) return yield* notFound("workflow_run", run_id)
    if (run.finished) {
      if (run.outcome === "cancelled") return answer
      return yield* fail("RUN_ENDED", "the run has ended: only a run that has not ended can be cancelled", {
        outcome: run.outcome
      })
    }
    yield* abort(run_id, run.parts)
    const moved = yield* giveUp(run, cancelled)
    if (moved === "stored") {
      // It may have been read again between the abort and its end.
      yield* abort(run_id, run.parts)
      return answer
    }
    if (moved !== "superseded") break
  }
  return yield* fail("QUEUE_UNAVAILABLE", "the run could not be ended now; repeat the request")
})

/** Ends a run whose parent has ended; nothing, if it has ended itself. */
export const cancelChild = (...given: Parameters<typeof cancelRun>) =>
  cancelRun(...given).pipe(
    Effect.catchIf(
      ({ code }) => code === "RUN_ENDED" || code === "NOT_FOUND",
      () => Effect.void
    )
  )

/** Begins a run again as a new one, with the same or a changed request, by the version that is asked for. */
export const rerun = Effect.fnUntraced(function* (
  workflowId: string,
  shard: number,
  planOf: (version: number) => Effect.Effect<Workflow | null, unknown, Database>,
  asked: { readonly team_id: string; readonly run_id: string; readonly new_id: string; readonly input: RerunInput }
): Effect.fn.Return<StartedRerun, GatewayError, Database> {
  const { input, new_id, run_id, team_id } = asked
  const { status } = yield* present(workflowId, team_id)
  const run = yield* query(readSteered(team_id, workflowId, run_id))
  if (run === null) return yield* notFound("workflow_run", run_id)
  if (status === "disabled" || status === "draft") {
    return yield* fail("WORKFLOW_NOT_EXECUTABLE", `the workflow is ${status}`, { issues: [] })
  }
  const wanted = input.version ?? "pinned"
  const version = wanted === "pinned" ? run.version : wanted === "current" ? run.current_version : wanted
  const gone = notFound("workflow_version", String(version))
  const plan = yield* Effect.orElseSucceed(planOf(version), () => null)
  if (plan === null) return yield* gone
  const stored = yield* storeRerun({
    id: new_id,
    team_id,
    workflow_id: workflowId,
    of: run_id,
    version,
    steps: plan.plan.length,
    shard,
    at: new Date(yield* Clock.currentTimeMillis),
    change: changeOf(input),
    keepsBody: keepsBody(input)
  })
  if (stored === "version gone") return yield* gone
  if (stored === "input gone") {
    return yield* fail("PAYLOAD_UNAVAILABLE", "retention took what the run began with")
  }
  return { id: new_id, workflow_id: workflowId, workflow_version: version, status: "queued", rerun_of: run_id }
})
