import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { lazy, Suspense, useEffect, useState } from "react"
import { bytesOf, type Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Body, Headers } from "../parts/Body.tsx"
import { Copy } from "../parts/Copy.tsx"
import { useColumns } from "../parts/Columns.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { flagsOf, Live, Range, rangeOf, useFilters, valuesOf } from "../parts/Filters.tsx"
import { Histogram } from "../parts/Histogram.tsx"
import { requestBars } from "../parts/Series.ts"
import { Views } from "../parts/Views.tsx"
import { type Column, List } from "../parts/List.tsx"
import { Name, NamedLink } from "../parts/Named.tsx"
import type { PageQuery } from "../parts/Pages.ts"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { maxRead, withText } from "../parts/TextIn.ts"
import { Time } from "../parts/Time.tsx"
import { useMay } from "../may.ts"
import { useSession } from "../session.ts"
import { CopyCurl } from "./CopyCurl.tsx"
import { rejections } from "./trace/Causes.ts"
import { Executions } from "./trace/Executions.tsx"
import { Ignored } from "./trace/Ignored.tsx"
import { Timeline } from "./trace/Timeline.tsx"

type Request = Row<"Request">

// Loaded when it is opened.
const KeepRequest = lazy(async () => ({ default: (await import("./KeepRequest.tsx")).KeepRequest }))

const EditRequest = lazy(async () => ({ default: (await import("./EditRequest.tsx")).EditRequest }))

const allColumns: ReadonlyArray<Column<Request>> = [
  { title: "Status", width: "96px", cell: ({ status }) => <Status of={status} /> },
  { title: "Received", width: "110px", cell: ({ ingested_at }) => <Time at={ingested_at} /> },
  { title: "Source", width: "1fr", cell: ({ source_id }) => <Name kind="sources" id={source_id} /> },
  { title: "Id", width: "270px", cell: ({ id }) => <span className="mono">{id}</span> },
  { title: "Events", width: "60px", cell: ({ events_count }) => events_count },
  { title: "Ignored", width: "60px", cell: ({ ignored_count }) => ignored_count },
  { title: "Verified", width: "70px", cell: ({ verified }) => (verified ? "Yes" : "No") },
  {
    title: "Rejected because",
    width: "170px",
    isExtra: true,
    cell: ({ rejection_cause }) => rejection_cause ?? <span className="muted">–</span>
  }
]

const filters: ReadonlyArray<Filter> = [
  { name: "text", label: "Text in headers or bodies", isText: true, isUsual: true },
  { name: "status", label: "Status" },
  { name: "source_id", label: "Source", kind: "sources" },
  { name: "connection_id", label: "Connection", kind: "connections" },
  { name: "q", key: "id", label: "Id, or the sender's id", isText: true, isUsual: true },
  { name: "verified", label: "Verified" },
  { name: "rejection_cause", label: "Rejected because", isText: true },
  { name: "is_retry", key: "replay", label: "Replay" },
  { name: "retry_kind", key: "replay_kind", label: "Kind of replay" }
]

export const Requests = () => {
  const { client, team } = useSession()
  const { search } = useFilters()
  const { columns, menu } = useColumns("requests", allColumns)
  const { live, q, retry_kind, status, text } = search
  const query = {
    ...rangeOf(search),
    ...(q === undefined ? {} : { q }),
    ...(status === undefined ? {} : { status: status as Request["status"] }),
    ...(retry_kind === undefined ? {} : { retry_kind: retry_kind as "single" | "bulk" }),
    ...valuesOf(search, ["source_id", "connection_id", "rejection_cause"]),
    ...flagsOf(search, ["verified", "is_retry"])
  }
  const read = (page: PageQuery) =>
    client.get("/requests", {
      params: {
        query: {
          ...query,
          ...(text === undefined ? {} : { include: ["data" as const] }),
          ...page
        }
      }
    })
  return (
    <>
      <header>
        <h1>Requests</h1>
        <div className="filters">
          <Range />
          <Live />
          <Views page="requests" />
          {menu}
          <FilterBar path="/requests" of={filters} />
        </div>
      </header>
      <Histogram
        label="Requests"
        keys={["requests", team, query]}
        isLive={live === "1"}
        read={async () => {
          const { date_range, series } = await client.get("/metrics/requests", {
            params: { query: { to: "now", ...query } }
          })
          return { bars: requestBars(series), end: date_range.end }
        }}
      />
      {text === undefined ? null : (
        <p className="muted">
          Requests that have the text in a header, the path or a body of at most 64 KiB. The newest{" "}
          {maxRead.toLocaleString()} are read first. The chart shows all requests.
        </p>
      )}
      <List
        label="Requests"
        keys={["requests", team, query, text]}
        columns={columns}
        to={({ id }) => `/requests/${id}`}
        isLive={live === "1" && text === undefined}
        countSince={async ({ ingested_at }) => {
          const { total } = await client.get("/requests/count", { params: { query: { ...query, from: ingested_at } } })
          return total
        }}
        read={(page) => (text === undefined ? read(page) : withText(text, read))}
        readFurther={text === undefined ? undefined : (from) => withText(text, read, { from, most: 1 })}
        empty={
          text === undefined ? (
            <>
              <p>No request arrived in this time.</p>
              <p>
                Send one to the URL of a <Link to="/sources">source</Link>.
              </p>
            </>
          ) : (
            <p>None of these requests has this text.</p>
          )
        }
      />
    </>
  )
}

