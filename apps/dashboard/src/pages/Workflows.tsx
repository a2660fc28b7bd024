import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../gateway.ts"
import { NewLink } from "../parts/NewLink.tsx"
import { Action } from "../parts/Action.tsx"
import { Text } from "../parts/Body.tsx"
import { Choice, Live, Range, rangeOf, useFilters } from "../parts/Filters.tsx"
import { type Edge, Graph } from "../parts/Graph.tsx"
import { type Column, List } from "../parts/List.tsx"
import { NamedLink } from "../parts/Named.tsx"
import { OnlyOwners } from "../parts/OnlyOwners.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Preview } from "../parts/Preview.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { edgesOf, nodesOf, titleOf, trigger, undoEdge } from "../parts/StepGraph.ts"
import { lengthOf, Time } from "../parts/Time.tsx"
import { useRole, useSession } from "../session.ts"
import { PlanBulk } from "./BulkOperations.tsx"

type Workflow = Row<"Workflow">
type Run = Row<"WorkflowActivity">

const statuses = ["queued", "running", "succeeded", "failed"] as const

export const Workflows = () => {
  const { client, team } = useSession()
  const columns: ReadonlyArray<Column<Workflow>> = [
    { title: "Status", width: "100px", cell: ({ status }) => <Status of={status} /> },
    { title: "Name", width: "1.4fr", cell: ({ name }) => <bdi>{name}</bdi> },
    { title: "Steps", width: "70px", cell: ({ steps_count }) => steps_count },
    { title: "Version", width: "70px", cell: ({ version }) => version },
    { title: "Changed", width: "110px", cell: ({ updated_at }) => <Time at={updated_at} /> }
  ]
  return (
    <>
      <header>
        <h1>Workflows</h1>
        <NewLink to="/workflows/new" call="POST /workflows">
          New workflow
        </NewLink>
      </header>
      <OnlyOwners may="make workflows" />
      <List
        label="Workflows"
        keys={["workflows", team]}
        columns={columns}
        to={({ id }) => `/workflows/${id}`}
        read={(cursor) =>
          client.get("/workflows", { params: { query: { limit: 100, ...(cursor === null ? {} : { cursor }) } } })
        }
        empty={<p>There is no workflow yet. A workflow runs several steps for each request of a source.</p>}
      />
    </>
  )
}

const runColumns: ReadonlyArray<Column<Run>> = [
  { title: "Status", width: "110px", cell: ({ outcome, status }) => <Status of={outcome ?? status} /> },
  { title: "Began", width: "110px", cell: ({ created_at }) => <Time at={created_at} /> },
  {
    title: "Workflow",
    width: "1fr",
    cell: ({ workflow_id, workflow_name }) => <bdi>{workflow_name ?? workflow_id}</bdi>
  },
  { title: "Source", width: "1fr", cell: ({ source }) => <bdi>{source.name ?? source.id}</bdi> },
  { title: "Steps", width: "80px", cell: ({ steps_count, succeeded_steps }) => `${succeeded_steps}/${steps_count}` },
  { title: "Error", width: "1fr", cell: ({ error_message }) => error_message ?? <span className="muted">–</span> }
]

/** Runs of all workflows. */
export const Runs = () => {
  const { client, team } = useSession()
  const { mayOwn } = useRole()
  const { search } = useFilters()
  const { live, status } = search
  const query = { ...rangeOf(search), ...(status === undefined ? {} : { status: [status as Run["status"]] }) }
  return (
    <>
      <header>
        <h1>Workflow runs</h1>
        <div className="filters">
          <Range />
          <Choice name="status" label="Status" values={statuses} />
          <Live />
        </div>
        <div className="actions">
          {status === "succeeded" || !mayOwn ? null : (
            <PlanBulk
              key={status}
              of="workflow_runs"
              action={status === "queued" || status === "running" ? "cancel" : "retry"}
              filter={{ ...query, to: "now" }}
            />
          )}
        </div>
      </header>
      <OnlyOwners may="retry or cancel runs" />
      <List
        label="Workflow runs"
        keys={["runs", team, query]}
        columns={runColumns}
        to={({ id, workflow_id }) => `/workflows/${workflow_id}/runs/${id}`}
        isLive={live === "1"}
        read={(cursor) =>
          client.get("/workflow-activity", {
            params: { query: { ...query, limit: 100, ...(cursor === null ? {} : { cursor }) } }
          })
        }
        empty={
          <p>
            No run began in this time. An active <Link to="/workflows">workflow</Link> runs for each request of its
            source.
          </p>
        }
      />
    </>
  )
}

