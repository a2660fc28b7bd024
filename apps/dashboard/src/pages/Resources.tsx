import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { Row } from "../gateway.ts"
import { NewLink } from "../parts/NewLink.tsx"
import { Action } from "../parts/Action.tsx"
import { Copy } from "../parts/Copy.tsx"
import { Edit } from "../parts/Edit.tsx"
import { Issues } from "../parts/Issues.tsx"
import { type Column, List } from "../parts/List.tsx"
import { NamedLink } from "../parts/Named.tsx"
import type { Page } from "../parts/Pages.ts"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { subscriptionFacts } from "../parts/Subscription.tsx"
import { Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"
import { isPosted } from "./posted.ts"
import { SendTest } from "./sources/SendTest.tsx"
import { SetUp } from "./sources/SetUp.tsx"
import { useSourceTypes, useTypeName } from "./sources/SourceTypes.ts"
import { ConnectionRules } from "./rules/ConnectionRules.tsx"

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

type Plural = "sources" | "destinations" | "connections"

const singular: Readonly<Record<Plural, string>> = {
  sources: "source",
  destinations: "destination",
  connections: "connection"
}

/** The list of a kind of resource, with the way to make another one. */
const Resources = <Model extends { readonly id: string }>({
  columns,
  empty,
  kind,
  read
}: {
  readonly kind: Plural
  readonly columns: ReadonlyArray<Column<Model>>
  readonly read: (query: Query) => Promise<Page<Model>>
  readonly empty: string
}) => {
  const { team } = useSession()
  const title = kind.charAt(0).toUpperCase() + kind.slice(1)
  return (
    <>
      <header>
        <h1>{title}</h1>
        <NewLink to={`/${kind}/new`} call={`POST /${kind}`}>{`New ${singular[kind]}`}</NewLink>
      </header>
      <List
        label={title}
        keys={[kind, team]}
        columns={columns}
        to={({ id }) => `/${kind}/${id}`}
        read={(cursor) => read({ limit: 100, include_disabled: true, ...(cursor === null ? {} : { cursor }) })}
        empty={<p>{empty}</p>}
      />
    </>
  )
}

interface Query {
  readonly limit: number
  readonly include_disabled: boolean
  readonly cursor?: string
}

export const Sources = () => {
  const { client } = useSession()
  const nameOf = useTypeName()
  const columns: ReadonlyArray<Column<Source>> = [
    state,
    named,
    { ...typed, cell: ({ type }) => nameOf(type) },
    { title: "URL", width: "2fr", cell: ({ url }) => <span className="mono">{url}</span> },
    changed
  ]
  return (
    <Resources
      kind="sources"
      columns={columns}
      read={(query) => client.get("/sources", { params: { query } })}
      empty="There is no source yet. A source is a URL to which your providers send their webhooks."
    />
  )
}

export const Destinations = () => {
  const { client } = useSession()
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
    <Resources
      kind="destinations"
      columns={columns}
      read={(query) => client.get("/destinations", { params: { query } })}
      empty="There is no destination yet. A destination is where events are delivered to: a URL, a chat, a bucket, a database."
    />
  )
}

export const Connections = () => {
  const { client } = useSession()
  const columns: ReadonlyArray<Column<Connection>> = [
    state,
    named,
    { title: "Source", width: "1fr", cell: ({ source }) => <bdi>{source.name}</bdi> },
    { title: "Destination", width: "1fr", cell: ({ destination }) => <bdi>{destination.name}</bdi> },
    { title: "Rules", width: "1.4fr", cell: ({ rules }) => rules.map(({ type }) => type).join(", ") || "–" },
    changed
  ]
  return (
    <Resources
      kind="connections"
      columns={columns}
      read={(query) => client.get("/connections", { params: { query } })}
      empty="There is no connection yet. A connection routes the requests of a source to a destination, by rules."
    />
  )
}

