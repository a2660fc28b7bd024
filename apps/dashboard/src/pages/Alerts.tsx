import { Link } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { useFilters } from "../parts/Filters.tsx"
import { type Column, List } from "../parts/List.tsx"
import { wordsOf } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"
import { AlertSettings } from "./AlertSettings.tsx"
import { OpenAlerts } from "./OpenAlerts.tsx"

type Alert = Row<"ChannelAlert">

const columns: ReadonlyArray<Column<Alert>> = [
  {
    title: "Status",
    width: "110px",
    cell: ({ acknowledged_at, status }) =>
      status === "resolved" ? (
        <span className="badge good">Resolved</span>
      ) : acknowledged_at === null ? (
        <span className="badge bad">Open</span>
      ) : (
        <span className="badge wait">Acknowledged</span>
      )
  },
  { title: "Source", width: "1fr", cell: ({ source_name }) => <bdi>{source_name}</bdi> },
  { title: "What", width: "1fr", cell: ({ code }) => wordsOf(code.replace(/^channel_/, "")) },
  { title: "Message", width: "2fr", cell: ({ message }) => <bdi>{message}</bdi> },
  { title: "Times", width: "50px", cell: ({ occurrences }) => occurrences.toLocaleString() },
  { title: "Since", width: "100px", cell: ({ first_seen_at }) => <Time at={first_seen_at} /> },
  { title: "Acknowledged", width: "110px", cell: ({ acknowledged_at }) => <Time at={acknowledged_at} /> },
  { title: "Resolved", width: "100px", cell: ({ resolved_at }) => <Time at={resolved_at} /> }
]

const filters: ReadonlyArray<Filter> = [
  {
    name: "status",
    label: "Status",
    values: [
      ["active", "Open"],
      ["resolved", "Resolved"]
    ]
  }
]

/** Alerts about channels, and how the team is told of them. */
export const Alerts = () => {
  const { client, team } = useSession()
  const { status = "all" } = useFilters().search
  const query = { status: status as "active" | "resolved" | "all" }
  return (
    <>
      <header>
        <h1>Alerts</h1>
        <div className="filters">
          <FilterBar path="/sources/channel-alerts" of={filters} />
        </div>
      </header>
      <OpenAlerts />
      <List
        label="Alerts"
        keys={["alerts", team, query]}
        columns={columns}
        to={({ source_id }) => `/channels/${source_id}`}
        read={(page) =>
          client.get("/sources/channel-alerts", {
            params: { query: { ...query, ...page } }
          })
        }
        empty={
          <p>
            There is no alert. The gateway opens one when a <Link to="/channels">channel</Link> does not work, and
            resolves it when the channel works again.
          </p>
        }
      />
      <AlertSettings />
    </>
  )
}