export const Workflow = () => {
  const { id = "" } = useParams({ strict: false })
  const { mayOwn } = useRole()
  const [selected, setSelected] = useState<string | null>(null)
  const { client, team } = useSession()
  const { from = status } = useFilters().search
  const workflow = useQuery({
    queryKey: ["workflow", team, id],
    queryFn: () => client.get("/workflows/{id}", { params: { path: { id } } })
  })
  if (workflow.isPending) return <Loading />
  if (workflow.isError) return <Failure error={workflow.error} retry={workflow.refetch} />
  const { data } = workflow
  const step = data.steps?.find((one) => one.id === selected)
  const query = { from, ...(status === undefined ? {} : { status: [status as Run["status"]] }) }
  const columns: ReadonlyArray<Column<Row<"WorkflowRun">>> = [
    { title: "Status", width: "130px", cell: ({ outcome, status }) => <Status of={outcome ?? status} /> },
    { title: "Began", width: "110px", cell: ({ created_at }) => <Time at={created_at} /> },
    { title: "Took", width: "80px", cell: ({ duration_ms }) => lengthOf(duration_ms) },
    { title: "Steps", width: "80px", cell: ({ steps_count, succeeded_steps }) => `${succeeded_steps}/${steps_count}` },
    { title: "Error", width: "1fr", cell: ({ error_message }) => error_message ?? <span className="muted">–</span> },
    { title: "Id", width: "270px", cell: ({ id }) => <span className="mono">{id}</span> }
  ]
  return (
    <>
      <header>
        <h1>
          <bdi>{data.name}</bdi>
        </h1>
        <Status of={data.status} />
        <span className="muted">Version {data.version}</span>
        <div className="filters">
          <Range />
          <Choice name="status" label="Status" values={statuses} />
        </div>
        <div className="actions">
          {mayOwn ? (
            <Action
              call="PATCH /workflows/{id}"
              run={() => {
                const status = data.status === "active" ? "paused" : "active"
                return client.patch("/workflows/{id}", {
                  params: { path: { id } },
                  body: { version: data.version, status }
                })
              }}
            >
              {data.status === "active" ? "Pause" : "Activate"}
            </Action>
          ) : null}
          <Link to={`/workflows/${id}/triggers`} className="button">
            Triggers
          </Link>
          {mayOwn ? (
            <Link to={`/workflows/${id}/edit`} className="button">
              Edit
            </Link>
          ) : null}
        </div>
      </header>
      <OnlyOwners may="change workflows, or activate and pause them" />
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
      <List
        label="Runs"
        keys={["workflow runs", team, id, query]}
        columns={columns}
        to={(run) => `/workflows/${id}/runs/${run.id}`}
        read={(cursor) =>
          client.get("/workflows/{id}/runs", {
            params: { path: { id }, query: { ...query, limit: 100, ...(cursor === null ? {} : { cursor }) } }
          })
        }
        empty={<p>No run began in this time.</p>}
      />
    </>
  )
}

type Executed = Row<"WorkflowRunDetail">["steps"][number]

/** What can be done at a step of a run: go on from it after a failure, or decide when it waits for an approval. */
const Decide = ({ run, step }: { readonly run: Row<"WorkflowRunDetail">; readonly step: Executed }) => {
  const { client } = useSession()
  const { mayOwn } = useRole()
  const path = { id: run.workflow_id, runId: run.id }
  const decide = (decision: "approve" | "reject") =>
    client.post("/workflows/{id}/runs/{runId}/steps/{stepId}/decision", {
      params: { path: { ...path, stepId: step.step_id } },
      body: { decision }
    })
  if (step.status === "failed" && run.status === "failed") {
    if (!mayOwn) return null
    return (
      <Action
        call="POST /workflows/{id}/runs/{runId}/retry"
        run={() =>
          client.post("/workflows/{id}/runs/{runId}/retry", { params: { path }, body: { step_id: step.step_id } })
        }
        done="Queued again"
      >
        Retry from this step
      </Action>
    )
  }
  return step.kind === "wait" && step.wait?.kind === "signal" ? (
    <div className="bar">
      <Action call="POST /workflows/{id}/runs/{runId}/steps/{stepId}/decision" run={() => decide("approve")} primary>
        Approve
      </Action>
      <Action call="POST /workflows/{id}/runs/{runId}/steps/{stepId}/decision" run={() => decide("reject")}>
        Reject
      </Action>
    </div>
  ) : null
}