/** The title of a resource's page, its status, and what can be done with it as a whole. */
const Head = ({
  asksDelete,
  asksDisable,
  children,
  kind,
  row
}: {
  readonly kind: Plural
  readonly row: {
    readonly id: string
    readonly name: string
    readonly disabled_at: string | null
    readonly paused_at?: string | null
  }
  readonly asksDisable: string
  readonly asksDelete: string
  readonly children?: ReactNode
}) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const path = { params: { path: { id: row.id } } }
  return (
    <header>
      <h1>
        <bdi>{row.name}</bdi>
      </h1>
      <Status of={stateOf(row)} />
      <div className="actions">
        {children}
        {row.disabled_at === null ? (
          <Action
            call={`PUT /${kind}/{id}/disable`}
            run={() => client.put(`/${kind}/{id}/disable`, path)}
            asks={asksDisable}
          >
            Disable
          </Action>
        ) : (
          <Action call={`PUT /${kind}/{id}/enable`} run={() => client.put(`/${kind}/{id}/enable`, path)}>
            Enable
          </Action>
        )}
        <Action
          call={`DELETE /${kind}/{id}`}
          asks={asksDelete}
          run={async () => {
            await client.delete(`/${kind}/{id}`, path)
            await navigate({ to: `/${kind}` })
          }}
        >
          Delete
        </Action>
      </div>
    </header>
  )
}

export const Source = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const path = { params: { path: { id } } }
  const source = useQuery({ queryKey: ["source", team, id], queryFn: () => client.get("/sources/{id}", path) })
  const types = useSourceTypes()
  if (source.isPending) return <Loading />
  if (source.isError) return <Failure error={source.error} retry={source.refetch} />
  const { config, created_at, delivery_mode, description, next_due_at, subscription_state, type, url } = source.data
  const hasChannel = delivery_mode !== undefined
  const hasUrl = isPosted(source.data)
  const known = types.data?.find((one) => one.type === type) ?? null
  return (
    <>
      <Head
        kind="sources"
        row={source.data}
        asksDisable="Refuse all its requests?"
        asksDelete="Delete it and its connections?"
      />
      <Panel title="Source">
        <Facts
          of={[
            [
              "URL",
              hasUrl ? (
                <span key="url">
                  <code>{url}</code> <Copy text={url} />
                </span>
              ) : undefined
            ],
            ["Type", known === null ? type : `${known.name} (${type})`],
            [
              "Channel",
              hasChannel ? (
                <Link key="channel" to={`/channels/${id}`}>
                  Show how its items arrive
                </Link>
              ) : undefined
            ],
            ["Next request", next_due_at === undefined ? undefined : <Time key="next" at={next_due_at} precise />],
            ...subscriptionFacts(subscription_state),
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
              hasUrl ? (
                <code key="try">{`curl -d '{"hello":"world"}' -H 'content-type: application/json' ${url}`}</code>
              ) : undefined
            ]
          ]}
        />
      </Panel>
      {known === null ? null : <SetUp of={known} url={hasUrl && known.samples.length > 0 ? url : null} />}
      {hasUrl && types.data !== undefined && known?.samples.length !== 0 ? (
        <SendTest key={id} source={source.data} of={known} />
      ) : null}
      <Edit
        call="PATCH /sources/{id}"
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
  const path = { params: { path: { id } } }
  const destination = useQuery({
    queryKey: ["destination", team, id],
    queryFn: () => client.get("/destinations/{id}", path)
  })
  if (destination.isPending) return <Loading />
  if (destination.isError) return <Failure error={destination.error} retry={destination.refetch} />
  const { config, created_at, description, held_until, type } = destination.data
  return (
    <>
      <Head
        kind="destinations"
        row={destination.data}
        asksDisable="Stop all its deliveries?"
        asksDelete="Delete it and its connections?"
      />
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
        <Issues destination={id} />
      </Panel>
      <Edit
        call="PATCH /destinations/{id}"
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
      <Head kind="connections" row={data} asksDisable="Route nothing more over it?" asksDelete="Delete it?">
        {data.paused_at === null ? (
          <Action call="PUT /connections/{id}/pause" run={() => client.put("/connections/{id}/pause", path)}>
            Pause
          </Action>
        ) : (
          <Action call="PUT /connections/{id}/unpause" run={() => client.put("/connections/{id}/unpause", path)}>
            Resume
          </Action>
        )}
      </Head>
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
      <ConnectionRules key={JSON.stringify(data.rules)} connection={data} />
      <Edit
        call="PATCH /connections/{id}"
        title="The same rules"
        value={data.rules}
        save={(rules) => client.patch("/connections/{id}", { ...path, body: { rules } })}
      />
    </>
  )
}
