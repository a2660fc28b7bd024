import { useQuery } from "@tanstack/react-query"
import { Bars } from "../parts/Bars.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { Range, rangeOf, useFilters, valuesOf } from "../parts/Filters.tsx"
import { Panel } from "../parts/Panel.tsx"
import { eventBars, requestBars } from "../parts/Series.ts"
import { Failure, Loading } from "../parts/States.tsx"
import { useSession } from "../session.ts"
import { Attention } from "./overview/Attention.tsx"
import { Figures } from "./overview/Figures.tsx"
import { WorstDestinations, WorstSources } from "./overview/Worst.tsx"

const filters: ReadonlyArray<Filter> = [
  { name: "source_id", label: "Source", kind: "sources" },
  { name: "destination_id", label: "Destination", kind: "destinations" }
]

/** The numbers and the charts of the time range, for the team, a source or a destination. */
const Numbers = () => {
  const { client, team } = useSession()
  const { search } = useFilters()
  const range = rangeOf(search)
  const query = { to: "now", ...range }
  // A request has no destination: it is counted for its source.
  const ofRequests = valuesOf(search, ["source_id"])
  const ofEvents = valuesOf(search, ["source_id", "destination_id"])
  const requests = useQuery({
    queryKey: ["series", "requests", team, range, ofRequests],
    queryFn: () => client.get("/metrics/requests", { params: { query: { ...query, ...ofRequests } } }),
    refetchInterval: 10_000
  })
  const events = useQuery({
    queryKey: ["series", "events", team, range, ofEvents],
    queryFn: () => client.get("/metrics/events", { params: { query: { ...query, ...ofEvents } } }),
    refetchInterval: 10_000
  })
  const failure = requests.error ?? events.error
  if (failure !== null)
    return <Failure error={failure} retry={() => Promise.all([requests.refetch(), events.refetch()])} />
  if (requests.data === undefined || events.data === undefined) return <Loading />
  const received = requests.data.series
  const routed = events.data.series
  const charts = [
    {
      title: `Requests: accepted, rejected${"destination_id" in ofEvents ? " (to any destination)" : ""}`,
      label: "Requests",
      bars: requestBars(received),
      end: requests.data.date_range.end
    },
    {
      title: "Events: delivered, failed, waiting, cancelled",
      label: "Events",
      bars: eventBars(routed),
      end: events.data.date_range.end
    }
  ]
  return (
    <>
      <Figures received={received} routed={routed} ofRequests={ofRequests} ofEvents={ofEvents} />
      <div className="columns">
        {charts.map(({ bars, end, label, title }) => (
          <Panel key={label} title={title}>
            <Bars label={label} bars={bars} end={end} />
          </Panel>
        ))}
      </div>
    </>
  )
}

export const Overview = () => (
  <>
    <header>
      <h1>Overview</h1>
      <div className="filters">
        <Range />
        <FilterBar path="/metrics/events" of={filters} />
      </div>
    </header>
    <Attention />
    <Numbers />
    <Panel title="Destinations and sources in 24 hours">
      <WorstDestinations />
      <WorstSources />
    </Panel>
  </>
)
