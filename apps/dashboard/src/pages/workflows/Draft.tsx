import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { TidegateError } from "@tidegate/client/source"
import type { Row } from "../../gateway.ts"
import { useMay } from "../../may.ts"
import { Action } from "../../parts/Action.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { Failure } from "../../parts/States.tsx"
import { Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { Comparison, graphOf } from "./Comparison.tsx"

/** The draft of a workflow, if there is one: what it changes, and the choice whether it takes the place of the live version. */
export const Draft = ({
  workflow: { edges = [], id, steps = [], version }
}: {
  readonly workflow: Row<"Workflow">
}) => {
  const { client, team } = useSession()
  const may = useMay()
  const path = { params: { path: { id } } }
  const draft = useQuery({
    queryKey: ["draft", team, id],
    queryFn: async () => {
      try {
        return await client.get("/workflows/{id}/draft", path)
      } catch (error) {
        if (error instanceof TidegateError && error.status === 404) return null
        throw error
      }
    }
  })
  if (draft.isError) return <Failure error={draft.error} retry={draft.refetch} />
  if (draft.data === undefined || draft.data === null) return null
  const { based_on_version, changes, current_version, updated_at } = draft.data
  const isOld = based_on_version !== current_version
  return (
    <Panel
      title="Draft"
      right={
        <div className="bar">
          <Action
            call="POST /workflows/{id}/draft/publish"
            primary
            asks={isOld ? `Replace version ${current_version}, too?` : "Let runs use it?"}
            done="The draft is published"
            run={() => client.post("/workflows/{id}/draft/publish", { ...path, body: { version: current_version } })}
          >
            Publish
          </Action>
          <Action
            call="DELETE /workflows/{id}/draft"
            asks="Delete the draft for ever?"
            done="The draft is deleted"
            run={() => client.delete("/workflows/{id}/draft", path)}
          >
            Discard
          </Action>
          {may("PUT /workflows/{id}/draft") ? (
            <Link to={`/workflows/${id}/edit`} search={{ draft: "1" }} className="button">
              Edit the draft
            </Link>
          ) : null}
        </div>
      }
    >
      <p>
        No run uses it before it is published. It was written <Time at={updated_at} />, from version {based_on_version}.
        {isOld
          ? ` The workflow has version ${current_version} by now: publishing undoes what has changed since.`
          : null}
      </p>
      <details>
        <summary>What it changes</summary>
        <Comparison
          before={{ title: `Version ${version}`, ...graphOf({ steps, edges }) }}
          after={{ title: "Draft", ...graphOf(draft.data) }}
          changes={changes}
        />
      </details>
    </Panel>
  )
}
