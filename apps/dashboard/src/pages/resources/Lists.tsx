import type { Row } from "../../gateway.ts"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { flagsOf, useFilters, valuesOf } from "../../parts/Filters.tsx"
import { type Column, List } from "../../parts/List.tsx"
import { NewLink } from "../../parts/NewLink.tsx"
import type { Page } from "../../parts/Pages.ts"
import { Status } from "../../parts/Status.tsx"
import { Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { useSourceTypes, useTypeName } from "../sources/SourceTypes.ts"
import { destinationName, destinationNames } from "./DestinationNames.ts"
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
  filters,
  kind,
  read
}: {
  readonly kind: Plural
  readonly columns: ReadonlyArray<Column<Model>>
  readonly filters: ReadonlyArray<Filter>
  readonly read: (query: Query) => Promise<Page<Model>>
  readonly empty: string
}) => {
  const { team } = useSession()
  const { search } = useFilters()
  const { type } = search
  const query = {
    ...(type === undefined ? {} : { type }),
    ...valuesOf(search, ["id", "source_id", "destination_id"]),
    ...flagsOf(search, ["include_disabled", "paused"])
  }
  const isNarrowed = Object.keys(query).length > 0
  const title = kind.charAt(0).toUpperCase() + kind.slice(1)
  return (
    <>
      <header>
        <h1>{title}</h1>
        <div className="filters">
          <FilterBar path={`/${kind}`} of={filters} />
        </div>
        <NewLink to={`/${kind}/new`} call={`POST /${kind}`}>{`New ${singular[kind]}`}</NewLink>
      </header>
      <List
        label={title}
        keys={[kind, team, query]}
        columns={columns}
        to={({ id }) => `/${kind}/${id}`}
        read={(page) => read({ ...query, ...page })}
        empty={<p>{isNarrowed ? `No ${singular[kind]} matches these filters.` : empty}</p>}
      />
    </>
  )
}

interface Query {
  readonly limit: number
  readonly cursor?: string
  readonly type?: string
  readonly include_disabled?: boolean
}

/** A resource is found by its name, which completes to its id. */
const byName = (kind: Plural): Filter => ({ name: "id", key: "name", label: "Name", kind })
const withDisabled: Filter = { name: "include_disabled", key: "disabled", label: "Disabled ones" }

export const Sources = () => {
  const { client } = useSession()
  const nameOf = useTypeName()
  const { data: types = [], isPending } = useSourceTypes()
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
      filters={[
        byName("sources"),
        { name: "type", label: "Type", values: types.map(({ name, type }) => [type, name]), isLoading: isPending },
        withDisabled
      ]}
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
    { ...typed, cell: ({ type }) => destinationName(type) },
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
      filters={[byName("destinations"), { name: "type", label: "Type", values: destinationNames }, withDisabled]}
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
      filters={[
        byName("connections"),
        { name: "source_id", label: "Source", kind: "sources" },
        { name: "destination_id", label: "Destination", kind: "destinations" },
        { name: "paused", label: "Paused" },
        withDisabled
      ]}
      read={(query) => client.get("/connections", { params: { query } })}
      empty="There is no connection yet. A connection routes the requests of a source to a destination, by rules."
    />
  )
}
