import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Headers, Text } from "../parts/Body.tsx"
import { Copy } from "../parts/Copy.tsx"
import { useColumns } from "../parts/Columns.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { flagsOf, Live, Range, rangeOf, useFilters, valuesOf } from "../parts/Filters.tsx"
import { Histogram } from "../parts/Histogram.tsx"
import { eventBars } from "../parts/Series.ts"
import { Views } from "../parts/Views.tsx"
import { type Column, List } from "../parts/List.tsx"
import { liveMs } from "../parts/Pages.ts"
import { Name, NamedLink } from "../parts/Named.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"
import { useMay } from "../may.ts"
import { useSession } from "../session.ts"
import { PlanBulk } from "./BulkOperations.tsx"
import { AttemptsOf } from "./AttemptsOf.tsx"
import { isOfWaiting, statusesOf, waiting } from "./Waiting.ts"

type Event = Row<"Event">

const allColumns: ReadonlyArray<Column<Event>> = [
  { title: "Status", width: "100px", cell: ({ status }) => <Status of={status} /> },
  { title: "Created", width: "110px", cell: ({ created_at }) => <Time at={created_at} /> },
  { title: "Source", width: "1fr", cell: ({ source_id }) => <Name kind="sources" id={source_id} /> },
  {
    title: "Destination",
    width: "1fr",
    cell: ({ destination_id }) => <Name kind="destinations" id={destination_id} />
  },
  { title: "Attempts", width: "64px", cell: ({ attempts }) => attempts },
  {
    title: "Answer",
    width: "150px",
    cell: ({ error_code, response_status }) => error_code ?? response_status ?? <span className="muted">–</span>
  },
  { title: "Id", width: "270px", cell: ({ id }) => <span className="mono">{id}</span> },
  {
    title: "Connection",
    width: "1fr",
    isExtra: true,
    cell: ({ connection_id }) => <Name kind="connections" id={connection_id} />
  },
  {
    title: "Request",
    width: "270px",
    isExtra: true,
    cell: ({ request_id }) => <span className="mono">{request_id}</span>
  },
  {
    title: "Next attempt",
    width: "110px",
    isExtra: true,
    cell: ({ next_attempt_at }) => <Time at={next_attempt_at} />
  },
  { title: "Delivered", width: "110px", isExtra: true, cell: ({ successful_at }) => <Time at={successful_at} /> }
]

const filters: ReadonlyArray<Filter> = [
  { name: "status", label: "Status", more: [waiting.name] },
  { name: "source_id", label: "Source", kind: "sources" },
  { name: "destination_id", label: "Destination", kind: "destinations" },
  { name: "connection_id", label: "Connection", kind: "connections" },
  { name: "error_code", key: "error", label: "Error", isText: true },
  { name: "response_status", key: "answer", label: "Answer", isText: true },
  { name: "q", key: "id", label: "Id, or the sender's id", isText: true, isUsual: true },
  { name: "request_id", label: "Request", isText: true },
  { name: "bulk_operation_id", label: "Bulk operation", isText: true },
  { name: "resolved", label: "Resolved by a retry" },
  { name: "is_retry", key: "retry", label: "Retry" }
]

/** Those that can have several values. */
const several = [
  "request_id",
  "source_id",
  "destination_id",
  "connection_id",
  "bulk_operation_id",
  "error_code",
  "response_status"
]

export const Events = () => {
  const { client, team } = useSession()
  const { search } = useFilters()
  const { columns, menu } = useColumns("events", allColumns)
  const { live, q, status } = search
  const query = {
    ...rangeOf(search),
    ...(q === undefined ? {} : { q }),
    ...(status === undefined ? {} : { status: statusesOf(status) }),
    ...valuesOf(search, several),
    ...flagsOf(search, ["resolved", "is_retry"])
  }
  return (
    <>
      <header>
        <h1>Events</h1>
        <div className="filters">
          <Range />
          <Live />
          <Views page="events" />
          {menu}
          <FilterBar path="/events" of={filters} />
        </div>
        <div className="actions">
          <PlanBulk
            key={status}
            action={status !== undefined && isOfWaiting(status) ? "cancel" : "retry"}
            filter={{ to: "now", ...query }}
          />
        </div>
      </header>
      <Histogram
        label="Events"
        keys={["events", team, query]}
        isLive={live === "1"}
        read={async () => {
          const { date_range, series } = await client.get("/metrics/events", {
            params: { query: { to: "now", ...query } }
          })
          return { bars: eventBars(series), end: date_range.end }
        }}
      />
      <List
        label="Events"
        keys={["events", team, query]}
        columns={columns}
        to={({ id }) => `/events/${id}`}
        isLive={live === "1"}
        countSince={async ({ created_at }) => {
          const { total } = await client.get("/events/count", { params: { query: { ...query, from: created_at } } })
          return total
        }}
        read={(page) => client.get("/events", { params: { query: { ...query, ...page } } })}
        empty={
          <>
            <p>There are no events with these filters.</p>
            <p>
              A request becomes an event for each <Link to="/connections">connection</Link> of its source that routes
              it.
            </p>
          </>
        }
      />
    </>
  )
}

