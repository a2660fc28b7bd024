import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { Action } from "../parts/Action.tsx"
import { useSession } from "../session.ts"

const mostShown = 5
/** How many are read: those that somebody deals with are among them. */
const mostRead = 100

/**
 * Open alerts about channels that nobody deals with yet, where a reader begins. Nothing if there is none, or if the caller may not
 * read them.
 */
export const OpenAlerts = () => {
  const { client, team } = useSession()
  const { data } = useQuery({
    queryKey: ["open alerts", team],
    queryFn: () => client.get("/sources/channel-alerts", { params: { query: { status: "active", limit: mostRead } } }),
    retry: false,
    refetchInterval: 30_000
  })
  const waiting = data?.models.filter(({ acknowledged_at }) => acknowledged_at === null) ?? []
  if (waiting.length === 0) return null
  return (
    <ul className="notice bad plain">
      {waiting.slice(0, mostShown).map(({ id, message, source_id, source_name }) => (
        <li key={id}>
          The channel of{" "}
          <Link to={`/channels/${source_id}`}>
            <bdi>{source_name}</bdi>
          </Link>{" "}
          does not work: <bdi>{message}</bdi>{" "}
          <Action
            call="POST /sources/channel-alerts/{id}/acknowledge"
            run={() => client.post("/sources/channel-alerts/{id}/acknowledge", { params: { path: { id } } })}
          >
            Acknowledge
          </Action>
        </li>
      ))}
      {waiting.length > mostShown ? (
        <li>
          <Link to="/alerts" search={{ status: "active" }}>
            Show all alerts
          </Link>
        </li>
      ) : null}
    </ul>
  )
}
