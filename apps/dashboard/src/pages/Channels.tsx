import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { useFilters } from "../parts/Filters.tsx"
import { type Column, List } from "../parts/List.tsx"
import { OnlyOwners } from "../parts/OnlyOwners.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status, wordsOf } from "../parts/Status.tsx"
import { PagedRows, Read, Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRole, useSession } from "../session.ts"
import { needOf } from "./ChannelNeeds.ts"

type Listed = Row<"ChannelSource">
type Channel = Row<"Channel">

const columns: ReadonlyArray<Column<Listed>> = [
  { title: "Status", width: "110px", cell: ({ channel }) => <Status of={channel.status} /> },
  { title: "Source", width: "1fr", cell: ({ name }) => <bdi>{name}</bdi> },
  { title: "Provider", width: "110px", cell: ({ provider_key }) => provider_key },
  { title: "What it needs", width: "2.4fr", cell: ({ channel }) => needOf(channel) ?? "–" },
  { title: "Last notified", width: "110px", cell: ({ channel }) => <Time at={channel.last_notification_at} /> },
  { title: "Alerts", width: "60px", cell: ({ channel }) => channel.alerts.length }
]

const filters: ReadonlyArray<Filter> = [{ name: "status", label: "Status" }]

export const Channels = () => {
  const { client, team } = useSession()
  const { status } = useFilters().search
  const query = status === undefined ? {} : { status: [status as Channel["status"]] }
  return (
    <>
      <header>
        <h1>Channels</h1>
        <div className="filters">
          <FilterBar path="/sources/channels" of={filters} />
        </div>
      </header>
      <List
        label="Channels"
        keys={["channels", team, query]}
        columns={columns}
        to={({ source_id }) => `/channels/${source_id}`}
        read={() => client.get("/sources/channels", { params: { query } })}
        empty={
          <p>
            No channel is found. A source of type PROVIDER has one: the provider notifies the gateway by it.{" "}
            <Link to="/sources/new">Create a source</Link>.
          </p>
        }
      />
    </>
  )
}

const Runs = ({ id }: { readonly id: string }) => {
  const { client, team } = useSession()
  return (
    <PagedRows
      label="Polls"
      keys={["source runs", team, id]}
      isLive
      limit={20}
      columns={["Status", "Why", "New items", "Found", "Scheduled", "Finished", "Error"]}
      read={(page) =>
        client.get("/sources/{id}/runs", {
          params: { path: { id }, query: page }
        })
      }
      row={({ error_code, finished_at, items_found, items_new, reason, scheduled_at, status }) => [
        <Status key="status" of={status} />,
        wordsOf(reason),
        items_new.toLocaleString(),
        items_found.toLocaleString(),
        <Time key="scheduled" at={scheduled_at} />,
        <Time key="finished" at={finished_at} />,
        error_code ?? "–"
      ]}
      empty={<p>It has not been polled yet.</p>}
    />
  )
}

const maxEvents = 50

const History = ({ id }: { readonly id: string }) => {
  const { client } = useSession()
  return (
    <Read
      name={`channel events of ${id}`}
      read={() => client.get("/sources/{id}/channel-events", { params: { path: { id }, query: { limit: maxEvents } } })}
    >
      {({ channels, deliveries, events }) => (
        <>
          <Panel title="What happened">
            {events.length === 0 ? (
              <p className="muted">Nothing yet.</p>
            ) : (
              <Rows label="What happened" columns={["When", "What", "Message", "Error"]}>
                {events.map(({ created_at, error_code, id, kind, message }) => (
                  <tr key={id}>
                    <td>
                      <Time at={created_at} />
                    </td>
                    <td>{wordsOf(kind)}</td>
                    <td>
                      <bdi>{message}</bdi>
                    </td>
                    <td>{error_code ?? "–"}</td>
                  </tr>
                ))}
              </Rows>
            )}
            {events.length < maxEvents ? null : <p className="muted">The newest {maxEvents} are shown.</p>}
          </Panel>
          <Panel title="Subscriptions">
            {channels.length === 0 ? (
              <p className="muted">It has none.</p>
            ) : (
              <Rows label="Subscriptions" columns={["Status", "What is watched", "Last notified", "Renewed", "Ends"]}>
                {channels.map(({ expires_at, id, last_notification_at, last_renewed_at, state, target }) => (
                  <tr key={id}>
                    <td>
                      <Status of={state} />
                    </td>
                    <td>
                      <bdi className="mono">{target}</bdi>
                    </td>
                    <td>
                      <Time at={last_notification_at} />
                    </td>
                    <td>
                      <Time at={last_renewed_at} />
                    </td>
                    <td>
                      <Time at={expires_at} />
                    </td>
                  </tr>
                ))}
              </Rows>
            )}
          </Panel>
          {deliveries.length === 0 ? null : (
            <Panel title="Messages about alerts">
              <Rows label="Messages about alerts" columns={["Status", "Kind", "Alert", "To", "Created", "Why not"]}>
                {deliveries.map(
                  ({ code, created_at, error_code, id, kind, recipient, status, suppressed_reason, transport }) => (
                    <tr key={id}>
                      <td>
                        <Status of={status} />
                      </td>
                      <td>{wordsOf(kind)}</td>
                      <td>{wordsOf(code)}</td>
                      <td>{transport === "chat" ? "The chat" : <bdi>{recipient}</bdi>}</td>
                      <td>
                        <Time at={created_at} />
                      </td>
                      <td>{error_code ?? suppressed_reason ?? "–"}</td>
                    </tr>
                  )
                )}
              </Rows>
            </Panel>
          )}
        </>
      )}
    </Read>
  )
}

