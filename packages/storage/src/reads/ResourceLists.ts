import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Connection } from "@tidegate/model/Connection"
import type { Destination } from "@tidegate/model/Destination"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Source } from "@tidegate/model/Source"
import type { Transformation } from "@tidegate/model/Transformation"
import { type ConnectionRow, Connections } from "../Connections.ts"
import { type DestinationRow, Destinations } from "../Destinations.ts"
import * as Columns from "../journal/Columns.ts"
import { type SourceRow, Sources } from "../Sources.ts"
import { type TransformationRow, Transformations } from "../Transformations.ts"

/** What a list of resources is narrowed to and ordered by. Empty lists narrow nothing. */
export interface ResourceQuery {
  readonly ids: ReadonlyArray<string>
  readonly name: string | undefined
  readonly type: string | undefined
  readonly includeDisabled: boolean
  readonly orderBy: "name" | "created_at" | "updated_at"
  readonly dir: "asc" | "desc"
  readonly limit: number
}

export interface ConnectionQuery extends ResourceQuery {
  readonly sources: ReadonlyArray<string>
  readonly destinations: ReadonlyArray<string>
  readonly paused: boolean | undefined
}

/**
 * A page ends early when its records hold more than this: 255 of the largest would be more than a process has memory
 * for. It has one record at least.
 */
const largestPage = 16 * 1024 * 1024

type Table = "sources" | "destinations" | "connections" | "transformations"

/** What makes a record large, in bytes. A connection shows its source. */
const weights: Record<Table, string> = {
  sources: "octet_length(t.config::text)",
  destinations: "octet_length(t.config::text)",
  connections: `octet_length(t.rules::text)
    + coalesce((select octet_length(s.config::text) from sources s where s.id = t.source_id), 0)`,
  transformations: "octet_length(t.code)"
}

interface Found<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly hasMore: boolean
}

const rowsOf = Effect.fnUntraced(function* <Row extends object>(
  table: Table,
  team: string,
  query: ResourceQuery,
  more: ReadonlyArray<Statement.Fragment>
): Effect.fn.Return<Found<Row>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { dir, ids, includeDisabled, limit, name, orderBy } = query
  const order = `order by t.${orderBy} ${dir}, t.id ${dir}`
  // One row more than the limit tells that there are more.
  const found = yield* sql<Row & { readonly place: number; readonly listed: number }>`
    select * from (
      select t.*, row_number() over (${sql.literal(order)})::int4 as place, count(*) over ()::int4 as listed,
        sum(${sql.literal(weights[table])}) over (${sql.literal(order)}) as weight
      from (
        select * from ${sql.literal(table)} t
        where ${sql.and([
          sql`t.team_id = ${team}`,
          sql.literal("t.deleted_at is null"),
          ...(ids.length === 0 ? [] : [sql`t.id = any(${Columns.text(ids)})`]),
          ...(name === undefined ? [] : [sql`t.name = ${name}`]),
          ...(includeDisabled ? [] : [sql.literal("t.disabled_at is null")]),
          ...more
        ])}
        ${sql.literal(`${order} limit ${limit + 1}`)}
      ) t
    ) t
    where t.place = 1 or (t.place <= ${sql.literal(String(limit))} and t.weight <= ${sql.literal(String(largestPage))})
    order by t.place`
  return { rows: found, hasMore: (found[0]?.listed ?? 0) > found.length }
})

const ofType = (sql: SqlClient.SqlClient, { type }: ResourceQuery): ReadonlyArray<Statement.Fragment> =>
  type === undefined ? [] : [sql`t.type = ${type}`]

export interface ResourcePage<Model> {
  readonly pagination: { readonly order_by: string; readonly dir: "asc" | "desc"; readonly limit: number }
  readonly count: number
  readonly has_more: boolean
  readonly models: ReadonlyArray<Model>
}

const page = <Row, Model, E, R>(
  { dir, limit, orderBy }: ResourceQuery,
  { hasMore, rows }: Found<Row>,
  toModels: (rows: ReadonlyArray<Row>) => Effect.Effect<ReadonlyArray<Model>, E, R>
): Effect.Effect<ResourcePage<Model>, E, R> =>
  Effect.map(toModels(rows), (models) => ({
    pagination: { order_by: orderBy, dir, limit },
    count: models.length,
    has_more: hasMore,
    models
  }))

type Failure = GatewayError | SqlError.SqlError

export const sources = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery
): Effect.fn.Return<ResourcePage<Source>, Failure, SqlClient.SqlClient | Sources> {
  const rows = yield* rowsOf<SourceRow>("sources", team, query, ofType(yield* SqlClient.SqlClient, query))
  return yield* page(query, rows, (yield* Sources).records)
})

export const destinations = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery
): Effect.fn.Return<ResourcePage<Destination>, Failure, SqlClient.SqlClient | Destinations> {
  const rows = yield* rowsOf<DestinationRow>("destinations", team, query, ofType(yield* SqlClient.SqlClient, query))
  return yield* page(query, rows, (yield* Destinations).records)
})

/** A connection has no type of its own; `type` is that of its source. */
export const connections = Effect.fnUntraced(function* (
  team: string,
  query: ConnectionQuery
): Effect.fn.Return<ResourcePage<Connection>, Failure, SqlClient.SqlClient | Connections> {
  const sql = yield* SqlClient.SqlClient
  const { destinations: to, paused, sources: from, type } = query
  const rows = yield* rowsOf<ConnectionRow>("connections", team, query, [
    ...(type === undefined
      ? []
      : [sql`t.source_id in (select id from sources where team_id = ${team} and type = ${type})`]),
    ...(from.length === 0 ? [] : [sql`t.source_id = any(${Columns.text(from)})`]),
    ...(to.length === 0 ? [] : [sql`t.destination_id = any(${Columns.text(to)})`]),
    ...(paused === undefined ? [] : [sql.literal(`t.paused_at is ${paused ? "not " : ""}null`)])
  ])
  return yield* page(query, rows, (yield* Connections).records)
})

/** Transformations have neither a type nor a switch. Counting takes a read of all their rollups: only when asked for. */
export const transformations = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery,
  options: { readonly counts: boolean }
): Effect.fn.Return<ResourcePage<Transformation>, Failure, SqlClient.SqlClient | Transformations> {
  const rows = yield* rowsOf<TransformationRow>("transformations", team, query, [])
  const { records } = yield* Transformations
  return yield* page(query, rows, (shown) => records(shown, options))
})
