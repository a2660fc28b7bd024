import { type ReactNode, useState } from "react"
import type { Row } from "../../gateway.ts"
import { Diff } from "../../parts/Diff.tsx"
import { type Edge, Graph } from "../../parts/Graph.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { Status } from "../../parts/Status.tsx"
import { edgesOf, nodesOf, type Step, type StepEdge, titleOf, trigger } from "../../parts/StepGraph.ts"
import { Rows } from "../../parts/Table.tsx"

type Mark = NonNullable<Edge["mark"]>
type Changes = Pick<Row<"WorkflowComparison">, "edges" | "settings" | "steps">

/** One of two definitions. */
export interface Side {
  readonly title: string
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<StepEdge>
  /** What can be done with it. */
  readonly right?: ReactNode
}

/** Steps and edges of a definition as the API's document describes them: in its answers about versions they have no schema. */
export const graphOf = ({ edges, steps }: { readonly edges: unknown; readonly steps: unknown }) => ({
  steps: steps as ReadonlyArray<Step>,
  edges: edges as ReadonlyArray<StepEdge>
})

/** What has become of steps or edges, by their ids. */
const marksOf = ({ added, changed, removed }: Row<"WorkflowPartChanges">): ReadonlyMap<string, Mark> => {
  const marked = (parts: ReadonlyArray<unknown>, mark: Mark) =>
    (parts as ReadonlyArray<{ readonly id: string }>).map(({ id }) => [id, mark] as const)
  return new Map([...marked(added, "added"), ...marked(removed, "removed"), ...marked(changed, "changed")])
}

const laidOut = (value: unknown): string => (value === undefined ? "" : JSON.stringify(value, null, 2))

const stepIn = ({ steps }: Side, id: string) => steps.find((step) => step.id === id)

/** An edge in words. */
const routeOf = ({ steps }: Side, { source_port, source_step_id, target_step_id }: StepEdge): string => {
  const nameOf = (id: string) => titleOf(steps.find((step) => step.id === id) ?? { id })
  const begin = source_step_id == null ? "Trigger" : nameOf(source_step_id)
  return `${begin} → ${nameOf(target_step_id)}${(source_port ?? "out") === "out" ? "" : ` by ${source_port}`}`
}

/** Each change in a line. */
const Changed = ({ after, before, changes }: Props) => {
  const membersOf = (of: "edges" | "steps", id: string) =>
    changes[of].changed.find((one) => one.id === id)?.members.map(({ name }) => name) ?? []
  const steps = [...marksOf(changes.steps)].map(([id, mark]) => ({
    key: `step ${id}`,
    mark,
    what: "Step",
    name: titleOf(stepIn(after, id) ?? stepIn(before, id) ?? { id }),
    members: membersOf("steps", id)
  }))
  const edges = [...marksOf(changes.edges)].map(([id, mark]) => {
    const side = mark === "removed" ? before : after
    const edge = side.edges.find((one) => one.id === id)
    const name = edge === undefined ? id : routeOf(side, edge)
    return { key: `edge ${id}`, mark, what: "Edge", name, members: membersOf("edges", id) }
  })
  const settings = changes.settings.map(({ name }) => ({
    key: `setting ${name}`,
    mark: "changed",
    what: "Setting",
    name,
    members: []
  }))
  const all = [...steps, ...edges, ...settings]
  if (all.length === 0) return <p>Nothing differs.</p>
  return (
    <Rows label="Changes" columns={["Change", "What", "Name", "Members"]}>
      {all.map(({ key, mark, members, name, what }) => (
        <tr key={key}>
          <td>
            <Status of={mark} />
          </td>
          <td>{what}</td>
          <td>
            <bdi>{name}</bdi>
          </td>
          <td className="mono">{members.join(", ") || "–"}</td>
        </tr>
      ))}
    </Rows>
  )
}

const Drawn = ({
  changes,
  onSelect,
  selected,
  side
}: {
  readonly changes: Changes
  readonly onSelect: (id: string) => void
  readonly selected: string
  readonly side: Side
}) => (
  <Panel title={side.title} right={side.right}>
    <Graph
      label={`Steps of ${side.title}`}
      nodes={nodesOf(side.steps, marksOf(changes.steps))}
      edges={edgesOf(side.edges, side.steps, marksOf(changes.edges))}
      selected={selected}
      onSelect={onSelect}
    />
  </Panel>
)

interface Props {
  readonly before: Side
  readonly after: Side
  readonly changes: Changes
}

/**
 * Two definitions of a workflow side by side. What was added, removed or changed is marked in both graphs, listed, and shown line by line:
 * of the selected step, or of everything.
 */
export const Comparison = ({ after, before, changes }: Props) => {
  // The trigger is in both graphs: it stands for the whole.
  const [selected, setSelected] = useState(trigger)
  const isWhole = stepIn(before, selected) === undefined && stepIn(after, selected) === undefined
  const textOf = (side: Side, isAfter: boolean) =>
    isWhole
      ? laidOut({
          ...Object.fromEntries(changes.settings.map(({ name, ...of }) => [name, isAfter ? of.after : of.before])),
          steps: side.steps,
          edges: side.edges
        })
      : laidOut(stepIn(side, selected))
  const name = titleOf(stepIn(after, selected) ?? stepIn(before, selected) ?? { id: selected })
  return (
    <div className="stack">
      <Changed after={after} before={before} changes={changes} />
      <div className="columns">
        <Drawn side={before} changes={changes} selected={selected} onSelect={setSelected} />
        <Drawn side={after} changes={changes} selected={selected} onSelect={setSelected} />
      </div>
      <Panel
        title={
          isWhole ? (
            "Line by line"
          ) : (
            <>
              Step <bdi>{name}</bdi>, line by line
            </>
          )
        }
        right={
          isWhole ? undefined : (
            <button type="button" onClick={() => setSelected(trigger)}>
              Show everything
            </button>
          )
        }
      >
        <Diff label="Differences line by line" before={textOf(before, false)} after={textOf(after, true)} />
      </Panel>
    </div>
  )
}