const State = ({ of, source }: { readonly of: Channel; readonly source: ReactNode }) => (
  <Panel title="Channel">
    <Facts
      of={[
        ["Source", source],
        [
          "Account",
          of.provider_account === null ? undefined : (
            <span key="account">
              <Link to={`/accounts/${of.provider_account.id}`} className="mono">
                {of.provider_account.id}
              </Link>{" "}
              <Status of={of.provider_account.state} />
            </span>
          )
        ],
        ["Subscriptions", `${of.active_subscriptions} of ${of.expected_targets}`],
        ["Last notified", <Time key="notified" at={of.last_notification_at} />],
        ["Ends", <Time key="ends" at={of.expires_at} />],
        ["Next renewal", <Time key="renewal" at={of.next_renewal_at} />],
        ["Failures in a row", of.fallback.consecutive_failures.toLocaleString()],
        [
          "Instant delivery is tried",
          of.fallback.next_restore_at === null ? undefined : <Time key="restore" at={of.fallback.next_restore_at} />
        ],
        ["Last error", of.last_error === null ? undefined : <bdi>{of.last_error}</bdi>]
      ]}
    />
  </Panel>
)

/** How a provider source gets its items: its channel, its polls, and what happened. */
export const Channel = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const { mayOwn } = useRole()
  const path = { params: { path: { id } } }
  const source = useQuery({
    queryKey: ["source", team, id],
    queryFn: () => client.get("/sources/{id}", path),
    // While a subscription is made, the page follows it.
    refetchInterval: ({ state }) => (state.data?.channel?.status === "connecting" ? 2_000 : false)
  })
  if (source.isPending) return <Loading />
  if (source.isError) return <Failure error={source.error} retry={source.refetch} />
  const { channel, delivery_mode, name } = source.data
  const link = (
    <Link key="source" to={`/sources/${id}`}>
      <bdi>{name}</bdi>
    </Link>
  )
  if (delivery_mode === undefined) {
    return (
      <>
        <header>
          <h1>Channel</h1>
        </header>
        <p className="notice">The source {link} has no channel: senders post to its URL.</p>
      </>
    )
  }
  const other = delivery_mode === "instant" ? "polling" : "instant"
  const need = channel === null || channel === undefined ? null : needOf(channel)
  return (
    <>
      <header>
        <h1>
          <bdi>{name}</bdi>
        </h1>
        {channel === null || channel === undefined ? (
          <span className="badge">Polling</span>
        ) : (
          <Status of={channel.status} />
        )}
        {mayOwn ? (
          <div className="actions">
            {delivery_mode === "instant" ? (
              <Action
                call="POST /sources/{id}/channel-retry"
                done="Asked"
                run={() => client.post("/sources/{id}/channel-retry", path)}
              >
                Try again
              </Action>
            ) : null}
            <Action call="POST /sources/{id}/run" done="Asked" run={() => client.post("/sources/{id}/run", path)}>
              Poll now
            </Action>
            <Action
              call="PATCH /sources/{id}/delivery"
              asks={other === "polling" ? "Let polling replace it?" : "Let the provider notify?"}
              run={() => client.patch("/sources/{id}/delivery", { ...path, body: { delivery_mode: other } })}
            >
              {other === "polling" ? "Use polling" : "Use instant delivery"}
            </Action>
          </div>
        ) : null}
      </header>
      <OnlyOwners may="try a channel again, poll, or change it" />
      {need === null ? null : <div className={`notice ${channel?.status === "error" ? "bad" : ""}`}>{need}</div>}
      {channel?.alerts.map(({ id, message, occurrences }) => (
        <div key={id} className="notice bad">
          <bdi>{message}</bdi> ({occurrences === 1 ? "once" : `${occurrences.toLocaleString()} times`})
        </div>
      ))}
      {channel === null || channel === undefined ? (
        <Panel title="Source">
          <Facts of={[["Source", link]]} />
        </Panel>
      ) : (
        <State of={channel} source={link} />
      )}
      <Panel title="Polls">
        <Runs id={id} />
      </Panel>
      <History id={id} />
    </>
  )
}
