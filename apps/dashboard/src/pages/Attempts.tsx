import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { useColumns } from "../parts/Columns.tsx"
import { Copy } from "../parts/Copy.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { Live, Range, rangeOf, useFilters, valuesOf } from "../parts/Filters.tsx"
import { type Column, List } from "../parts/List.tsx"
import { Name, NamedLink } from "../parts/Named.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { lengthOf, Time } from "../parts/Time.tsx"
import { Views } from "../parts/Views.tsx"
import { useSession } from "../session.ts"
import { Answer } from "./AttemptsOf.tsx"

type Attempt = Row<"Attempt">

const nothing = <span className="muted">–</span>

const allColumns: ReadonlyArray<Column<Attempt>> = [
  { title: "Status", width: "100px", cell: ({ status }) => <Status of={status} /> },
  { title: "Created", width: "110px", cell: ({ created_at }) => <Time at={created_at} /> },
  {
    title: "Destination",
    width: "1fr",
    cell: ({ destination_id }) => <Name kind="destinations" id={destination_id} />
  },
  {
    title: "Connection",
    width: "1fr",
    cell: ({ connection_id }) => <Name kind="connections" id={connection_id} />
  },
  { title: "Number", width: "64px", cell: ({ attempt_number }) => attempt_number },
  {
    title: "Answer",
    width: "150px",
    cell: ({ error_code, response_status }) => error_code ?? response_status ?? nothing
  },
  {
    title: "After",
    width: "80px",
    cell: ({ response_latency }) => (response_latency === null ? nothing : lengthOf(response_latency))
  },
  { title: "Event", width: "270px", cell: ({ event_id }) => <span className="mono">{event_id}</span> },
  { title: "Because", width: "110px", isExtra: true, cell: ({ trigger }) => trigger },
  {
    title: "Source",
    width: "1fr",
    isExtra: true,
    cell: ({ source_id }) => <Name kind="sources" id={source_id} />
  },
  {
    title: "Called",
    width: "2fr",
    isExtra: true,
    cell: ({ http_method, requested_url }) => (
      <span className="mono">
        <bdi>{`${http_method} ${requested_url}`}</bdi>
      </span>
    )
  },
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
  { name: "destination_id", label: "Destination", kind: "destinations" },
  { name: "connection_id", label: "Connection", kind: "connections" },
  { name: "error_code", key: "error", label: "Error", isText: true },
  { name: "response_status", key: "answer", label: "Answer", isText: true },
  { name: "q", key: "id", label: "Id, or a part of the URL", isText: true, isUsual: true },
  { name: "event_id", label: "Event", isText: true },
  { name: "request_id", label: "Request", isText: true }
]

/** Those that can have several values. */
const several = ["destination_id", "connection_id", "error_code", "response_status", "event_id"]

/** Attempts of all events, with what their targets answered. */
export const Attempts = () => {
  const { client, team } = useSession()
  const { search } = useFilters()
  const { columns, menu } = useColumns("attempts", allColumns)
  const { live, q, request_id, status } = search
  const query = {
    ...rangeOf(search),
    ...(q === undefined ? {} : { q }),
    ...(request_id === undefined ? {} : { request_id }),
    ...(status === undefined ? {} : { status: status as Attempt["status"] }),
    ...valuesOf(search, several)
  }
  return (
    <>
      <header>
        <h1>Attempts</h1>
        <div className="filters">
          <Range />
          <Live />
          <Views page="attempts" />
          {menu}
          <FilterBar path="/attempts" of={filters} />
        </div>
      </header>
      <List
        label="Attempts"
        keys={["attempts", team, query]}
        columns={columns}
        to={({ id }) => `/attempts/${id}`}
        isLive={live === "1"}
        read={(page) =>
          client.get("/attempts", {
            params: { query: { ...query, ...page } }
          })
        }
        empty={
          <>
            <p>There are no attempts with these filters.</p>
            <p>
              Each delivery of an <Link to="/events">event</Link> to its destination is an attempt, and each retry is
              another one.
            </p>
          </>
        }
      />
    </>
  )
}

/** One attempt: what was called, and what the target answered. */
export const Attempt = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const attempt = useQuery({
    queryKey: ["attempt", team, id],
    queryFn: () => client.get("/attempts/{id}", { params: { path: { id } } })
  })
  if (attempt.isPending) return <Loading />
  if (attempt.isError) return <Failure error={attempt.error} retry={attempt.refetch} />
  const { data } = attempt
  return (
    <>
      <header>
        <h1>Attempt</h1>
        <Status of={data.status} />
        <span className="mono">{id}</span>
        <Copy text={id} label="Copy the id" />
      </header>
      <div className="columns">
        <Panel title="Attempt">
          <Facts
            of={[
              [
                "Event",
                <Link key="event" className="mono" to={`/events/${data.event_id}`}>
                  {data.event_id}
                </Link>
              ],
              [
                "Request",
                <Link key="request" className="mono" to={`/requests/${data.request_id}`}>
                  {data.request_id}
                </Link>
              ],
              ["Source", <NamedLink key="source" kind="sources" id={data.source_id} />],
              ["Connection", <NamedLink key="connection" kind="connections" id={data.connection_id} />],
              ["Destination", <NamedLink key="destination" kind="destinations" id={data.destination_id} />],
              ["Number", data.attempt_number],
              ["Answer", data.response_status ?? undefined],
              ["Error", data.error_code ?? undefined],
              ["Prepared and sent in", lengthOf(data.delivery_latency)],
              ["Answered after", data.response_latency === null ? undefined : lengthOf(data.response_latency)]
            ]}
          />
        </Panel>
        <Panel title="Answer of the target">
          <Answer of={data} more={[]} />
        </Panel>
      </div>
    </>
  )
}
