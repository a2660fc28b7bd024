import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { lazy, Suspense, useState } from "react"
import type { Row } from "../../gateway.ts"
import { useMay } from "../../may.ts"
import { Action } from "../../parts/Action.tsx"
import { Text } from "../../parts/Body.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Range, rangeOf, useFilters } from "../../parts/Filters.tsx"
import { Graph } from "../../parts/Graph.tsx"
import { type Column, List } from "../../parts/List.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { Status } from "../../parts/Status.tsx"
import { edgesOf, nodesOf, titleOf } from "../../parts/StepGraph.ts"
import { lengthOf, Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { SwitchWorkflow } from "./SwitchWorkflow.tsx"

// Loaded when they are opened, or when there is a draft.
const BeginRun = lazy(async () => ({ default: (await import("./WorkflowForms.tsx")).BeginRun }))
const CopyWorkflow = lazy(async () => ({ default: (await import("./WorkflowForms.tsx")).CopyWorkflow }))
const Draft = lazy(async () => ({ default: (await import("./Draft.tsx")).Draft }))

const columns: ReadonlyArray<Column<Row<"WorkflowRun">>> = [
  { title: "Status", width: "130px", cell: ({ outcome, status }) => <Status of={outcome ?? status} /> },
  { title: "Began", width: "110px", cell: ({ created_at }) => <Time at={created_at} /> },
  { title: "Took", width: "80px", cell: ({ duration_ms }) => lengthOf(duration_ms) },
  { title: "Steps", width: "80px", cell: ({ steps_count, succeeded_steps }) => `${succeeded_steps}/${steps_count}` },
  { title: "Error", width: "1fr", cell: ({ error_message }) => error_message ?? <span className="muted">–</span> },
  { title: "Id", width: "270px", cell: ({ id }) => <span className="mono">{id}</span> }
]

/** What can be done with a workflow. The URL says which form is open, so that a list can lead to it. */
const Actions = ({ workflow }: { readonly workflow: Row<"Workflow"> }) => {
  const { client } = useSession()
  const may = useMay()
  const navigate = useNavigate()
  const { search, set } = useFilters()
  const { id } = workflow
  const toggle = (form: "run" | "copy", label: string) => (
    <button
      type="button"
      aria-expanded={search["form"] === form}
      onClick={() => set("form", search["form"] === form ? "" : form)}
    >
      {label}
    </button>
  )
  return (
    <div className="actions">
      {may("POST /workflows/{id}/runs") ? toggle("run", "Run now…") : null}
      <SwitchWorkflow of={workflow} />
      {may("PATCH /workflows/{id}") ? (
        <Link to={`/workflows/${id}/edit`} className="button">
          Edit
        </Link>
      ) : null}
      <Link to={`/workflows/${id}/triggers`} className="button">
        Triggers
      </Link>
      <Link to={`/workflows/${id}/versions`} className="button">
        Versions
      </Link>
      {may("POST /workflows/{id}/clone") ? toggle("copy", "Copy…") : null}
      <Action
        call="DELETE /workflows/{id}"
        asks="Delete it and its runs?"
        run={async () => {
          await client.delete("/workflows/{id}", { params: { path: { id } } })
          await navigate({ to: "/workflows" })
        }}
      >
        Delete
      </Action>
    </div>
  )
}

const filters: ReadonlyArray<Filter> = [{ name: "status", label: "Status" }]

export const Workflow = () => {
  const { id = "" } = useParams({ strict: false })
  const [selected, setSelected] = useState<string | null>(null)
  const { client, team } = useSession()
  const { search } = useFilters()
  const { form, status } = search
  const workflow = useQuery({
    queryKey: ["workflow", team, id],
    queryFn: () => client.get("/workflows/{id}", { params: { path: { id } } })
  })
  if (workflow.isPending) return <Loading />
  if (workflow.isError) return <Failure error={workflow.error} retry={workflow.refetch} />
  const { data } = workflow
  const step = data.steps?.find((one) => one.id === selected)
  const query = {
    ...rangeOf(search),
    ...(status === undefined ? {} : { status: [status as Row<"WorkflowRun">["status"]] })
  }
  return (
    <>
      <header>
        <h1>
          <bdi>{data.name}</bdi>
        </h1>
        <Status of={data.status} />
        <span className="muted">Version {data.version}</span>
        <Actions workflow={data} />
      </header>
      <OnlyOwners may="change, run, copy and delete workflows" />
      <Suspense fallback={<Loading />}>
        {form === "run" ? <BeginRun workflow={data} /> : form === "copy" ? <CopyWorkflow workflow={data} /> : null}
      </Suspense>
      {/* Few workflows have one: nothing is shown before it is known. */}
      <Suspense fallback={null}>
        <Draft workflow={data} />
      </Suspense>
      <Graph
        label="Steps of the workflow"
        nodes={nodesOf(data.steps ?? [])}
        edges={edgesOf(data.edges ?? [], data.steps ?? [])}
        selected={selected}
        onSelect={setSelected}
      />
      {step === undefined ? null : (
        <Panel title={<bdi>{titleOf(step)}</bdi>}>
          <Text text={JSON.stringify(step)} />
        </Panel>
      )}
      <div className="filters">
        <h2>Runs</h2>
        <Range />
        <FilterBar path="/workflows/{id}/runs" of={filters} />
      </div>
      <List
        label="Runs"
        keys={["workflow runs", team, id, query]}
        columns={columns}
        to={(run) => `/workflows/${id}/runs/${run.id}`}
        read={(page) =>
          client.get("/workflows/{id}/runs", {
            params: { path: { id }, query: { ...query, ...page } }
          })
        }
        empty={<p>No run began in this time.</p>}
      />
    </>
  )
}
