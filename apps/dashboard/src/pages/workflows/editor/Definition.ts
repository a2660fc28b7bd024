import { TidegateError } from "@tidegate/client/source"
import { messageOf } from "../../../gateway.ts"
import { beginOf, portsOf, type Step, type StepEdge, trigger } from "../../../parts/StepGraph.ts"

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

/** Adds a step of a kind behind another one, and returns its id with the new definition. Behind a branch it gets a path that leads nowhere yet. */
export const withStep = (
  { edges, steps }: Definition,
  kind: string,
  behind: string
): { readonly id: string; readonly definition: Definition } => {
  let number = steps.length + 1
  while (steps.some(({ id }) => id === `${kind}_${number}`)) number++
  const id = `${kind}_${number}`
  const ports = portsOf(steps.find((one) => one.id === behind))
  const used = new Set(edges.filter((one) => beginOf(one) === behind).map((one) => one.source_port ?? "out"))
  const port = ports.find((one) => !used.has(one)) ?? ports[0]
  const leads = port === undefined ? [] : [edge(behind, port, id)]
  return { id, definition: { steps: [...steps, { id, kind, config: {} } as Step], edges: [...edges, ...leads] } }
}

/** Removes a step, and the edges that begin or end at it. */
export const withoutStep = ({ edges, steps }: Definition, id: string): Definition => ({
  steps: steps.filter((one) => one.id !== id),
  edges: edges.filter((one) => beginOf(one) !== id && one.target_step_id !== id)
})
