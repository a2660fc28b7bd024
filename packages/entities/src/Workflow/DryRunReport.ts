import { Effect } from "effect"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { PayloadPreview } from "@tidegate/model/WorkflowRun"
import type { WorkflowTest } from "@tidegate/model/WorkflowTest"
import { shownOf } from "@tidegate/redaction/Redaction"
import { definitionHash } from "@tidegate/workflows/DefinitionHash"
import { noPreview, previewOf, previewsIn } from "@tidegate/workflows/Preview"
import { runOf, StepReports } from "@tidegate/workflows/RunReport"
import type { Facts } from "@tidegate/workflows/RunState"
import type { StepAnswer } from "@tidegate/workflows/StepKind"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { itemMode, modeHeader, type SourceTrigger } from "@tidegate/storage/channels/SourceTrigger"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { DryRunOutcome } from "./DryRun.ts"

/** The answer to a test: made from the rows that a real run would have, in the shape of a run. */

/** The result of a test, from which the answer is made. */
export interface DryRunResult extends DryRunOutcome {
  readonly workflow: Workflow
  readonly simulated: ReadonlySet<number>
  /** The only step that was run; null: the whole workflow. */
  readonly only: number | null
  readonly about: { readonly id: string; readonly name: string; readonly version: number }
  readonly run: DueRun
  readonly label: string | null
  readonly facts: Facts
  /** Whether its request was received by a source; otherwise it was written for the test. */
  readonly received: boolean
  readonly trigger: SourceTrigger
  /** `stored`: the workflow is a stored one. `asStored`: its graph is the stored one, too. */
  readonly stored: boolean
  readonly asStored: boolean
}

interface Previews {
  readonly input?: PayloadPreview
  readonly output?: PayloadPreview
  readonly answers?: ReadonlyMap<number, StepAnswer | null>
}

const noAnswers: ReadonlyMap<number, StepAnswer | null> = new Map()

const notCaptured = noPreview("not_captured")

export const reportOf = Effect.fnUntraced(function* (
  {
    about,
    facts,
    label,
    only,
    received,
    run,
    simulated,
    state,
    transitions,
    trigger,
    workflow,
    ...result
  }: DryRunResult,
  { live, previews }: { readonly live: boolean; readonly previews: boolean }
): Effect.fn.Return<WorkflowTest> {
  const { edges, plan, steps, warnings } = workflow
  const reports = new StepReports(run.id, { steps, edges })
  const shown = new Map<number, Previews>()
  for (const [i, { at, part, previews: made, steps }] of transitions.entries()) {
    reports.take({ part, at, steps })
    if (made === null) continue
    for (const [index, { answer, ...of }] of previewsIn(made)) {
      const before = shown.get(index)
      const answers = answer === undefined ? {} : { answers: new Map(before?.answers).set(part, answer) }
      shown.set(index, { ...before, ...of, ...answers })
    }
    if (i % 50 === 49) yield* Effect.yieldNow
  }
  const all = reports.executions((index) => {
    if (!previews) return null
    const { answers = noAnswers, input = notCaptured, output = notCaptured } = shown.get(index) ?? {}
    return { input, output, answers }
  })
  const reported = only === null ? all : all.filter(({ execution_index }) => execution_index === only)
  const last = transitions.at(-1)
  const count = (status: string): number => reported.filter((step) => step.status === status).length
  const at = run.created_at.toISOString()
  const contentType = facts.trigger.headers["content-type"]
  return {
    ...runOf(
      {
        id: run.id,
        workflow_id: about.id,
        request_id: run.request_id,
        version: about.version,
        label,
        status: state.status,
        outcome: state.outcome,
        attempts: 1,
        steps_count: reported.length,
        succeeded_steps: count("succeeded"),
        failed_steps: count("failed"),
        skipped_steps: count("skipped"),
        running_steps: 0,
        error_code: last?.error?.code ?? null,
        error_message: last?.error?.message ?? null,
        error_step_id: last?.error?.stepId ?? null,
        started_at: state.startedAt === null ? null : new Date(state.startedAt),
        finished_at: state.finishedAt === null ? null : new Date(state.finishedAt),
        created_at: run.created_at,
        updated_at: new Date(last?.at ?? run.created_at)
      },
      false
    ),
    test: true,
    mode: live ? "live" : "dry_run",
    workflow_id: result.stored ? about.id : null,
    request_id: received ? run.request_id : null,
    version: {
      number: about.version,
      definition_hash: definitionHash(steps, edges),
      created_at: at,
      created_by_user_id: null,
      current_version: about.version,
      is_current: result.asStored,
      workflow_name: about.name,
      steps,
      edges: edges as never,
      formatter_engine_version: null,
      resources: []
    },
    trigger: {
      type: "request",
      request_id: received ? run.request_id : null,
      source: {
        id: run.source_id,
        name: run.source_name,
        provider_key: trigger.provider_key,
        definition_key: trigger.definition_key,
        trigger_name: trigger.name
      },
      delivery_mode: !received
        ? "manual"
        : trigger.provider_key === null
          ? "webhook"
          : itemMode(facts.trigger.headers[modeHeader]),
      method: run.method,
      path: shownOf()("path", run.path) as string,
      content_type: typeof contentType === "string" ? contentType : null,
      size_bytes: run.body?.length ?? 0,
      received_at: run.ingested_at.toISOString(),
      is_retry: false,
      preview: previews ? yield* inSlices(previewOf(facts.trigger.body)) : null
    },
    retry: { count: 0, last_requested_at: null, last_step_id: null, retryable_step_ids: [] },
    steps: reported.map((step) => Object.assign({ simulated: simulated.has(step.execution_index) }, step)),
    steps_count: only === null ? plan.length : 1,
    ...(warnings.length === 0 ? {} : { warnings })
  }
})
