import { Link } from "@tanstack/react-router"
import type { Row } from "../../gateway.ts"
import { useMay } from "../../may.ts"
import { Action } from "../../parts/Action.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { useFilters, valuesOf } from "../../parts/Filters.tsx"
import { type Column, List } from "../../parts/List.tsx"
import { NewLink } from "../../parts/NewLink.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { Status } from "../../parts/Status.tsx"
import { Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { SwitchWorkflow } from "./SwitchWorkflow.tsx"

type Workflow = Row<"Workflow">

const columns: ReadonlyArray<Column<Workflow>> = [
  { title: "Status", width: "100px", cell: ({ status }) => <Status of={status} /> },
  { title: "Name", width: "1.4fr", cell: ({ name }) => <bdi>{name}</bdi> },
  { title: "Steps", width: "70px", cell: ({ steps_count }) => steps_count },
  { title: "Version", width: "70px", cell: ({ version }) => version },
  { title: "Changed", width: "110px", cell: ({ updated_at }) => <Time at={updated_at} /> }
]

const filters: ReadonlyArray<Filter> = [
  { name: "status", label: "Status" },
  { name: "source_id", label: "Source", kind: "sources" },
  { name: "q", key: "name", label: "Id, or a part of the name", isText: true, isUsual: true }
]

/** What can be done with a workflow without opening it. Running and copying ask for more, so they lead to its page. */
const RowActions = ({ row }: { readonly row: Workflow }) => {
  const { client } = useSession()
  return (
    <div className="row-actions" role="group" aria-label={`Actions of ${row.name}`}>
      <SwitchWorkflow of={row} isInRow />
      <Link to={`/workflows/${row.id}`} search={{ form: "run" }} className="button">
        Run…
      </Link>
      <Link to={`/workflows/${row.id}`} search={{ form: "copy" }} className="button">
        Copy…
      </Link>
      <Action
        call="DELETE /workflows/{id}"
        asks="Delete it and its runs?"
        done={`${row.name} is deleted`}
        isInRow
        run={() => client.delete("/workflows/{id}", { params: { path: { id: row.id } } })}
      >
        Delete
      </Action>
    </div>
  )
}

export const Workflows = () => {
  const { client, team } = useSession()
  const may = useMay()
  const { search } = useFilters()
  const { q, status } = search
  const query = {
    ...(q === undefined ? {} : { q }),
    ...(status === undefined ? {} : { status: [status as Workflow["status"]] }),
    ...valuesOf(search, ["source_id"])
  }
  return (
    <>
      <header>
        <h1>Workflows</h1>
        <div className="filters">
          <FilterBar path="/workflows" of={filters} />
        </div>
        <NewLink to="/workflows/new" call="POST /workflows">
          New workflow
        </NewLink>
      </header>
      <OnlyOwners may="make, run and delete workflows" />
      <List
        label="Workflows"
        keys={["workflows", team, query]}
        columns={columns}
        to={({ id }) => `/workflows/${id}`}
        {...(may("DELETE /workflows/{id}")
          ? { actions: { width: "280px", of: (row: Workflow) => <RowActions row={row} /> } }
          : {})}
        read={(page) =>
          client.get("/workflows", {
            params: { query: { ...query, ...page } }
          })
        }
        empty={
          <p>
            {Object.keys(query).length > 0
              ? "No workflow matches these filters."
              : "There is no workflow yet. A workflow runs several steps for each request of a source."}
          </p>
        }
      />
    </>
  )
}
