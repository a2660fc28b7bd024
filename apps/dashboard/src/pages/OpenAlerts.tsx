import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useSession } from "../session.ts"

const mostShown = 5

/** Open alerts about channels, where a reader begins. Nothing if there is none, or if the caller may not read them. */
export const OpenAlerts = () => {
  const { client, team } = useSession()
  const { data } = useQuery({
    queryKey: ["open alerts", team],
    queryFn: () => client.get("/sources/channel-alerts", { params: { query: { status: "active", limit: mostShown } } }),
    retry: false,
    refetchInterval: 30_000
  })
  if (data === undefined || data.models.length === 0) return null
  return (
    <ul className="notice bad plain">
      {data.models.map(({ id, message, source_id, source_name }) => (
        <li key={id}>
          The channel of{" "}
          <Link to={`/channels/${source_id}`}>
            <bdi>{source_name}</bdi>
          </Link>{" "}
          does not work: <bdi>{message}</bdi>
        </li>
      ))}
      {data.has_more ? (
        <li>
          <Link to="/alerts" search={{ status: "active" }}>
            Show all alerts
          </Link>
        </li>
      ) : null}
    </ul>
  )
}
