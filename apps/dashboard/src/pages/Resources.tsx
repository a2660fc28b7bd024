import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Copy } from "../parts/Copy.tsx"
import { Edit } from "../parts/Edit.tsx"
import { type Column, List } from "../parts/List.tsx"
import { NamedLink } from "../parts/Named.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"

type Source = Row<"Source">
type Destination = Row<"Destination">
type Connection = Row<"Connection">

const named = { title: "Name", width: "1.4fr", cell: ({ name }: { readonly name: string }) => <bdi>{name}</bdi> }
const typed = { title: "Type", width: "150px", cell: ({ type }: { readonly type: string }) => type }
const changed = {
  title: "Changed",
  width: "110px",
  cell: ({ updated_at }: { readonly updated_at: string }) => <Time at={updated_at} />
}
const stateOf = ({
  disabled_at,
  paused_at
}: {
  readonly disabled_at: string | null
  readonly paused_at?: string | null
}): string => (disabled_at !== null ? "disabled" : (paused_at ?? null) !== null ? "paused" : "enabled")
const state = {
  title: "Status",
  width: "100px",
  cell: (row: { readonly disabled_at: string | null; readonly paused_at?: string | null }) => (
    <Status of={stateOf(row)} />
  )
}

export const Sources = () => {
  const { client, team } = useSession()
  const columns: ReadonlyArray<Column<Source>> = [
    state,
    named,
    typed,
    { title: "URL", width: "2fr", cell: ({ url }) => <span className="mono">{url}</span> },
    changed
  ]
  return (
    <>
      <header>
        <h1>Sources</h1>
        <div className="actions">
          <Link to="/sources/new" className="button">
            New source
          </Link>
        </div>
      </header>
      <List
        label="Sources"
        keys={["sources", team]}
        columns={columns}
        to={({ id }) => `/sources/${id}`}
        read={(cursor) =>
          client.get("/sources", {
            params: { query: { limit: 100, include_disabled: true, ...(cursor === null ? {} : { cursor }) } }
          })
        }
        empty={<p>There is no source yet. A source is a URL to which your providers send their webhooks.</p>}
      />
    </>
  )
}

export const Destinations = () => {
  const { client, team } = useSession()
  const columns: ReadonlyArray<Column<Destination>> = [
    state,
    named,
    typed,
    {
      title: "Attempts in 24 hours",
      width: "150px",
      cell: ({ attempts_24h_count }) => attempts_24h_count.toLocaleString()
    },
    { title: "Held until", width: "120px", cell: ({ held_until }) => <Time at={held_until} /> },
    changed
  ]
  return (
    <>
      <header>
        <h1>Destinations</h1>
        <div className="actions">
          <Link to="/destinations/new" className="button">
            New destination
          </Link>
        </div>
      </header>
      <List
        label="Destinations"
        keys={["destinations", team]}
        columns={columns}
        to={({ id }) => `/destinations/${id}`}
        read={(cursor) =>
          client.get("/destinations", {
            params: { query: { limit: 100, include_disabled: true, ...(cursor === null ? {} : { cursor }) } }
          })
        }
        empty={
          <p>
            There is no destination yet. A destination is where events are delivered to: a URL, a chat, a bucket, a
            database.
          </p>
        }
      />
    </>
  )
}

export const Connections = () => {
  const { client, team } = useSession()
  const columns: ReadonlyArray<Column<Connection>> = [
    state,
    named,
    { title: "Source", width: "1fr", cell: ({ source }) => <bdi>{source.name}</bdi> },
    { title: "Destination", width: "1fr", cell: ({ destination }) => <bdi>{destination.name}</bdi> },
    { title: "Rules", width: "1fr", cell: ({ rules }) => rules.map(({ type }) => type).join(", ") || "–" },
    changed
  ]
  return (
    <>
      <header>
        <h1>Connections</h1>
        <div className="actions">
          <Link to="/connections/new" className="button">
            New connection
          </Link>
        </div>
      </header>
      <List
        label="Connections"
        keys={["connections", team]}
        columns={columns}
        to={({ id }) => `/connections/${id}`}
        read={(cursor) =>
          client.get("/connections", {
            params: { query: { limit: 100, include_disabled: true, ...(cursor === null ? {} : { cursor }) } }
          })
        }
        empty={
          <p>There is no connection yet. A connection routes the requests of a source to a destination, by rules.</p>
        }
      />
    </>
  )
}

