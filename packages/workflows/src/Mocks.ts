import type { Json } from "@tidegate/model/Rule"
import { portsOf } from "./Ports.ts"
import { queuedRun, type RunState, type StepState } from "./RunState.ts"
import type { Outcome, StepError } from "./StepKind.ts"
import type { PlannedStep, Workflow } from "./Workflow.ts"

/**
 * The changes that a dry run makes to a workflow. A mocked step evaluates to its mock and otherwise goes through the same engine
 * as any other: its inputs, its list, its retries and its ports are those of a real run.
 */

/** The result of a mocked step: its output, unless there is an error. */
export interface Mock {
  readonly output?: Json
  readonly error?: Pick<StepError, "code" | "message" | "status" | "response">
}

export interface Rehearsal {
  readonly workflow: Workflow
  /** Positions of the mocked steps. */
  readonly simulated: ReadonlySet<number>
}

/** The sample answer of a destination that is not called. */
const destinationSample: Json = { status: 200, headers: {}, body: null, duration_ms: 0 }
/** The answer of an action without a sample in the catalog. */
const actionSample: Json = { status: 200, headers: {}, body: {} }

/** The sample for a step that would leave the installation; undefined: it does not. */
const sampleOf = ({ action, kind }: PlannedStep): Json | undefined => {
  if (kind.kind === "destination") return destinationSample
  if (kind.kind !== "action" || action?.pure === true) return undefined
  return action?.outputSample ?? actionSample
}

const outcomeOf = ({ kind, step }: PlannedStep, { error, output = {} }: Mock): Outcome => {
  if (error !== undefined) return { kind: "failed", error }
  const ports = kind.portsOf?.(output) ?? portsOf(kind.ports, step.config).slice(0, 1)
  return { kind: "succeeded", output, ports }
}

/** The workflow with mocks by step id; `dry`: also with samples for everything that would leave the installation. */
export const rehearsalOf = (workflow: Workflow, mocks: ReadonlyMap<string, Mock>, dry: boolean): Rehearsal => {
  const simulated = new Set<number>()
  const plan = workflow.plan.map((step): PlannedStep => {
    const sample = step.kind.sample?.(step.step.config) ?? (dry ? sampleOf(step) : undefined)
    const mock = mocks.get(step.step.id) ?? (sample === undefined ? undefined : { output: sample })
    if (mock === undefined) return step
    simulated.add(step.index)
    const outcome = outcomeOf(step, mock)
    return { ...step, evaluate: () => outcome, apart: null }
  })
  return { workflow: { ...workflow, plan }, simulated }
}

/**
 * A run in which only one step is under way. Steps that lead to it have the results of the mocks; those without a mock are
 * absent. Nothing follows it.
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
