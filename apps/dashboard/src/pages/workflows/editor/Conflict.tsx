import type { Row } from "../../../gateway.ts"
import { Graph } from "../../../parts/Graph.tsx"
import { Panel } from "../../../parts/Panel.tsx"
import { edgesOf, nodesOf } from "../../../parts/StepGraph.ts"
import type { Definition } from "./Definition.ts"

/** Two people have changed a workflow: both graphs, and the choice between them. */
export const Conflict = ({
  keep,
  mine,
  take,
  theirs
}: {
  readonly mine: Definition
  readonly theirs: Row<"Workflow">
  readonly keep: () => void
  readonly take: () => void
}) => {
  const none = () => {}
  return (
    <div className="notice bad" role="alert">
      <p>Somebody has saved version {theirs.version} meanwhile. Choose which one stays.</p>
      <div className="columns">
        <Panel title="Yours" right={<button onClick={keep}>Save mine over it</button>}>
          <Graph
            label="Your graph"
            nodes={nodesOf(mine.steps)}
            edges={edgesOf(mine.edges, mine.steps)}
            onSelect={none}
          />
        </Panel>
        <Panel title={`Version ${theirs.version}`} right={<button onClick={take}>Take this one</button>}>
          <Graph
            label="The saved graph"
            nodes={nodesOf(theirs.steps ?? [])}
            edges={edgesOf(theirs.edges ?? [], theirs.steps ?? [])}
            onSelect={none}
          />
        </Panel>
      </div>
    </div>
  )
}
