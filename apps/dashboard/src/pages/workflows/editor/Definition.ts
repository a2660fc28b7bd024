import { TidegateError } from "@tidegate/client/source"
import { messageOf, type Row } from "../../../gateway.ts"
import { type Step, type StepEdge, trigger } from "../../../parts/StepGraph.ts"

/** What the editor changes, and what the gateway says about it. */

export interface Definition {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<StepEdge>
}

/** What the gateway says about a step. */
export interface Remark {
  readonly stepId: string | null
  readonly message: string
}

/** Issues and warnings name the step by its id or by its place: `steps.2.config.url`, `steps[2]`. */
export const stepAt = (steps: ReadonlyArray<Step>, path: string): string | null => {
  const [, place] = /^\/?steps[./[]([\w-]+)/.exec(path) ?? []
  if (place === undefined) return null
  return steps.find(({ id }) => id === place)?.id ?? steps[Number(place)]?.id ?? null
}

export const warningsOf = (
  steps: ReadonlyArray<Step>,
  warnings: ReadonlyArray<Row<"Warning">> = []
): ReadonlyArray<Remark> => warnings.map(({ message, path }) => ({ stepId: stepAt(steps, path), message }))

interface Issue {
  readonly step_id: string | null
  readonly message: string
}

export const remarksOf = (error: unknown): ReadonlyArray<Remark> => {
  const issues = error instanceof TidegateError ? (error.data["issues"] as ReadonlyArray<Issue> | undefined) : undefined
  return Array.isArray(issues)
    ? issues.map(({ message, step_id }: Issue) => ({ stepId: step_id, message }))
    : [{ stepId: null, message: messageOf(error) }]
}

/** Edges as they are written: without ids, which are derived from positions. */
export const edge = (from: string, port: string, to: string): StepEdge =>
  from === trigger
    ? { source_type: "trigger", target_step_id: to }
    : { source_type: "step", source_step_id: from, source_port: port, target_step_id: to }