/** A step of a run: what went in, what came out, and why it failed or did not run. */
const Step = ({ run, step }: { readonly run: Row<"WorkflowRunDetail">; readonly step: Executed }) => (
  <Panel title={<bdi>{titleOf({ id: step.step_id, name: step.name })}</bdi>} right={<Status of={step.status} />}>
    <Facts
      of={[
        ["Kind", step.kind],
        ["Undoes", step.compensates ?? undefined],
        ["Attempts", step.attempt_count === 0 ? undefined : String(step.attempt_count)],
        ["Error", step.error_code === null ? undefined : `${step.error_code}: ${step.error_message ?? ""}`],
        ["Answer", step.response_status ?? undefined],
        ["Skipped because", step.skip_reason ?? undefined],
        ["Began", step.started_at === null ? undefined : <Time key="began" at={step.started_at} precise />],
        ["Ended", step.finished_at === null ? undefined : <Time key="ended" at={step.finished_at} precise />]
      ]}
    />
    <Decide run={run} step={step} />
    <Preview title="Input" of={step.input_preview} />
    <Preview title="Output" of={step.output_preview} />
  </Panel>
)

/** The ways that a run has taken: an edge to each step from the one by which it was first reached, or that it undoes. */
const takenEdges = ({ steps }: Row<"WorkflowRunDetail">): ReadonlyArray<Edge> =>
  steps.flatMap(({ compensates, input, step_id }) => {
    if (compensates !== null) return [undoEdge(compensates, step_id)]
    return input === null ? [] : [{ from: input.source_step_id ?? trigger, to: step_id, label: input.source_port }]
  })

export const Run = () => {
  const { id = "", runId = "" } = useParams({ strict: false })
  const { mayOwn } = useRole()
  const navigate = useNavigate()
  const [selected, setSelected] = useState<string | null>(null)
  const { client, team } = useSession()
  const path = { id, runId }
  const run = useQuery({
    queryKey: ["run", team, runId],
    queryFn: () => client.get("/workflows/{id}/runs/{runId}", { params: { path, query: { include_previews: true } } })
  })
  const workflow = useQuery({
    queryKey: ["workflow", team, id],
    queryFn: () => client.get("/workflows/{id}", { params: { path: { id } } })
  })
  if (run.isPending || workflow.isPending) return <Loading />
  if (run.isError) return <Failure error={run.error} retry={run.refetch} />
  const { data } = run
  // A run keeps its own version. The edges of another one would be wrong for it.
  const current = workflow.data?.version === data.workflow_version ? workflow.data : undefined
  const edges = current?.edges === undefined ? takenEdges(data) : edgesOf(current.edges, current.steps ?? [])
  const shown =
    data.steps.find(({ step_id }) => step_id === selected) ??
    data.steps.find(({ status }) => status === "failed") ??
    data.steps[0]
  return (
    <>
      <header>
        <h1>Workflow run</h1>
        <Status of={data.outcome ?? data.status} />
        <span className="mono">{runId}</span>
        <div className="actions">
          {!mayOwn ? null : data.finished_at === null ? (
            <Action
              call="POST /workflows/{id}/runs/{runId}/cancel"
              run={() => client.post("/workflows/{id}/runs/{runId}/cancel", { params: { path } })}
              asks="Abort what it calls now?"
            >
              Cancel
            </Action>
          ) : (
            <Action
              call="POST /workflows/{id}/runs/{runId}/rerun"
              run={async () => {
                const { id: next } = await client.post("/workflows/{id}/runs/{runId}/rerun", {
                  params: { path },
                  body: {}
                })
                await navigate({ to: `/workflows/${id}/runs/${next}` })
              }}
              asks="Send everything again?"
            >
              Run again
            </Action>
          )}
        </div>
      </header>
      <OnlyOwners may="cancel a run, retry it or run it again" />
      {data.error_message === null ? null : <div className="notice bad">{data.error_message}</div>}
      <Panel title="Run">
        <Facts
          of={[
            ["Workflow", <NamedLink key="workflow" kind="workflows" id={id} />],
            ["Version", String(data.workflow_version)],
            [
              "Request",
              <Link key="request" className="mono" to={`/requests/${data.request_id}`}>
                {data.request_id}
              </Link>
            ],
            ["Began", <Time key="began" at={data.created_at} precise />],
            ["Took", lengthOf(data.duration_ms)]
          ]}
        />
      </Panel>
      <Graph
        label="Steps of the run"
        nodes={nodesOf(
          data.steps.map(({ kind, name, step_id }) => ({ id: step_id, kind, name })),
          new Map(data.steps.map(({ status, step_id }) => [step_id, status]))
        )}
        edges={edges}
        selected={shown?.step_id ?? null}
        onSelect={setSelected}
      />
      {shown === undefined ? null : <Step key={shown.id} run={data} step={shown} />}
    </>
  )
}
