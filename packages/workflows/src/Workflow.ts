import { runToEnd } from "@tidegate/runtime/Resumable"
import type { Warning } from "@tidegate/model/Warning"
import type { Mapping } from "@tidegate/interpolation/Mapping"
import { PatternBounds } from "@tidegate/rules/PatternBounds"
import { Result } from "effect"
import type { Action, ActionCall, Catalog } from "./Catalog.ts"
import { undoneBy, waysOf } from "./Compensation.ts"
import type { Edge, Step } from "./Definition.ts"
import { readGraph } from "./Graph.ts"
import { type Issue, Issues } from "./Issue.ts"
import { type UrlOfWait, urlsByStep } from "./kinds/WaitStep.ts"
import { limits } from "./Limits.ts"
import { isWithinSize } from "./Size.ts"
import { type CompiledStep, compileStep } from "./StepCompiler.ts"
import type { OnError, RetryPolicy } from "./Settings.ts"
import type { Context, Evaluate, Resumable, StepKind } from "./StepKind.ts"

/**
 * A workflow's graph, compiled once: its faults, or the plan for its runs. Steps and edges of a plan are identified by their
 * position in it. Steps are in the order in which they are started, which is the same for every run.
 */

export interface PlannedStep {
  readonly index: number
  readonly step: Step
  readonly kind: StepKind<unknown>
  /** Null, except for an action that the catalog has. */
  readonly action: Action | null
  /** The inputs of its saved action; its own inputs override them. */
  readonly saved: Mapping | null
  /** For a transformation: the hash of the code that it is pinned to; null: the current code when it runs. */
  readonly code: string | null
  /** Null: no inputs. */
  readonly inputs: Mapping | null
  readonly forEach: Mapping | null
  /** How many elements of its list are under way at once. */
  readonly concurrency: number
  readonly onError: OnError
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  /** Null: it leaves the process, or another part evaluates it. */
  readonly evaluate: Evaluate
  /** The task for another thread when an evaluation is expensive; null: it never is. */
  readonly apart: ActionCall["apart"] | null
  /** Positions in `edges` of those into it and those out of it. */
  readonly incoming: ReadonlyArray<number>
  readonly outgoing: ReadonlyArray<number>
  /** Steps that lead to it: what it can read. A step that undoes another can read that one, too. */
  readonly ancestors: ReadonlySet<number>
  /** For a compensation: the step that it undoes when the run has failed; null: it is a step of the run itself. */
  readonly undoes: number | null
}

export interface PlannedEdge {
  readonly edge: Edge
  /** Null: the trigger. */
  readonly source: number | null
  readonly target: number
  readonly holds: ((context: Context) => boolean) | null
  readonly mapping: Mapping | null
}

export interface Workflow {
  /** As they were written, with their defaults. */
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly plan: ReadonlyArray<PlannedStep>
  readonly planEdges: ReadonlyArray<PlannedEdge>
  /** The steps of the run itself: the plan without the compensations. */
  readonly own: ReadonlyArray<PlannedStep>
  /** The names of the URLs of steps that wait for somebody outside, by the ids of the steps. */
  readonly urls: ReadonlyMap<string, ReadonlyArray<UrlOfWait>>
  /** Positions of the compensations. */
  readonly undoing: ReadonlyArray<number>
  /** Warnings about a new definition: parts that cannot work as intended. */
  readonly warnings: ReadonlyArray<Warning>
}

type Compiled = Result.Result<Workflow, ReadonlyArray<Issue>>

/** The same as `judging`, in one go. */
export const compileWorkflow = (
  steps: ReadonlyArray<unknown>,
  edges: ReadonlyArray<unknown>,
  catalog: Catalog
): Compiled => runToEnd(judging(steps, edges, catalog))

/** Compiles a new definition that is not stored: it is refused when it exceeds the limits of a definition. */
export function* judging(
  steps: ReadonlyArray<unknown>,
  edges: ReadonlyArray<unknown>,
  catalog: Catalog
): Resumable<Compiled> {
  const issues = new Issues()
  if (!isWithinSize(steps, edges, issues)) return Result.fail(issues.all)
  yield
  return yield* compiling(steps, edges, catalog)
}

/**
 * Compiles stored steps and edges, or returns all of their faults. Resumable: it yields after each input, each condition and each
 * edge. Definitions that were stored before there was a limit of values stay valid.
 */
