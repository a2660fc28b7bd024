import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../../gateway.ts"
import { Action } from "../../parts/Action.tsx"
import { type Edge, Graph } from "../../parts/Graph.tsx"
import { NamedLink } from "../../parts/Named.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { liveMs } from "../../parts/Pages.ts"
import { Facts, Panel } from "../../parts/Panel.tsx"
import { Preview } from "../../parts/Preview.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { Status } from "../../parts/Status.tsx"
import { edgesOf, nodesOf, titleOf, trigger, undoEdge } from "../../parts/StepGraph.ts"
import { lengthOf, Time } from "../../parts/Time.tsx"
import { useRole, useSession } from "../../session.ts"

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

/** What a run began with: a request, or what was written by hand for this run or for the one that it repeats. */
const Input = ({ run: { id, request_id, workflow_id } }: { readonly run: Row<"WorkflowRunDetail"> }) => {
  if (request_id === id) return "None: it was begun without one"
  const to = request_id.startsWith("req_") ? `/requests/${request_id}` : `/workflows/${workflow_id}/runs/${request_id}`
  return (
    <Link className="mono" to={to}>
      {request_id}
    </Link>
  )
}

const isUnderWay = (run: Row<"WorkflowRunDetail"> | undefined): boolean =>
  run?.status === "queued" || run?.status === "running"

export const Run = () => {
  const { id = "", runId = "" } = useParams({ strict: false })
  const { mayOwn } = useRole()
  const navigate = useNavigate()
  const [selected, setSelected] = useState<string | null>(null)
  const { client, team } = useSession()
  const path = { id, runId }
  const run = useQuery({
    queryKey: ["run", team, runId],
    queryFn: () => client.get("/workflows/{id}/runs/{runId}", { params: { path, query: { include_previews: true } } }),
    // Until it has ended, and not while the page is in the background.
    refetchInterval: ({ state }) => (isUnderWay(state.data) ? liveMs : false)
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
    data.steps.find(({ wait }) => wait?.kind === "signal") ??
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
            ["Request", <Input key="request" run={data} />],
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