export const Source = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const navigate = useNavigate()
  const path = { params: { path: { id } } }
  const source = useQuery({ queryKey: ["source", team, id], queryFn: () => client.get("/sources/{id}", path) })
  if (source.isPending) return <Loading />
  if (source.isError) return <Failure error={source.error} retry={source.refetch} />
  const { config, created_at, description, disabled_at, name, type, url } = source.data
  return (
    <>
      <header>
        <h1>
          <bdi>{name}</bdi>
        </h1>
        <Status of={disabled_at === null ? "enabled" : "disabled"} />
        <div className="actions">
          {disabled_at === null ? (
            <Action run={() => client.put("/sources/{id}/disable", path)} asks="Refuse all its requests?">
              Disable
            </Action>
          ) : (
            <Action run={() => client.put("/sources/{id}/enable", path)}>Enable</Action>
          )}
          <Action
            asks="Delete it and its connections?"
            run={async () => {
              await client.delete("/sources/{id}", path)
              await navigate({ to: "/sources" })
            }}
          >
            Delete
          </Action>
        </div>
      </header>
      <Panel title="Source">
        <Facts
          of={[
            [
              "URL",
              <span key="url">
                <code>{url}</code> <Copy text={url} />
              </span>
            ],
            ["Type", type],
            ["Description", description ?? undefined],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={created_at} precise />],
            [
              "Requests",
              <Link key="requests" to="/requests" search={{ source_id: id }}>
                Show its requests
              </Link>
            ],
            [
              "Try it",
              <code key="try">{`curl -d '{"hello":"world"}' -H 'content-type: application/json' ${url}`}</code>
            ]
          ]}
        />
      </Panel>
      <Edit
        title="Settings"
        value={config}
        save={(config) => client.patch("/sources/{id}", { ...path, body: { config } })}
      />
    </>
  )
}

export const Destination = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const navigate = useNavigate()
  const path = { params: { path: { id } } }
  const destination = useQuery({
    queryKey: ["destination", team, id],
    queryFn: () => client.get("/destinations/{id}", path)
  })
  if (destination.isPending) return <Loading />
  if (destination.isError) return <Failure error={destination.error} retry={destination.refetch} />
  const { config, created_at, description, disabled_at, held_until, name, type } = destination.data
  return (
    <>
      <header>
        <h1>
          <bdi>{name}</bdi>
        </h1>
        <Status of={disabled_at === null ? "enabled" : "disabled"} />
        <div className="actions">
          {disabled_at === null ? (
            <Action run={() => client.put("/destinations/{id}/disable", path)} asks="Stop all its deliveries?">
              Disable
            </Action>
          ) : (
            <Action run={() => client.put("/destinations/{id}/enable", path)}>Enable</Action>
          )}
          <Action
            asks="Delete it and its connections?"
            run={async () => {
              await client.delete("/destinations/{id}", path)
              await navigate({ to: "/destinations" })
            }}
          >
            Delete
          </Action>
        </div>
      </header>
      <Panel title="Destination">
        <Facts
          of={[
            ["Type", type],
            ["Description", description ?? undefined],
            ["Held until", held_until === null ? undefined : <Time key="held" at={held_until} precise />],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={created_at} precise />],
            [
              "Events",
              <Link key="events" to="/events" search={{ destination_id: id }}>
                Show its events
              </Link>
            ]
          ]}
        />
      </Panel>
      <Edit
        title="Settings"
        value={config}
        save={(config) => client.patch("/destinations/{id}", { ...path, body: { config } })}
      />
    </>
  )
}

export const Connection = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const navigate = useNavigate()
  const path = { params: { path: { id } } }
  const connection = useQuery({
    queryKey: ["connection", team, id],
    queryFn: () => client.get("/connections/{id}", path)
  })
  if (connection.isPending) return <Loading />
  if (connection.isError) return <Failure error={connection.error} retry={connection.refetch} />
  const { data } = connection
  return (
    <>
      <header>
        <h1>
          <bdi>{data.name}</bdi>
        </h1>
        <Status of={stateOf(data)} />
        <div className="actions">
          {data.paused_at === null ? (
            <Action run={() => client.put("/connections/{id}/pause", path)}>Pause</Action>
          ) : (
            <Action run={() => client.put("/connections/{id}/unpause", path)}>Resume</Action>
          )}
          {data.disabled_at === null ? (
            <Action run={() => client.put("/connections/{id}/disable", path)} asks="Route nothing more over it?">
              Disable
            </Action>
          ) : (
            <Action run={() => client.put("/connections/{id}/enable", path)}>Enable</Action>
          )}
          <Action
            asks="Delete it?"
            run={async () => {
              await client.delete("/connections/{id}", path)
              await navigate({ to: "/connections" })
            }}
          >
            Delete
          </Action>
        </div>
      </header>
      <Panel title="Connection">
        <Facts
          of={[
            ["Source", <NamedLink key="source" kind="sources" id={data.source_id} />],
            ["Destination", <NamedLink key="destination" kind="destinations" id={data.destination_id} />],
            ["Description", data.description ?? undefined],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={data.created_at} precise />],
            [
              "Events",
              <Link key="events" to="/events" search={{ connection_id: id }}>
                Show its events
              </Link>
            ]
          ]}
        />
      </Panel>
      {data.rules.length === 0 ? (
        <div className="notice">It has no rules: every request is delivered at once.</div>
      ) : null}
      <Edit
        title="Rules"
        value={data.rules}
        save={(rules) => client.patch("/connections/{id}", { ...path, body: { rules } })}
      />
    </>
  )
}
