import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useSession } from "../session.ts"
import { Action } from "./Action.tsx"
import { NamedLink } from "./Named.tsx"
import { Failure, Loading } from "./States.tsx"
import { Status } from "./Status.tsx"
import { Time } from "./Time.tsx"

/** The issues that somebody has to deal with: of the team, or of one destination. Nothing is shown when there are none. */
export const Issues = ({ destination }: { readonly destination?: string }) => {
  const { client, team } = useSession()
  const issues = useQuery({
    queryKey: ["issues", team, destination],
    queryFn: () =>
      client.get("/issues", {
        params: {
          query: {
            status: ["open", "acknowledged"],
            limit: 20,
            ...(destination === undefined ? {} : { destination_id: [destination] })
          }
        }
      }),
    refetchInterval: 30_000
  })
  if (issues.isPending) return <Loading />
  if (issues.isError) return <Failure error={issues.error} retry={issues.refetch} />
  const { models } = issues.data
  if (models.length === 0) return null
  return (
    <table aria-label="Issues">
      <thead>
        <tr>
          <th>Issue</th>
          {destination === undefined ? <th>Destination</th> : null}
          <th>Status</th>
          <th className="number">Failed attempts</th>
          <th>Since</th>
          <th>Last</th>
          <th />
        </tr>
      </thead>
      <tbody>
        {models.map(
          ({ count, destination_id, error_code, event_ids: [event], id, last_seen_at, opened_at, status }) => (
            <tr key={id}>
              <td>{event === undefined ? error_code : <Link to={`/events/${event}`}>{error_code}</Link>}</td>
              {destination === undefined ? (
                <td>
                  <NamedLink kind="destinations" id={destination_id} />
                </td>
              ) : null}
              <td>
                <Status of={status} />
              </td>
              <td className="number">{count.toLocaleString()}</td>
              <td>
                <Time at={opened_at} />
              </td>
              <td>
                <Time at={last_seen_at} />
              </td>
              <td>
                {status === "open" ? (
                  <Action
                    call="POST /issues/{id}/acknowledge"
                    run={() => client.post("/issues/{id}/acknowledge", { params: { path: { id } } })}
                  >
                    Acknowledge
                  </Action>
                ) : null}
                <Action
                  call="POST /issues/{id}/dismiss"
                  run={() => client.post("/issues/{id}/dismiss", { params: { path: { id } } })}
                >
                  Dismiss
                </Action>
              </td>
            </tr>
          )
        )}
      </tbody>
    </table>
  )
}
