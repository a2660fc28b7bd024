import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useState } from "react"
import { messageOf, type Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Text } from "../parts/Body.tsx"
import { useFilters } from "../parts/Filters.tsx"
import { type Column, List } from "../parts/List.tsx"
import { OnlyOwners } from "../parts/OnlyOwners.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"
import { useMay } from "../may.ts"
import { useSession } from "../session.ts"

type Operation = Row<"BulkOperation">

/** What an operation is about, with the reader's word for it. */
const records = {
  events: "events",
  workflow_runs: "runs",
  requests: "requests",
  ignored_events: "ignored events"
} as const
type Records = keyof typeof records

const isRecords = (of: string): of is Records => Object.hasOwn(records, of)

const titleOf = (of: Records): string => records[of].charAt(0).toUpperCase() + records[of].slice(1)

const wordOf = ({ type }: Operation): string => (type.endsWith("_cancel") ? "Cancel" : "Retry")

/** How much of an operation is done. */
const Progress = ({ of: { done_count, failed_count, total_count } }: { readonly of: Operation }) => (
  <>
    <progress value={done_count + failed_count} max={Math.max(1, total_count)} aria-label="Progress" />{" "}
    {(done_count + failed_count).toLocaleString()} of {total_count.toLocaleString()}
  </>
)

const columns: ReadonlyArray<Column<Operation>> = [
  { title: "Status", width: "110px", cell: ({ status }) => <Status of={status} /> },
  { title: "Action", width: "130px", cell: wordOf },
  { title: "Created", width: "120px", cell: ({ created_at }) => <Time at={created_at} /> },
  { title: "Progress", width: "1fr", cell: (operation) => <Progress of={operation} /> },
  { title: "Id", width: "270px", cell: ({ id }) => <span className="mono">{id}</span> }
]

export const BulkOperations = () => {
  const { client, team } = useSession()
  const { search, set } = useFilters()
  const chosen = search["of"] ?? ""
  const of = isRecords(chosen) ? chosen : "events"
  return (
    <>
      <header>
        <h1>Bulk operations</h1>
        <div className="filters">
          <select aria-label="Records" value={of} onChange={({ target }) => set("of", target.value)}>
            {(Object.keys(records) as ReadonlyArray<Records>).map((one) => (
              <option key={one} value={one}>
                Of {records[one]}
              </option>
            ))}
          </select>
        </div>
      </header>
      <List
        key={of}
        label="Bulk operations"
        keys={["bulk operations", team, of]}
        columns={columns}
        to={({ id }) => `/bulk-operations/${of}/${id}`}
        isLive
        read={(page) =>
          client.get(`/${of}/bulk_operations`, {
            params: { query: page }
          })
        }
        empty={
          <p>
            There is none of {records[of]} yet. Choose <Link to="/events">events</Link> or{" "}
            <Link to="/runs">workflow runs</Link> by filters, then retry all of them.
          </p>
        }
      />
    </>
  )
}

export const BulkOperation = () => {
  const { id = "", of: named = "" } = useParams({ strict: false })
  const of = isRecords(named) ? named : "events"
  const { client, team } = useSession()
  const path = { params: { path: { id } } }
  const isOwners = of === "workflow_runs"
  const operation = useQuery({
    queryKey: ["bulk operation", team, of, id],
    queryFn: () => client.get(`/${of}/bulk_operations/{id}`, path),
    refetchInterval: ({ state }) =>
      state.data?.status === "RUNNING" || state.data?.planned_at === null ? 1_000 : false
  })
  if (operation.isPending) return <Loading />
  if (operation.isError) return <Failure error={operation.error} retry={operation.refetch} />
  const { data } = operation
  return (
    <>
      <header>
        <h1>Bulk operation</h1>
        <Status of={data.status} />
        <span className="mono">{id}</span>
        <div className="actions">
          {data.confirmed || data.planned_at === null ? null : (
            <Action
              call={`POST /${of}/bulk_operations/{id}/run`}
              primary
              run={() => client.post(`/${of}/bulk_operations/{id}/run`, path)}
            >
              {wordOf(data)} {data.total_count.toLocaleString()}{" "}
              {data.total_count === 1 ? records[of].slice(0, -1) : records[of]}
            </Action>
          )}
          {data.cancelable ? (
            <Action
              call={`POST /${of}/bulk_operations/{id}/cancel`}
              run={() => client.post(`/${of}/bulk_operations/{id}/cancel`, path)}
              asks="Leave the rest as it is?"
            >
              Stop
            </Action>
          ) : null}
        </div>
      </header>
      {isOwners ? <OnlyOwners may="start or stop operations on runs" /> : null}
      {data.error === null ? null : <div className="notice bad">{data.error.message}</div>}
      <Panel title="Progress">
        <Facts
          of={[
            ["Done", <Progress key="done" of={data} />],
            ["Failed", data.failed_count.toLocaleString()],
            ["Created", <Time key="created" at={data.created_at} precise />],
            ["Finished", data.finished_at === null ? undefined : <Time key="finished" at={data.finished_at} precise />],
            ["Records", titleOf(of)],
            of === "workflow_runs"
              ? [
                  "Runs",
                  <Link key="runs" to="/runs" search={{ from: "now-30d" }}>
                    Show runs
                  </Link>
                ]
              : [
                  "New events",
                  <Link key="events" to="/events" search={{ bulk_operation_id: id, from: "now-30d" }}>
                    Show them
                  </Link>
                ]
          ]}
        />
      </Panel>
      <Panel title="Filter">
        <Text text={JSON.stringify(data.filter)} />
      </Panel>
    </>
  )
}

/** Plans an operation on all records that match, and opens the plan: it shows the count, and starts only when it is confirmed. */
export const PlanBulk = ({
  action = "retry",
  filter,
  of = "events"
}: {
  readonly filter: object
  readonly of?: Records
  readonly action?: "retry" | "cancel"
}) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const may = useMay()
  const [error, setError] = useState<string | null>(null)
  const plan = async () => {
    setError(null)
    try {
      const { id } = await client.post(`/${of}/bulk_operations`, {
        body: { ...filter, ...(action === "retry" ? {} : { action }), confirm: false }
      })
      await navigate({ to: `/bulk-operations/${of}/${id}` })
    } catch (failure) {
      setError(messageOf(failure))
    }
  }
  if (!may(`POST /${of}/bulk_operations`)) return null
  return (
    <>
      <button type="button" onClick={() => void plan()}>
        {action === "retry" ? "Retry all of them…" : "Cancel all of them…"}
      </button>
      {error === null ? null : (
        <span role="alert" className="badge bad">
          {error}
        </span>
      )}
    </>
  )
}
