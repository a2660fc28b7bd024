import { Link } from "@tanstack/react-router"
import type { Row } from "../../gateway.ts"
import { useColumns } from "../../parts/Columns.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Live, Range, rangeOf, useFilters, valuesOf } from "../../parts/Filters.tsx"
import { type Column, List } from "../../parts/List.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { Status } from "../../parts/Status.tsx"
import { Time } from "../../parts/Time.tsx"
import { Views } from "../../parts/Views.tsx"
import { useRole, useSession } from "../../session.ts"
import { PlanBulk } from "../BulkOperations.tsx"

type Run = Row<"WorkflowActivity">

const nothing = <span className="muted">–</span>

const allColumns: ReadonlyArray<Column<Run>> = [
  { title: "Status", width: "110px", cell: ({ outcome, status }) => <Status of={outcome ?? status} /> },
  { title: "Began", width: "110px", cell: ({ created_at }) => <Time at={created_at} /> },
  {
    title: "Workflow",
    width: "1fr",
    cell: ({ workflow_id, workflow_name }) => <bdi>{workflow_name ?? workflow_id}</bdi>
  },
  { title: "Source", width: "1fr", cell: ({ source }) => <bdi>{source.name ?? source.id}</bdi> },
  { title: "Steps", width: "80px", cell: ({ steps_count, succeeded_steps }) => `${succeeded_steps}/${steps_count}` },
  { title: "Error", width: "1fr", cell: ({ error_message }) => error_message ?? nothing },
  { title: "Ended", width: "110px", isExtra: true, cell: ({ finished_at }) => <Time at={finished_at} /> },
  { title: "Label", width: "1fr", isExtra: true, cell: ({ label }) => (label === null ? nothing : <bdi>{label}</bdi>) },
  {
    title: "Request",
    width: "270px",
    isExtra: true,
    cell: ({ request_id }) => <span className="mono">{request_id}</span>
  },
  { title: "Id", width: "270px", isExtra: true, cell: ({ id }) => <span className="mono">{id}</span> }
]

const filters: ReadonlyArray<Filter> = [
  { name: "status", label: "Status" },
  { name: "outcome", label: "Outcome" },
  { name: "source_id", label: "Source", kind: "sources" },
  { name: "error_code", key: "error", label: "Error", isText: true },
  { name: "error_step_id", key: "step", label: "Failed at the step", isText: true },
  { name: "label", label: "Label", isText: true },
  { name: "text", label: "Text in inputs or outputs", isText: true, isUsual: true }
]

/** Runs of all workflows. */
export const Runs = () => {
  const { client, team } = useSession()
  const { mayOwn } = useRole()
  const { search } = useFilters()
  const { columns, menu } = useColumns("runs", allColumns)
  const { label, live, outcome, status, text } = search
  const query = {
    ...rangeOf(search),
    ...(status === undefined ? {} : { status: [status as Run["status"]] }),
    ...(outcome === undefined ? {} : { outcome: [outcome as NonNullable<Run["outcome"]>] }),
    ...(label === undefined ? {} : { label }),
    ...(text === undefined ? {} : { text }),
    ...valuesOf(search, ["source_id", "error_code", "error_step_id"])
  }
  return (
    <>
      <header>
        <h1>Workflow runs</h1>
        <div className="filters">
          <Range />
          <Live />
          <Views page="runs" />
          {menu}
          <FilterBar path="/workflow-activity" of={filters} />
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
        columns={columns}
        to={({ id, workflow_id }) => `/workflows/${workflow_id}/runs/${id}`}
        isLive={live === "1"}
        read={(page) =>
          client.get("/workflow-activity", {
            params: { query: { ...query, ...page } }
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
