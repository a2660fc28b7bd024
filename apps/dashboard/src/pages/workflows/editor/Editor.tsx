import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { useState } from "react"
import { TidegateError } from "@tidegate/client/source"
import type { Row } from "../../../gateway.ts"
import { useFilters } from "../../../parts/Filters.tsx"
import { Graph } from "../../../parts/Graph.tsx"
import { ForOwners } from "../../../parts/OnlyOwners.tsx"
import { Panel } from "../../../parts/Panel.tsx"
import { previewOf } from "../../../parts/Preview.tsx"
import { type Document, useDocument } from "../../../parts/Schema.ts"
import { Failure, Loading } from "../../../parts/States.tsx"
import { Status } from "../../../parts/Status.tsx"
import { beginOf, edgesOf, nodesOf, type Step, trigger } from "../../../parts/StepGraph.ts"
import { useRefresh, useSession } from "../../../session.ts"
import { graphOf } from "../Comparison.tsx"
import { useCheck } from "./Check.ts"
import { Conflict } from "./Conflict.tsx"
import { edge, type Definition, type Remark, remarksOf, warningsOf } from "./Definition.ts"
import { Edges } from "./Edges.tsx"
import { pathsIn } from "./Paths.ts"
import { CheckNote, Remarks, StepRemarks } from "./Remarks.tsx"
import { useSample } from "./Sample.ts"
import { StepForm } from "./StepForm.tsx"
import { kindsOf, portsOf } from "./StepKinds.ts"
import { Tested } from "./Tested.tsx"