export const Request = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const may = useMay()
  const first = useFilters().search["form"] === "edit" ? "edit" : null
  const [opened, setOpened] = useState<"edit" | "fixture" | "share" | null>(first)
  // The open panels belong to one request. A link can lead to another request, or to a form of this one.
  useEffect(() => setOpened(first), [id, first])
  const trace = useQuery({
    queryKey: ["request", team, id, "trace"],
    queryFn: () => client.get("/requests/{id}/trace", { params: { path: { id } } })
  })
  const body = useQuery({
    queryKey: ["request", team, id, "body"],
    queryFn: () => bytesOf(`/requests/${encodeURIComponent(id)}/body`, team),
    retry: false
  })
  if (trace.isPending) return <Loading />
  if (trace.isError) return <Failure error={trace.error} retry={trace.refetch} />
  const { no_event_reason, request } = trace.data
  const { data } = request
  return (
    <>
      <header>
        <h1>Request</h1>
        <Status of={request.status} />
        <span className="mono">{id}</span>
        <Copy text={id} label="Copy the id" />
        <div className="actions">
          {may("POST /requests/{id}/share") ? (
            <button type="button" aria-expanded={opened === "share"} onClick={() => setOpened("share")}>
              Share…
            </button>
          ) : null}
          {may("POST /request-fixtures") ? (
            <button type="button" aria-expanded={opened === "fixture"} onClick={() => setOpened("fixture")}>
              Keep as fixture…
            </button>
          ) : null}
          {may("POST /requests/{id}/retry") && body.data !== undefined ? (
            <button type="button" aria-expanded={opened === "edit"} onClick={() => setOpened("edit")}>
              Edit and send…
            </button>
          ) : null}
          <Action
            call="POST /requests/{id}/retry"
            run={() => client.post("/requests/{id}/retry", { params: { path: { id } }, body: {} })}
            asks="Replay it on all connections?"
            done="Replayed"
          >
            Replay
          </Action>
        </div>
      </header>
      {opened === null ? null : (
        <Suspense fallback={<Loading />}>
          {opened !== "edit" ? (
            <KeepRequest key={`${opened} ${id}`} id={id} as={opened} />
          ) : body.data === undefined || !may("POST /requests/{id}/retry") ? null : (
            <EditRequest key={id} request={request} bytes={body.data} />
          )}
        </Suspense>
      )}
      {no_event_reason === null ? null : (
        <div className="notice">
          {rejections[request.rejection_cause ?? ""] ?? no_event_reason.message}{" "}
          {request.status === "rejected" ? (
            <Link to={`/sources/${request.source_id}`}>Show the settings of the source</Link>
          ) : null}
        </div>
      )}
      <Timeline trace={trace.data} />
      <Ignored key={`ignored ${id}`} of={trace.data} />
      <Executions of={trace.data.transformations} />
      <div className="columns">
        <Panel
          title="Request"
          right={
            data === null || data === undefined || body.data === undefined ? undefined : (
              <CopyCurl data={data} bytes={body.data} id={id} sourceId={request.source_id} />
            )
          }
        >
          <Facts
            of={[
              ["Source", <NamedLink key="source" kind="sources" id={request.source_id} />],
              ["Received", <Time key="received" at={request.ingested_at} precise />],
              ["Verified", request.verified ? "Yes" : "No"],
              [
                "Test",
                data?.headers["x-gateway-test-request"] === undefined ? undefined : "Sent from the page of its source"
              ],
              ["Rejected because", request.rejection_cause ?? undefined],
              ["Method", data?.method],
              ["Path", data === undefined || data === null ? undefined : <bdi className="mono">{data.path}</bdi>],
              ["Query", data?.query === "" ? undefined : <bdi className="mono">{data?.query}</bdi>],
              ["Size", data === undefined || data === null ? undefined : `${data.size_bytes.toLocaleString()} bytes`],
              ["Content type", data?.content_type ?? undefined],
              [
                "Events",
                <Link key="events" to="/events" search={{ request_id: id, from: "now-30d" }}>
                  {request.events_count}
                </Link>
              ]
            ]}
          />
        </Panel>
        <Panel title="Headers">
          <Headers of={data?.headers ?? null} />
        </Panel>
      </div>
      <Panel title="Body">
        {body.isError ? (
          <Empty>The body is not kept any more.</Empty>
        ) : body.data === undefined ? (
          <Loading />
        ) : (
          <Body bytes={body.data} name={id} />
        )}
      </Panel>
    </>
  )
}
