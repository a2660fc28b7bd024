import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { Bars } from "../parts/Bars.tsx"
import { Range, rangeOf, useFilters } from "../parts/Filters.tsx"
import { Issues } from "../parts/Issues.tsx"
import { NamedLink } from "../parts/Named.tsx"
import { Panel } from "../parts/Panel.tsx"
import { eventBars, requestBars } from "../parts/Series.ts"
import { Failure, Loading } from "../parts/States.tsx"
import { useSession } from "../session.ts"
import { OpenAlerts } from "./OpenAlerts.tsx"

const sum = <Point,>(points: ReadonlyArray<Point>, of: (point: Point) => number | undefined): number =>
  points.reduce((all, point) => all + (of(point) ?? 0), 0)

const Figure = ({
  label,
  search,
  to,
  value
}: {
  readonly label: string
  readonly value: number
  readonly to: string
  readonly search: object
}) => (
  <div className="figure">
    <strong>{value.toLocaleString()}</strong>
    <Link to={to} search={search}>
      {label}
    </Link>
  </div>
)

/** Destinations whose events failed or wait, the worst first. */
const Attention = () => {
  const { client, team } = useSession()
  const metrics = useQuery({
    queryKey: ["attention", team],
    queryFn: async () => {
      const { models } = await client.get("/destinations", { params: { query: { limit: 100 } } })
      if (models.length === 0) return []
      const answer = await client.get("/metrics/destinations", {
        params: { query: { ids: models.map(({ id }) => id) } }
      })
      return (answer as { readonly models: ReadonlyArray<Row<"DestinationMetrics">> }).models
    },
    refetchInterval: 30_000
  })
  if (metrics.isPending) return <Loading />
  if (metrics.isError) return <Failure error={metrics.error} retry={metrics.refetch} />
  const bad = metrics.data
    .filter(
      ({ events_24h_failed_count, events_24h_pending_count }) => events_24h_failed_count + events_24h_pending_count > 0
    )
    .toSorted((a, b) => b.events_24h_failed_count - a.events_24h_failed_count)
  if (bad.length === 0) return <p className="muted">Nothing: no event of the last 24 hours has failed or waits.</p>
  return (
    <table>
      <thead>
        <tr>
          <th>Destination</th>
          <th className="number">Failed</th>
          <th className="number">Waiting</th>
          <th className="number">Delivered</th>
          <th />
        </tr>
      </thead>
      <tbody>
        {bad.slice(0, 20).map((one) => (
          <tr key={one.destination_id}>
            <td>
              <NamedLink kind="destinations" id={one.destination_id} />
            </td>
            <td className="number">{one.events_24h_failed_count.toLocaleString()}</td>
            <td className="number">{one.events_24h_pending_count.toLocaleString()}</td>
            <td className="number">{one.events_24h_successful_count.toLocaleString()}</td>
            <td>
              <Link to="/events" search={{ destination_id: one.destination_id, status: "FAILED", from: "now-24h" }}>
                Show the failed ones
              </Link>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

export const Overview = () => {
  const { client, team } = useSession()
  const range = rangeOf(useFilters().search)
  const query = { to: "now", ...range }
  const requests = useQuery({
    queryKey: ["series", "requests", team, range],
    queryFn: () => client.get("/metrics/requests", { params: { query } }),
    refetchInterval: 10_000
  })
  const events = useQuery({
    queryKey: ["series", "events", team, range],
    queryFn: () => client.get("/metrics/events", { params: { query } }),
    refetchInterval: 10_000
  })
  const failure = requests.error ?? events.error
  if (failure !== null)
    return <Failure error={failure} retry={() => Promise.all([requests.refetch(), events.refetch()])} />
  if (requests.data === undefined || events.data === undefined) return <Loading />
  const received = requests.data.series
  const routed = events.data.series
  return (
    <>
      <header>
        <h1>Overview</h1>
        <Range />
      </header>
      <OpenAlerts />
      <div className="figures">
        <Figure
          label="Requests accepted"
          to="/requests"
          search={{ ...range, status: "accepted" }}
          value={sum(received, (at) => at.accepted_count)}
        />
        <Figure
          label="Requests rejected"
          to="/requests"
          search={{ ...range, status: "rejected" }}
          value={sum(received, (at) => at.rejected_count)}
        />
        <Figure
          label="Events delivered"
          to="/events"
          search={{ ...range, status: "SUCCESSFUL" }}
          value={sum(routed, (at) => at.delivered_count)}
        />
        <Figure
          label="Events failed"
          to="/events"
          search={{ ...range, status: "FAILED" }}
          value={sum(routed, (at) => at.failed_count)}
        />
        <Figure
          label="Events waiting"
          to="/events"
          search={{ ...range, status: "QUEUED" }}
          value={sum(routed, (at) => (at.queued_count ?? 0) + (at.hold_count ?? 0))}
        />
      </div>
      <div className="columns">
        <Panel title="Requests: accepted, rejected">
          <Bars label="Requests" bars={requestBars(received)} />
        </Panel>
        <Panel title="Events: delivered, failed, waiting">
          <Bars label="Events" bars={eventBars(routed)} />
        </Panel>
      </div>
      <Panel title="What needs attention">
        <Issues />
        <Attention />
      </Panel>
    </>
  )
}
