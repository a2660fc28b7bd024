import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { textIn } from "../parts/Form.tsx"
import { Graph } from "../parts/Graph.tsx"
import { useChoices } from "../parts/Named.tsx"
import { ForOwners } from "../parts/OnlyOwners.tsx"
import { Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { edgesOf, nodesOf, type Step, type StepEdge } from "../parts/StepGraph.ts"
import { useSession } from "../session.ts"
import { Choose, Making } from "./New.tsx"
import { NameField } from "./resources/TypedFields.tsx"

/** A new workflow: blank, or from a template whose graph is shown first. It is a draft, and its editor opens. */
const Make = () => {
  const { client } = useSession()
  const [key, setKey] = useState("")
  const [selected, setSelected] = useState<string | null>(null)
  const sources = useChoices("sources")
  const destinations = useChoices("destinations")
  const templates = useQuery({
    queryKey: ["templates"],
    queryFn: () => client.get("/workflow-templates")
  })
  const detail = useQuery({
    queryKey: ["template", key],
    queryFn: () => client.get("/workflow-templates/{key}", { params: { path: { key } } }),
    enabled: key !== "",
    staleTime: Infinity
  })
  if (templates.isPending) return <Loading />
  if (templates.isError) return <Failure error={templates.error} retry={templates.refetch} />
  const template = key === "" ? undefined : detail.data
  const make = async (form: HTMLFormElement): Promise<string> => {
    const name = textIn(form, "name")
    const source_id = textIn(form, "source_id")
    if (key === "") {
      const { id } = await client.post("/workflows", {
        body: { name, source_id, status: "draft", steps: [], edges: [] }
      })
      return `/workflows/${id}/edit`
    }
    const needed = template?.required_connections ?? []
    const bindings = Object.fromEntries(needed.map((one) => [one.key, textIn(form, `binding.${one.key}`)]))
    const { id } = await client.post("/workflow-templates/{key}/instantiate", {
      params: { path: { key } },
      body: { name, source_id, bindings }
    })
    return `/workflows/${id}/edit`
  }
  return (
    <Making call="POST /workflows" title="Create the workflow" make={make}>
      <NameField example="Order handling" />
      <Choose name="source_id" label="Source" choices={sources} to="/sources/new" />
      <div className="field">
        <label htmlFor="template">Template</label>
        <select id="template" value={key} onChange={({ target }) => setKey(target.value)}>
          <option value="">None: begin without steps</option>
          {templates.data.models.map((one) => (
            <option key={one.key} value={one.key}>
              {one.origin === "team" ? `${one.name} (of your team)` : one.name}
            </option>
          ))}
        </select>
        {template === undefined ? null : <p className="muted">{template.description}</p>}
      </div>
      {detail.isError ? <Failure error={detail.error} retry={detail.refetch} /> : null}
      {template === undefined ? null : (
        <>
          {template.required_connections.map(({ description, key: name, type }) => {
            const field = `binding.${name}`
            return type === "url" ? (
              <div className="field" key={field}>
                <label htmlFor={field}>{description}</label>
                <input id={field} name={field} type="url" required />
              </div>
            ) : (
              <Choose
                key={field}
                name={field}
                label={description}
                choices={type === "source" ? sources : destinations}
                to={type === "source" ? "/sources/new" : "/destinations/new"}
              />
            )
          })}
          <Panel title="Its steps">
            <Graph
              label="Steps of the template"
              nodes={nodesOf(template.definition.steps as ReadonlyArray<Step>)}
              edges={edgesOf(
                template.definition.edges as ReadonlyArray<StepEdge>,
                template.definition.steps as ReadonlyArray<Step>
              )}
              selected={selected}
              onSelect={setSelected}
            />
          </Panel>
        </>
      )}
    </Making>
  )
}

export const NewWorkflow = () => (
  <ForOwners title="Create the workflow" may="make workflows">
    <Make />
  </ForOwners>
)
