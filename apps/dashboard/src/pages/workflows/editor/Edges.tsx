import { useState } from "react"
import { Panel } from "../../../parts/Panel.tsx"
import { beginOf, type StepEdge, titleOf, trigger } from "../../../parts/StepGraph.ts"
import { type Definition, edge } from "./Definition.ts"
import type { Document } from "../../../parts/Schema.ts"
import { portsOf } from "./StepKinds.ts"

/** The edges from a node: remove them, or add one. */
export const Edges = ({
  change,
  document,
  from,
  graph
}: {
  readonly document: Document
  readonly from: string
  readonly graph: Definition
  readonly change: (edges: ReadonlyArray<StepEdge>) => void
}) => {
  const step = graph.steps.find(({ id }) => id === from)
  const ports = portsOf(document, step)
  const [port, setPort] = useState("")
  const [to, setTo] = useState("")
  const nameOf = (id: string): string => titleOf(graph.steps.find((one) => one.id === id) ?? { id })
  const chosen = ports.includes(port) ? port : (ports[0] ?? "out")
  return (
    <Panel title="Leads to">
      <ul className="plain">
        {graph.edges.map((one, index) =>
          beginOf(one) === from ? (
            <li key={`${one.source_port ?? ""} ${one.target_step_id}`}>
              <bdi>{nameOf(one.target_step_id)}</bdi>{" "}
              {from === trigger ? null : <span className="muted">by {one.source_port ?? "out"}</span>}{" "}
              <button
                type="button"
                className="link"
                onClick={() => change(graph.edges.filter((_, other) => other !== index))}
              >
                Disconnect
              </button>
            </li>
          ) : null
        )}
      </ul>
      <div className="bar">
        {ports.length > 1 ? (
          <select aria-label="Port" value={chosen} onChange={({ target }) => setPort(target.value)}>
            {ports.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        ) : null}
        <select aria-label="Step to connect" value={to} onChange={({ target }) => setTo(target.value)}>
          <option value="">Choose a step…</option>
          {graph.steps
            .filter(({ id }) => id !== from)
            .map(({ id }) => (
              <option key={id} value={id}>
                {nameOf(id)}
              </option>
            ))}
        </select>
        <button
          type="button"
          disabled={to === ""}
          onClick={() => {
            change([...graph.edges, edge(from, chosen, to)])
            setTo("")
          }}
        >
          Connect
        </button>
      </div>
    </Panel>
  )
}
