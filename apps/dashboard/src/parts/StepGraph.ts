import type { Row } from "../gateway.ts"
import type { Edge, Node } from "./Graph.tsx"

/** The steps of workflows as nodes of a graph. */

export type Step = Row<"WorkflowStep">
export type StepEdge = Row<"WorkflowEdge">

/** The node of what begins a run. */
export const trigger = "trigger"

const triggerNode: Node = { id: trigger, title: "Trigger", kind: "a request or another start" }

/** Where an edge begins. */
export const beginOf = ({ source_step_id }: StepEdge): string => source_step_id ?? trigger

/** A step without a name is called by its id. */
export const titleOf = ({ id, name = "" }: { readonly id: string; readonly name?: string }): string =>
  name === "" ? id : name

export const nodesOf = (
  steps: ReadonlyArray<{ readonly id: string; readonly kind: string; readonly name?: string }>,
  statuses: ReadonlyMap<string, string> = new Map(),
  faulty: ReadonlySet<string> = new Set()
): ReadonlyArray<Node> => [
  triggerNode,
  ...steps.map((step): Node => {
    const { id, kind } = step
    const status = statuses.get(id)
    return { id, title: titleOf(step), kind, isFaulty: faulty.has(id), ...(status === undefined ? {} : { status }) }
  })
]

/** The line from a step to the step that undoes it. It is not an edge of the workflow. */
export const undoEdge = (from: string, to: string): Edge => ({ from, to, label: "undo" })

/** The port of an edge is shown unless it is the usual one. `marks` are by the ids of edges. */
export const edgesOf = (
  edges: ReadonlyArray<StepEdge>,
  steps: ReadonlyArray<Pick<Step, "id" | "config">>,
  marks: ReadonlyMap<string, NonNullable<Edge["mark"]>> = new Map()
): ReadonlyArray<Edge> => [
  ...edges.map((edge) => {
    const mark = marks.get(edge.id ?? "")
    return {
      from: beginOf(edge),
      to: edge.target_step_id,
      ...((edge.source_port ?? "out") === "out" ? {} : { label: edge.source_port! }),
      ...(mark === undefined ? {} : { mark })
    }
  }),
  ...steps.flatMap(({ config, id }) => {
    const { compensate } = (config ?? {}) as { readonly compensate?: string }
    return compensate === undefined ? [] : [undoEdge(id, compensate)]
  })
]
