import { didYouMean } from "@tidegate/model/NearestName"
import type { Edge, Step } from "./Definition.ts"
import type { Issues } from "./Issue.ts"
import type { StepKind } from "./StepKind.ts"

/**
 * Steps that undo others. A step names the one that undoes it in `config.compensate`. That one has no edges: it is carried out
 * only when the run has failed.
 */

type Written = Pick<Step, "id" | "config">

/** The id of the step that undoes this one; null: there is none. */
export const compensateOf = ({ config }: Pick<Step, "config">): string | null => {
  const id = config["compensate"]
  return typeof id === "string" ? id : null
}

/** By the ids of steps that undo others: the ids of those that they undo. */
export const undoneBy = (steps: ReadonlyArray<Written>): ReadonlyMap<string, string> => {
  const undone = new Map<string, string>()
  for (const step of steps) {
    const id = compensateOf(step)
    if (id !== null && !undone.has(id)) undone.set(id, step.id)
  }
  return undone
}

type Way = Pick<Edge, "source_step_id" | "target_step_id">

/** The edges, and the ways from steps to those that undo them: what a step can read, and the order of the plan, follow from these. */
export const waysOf = (steps: ReadonlyArray<Written>, edges: ReadonlyArray<Way>): ReadonlyArray<Way> => {
  const undone = undoneBy(steps)
  if (undone.size === 0) return edges
  return [...edges, ...Array.from(undone, ([target_step_id, source_step_id]) => ({ source_step_id, target_step_id }))]
}

interface Checked {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly kinds: ReadonlyMap<string, StepKind<unknown>>
  /** The ids of all written steps, including invalid ones. */
  readonly ids: ReadonlySet<string>
}

/** Settings that have no meaning for a step that undoes another: it runs once, and the undo goes on when it has failed. */
const without = ["for_each", "concurrency", "on_error"] as const

/** Reports the faults of `compensate`, and of the steps that are named there. */
export const checkCompensations = ({ edges, ids, kinds, steps }: Checked, issues: Issues): void => {
  const undone = undoneBy(steps)
  const byId = new Map(steps.map((step) => [step.id, step]))
  for (const step of steps) {
    const named = compensateOf(step)
    if (named === null) continue
    const fault = faultOf(step, named, { byId, ids, kinds, undone })
    if (fault !== null) issues.step("STEP_CONFIG_INVALID", step.id, "config.compensate", fault)
    if (step.config["for_each"] !== undefined) {
      const message = "is not possible with for_each: put the call and its undo into a workflow, and call that"
      issues.step("STEP_CONFIG_INVALID", step.id, "config.compensate", message)
    }
  }
  for (const [id, of] of undone) {
    const message = `has no effect: this step undoes ${of}`
    for (const name of without) {
      if (byId.get(id)?.config[name] !== undefined) {
        issues.step("STEP_CONFIG_INVALID", id, `config.${name}`, message)
      }
    }
  }
  for (const { id, source_step_id, target_step_id } of edges) {
    for (const [end, field] of [
      [source_step_id, "source_step_id"],
      [target_step_id, "target_step_id"]
    ] as const) {
      const of = end === null ? undefined : undone.get(end)
      if (of === undefined) continue
      issues.edge("EDGE_INVALID", id, field, `${end} undoes ${of}: it runs when the run has failed, and has no edges`)
    }
  }
}

const faultOf = (
  step: Step,
  named: string,
  {
    byId,
    ids,
    kinds,
    undone
  }: Pick<Checked, "ids" | "kinds"> & {
    readonly byId: ReadonlyMap<string, Step>
    readonly undone: ReadonlyMap<string, string>
  }
): string | null => {
  if (named === step.id) return "a step cannot undo itself"
  if (!ids.has(named)) return `names no step of this workflow${didYouMean(named, ids)}`
  const target = byId.get(named)
  // Faults of the step itself are reported there.
  if (target === undefined) return null
  const kind = kinds.get(named)
  if (kind?.settings.includes("compensate") === false) return `a ${kind.kind} step cannot undo another one`
  if (compensateOf(target) !== null) return `${named} has a compensate itself: a step that undoes another is not undone`
  const other = undone.get(named)!
  return other === step.id ? null : `${named} undoes ${other} already: each step needs one of its own`
}
