import type { Row } from "../../gateway.ts"
import { type Column, List } from "../../parts/List.tsx"
import { NewLink } from "../../parts/NewLink.tsx"
import type { Page } from "../../parts/Pages.ts"
import { Status } from "../../parts/Status.tsx"
import { Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { useTypeName } from "../sources/SourceTypes.ts"
import { type Plural, stateOf } from "./Head.tsx"

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
const state = {
  title: "Status",
  width: "100px",
  cell: (row: { readonly disabled_at: string | null; readonly paused_at?: string | null }) => (
    <Status of={stateOf(row)} />
  )
}

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