const textOfBody = (data: Event["data"]): string => {
  const body = data?.request.body
  return body === undefined || body === null ? "" : typeof body === "string" ? body : JSON.stringify(body)
}

/**
 * The body as the destination got it. The answer does not contain a large body, or only its beginning; then the page says where to find the whole
 * body.
 */
const SentBody = ({ of: { data, request_id } }: { readonly of: Event }) => {
  const text = textOfBody(data)
  const isPart = data?.request.is_large_payload === true
  return (
    <>
      {isPart && text === "" ? null : <Text text={text} />}
      {isPart ? (
        <p className="muted">
          The body is too large to be shown here as a whole. What arrived is on the page of the{" "}
          <Link to={`/requests/${request_id}`}>request</Link>.
        </p>
      ) : null}
    </>
  )
}

export const Event = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const may = useMay()
  const event = useQuery({
    queryKey: ["event", team, id],
    queryFn: () => client.get("/events/{id}", { params: { path: { id } } }),
    refetchInterval: ({ state }) => (isOfWaiting(state.data?.status ?? "") ? liveMs : false)
  })
  if (event.isPending) return <Loading />
  if (event.isError) return <Failure error={event.error} retry={event.refetch} />
  const { data } = event
  return (
    <>
      <header>
        <h1>Event</h1>
        <Status of={data.status} />
        <span className="mono">{id}</span>
        <Copy text={id} label="Copy the id" />
        <div className="actions">
          {may("POST /requests/{id}/retry") ? (
            <Link to={`/requests/${data.request_id}`} search={{ form: "edit" }} className="button">
              Edit and send…
            </Link>
          ) : null}
          {isOfWaiting(data.status) ? (
            <Action
              call="POST /events/bulk_operations"
              run={() =>
                client.post("/events/bulk_operations", {
                  body: { action: "cancel", request_id: data.request_id, q: id }
                })
              }
              asks="Deliver it never?"
            >
              Cancel
            </Action>
          ) : (
            <Action
              call="POST /events/{id}/retry"
              run={() => client.post("/events/{id}/retry", { params: { path: { id } } })}
              done="Queued again"
              primary
            >
              Retry
            </Action>
          )}
        </div>
      </header>
      {data.failure_message === null ? null : <div className="notice bad">{data.failure_message}</div>}
      <div className="columns">
        <Panel title="Event">
          <Facts
            of={[
              [
                "Request",
                <Link key="request" className="mono" to={`/requests/${data.request_id}`}>
                  {data.request_id}
                </Link>
              ],
              ["Source", <NamedLink key="source" kind="sources" id={data.source_id} />],
              ["Connection", <NamedLink key="connection" kind="connections" id={data.connection_id} />],
              ["Destination", <NamedLink key="destination" kind="destinations" id={data.destination_id} />],
              ["Created", <Time key="created" at={data.created_at} precise />],
              [
                "Delivered",
                data.successful_at === null ? undefined : <Time key="delivered" at={data.successful_at} precise />
              ],
              [
                "Next attempt",
                data.next_attempt_at === null ? undefined : <Time key="next" at={data.next_attempt_at} precise />
              ],
              ["Error", data.error_code ?? undefined],
              [
                "Retry of",
                data.retry_parent_event_id === null ? undefined : (
                  <Link key="parent" to={`/events/${data.retry_parent_event_id}`}>
                    {data.retry_parent_event_id}
                  </Link>
                )
              ]
            ]}
          />
        </Panel>
        <Panel title="Attempts">
          <AttemptsOf eventId={id} isLive={isOfWaiting(data.status)} />
        </Panel>
      </div>
      <Panel title="Request to the destination">
        <Headers of={data.data?.request.headers ?? null} />
        <SentBody of={data} />
      </Panel>
    </>
  )
}
