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

const rowsOf = Effect.fnUntraced(function* <Row extends object>(
  table: "sources" | "destinations" | "connections" | "transformations",
  team: string,
  query: ResourceQuery,
  more: ReadonlyArray<Statement.Fragment>
): Effect.fn.Return<ReadonlyArray<Row>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { dir, ids, includeDisabled, limit, name, orderBy } = query
  return yield* sql<Row>`
    select * from ${sql.literal(table)} t
    where ${sql.and([
      sql`t.team_id = ${team}`,
      sql.literal("t.deleted_at is null"),
      ...(ids.length === 0 ? [] : [sql`t.id = any(${Columns.text(ids)})`]),
      ...(name === undefined ? [] : [sql`t.name = ${name}`]),
      ...(includeDisabled ? [] : [sql.literal("t.disabled_at is null")]),
      ...more
    ])}
    ${sql.literal(`order by t.${orderBy} ${dir}, t.id ${dir} limit ${limit}`)}`
})

const ofType = (sql: SqlClient.SqlClient, { type }: ResourceQuery): ReadonlyArray<Statement.Fragment> =>
  type === undefined ? [] : [sql`t.type = ${type}`]

const page = <Model>({ dir, limit, orderBy }: ResourceQuery, models: ReadonlyArray<Model>) => ({
  pagination: { order_by: orderBy, dir, limit },
  count: models.length,
  models
})

export type ResourcePage<Model> = ReturnType<typeof page<Model>>

type Failure = GatewayError | SqlError.SqlError

export const sources = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery
): Effect.fn.Return<ResourcePage<Source>, Failure, SqlClient.SqlClient | Sources> {
  const rows = yield* rowsOf<SourceRow>("sources", team, query, ofType(yield* SqlClient.SqlClient, query))
  return page(query, yield* (yield* Sources).records(rows))
})

export const destinations = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery
): Effect.fn.Return<ResourcePage<Destination>, Failure, SqlClient.SqlClient | Destinations> {
  const rows = yield* rowsOf<DestinationRow>("destinations", team, query, ofType(yield* SqlClient.SqlClient, query))
  return page(query, yield* (yield* Destinations).records(rows))
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
  return page(query, yield* (yield* Connections).records(rows))
})

/** Transformations have neither a type nor a switch. Counting takes a read of all their rollups: only when asked for. */
export const transformations = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery,
  options: { readonly counts: boolean }
): Effect.fn.Return<ResourcePage<Transformation>, Failure, SqlClient.SqlClient | Transformations> {
  const rows = yield* rowsOf<TransformationRow>("transformations", team, query, [])
  return page(query, yield* (yield* Transformations).records(rows, options))
})
