import type { Json } from "@tidegate/model/Rule"
import { queuedRun, type RunState, type StepState } from "./Run.ts"
import type { Outcome } from "./StepKind.ts"
import type { PlannedStep, Workflow } from "./Workflow.ts"

/**
 * What a test changes of a workflow before it runs it. A step that something stands in for is evaluated to that, and goes through the same
 * engine as any other: its inputs, its list, its retries and its ports are those of a run.
 */

/** What a step is said to come to; an output, unless there is an error. */
export interface Mock {
  readonly output?: Json
  readonly error?: { readonly code: string; readonly message: string }
}

export interface Rehearsal {
  readonly workflow: Workflow
  /** Positions of the steps that something stands in for. */
  readonly simulated: ReadonlySet<number>
}

/** What a destination answers that nobody was sent to. */
const destinationSample: Json = { status: 200, headers: {}, body: null, duration_ms: 0 }
/** What an action answers of which the catalog has no sample. */
const actionSample: Json = { status: 200, headers: {}, body: {} }

/** What stands for a step that would leave the installation; undefined: it does not. */
const sampleOf = ({ action, kind }: PlannedStep): Json | undefined => {
  if (kind.kind === "destination") return destinationSample
  if (kind.kind !== "action" || action?.pure === true) return undefined
  return action?.outputSample ?? actionSample
}

const outcomeOf = ({ kind, step }: PlannedStep, { error, output = {} }: Mock): Outcome => {
  if (error !== undefined) return { kind: "failed", error }
  const ports = kind.portsOf?.(output) ?? kind.ports(step.config).slice(0, 1)
  return { kind: "succeeded", output, ports }
}

/** The workflow with mocks by the ids of their steps; `dry`: and with samples for whatever would leave the installation. */
export const rehearsalOf = (workflow: Workflow, mocks: ReadonlyMap<string, Mock>, dry: boolean): Rehearsal => {
  const simulated = new Set<number>()
  const plan = workflow.plan.map((step): PlannedStep => {
    const sample = dry ? sampleOf(step) : undefined
    const mock = mocks.get(step.step.id) ?? (sample === undefined ? undefined : { output: sample })
    if (mock === undefined) return step
    simulated.add(step.index)
    const outcome = outcomeOf(step, mock)
    return { ...step, evaluate: () => outcome, apart: null }
  })
  return { workflow: { ...workflow, plan }, simulated }
}

/**
 * A run in which one step alone is under way: what leads to it has come to what the mocks say, and what they do not say is not there. Nothing
 * follows it.
 */
export const onlyStep = (
  { plan, planEdges, ...rest }: Workflow,
  index: number,
  mocks: ReadonlyMap<string, Mock>,
  now: number
): RunState => {
  const begun = queuedRun({ plan, planEdges, ...rest })
  const leadsTo = plan[index]!.ancestors
  const steps = begun.steps.map((step, i): StepState => {
    if (i === index) return { ...step, status: "running", attempt: 1, startedAt: now }
    const mock = leadsTo.has(i) ? mocks.get(plan[i]!.step.id) : undefined
    if (mock === undefined) return { ...step, status: "skipped", skipReason: "run_stopped", finishedAt: now }
    const outcome = outcomeOf(plan[i]!, mock)
    const ended = { attempt: 1, startedAt: now, finishedAt: now }
    if (outcome.kind === "failed") {
      return { ...step, ...ended, status: "failed", error: outcome.error, ports: ["error"], handled: true }
    }
    return { ...step, ...ended, status: "succeeded", output: mock.output ?? {} }
  })
  const edges = planEdges.map(({ source, target }) => {
    const isTaken = target === index && (source === null || steps[source]!.status !== "skipped")
    return isTaken ? ("taken" as const) : ("run_stopped" as const)
  })
  return { ...begun, status: "running", startedAt: now, steps, edges }
}