export function* compiling(
  steps: ReadonlyArray<unknown>,
  edges: ReadonlyArray<unknown>,
  catalog: Catalog
): Resumable<Compiled> {
  const issues = new Issues()
  const graph = yield* readGraph(steps, edges, issues)
  if (graph === null) return Result.fail(issues.all)
  const indexes = new Map(graph.order.map(({ id }, index) => [id, index]))
  const sources = graph.edges.map(({ source_step_id }) =>
    source_step_id === null ? null : indexes.get(source_step_id)!
  )
  const ancestors = ancestorsOf(graph.order, waysOf(graph.steps, graph.edges), indexes)
  const tokens = { left: limits.tokens }
  const patterns = catalog.isStored === true ? PatternBounds.stored() : PatternBounds.ofWorkflow()
  const compiled: Array<{ readonly parts: CompiledStep; readonly incoming: ReadonlyArray<number> }> = []
  const outputs = new Map<string, CompiledStep["output"]>()
  const urls = urlsByStep(graph.steps)
  const placeOf = (step_id: string, edge_id: string | null): string =>
    edge_id === null
      ? `steps[${graph.steps.findIndex(({ id }) => id === step_id)}]`
      : `edges[${graph.edges.findIndex(({ id }) => id === edge_id)}]`
  for (const [index, step] of graph.order.entries()) {
    yield
    const incoming = graph.edges.flatMap((edge, i) => (edge.target_step_id === step.id ? [i] : []))
    const readable = new Set([...ancestors[index]!].map((ancestor) => graph.order[ancestor]!.id))
    const parts = yield* compileStep(
      step,
      graph.kinds.get(step.id)!,
      incoming.map((i) => graph.edges[i]!),
      {
        catalog,
        issues,
        tokens,
        patterns,
        placeOf,
        outputs,
        urls: graph.isWhole ? urls : null,
        stepIds: graph.ids,
        isUpstream: (id) => !graph.isWhole || readable.has(id),
        hasErrorEdge:
          graph.edges.some((edge) => edge.source_step_id === step.id && edge.source_port === "error") ||
          (graph.isWhole ? false : null)
      }
    )
    outputs.set(step.id, parts.output)
    compiled.push({ parts, incoming })
  }
  if (issues.all.length > 0) return Result.fail(issues.all)
  const planEdges = graph.edges.map((edge, i): PlannedEdge => {
    const target = indexes.get(edge.target_step_id)!
    const { incoming, parts } = compiled[target]!
    return { edge, source: sources[i]!, target, ...parts.edges[incoming.indexOf(i)]! }
  })
  const undone = undoneBy(graph.steps)
  const plan = graph.order.map(({ id }, index): PlannedStep => {
    const { incoming, parts } = compiled[index]!
    const { edges: _edges, output: _output, ...own } = parts
    return {
      index,
      ...own,
      incoming: incoming.toSorted(
        (left, right) => graph.edges[left]!.position - graph.edges[right]!.position || left - right
      ),
      outgoing: sources.flatMap((source, i) => (source === index ? [i] : [])),
      ancestors: ancestors[index]!,
      undoes: indexes.get(undone.get(id) ?? "") ?? null
    }
  })
  const written = graph.steps.map(({ id }) => plan[indexes.get(id)!]!.step)
  const undoing = plan.flatMap(({ index, undoes }) => (undoes === null ? [] : [index]))
  const own = plan.filter(({ undoes }) => undoes === null)
  const { warnings } = issues
  return Result.succeed({ steps: written, edges: graph.edges, plan, planEdges, own, urls, undoing, warnings })
}

/** The steps that lead to each step. */
const ancestorsOf = (
  order: ReadonlyArray<Step>,
  edges: ReadonlyArray<Pick<Edge, "source_step_id" | "target_step_id">>,
  indexes: ReadonlyMap<string, number>
): ReadonlyArray<ReadonlySet<number>> => {
  const ancestors = order.map(() => new Set<number>())
  for (const [index, step] of order.entries()) {
    for (const { source_step_id, target_step_id } of edges) {
      if (target_step_id !== step.id || source_step_id === null) continue
      const source = indexes.get(source_step_id)!
      ancestors[index]!.add(source)
      for (const further of ancestors[source]!) ancestors[index]!.add(further)
    }
  }
  return ancestors
}
