import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { useRef, useState } from "react"
import { TidegateError } from "@tidegate/client/source"
import { messageOf, type Row } from "../gateway.ts"
import { Fields, valuesIn } from "../parts/Fields.tsx"
import { Graph } from "../parts/Graph.tsx"
import { ForOwners } from "../parts/OnlyOwners.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Preview, previewOf } from "../parts/Preview.tsx"
import { objectOf, resolved, type Schema, useDocument } from "../parts/Schema.ts"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { beginOf, edgesOf, nodesOf, portsOf, type Step, type StepEdge, titleOf, trigger } from "../parts/StepGraph.ts"
import { useRefresh, useSession } from "../session.ts"

interface Graph {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<StepEdge>
}

/** What the gateway says about a step. */
interface Remark {
  readonly stepId: string | null
  readonly message: string
}

const kinds = ["action", "branch", "delay", "destination", "filter", "transformation", "wait"] as const

type Document = NonNullable<ReturnType<typeof useDocument>["data"]>

/** The schema of a kind's settings in the API's document. */
const configOf = (document: Document, kind: string): Schema => {
  const name = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}StepConfig`
  return objectOf(document, resolved(document, { $ref: name }))
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The most paths that are offered, and how deep they go: a sample may be large. */
const mostPaths = 200
const deepest = 6

/** The paths of the values in a sample. Members whose names templates cannot spell are left out. */
const pathsIn = (value: unknown, path: string, depth = 0): ReadonlyArray<string> =>
  isObject(value) && depth < deepest
    ? [
        path,
        ...Object.entries(value)
          .filter(([name]) => /^[\w-]{1,80}$/.test(name))
          .slice(0, mostPaths)
          .flatMap(([name, member]) => pathsIn(member, `${path}.${name}`, depth + 1))
      ]
    : [path]

/** Issues and warnings name the step by its id or by its place: `steps.2.config.url`, `steps[2]`. */
const stepAt = (steps: ReadonlyArray<Step>, path: string): string | null => {
  const [, place] = /^\/?steps[./[]([\w-]+)/.exec(path) ?? []
  if (place === undefined) return null
  return steps.find(({ id }) => id === place)?.id ?? steps[Number(place)]?.id ?? null
}

interface Issue {
  readonly step_id: string | null
  readonly message: string
}

const remarksOf = (error: unknown): ReadonlyArray<Remark> => {
  const issues = error instanceof TidegateError ? (error.data["issues"] as ReadonlyArray<Issue> | undefined) : undefined
  return Array.isArray(issues)
    ? issues.map(({ message, step_id }: Issue) => ({ stepId: step_id, message }))
    : [{ stepId: null, message: messageOf(error) }]
}

/** Edges as they are written: without ids, which are derived from positions. */
const edge = (from: string, port: string, to: string): StepEdge =>
  from === trigger
    ? { source_type: "trigger", target_step_id: to }
    : { source_type: "step", source_step_id: from, source_port: port, target_step_id: to }

const resourcesOf = {
  action: "actions",
  destination: "destinations",
  filter: "filters",
  transformation: "transformations"
} as const

/** The team's resources that a step can refer to. */
const useResources = (kind: string): ReadonlyArray<{ readonly id: string; readonly name: string }> => {
  const { client, team } = useSession()
  const plural = resourcesOf[kind as keyof typeof resourcesOf] as (typeof resourcesOf)["filter"] | undefined
  const { data } = useQuery({
    queryKey: ["step resources", team, plural],
    queryFn: () => client.get(`/${plural!}`, { params: { query: { limit: 255 } } }),
    enabled: plural !== undefined
  })
  return plural === undefined ? [] : (data?.models ?? [])
}

const StepForm = ({
  change,
  document,
  paths,
  step
}: {
  readonly document: Document
  readonly step: Step
  readonly paths: ReadonlyArray<string>
  readonly change: (step: Step) => void
}) => {
  const form = useRef<HTMLFormElement>(null)
  const field = useRef<HTMLInputElement | HTMLTextAreaElement>(null)
  const [fault, setFault] = useState<string | null>(null)
  const resources = useResources(step.kind)
  const collect = () => {
    if (form.current === null) return
    try {
      const own = valuesIn(form.current, "step.")
      const config = valuesIn(form.current, "config.")
      const { invocation_inputs: _, name: __, resource_id: ___, ...rest } = step
      change({ ...rest, ...own, config } as Step)
      setFault(null)
    } catch (error) {
      setFault(messageOf(error))
    }
  }
  const insert = (path: string) => {
    const into = field.current
    if (into === null || path === "") return
    into.setRangeText(`{{${path}}}`, into.selectionStart ?? 0, into.selectionEnd ?? 0, "end")
    into.focus()
    collect()
  }
  const inputs: Schema = {
    properties: { invocation_inputs: { type: "object", description: "The inputs of the action" } }
  }
  return (
    <form
      ref={form}
      onChange={collect}
      onSubmit={(event) => event.preventDefault()}
      onFocus={({ target }) => {
        const isText =
          target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type === "text")
        if (isText) field.current = target
      }}
    >
      <div className="field">
        <label htmlFor="step.name">Name</label>
        <input id="step.name" name="step.name" defaultValue={step.name ?? ""} autoComplete="off" />
      </div>
      {step.kind in resourcesOf ? (
        <div className="field">
          <label htmlFor="step.resource_id">{step.kind}</label>
          <select
            key={resources.length}
            id="step.resource_id"
            name="step.resource_id"
            defaultValue={step.resource_id ?? ""}
          >
            <option value="">–</option>
            {resources.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
            {step.resource_id == null || resources.some(({ id }) => id === step.resource_id) ? null : (
              <option>{step.resource_id}</option>
            )}
          </select>
        </div>
      ) : null}
      {step.kind === "action" ? (
        <Fields
          document={document}
          schema={inputs}
          prefix="step."
          values={{ invocation_inputs: step.invocation_inputs }}
        />
      ) : null}
      <div className="field">
        <label htmlFor="insert">Insert a value of the sample</label>
        <select id="insert" name="insert" value="" onChange={({ target }) => insert(target.value)}>
          <option value="">Put the cursor into a field, then choose…</option>
          {paths.slice(0, mostPaths).map((path) => (
            <option key={path}>{path}</option>
          ))}
        </select>
      </div>
      <Fields document={document} schema={configOf(document, step.kind)} prefix="config." values={step.config ?? {}} />
      {fault === null ? null : (
        <p role="alert" className="notice bad">
          {fault}. The step keeps its last valid settings.
        </p>
      )}
    </form>
  )
}

/** The edges from a node: remove them, or add one. */
const Edges = ({
  change,
  from,
  graph
}: {
  readonly from: string
  readonly graph: Graph
  readonly change: (edges: ReadonlyArray<StepEdge>) => void
}) => {
  const step = graph.steps.find(({ id }) => id === from)
  const ports = portsOf(step)
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

/** What the last test did at a step. */
const Tested = ({ step }: { readonly step: Row<"WorkflowTest">["steps"][number] }) => (
  <Panel title="In the test" right={<Status of={step.status} />}>
    <Facts
      of={[
        ["Error", step.error_code === null ? undefined : `${step.error_code}: ${step.error_message ?? ""}`],
        ["Skipped because", step.skip_reason ?? undefined]
      ]}
    />
    <Preview title="Input" of={step.input_preview} />
    <Preview title="Output" of={step.output_preview} />
  </Panel>
)

/** Two people have changed a workflow: both graphs, and the choice between them. */
const Conflict = ({
  keep,
  mine,
  take,
  theirs
}: {
  readonly mine: Graph
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

const Editor = ({ document, workflow }: { readonly document: Document; readonly workflow: Row<"Workflow"> }) => {
  const { client, team } = useSession()
  const refresh = useRefresh()
  const path = { path: { id: workflow.id } }
  const [graph, setGraph] = useState<Graph>({ steps: workflow.steps ?? [], edges: workflow.edges ?? [] })
  const [version, setVersion] = useState(workflow.version)
  const [selected, setSelected] = useState<string>(trigger)
  const [kind, setKind] = useState<string>("filter")
  const [remarks, setRemarks] = useState<ReadonlyArray<Remark>>([])
  const [said, setSaid] = useState<string | null>(null)
  const [theirs, setTheirs] = useState<Row<"Workflow"> | null>(null)
  const [test, setTest] = useState<Row<"WorkflowTest"> | null>(null)
  const [requestId, setRequestId] = useState("")
  const sourceId = workflow.source_id
  const latest = useQuery({
    queryKey: ["latest request", team, sourceId],
    queryFn: async () => {
      const { models } = await client.get("/requests", {
        params: { query: { source_id: [sourceId!], from: "now-7d", limit: 1 } }
      })
      return models[0]?.id ?? ""
    },
    enabled: sourceId !== null,
    staleTime: Infinity
  })
  const sampleId = requestId === "" ? (latest.data ?? "") : requestId
  const sample = useQuery({
    queryKey: ["sample", team, sampleId],
    queryFn: () => client.get("/requests/{id}", { params: { path: { id: sampleId } } }),
    enabled: sampleId !== "",
    retry: false
  })
  const data = sample.data?.data
  const paths = [
    ...pathsIn({ body: data?.body, headers: data?.headers, method: data?.method, path: data?.path }, trigger),
    ...(test?.steps ?? []).flatMap(({ output_preview, step_id }) =>
      output_preview === null ? [] : pathsIn(previewOf(output_preview), `steps.${step_id}.output`)
    )
  ]
  const step = graph.steps.find(({ id }) => id === selected)
  const tested = test?.steps.find(({ step_id }) => step_id === selected)
  const body = { steps: [...graph.steps], edges: [...graph.edges] }

  const change = (next: Graph) => {
    setGraph(next)
    setSaid(null)
  }
  const add = () => {
    let number = graph.steps.length + 1
    while (graph.steps.some(({ id }) => id === `${kind}_${number}`)) number++
    const id = `${kind}_${number}`
    // A step after a branch gets a path that leads nowhere yet.
    const ports = portsOf(step)
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
      setRemarks((saved.warnings ?? []).map(({ message, path }) => ({ stepId: stepAt(graph.steps, path), message })))
      await refresh()
    } catch (error) {
      if (error instanceof TidegateError && error.code === "workflow_conflict") {
        setTheirs(await client.get("/workflows/{id}", { params: path }))
      } else setRemarks(remarksOf(error))
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
  const faulty = new Set(remarks.flatMap(({ stepId }) => stepId ?? []))
  const others = remarks.filter(({ stepId }) => stepId !== selected || step === undefined)
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
          <button type="button" disabled={latest.isLoading} onClick={() => void run()}>
            Test
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
      {others.length === 0 ? null : (
        <ul className="notice bad plain" role="alert">
          {others.map(({ message, stepId }) => (
            <li key={`${stepId ?? ""} ${message}`}>
              {stepId === null ? null : (
                <button type="button" className="link" onClick={() => setSelected(stepId)}>
                  {stepId}
                </button>
              )}{" "}
              {message}
            </li>
          ))}
        </ul>
      )}
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
                {kinds.map((one) => (
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
                placeholder={latest.data === undefined || latest.data === "" ? "An empty request" : latest.data}
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
          <Edges key={selected} from={selected} graph={graph} change={(edges) => change({ ...graph, edges })} />
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
              {remarks
                .filter(({ stepId }) => stepId === step.id)
                .map(({ message }) => (
                  <p key={message} role="alert" className="notice bad">
                    {message}
                  </p>
                ))}
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

/** Changes the steps of a workflow on its graph, and tries them before they are saved. */
const Edit = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const api = useDocument()
  // Read once: what the reader edits stays, whatever others save. The version is compared on saving.
  const workflow = useQuery({
    queryKey: ["edited workflow", team, id],
    queryFn: () => client.get("/workflows/{id}", { params: { path: { id } } }),
    gcTime: 0
  })
  if (workflow.isError) return <Failure error={workflow.error} retry={workflow.refetch} />
  if (api.isError) return <Failure error={api.error} retry={api.refetch} />
  if (workflow.isPending || api.isPending) return <Loading />
  return <Editor document={api.data} workflow={workflow.data} />
}

export const WorkflowEditor = () => (
  <ForOwners title="Steps of a workflow" may="change workflows">
    <Edit />
  </ForOwners>
)
