import { useQuery } from "@tanstack/react-query"
import { Bars } from "../parts/Bars.tsx"
import { Range, rangeOf, useFilters } from "../parts/Filters.tsx"
import { Issues } from "../parts/Issues.tsx"
import { Panel } from "../parts/Panel.tsx"
import { eventBars, requestBars } from "../parts/Series.ts"
import { Failure, Loading } from "../parts/States.tsx"
import { useSession } from "../session.ts"
import { OpenAlerts } from "./OpenAlerts.tsx"
import { Figures } from "./overview/Figures.tsx"
import { FailedRuns, WorstDestinations, WorstSources } from "./overview/Worst.tsx"

export const Overview = () => {
  const { client, team } = useSession()
  const { search } = useFilters()
  const range = rangeOf(search)
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
  const charts = [
    {
      title: "Requests: accepted, rejected",
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
      <header>
        <h1>Overview</h1>
        <Range />
      </header>
      <OpenAlerts />
      <FailedRuns />
      <Figures received={received} routed={routed} />
      <div className="columns">
        {charts.map(({ bars, end, label, title }) => (
          <Panel key={label} title={title}>
            <Bars label={label} bars={bars} end={end} />
          </Panel>
        ))}
      </div>
      <Panel title="What needs attention">
        <Issues />
        <WorstDestinations />
        <WorstSources />
      </Panel>
    </>
  )
}
