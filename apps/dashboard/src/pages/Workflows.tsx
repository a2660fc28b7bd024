import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Text } from "../parts/Body.tsx"
import { Choice, defaultRange, Live, Range, useFilters } from "../parts/Filters.tsx"
import { type Column, List } from "../parts/List.tsx"
import { NamedLink } from "../parts/Named.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { lengthOf, Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"

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
      </header>
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
  const { from = defaultRange, live, status } = useFilters().search
  const query = { from, ...(status === undefined ? {} : { status: [status as Run["status"]] }) }
  return (
    <>
      <header>
        <h1>Workflow runs</h1>
        <div className="filters">
          <Range />
          <Choice name="status" label="Status" values={statuses} />
          <Live />
        </div>
      </header>
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
  const { client, team } = useSession()
  const { from = defaultRange, status } = useFilters().search
  const workflow = useQuery({
    queryKey: ["workflow", team, id],
    queryFn: () => client.get("/workflows/{id}", { params: { path: { id } } })
  })
  if (workflow.isPending) return <Loading />
  if (workflow.isError) return <Failure error={workflow.error} retry={workflow.refetch} />
  const { data } = workflow
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
      </header>
      <Panel title="Steps">
        <table>
          <thead>
            <tr>
              <th>Step</th>
              <th>Kind</th>
              <th>Then</th>
            </tr>
          </thead>
          <tbody>
            {(data.steps ?? []).map((step) => (
              <tr key={step.id}>
                <td>
                  <bdi>{step.name ?? step.id}</bdi>
                </td>
                <td>{step.kind}</td>
                <td>
                  {(data.edges ?? [])
                    .flatMap(({ source_step_id, target_step_id }) =>
                      source_step_id === step.id ? [target_step_id] : []
                    )
                    .join(", ")}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Panel>
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

const Preview = ({ of, title }: { readonly title: string; readonly of: unknown }) =>
  of === undefined || of === null ? null : (
    <details open>
      <summary>{title}</summary>
      <Text text={JSON.stringify(of)} />
    </details>
  )

/** A step of a run: what went in, what came out, and why it failed or did not run. */
const Step = ({ step }: { readonly step: Row<"WorkflowRunDetail">["steps"][number] }) => (
  <Panel title={<bdi>{step.name ?? step.step_id}</bdi>} right={<Status of={step.status} />}>
    <Facts
      of={[
        ["Kind", step.kind],
        ["Attempts", step.attempt_count === 0 ? undefined : String(step.attempt_count)],
        ["Error", step.error_code === null ? undefined : `${step.error_code}: ${step.error_message ?? ""}`],
        ["Answer", step.response_status ?? undefined],
        ["Skipped because", step.skip_reason ?? undefined],
        ["Began", step.started_at === null ? undefined : <Time key="began" at={step.started_at} precise />],
        ["Ended", step.finished_at === null ? undefined : <Time key="ended" at={step.finished_at} precise />]
      ]}
    />
    <Preview title="Input" of={step.input_preview} />
    <Preview title="Output" of={step.output_preview} />
  </Panel>
)

export const Run = () => {
  const { id = "", runId = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const path = { id, runId }
  const run = useQuery({
    queryKey: ["run", team, runId],
    queryFn: () => client.get("/workflows/{id}/runs/{runId}", { params: { path, query: { include_previews: true } } })
  })
  if (run.isPending) return <Loading />
  if (run.isError) return <Failure error={run.error} retry={run.refetch} />
  const { data } = run
  return (
    <>
      <header>
        <h1>Workflow run</h1>
        <Status of={data.outcome ?? data.status} />
        <span className="mono">{runId}</span>
        <div className="actions">
          {data.status === "failed" ? (
            <Action
              run={() => client.post("/workflows/{id}/runs/{runId}/retry", { params: { path }, body: {} as never })}
              done="Queued again"
              primary
            >
              Retry from the failed step
            </Action>
          ) : null}
        </div>
      </header>
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
      {data.steps.map((step) => (
        <Step key={step.id} step={step} />
      ))}
    </>
  )
}
