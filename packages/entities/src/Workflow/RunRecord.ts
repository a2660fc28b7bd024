import { Effect } from "effect"
import { newId, prefixes } from "@tidegate/model/Ids"
import { inTurns } from "@tidegate/model/LoopTurn"
import { parseQuery, storedHeaders } from "@tidegate/model/Message"
import { parseBody } from "@tidegate/rules/RequestInput"
import type { RunTransition } from "@tidegate/storage/RunJournal"
import type { DueRun, StoredPart } from "@tidegate/storage/Runs"
import type { Advanced } from "@tidegate/workflows/Advance"
import { previewOf } from "@tidegate/workflows/Preview"
import { linesOf, outputsIn, type Part, partOf, stateOf } from "@tidegate/workflows/Progress"
import { type Facts, queuedRun, type RunState } from "@tidegate/workflows/Run"
import type { Workflow } from "@tidegate/workflows/Workflow"

/** A run between its rows and what decides about it. */

const nothing = new Uint8Array(0)

/** What a run's steps read beside each other. */
export const factsOf = (
  run: DueRun,
  workflow: { readonly id: string; readonly name: string; readonly version: number }
): Facts => {
  const headers = storedHeaders(run)
  const source = { id: run.source_id, name: run.source_name }
  return {
    trigger: {
      request_id: run.request_id,
      received_at: run.ingested_at.toISOString(),
      method: run.method,
      path: run.path,
      headers,
      query: parseQuery(run.query),
      body: parseBody(headers, run.body ?? nothing),
      source
    },
    run: { id: run.id, started_at: run.created_at.toISOString(), attempt: run.attempts },
    workflow,
    source
  }
}

/** Where a run stands, by what has been stored of it. */
export const storedState = Effect.fnUntraced(function* (
  workflow: Workflow,
  parts: ReadonlyArray<StoredPart>
): Effect.fn.Return<RunState> {
  if (parts.length === 0) return queuedRun(workflow)
  const read = (lines: string | null) => (lines === null ? Effect.succeed(null) : inTurns(outputsIn(lines)))
  const stored: Array<Part> = []
  for (const { outputs, steps } of parts) {
    stored.push({ progress: JSON.parse(steps) as Part["progress"], outputs: yield* read(outputs) })
  }
  return stateOf(workflow, stored)
})

/** How many of its steps have come to what. */
export const countsOf = ({ steps }: RunState) => {
  const count = { pending: 0, running: 0, succeeded: 0, failed: 0, skipped: 0 }
  for (const { status } of steps) count[status]++
  return count
}

const isUnderWay = ({ steps }: RunState): boolean =>
  steps.some(({ status, wait }) => status === "running" && wait === null)

/** When the run goes on; null: it is at its end. What is under way stays due, so that whoever comes after this process finds it. */
const dueAt = (state: RunState, run: DueRun): number | null => {
  if (state.finishedAt !== null) return null
  if (isUnderWay(state)) return run.due_at.getTime()
  const waits = state.steps.flatMap(({ wait }) => (wait === null ? [] : [wait.until]))
  return waits.length === 0 ? run.due_at.getTime() : Math.min(...waits)
}

const errorOf = ({ plan }: Workflow, { steps, stopped }: RunState): RunTransition["error"] => {
  const failed =
    stopped === null ? steps.findIndex(({ handled, status }) => status === "failed" && !handled) : stopped.step
  const error = stopped === null ? steps[failed ?? -1]?.error : stopped.error
  if (error === null || error === undefined) return null
  const stepId = failed === null ? null : (plan[failed]?.step.id ?? null)
  return { code: error.code, message: error.message.slice(0, 2_000), stepId }
}

/** The end of a run whose plan is gone: what its steps have come to stays as it was. */
export const abandoned = (
  run: DueRun,
  error: { readonly code: string; readonly message: string },
  now: number
): RunTransition => ({
  id: run.id,
  teamId: run.team_id,
  part: run.parts + 1,
  partId: newId(prefixes.workflowPart, now),
  at: now,
  status: "failed",
  outcome: "cancelled",
  attempts: run.attempts,
  succeeded: 0,
  failed: 0,
  skipped: 0,
  running: 0,
  error: { ...error, stepId: null },
  startedAt: null,
  finishedAt: now,
  dueAt: null,
  moves: false,
  carried: null,
  steps: "{}",
  outputs: null,
  previews: null
})

/** What an advance makes of the rows of a run, with the previews of what its steps were given and gave. */
export const transitionOf = Effect.fnUntraced(function* (
  workflow: Workflow,
  run: DueRun,
  before: RunState,
  { inputs, state }: Advanced,
  part: number,
  now: number
): Effect.fn.Return<RunTransition> {
  const { outputs, progress } = partOf(before, state)
  const previews: Record<string, { input?: unknown; output?: unknown }> = {}
  for (const [step, given] of inputs) previews[step] = { input: yield* inTurns(previewOf(given)) }
  for (const step of Object.keys(outputs ?? {})) {
    previews[step] = { ...previews[step], output: yield* inTurns(previewOf(state.steps[Number(step)]!.output)) }
  }
  const due = dueAt(state, run)
  const { failed, running, skipped, succeeded } = countsOf(state)
  return {
    id: run.id,
    teamId: run.team_id,
    part,
    partId: newId(prefixes.workflowPart, now),
    at: now,
    status: state.status,
    outcome: state.outcome,
    attempts: run.attempts,
    succeeded,
    failed,
    skipped,
    running,
    error: state.finishedAt === null ? null : errorOf(workflow, state),
    startedAt: state.startedAt,
    finishedAt: state.finishedAt,
    dueAt: due,
    moves: due !== null && due !== run.due_at.getTime(),
    carried: null,
    steps: JSON.stringify(progress),
    outputs: outputs === null ? null : yield* inTurns(linesOf(outputs)),
    previews: Object.keys(previews).length === 0 ? null : JSON.stringify(previews)
  }
})
