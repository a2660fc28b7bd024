import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Entries, Entry } from "../parts/Entries.tsx"
import { Panel } from "../parts/Panel.tsx"
import { useSession } from "../session.ts"

/** How many alerts are read, including those that somebody has acknowledged. */
const maxRead = 100

/** Open alerts about channels that nobody deals with yet: none while they are read, or if they cannot be read. */
export const useOpenAlerts = () => {
  const { client, team } = useSession()
  const { data, error, isPending } = useQuery({
    queryKey: ["open alerts", team],
    queryFn: () => client.get("/sources/channel-alerts", { params: { query: { status: "active", limit: maxRead } } }),
    retry: false,
    refetchInterval: 30_000
  })
  return { alerts: data?.models.filter(({ acknowledged_at }) => acknowledged_at === null) ?? [], error, isPending }
}

export const AlertEntry = ({
  of: { id, message, source_id, source_name }
}: {
  readonly of: Pick<Row<"ChannelAlert">, "id" | "message" | "source_id" | "source_name">
}) => {
  const { client } = useSession()
  return (
    <Entry
      tone="bad"
      action={
        <Action
          call="POST /sources/channel-alerts/{id}/acknowledge"
          run={() => client.post("/sources/channel-alerts/{id}/acknowledge", { params: { path: { id } } })}
        >
          Acknowledge
        </Action>
      }
    >
      The channel of{" "}
      <Link to={`/channels/${source_id}`}>
        <bdi>{source_name}</bdi>
      </Link>{" "}
      does not work: <bdi>{message}</bdi>
    </Entry>
  )
}

/** The open alerts above the list of all of them. */
export const OpenAlerts = () => {
  const { alerts } = useOpenAlerts()
  if (alerts.length === 0) return null
  return (
    <Panel title="Nobody deals with these yet">
      <Entries label="Open alerts">
        {alerts.map((one) => (
          <AlertEntry key={one.id} of={one} />
        ))}
      </Entries>
    </Panel>
  )
}
