import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useState } from "react"
import { messageOf, type Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Text } from "../parts/Body.tsx"
import { type Column, List } from "../parts/List.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"

type Operation = Row<"BulkOperation">

/** How much of an operation is done. */
const Progress = ({ of: { done_count, failed_count, total_count } }: { readonly of: Operation }) => (
  <>
    <progress value={done_count + failed_count} max={Math.max(1, total_count)} aria-label="Progress" />{" "}
    {(done_count + failed_count).toLocaleString()} of {total_count.toLocaleString()}
  </>
)

const columns: ReadonlyArray<Column<Operation>> = [
  { title: "Status", width: "110px", cell: ({ status }) => <Status of={status} /> },
  { title: "Action", width: "130px", cell: ({ type }) => (type === "event_bulk_cancel" ? "Cancel" : "Retry") },
  { title: "Created", width: "120px", cell: ({ created_at }) => <Time at={created_at} /> },
  { title: "Progress", width: "1fr", cell: (operation) => <Progress of={operation} /> },
  { title: "Id", width: "270px", cell: ({ id }) => <span className="mono">{id}</span> }
]

export const BulkOperations = () => {
  const { client, team } = useSession()
  return (
    <>
      <header>
        <h1>Bulk operations</h1>
      </header>
      <List
        label="Bulk operations"
        keys={["bulk operations", team]}
        columns={columns}
        to={({ id }) => `/bulk-operations/${id}`}
        isLive
        read={(cursor) =>
          client.get("/events/bulk_operations", {
            params: { query: { limit: 100, ...(cursor === null ? {} : { cursor }) } }
          })
        }
        empty={
          <p>
            There is none yet. Choose <Link to="/events">events</Link> by filters, then retry all of them.
          </p>
        }
      />
    </>
  )
}

export const BulkOperation = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const path = { params: { path: { id } } }
  const operation = useQuery({
    queryKey: ["bulk operation", team, id],
    queryFn: () => client.get("/events/bulk_operations/{id}", path),
    refetchInterval: ({ state }) =>
      state.data?.status === "RUNNING" || state.data?.planned_at === null ? 1_000 : false
  })
  if (operation.isPending) return <Loading />
  if (operation.isError) return <Failure error={operation.error} retry={operation.refetch} />
  const { data } = operation
  const word = data.type === "event_bulk_cancel" ? "Cancel" : "Retry"
  return (
    <>
      <header>
        <h1>Bulk operation</h1>
        <Status of={data.status} />
        <span className="mono">{id}</span>
        <div className="actions">
          {data.confirmed || data.planned_at === null ? null : (
            <Action primary run={() => client.post("/events/bulk_operations/{id}/run", path)}>
              {word} {data.total_count.toLocaleString()} events
            </Action>
          )}
          {data.cancelable ? (
            <Action
              run={() => client.post("/events/bulk_operations/{id}/cancel", path)}
              asks="Leave the rest as it is?"
            >
              Stop
            </Action>
          ) : null}
        </div>
      </header>
      {data.error === null ? null : <div className="notice bad">{data.error.message}</div>}
      <Panel title="Progress">
        <Facts
          of={[
            ["Done", <Progress key="done" of={data} />],
            ["Failed", data.failed_count.toLocaleString()],
            ["Created", <Time key="created" at={data.created_at} precise />],
            ["Finished", data.finished_at === null ? undefined : <Time key="finished" at={data.finished_at} precise />],
            [
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

/** Plans an operation on all events that match, and opens the plan: it shows the count, and starts only when it is confirmed. */
export const PlanBulk = ({ filter }: { readonly filter: object }) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const [error, setError] = useState<string | null>(null)
  const plan = async () => {
    setError(null)
    try {
      const { id } = await client.post("/events/bulk_operations", { body: { ...filter, confirm: false } })
      await navigate({ to: `/bulk-operations/${id}` })
    } catch (failure) {
      setError(messageOf(failure))
    }
  }
  return (
    <>
      <button type="button" onClick={() => void plan()}>
        Retry all of them…
      </button>
      {error === null ? null : (
        <span role="alert" className="badge bad">
          {error}
        </span>
      )}
    </>
  )
}