const Editor = ({
  document,
  draft,
  workflow
}: {
  readonly document: Document
  readonly workflow: Row<"Workflow">
  /** What is edited instead of the live definition. */
  readonly draft: Row<"WorkflowDraft"> | null
}) => {
  const { client } = useSession()
  const refresh = useRefresh()
  const path = { path: { id: workflow.id } }
  const [graph, setGraph] = useState<Definition>(
    draft === null ? { steps: workflow.steps ?? [], edges: workflow.edges ?? [] } : graphOf(draft)
  )
  const [version, setVersion] = useState(workflow.version)
  const [selected, setSelected] = useState<string>(trigger)
  const [kind, setKind] = useState<string>("filter")
  const [remarks, setRemarks] = useState<ReadonlyArray<Remark>>([])
  const [said, setSaid] = useState<string | null>(null)
  const [theirs, setTheirs] = useState<Row<"Workflow"> | null>(null)
  const [test, setTest] = useState<Row<"WorkflowTest"> | null>(null)
  const [requestId, setRequestId] = useState("")
  const { data, isLoading: isSampleLoading, latestId, sampleId } = useSample(workflow.source_id, requestId)
  const paths = [
    ...pathsIn({ body: data?.body, headers: data?.headers, method: data?.method, path: data?.path }, trigger),
    ...(test?.steps ?? []).flatMap(({ output_preview, step_id }) =>
      output_preview === null ? [] : pathsIn(previewOf(output_preview), `steps.${step_id}.output`)
    )
  ]
  const step = graph.steps.find(({ id }) => id === selected)
  const tested = test?.steps.find(({ step_id }) => step_id === selected)
  const body = { steps: [...graph.steps], edges: [...graph.edges] }

  const check = useCheck(workflow.id, graph)

  const change = (next: Definition) => {
    setGraph(next)
    setSaid(null)
    // These remarks are about the previous steps. The next check reports the errors of the current ones.
    setRemarks([])
  }
  const add = () => {
    let number = graph.steps.length + 1
    while (graph.steps.some(({ id }) => id === `${kind}_${number}`)) number++
    const id = `${kind}_${number}`
    // A step after a branch gets a path that leads nowhere yet.
    const ports = portsOf(document, step)
    const used = new Set(graph.edges.filter((one) => beginOf(one) === selected).map((one) => one.source_port ?? "out"))
    const port = ports.find((one) => !used.has(one)) ?? ports[0]
    const leads = port === undefined ? [] : [edge(selected, port, id)]
    change({ steps: [...graph.steps, { id, kind, config: {} } as Step], edges: [...graph.edges, ...leads] })
    setSelected(id)
  }
  const remove = (id: string) => {
    change({
      steps: graph.steps.filter((one) => one.id !== id),
      edges: graph.edges.filter((one) => beginOf(one) !== id && one.target_step_id !== id)
    })
    setSelected(trigger)
  }
  const save = async (over: number) => {
    setRemarks([])
    setSaid(null)
    try {
      const saved = await client.patch("/workflows/{id}", { params: path, body: { version: over, ...body } })
      setVersion(saved.version)
      setTheirs(null)
      setSaid(`Saved as version ${saved.version}`)
      setRemarks(warningsOf(graph.steps, saved.warnings))
      await refresh()
    } catch (error) {
      if (error instanceof TidegateError && error.code === "workflow_conflict") {
        setTheirs(await client.get("/workflows/{id}", { params: path }))
      } else setRemarks(remarksOf(error))
    }
  }
  const saveDraft = async () => {
    setRemarks([])
    setSaid(null)
    try {
      // A draft keeps its run label, and the version that it was made of.
      const base = draft === null ? { version } : { run_label: draft.run_label }
      const saved = await client.put("/workflows/{id}/draft", { params: path, body: { ...base, ...body } })
      setSaid("Saved as the draft")
      setRemarks(warningsOf(graph.steps, saved.warnings))
      await refresh()
    } catch (error) {
      setRemarks(remarksOf(error))
    }
  }
  const run = async () => {
    setRemarks([])
    setTest(null)
    try {
      const request = sampleId === "" ? { trigger: { body: {} } } : { request_id: sampleId }
      setTest(await client.post("/workflows/test", { body: { ...body, ...request, include_previews: true } }))
    } catch (error) {
      setRemarks(remarksOf(error))
    }
  }
  const statuses = new Map((test?.steps ?? []).map(({ status, step_id }) => [step_id, status]))
  const isAnswer = remarks.length > 0
  const shown = isAnswer ? remarks : [...check.issues, ...check.warnings]
  const faulty = new Set(shown.flatMap(({ stepId }) => stepId ?? []))
  const others = shown.filter(({ stepId }) => stepId !== selected || step === undefined)
  return (
    <>
      <header>
        <h1>
          Edit <bdi>{workflow.name}</bdi>
        </h1>
        <span className="muted">Version {version}</span>
        <div className="actions">
          {said === null ? null : (
            <span role="status" className="badge good">
              {said}
            </span>
          )}
          <Link to={`/workflows/${workflow.id}`} className="button">
            Back
          </Link>
          <button type="button" disabled={isSampleLoading} onClick={() => void run()}>
            Test
          </button>
          <button type="button" onClick={() => void saveDraft()}>
            Save as draft
          </button>
          <button type="button" className="primary" onClick={() => void save(version)}>
            Save
          </button>
        </div>
      </header>
      {theirs === null ? null : (
        <Conflict
          mine={graph}
          theirs={theirs}
          keep={() => void save(theirs.version)}
          take={() => {
            change({ steps: theirs.steps ?? [], edges: theirs.edges ?? [] })
            setVersion(theirs.version)
            setSelected(trigger)
            setTheirs(null)
          }}
        />
      )}
      <CheckNote of={check} />
      <Remarks of={others} isAnswer={isAnswer} select={setSelected} />
      {test === null ? null : (
        <div className="notice" role="status">
          The test ended: <Status of={test.outcome ?? test.status} /> Select a step to see its input and output. No
          destination or action was called.
        </div>
      )}
      <div className="columns">
        <div className="stack">
          <div className="bar">
            <div className="field">
              <label htmlFor="kind">New step</label>
              <select id="kind" value={kind} onChange={({ target }) => setKind(target.value)}>
                {kindsOf(document).map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </div>
            <button type="button" onClick={add}>
              Add it after the selected one
            </button>
            <div className="field">
              <label htmlFor="sample">Sample: id of a request</label>
              <input
                id="sample"
                value={requestId}
                placeholder={latestId === "" ? "An empty request" : latestId}
                onChange={({ target }) => setRequestId(target.value.trim())}
              />
            </div>
          </div>
          <Graph
            label="Steps of the workflow"
            nodes={nodesOf(graph.steps, statuses, faulty)}
            edges={edgesOf(graph.edges, graph.steps)}
            selected={selected}
            onSelect={setSelected}
          />
        </div>
        <div className="stack">
          <div className="field">
            <label htmlFor="selected">Selected step</label>
            <select id="selected" value={selected} onChange={({ target }) => setSelected(target.value)}>
              {nodesOf(graph.steps).map(({ id, kind, title }) => (
                <option key={id} value={id}>
                  {title} ({kind})
                </option>
              ))}
            </select>
          </div>
          <Edges
            key={selected}
            document={document}
            from={selected}
            graph={graph}
            change={(edges) => change({ ...graph, edges })}
          />
          {tested === undefined ? null : <Tested step={tested} />}
          {step === undefined ? (
            <p className="muted">Select a step to change it.</p>
          ) : (
            <Panel
              title={
                <>
                  Step <code>{step.id}</code>
                </>
              }
              right={
                <button type="button" onClick={() => remove(step.id)}>
                  Remove
                </button>
              }
            >
              <StepRemarks of={shown.filter(({ stepId }) => stepId === step.id)} isAnswer={isAnswer} />
              <StepForm
                key={step.id}
                document={document}
                step={step}
                paths={paths}
                change={(next) =>
                  change({ ...graph, steps: graph.steps.map((one) => (one.id === next.id ? next : one)) })
                }
              />
            </Panel>
          )}
        </div>
      </div>
    </>
  )
}

/** Changes the steps of a workflow, or those of its draft, on the graph, and tries them before they are saved. */
const Edit = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const isDraft = useFilters().search["draft"] === "1"
  const api = useDocument()
  // Read once: what the reader edits stays, whatever others save. The version is compared on saving.
  const edited = useQuery({
    queryKey: ["edited workflow", team, id, isDraft],
    queryFn: async () => {
      const path = { params: { path: { id } } }
      return {
        workflow: await client.get("/workflows/{id}", path),
        draft: isDraft ? await client.get("/workflows/{id}/draft", path) : null
      }
    },
    gcTime: 0
  })
  if (edited.isError) return <Failure error={edited.error} retry={edited.refetch} />
  if (api.isError) return <Failure error={api.error} retry={api.refetch} />
  if (edited.isPending || api.isPending) return <Loading />
  return <Editor document={api.data} {...edited.data} />
}

export const WorkflowEditor = () => (
  <ForOwners title="Steps of a workflow" may="change workflows">
    <Edit />
  </ForOwners>
)
