import { Context, Effect } from "effect"
import { storedHeaders } from "@tidegate/model/Message"
import type { RunTransition } from "@tidegate/storage/workflows/RunJournal"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { metrics } from "@tidegate/telemetry/Metrics"
import { type RunTrace, Tracing } from "@tidegate/telemetry/Tracing"
import { type Fields, LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import type { RunState, StepState } from "@tidegate/workflows/RunState"
import type { Workflow } from "@tidegate/workflows/Workflow"

/** The metrics, log lines and spans of stored transitions of runs. */

type Limits = Context.Service.Shape<typeof LineLimits>

/** The lines of a process: their limits are for the runs of all workflows together. */
const RunLines = Context.Reference<(limits: Limits) => { readonly run: WideLines; readonly step: WideLines }>(
  "@tidegate/entities/Workflow/RunLines",
  {
    defaultValue: () => {
      let made: { readonly run: WideLines; readonly step: WideLines } | null = null
      return (limits) =>
        (made ??= { run: new WideLines("workflow_run", limits), step: new WideLines("workflow_step", limits) })
    }
  }
)

interface Told {
  readonly workflow_id: string
  readonly run: Pick<DueRun, "id" | "team_id" | "request_id" | "source_id" | "version">
}

const idsOf = ({ run: { id, request_id, source_id, team_id, version }, workflow_id }: Told): Fields => ({
  run_id: id,
  workflow_id,
  workflow_version: version,
  request_id,
  // Empty for a run that no request has begun.
  source_id: source_id === "" ? null : source_id,
  team_id
})

const isOver = ({ status }: StepState): boolean => status === "succeeded" || status === "failed"

const lasted = (from: number | null, to: number): number | null => (from === null ? null : to - from)

/** The telemetry of a process. */
export const runTelemetry = Effect.gen(function* () {
  const tracing = yield* Tracing
  const lines = (yield* RunLines)(yield* LineLimits)
  const write = Effect.runForkWith(yield* Effect.context())

  /** A run has ended, and its end is stored. */
  const ended = (told: Told, transition: RunTransition): void => {
    const { at, attempts, error, failed, finishedAt, outcome, skipped, startedAt, status, succeeded } = transition
    if (finishedAt === null || outcome === null) return
    metrics.workflowRuns.at(outcome).add()
    if (startedAt !== null) metrics.workflowRunSeconds.observe((finishedAt - startedAt) / 1_000)
    lines.run.write(write, status === "failed", at, () => ({
      outcome,
      ...idsOf(told),
      attempt_count: attempts,
      succeeded_steps: succeeded,
      failed_steps: failed,
      skipped_steps: skipped,
      error_code: error?.code ?? null,
      error_step_id: error?.stepId ?? null,
      duration_ms: lasted(startedAt, finishedAt)
    }))
  }

  const stepFailed = (told: Told, { plan }: Workflow, index: number, step: StepState, at: number): void => {
    const { kind, step: written } = plan[index]!
    const code = step.error?.code ?? "UNKNOWN"
    metrics.workflowStepsFailed.at(kind.kind, code).add()
    lines.step.write(write, true, at, () => ({
      outcome: code,
      step_id: written.id,
      kind: kind.kind,
      resource_id: written.resource_id,
      handled: step.handled,
      attempt: step.attempt,
      response_status: step.error?.status ?? null,
      ...idsOf(told),
      duration_ms: lasted(step.startedAt, step.finishedAt ?? at)
    }))
  }

  return {
    ended,
    /** For one run in hand: called with each stored transition. */
    of: (workflow_id: string, run: DueRun, workflow: Workflow) => {
      const told: Told = { workflow_id, run }
      let trace: RunTrace | null | undefined
      const traceOf = (): RunTrace | null =>
        tracing.isOn ? (trace ??= tracing.run(storedHeaders(run), run.request_id, run.id, run.attempts)) : null

      const stepEnded = (index: number, { attempt, error, finishedAt, startedAt, status }: StepState): void => {
        const of = traceOf()
        if (of === null || startedAt === null || finishedAt === null) return
        const { kind, step } = workflow.plan[index]!
        tracing.stepEnded(of, {
          stepId: step.id,
          kind: kind.kind,
          attempts: attempt,
          startedAt,
          finishedAt,
          errorCode: status === "failed" ? (error?.code ?? "UNKNOWN") : null,
          responseStatus: status === "failed" ? (error?.status ?? null) : null
        })
      }

      return (before: RunState, after: RunState, transition: RunTransition): void => {
        if (transition.failed > 0 || tracing.isOn) {
          for (const [index, step] of after.steps.entries()) {
            if (step === before.steps[index] || !isOver(step) || isOver(before.steps[index]!)) continue
            if (step.status === "failed") stepFailed(told, workflow, index, step, transition.at)
            if (tracing.isOn) stepEnded(index, step)
          }
        }
        if (transition.finishedAt === null) return
        ended(told, transition)
        const of = traceOf()
        if (of === null || transition.startedAt === null) return
        tracing.runEnded(of, {
          runId: run.id,
          requestId: run.request_id,
          teamId: run.team_id,
          workflowId: workflow_id,
          attempts: run.attempts,
          outcome: transition.outcome ?? "failed",
          errorCode: transition.status === "failed" ? (transition.error?.code ?? "UNKNOWN") : null,
          startedAt: transition.startedAt,
          finishedAt: transition.finishedAt
        })
      }
    }
  }
})
