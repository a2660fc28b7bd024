import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Connection } from "@tidegate/model/Connection"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Source } from "@tidegate/model/Source"
import { type ConnectionRow, Connections } from "../Connections.ts"
import { type SourceRow, Sources } from "../Sources.ts"
import { listRows, pageOf, type ResourcePage, type ResourceQuery } from "./ResourceLists.ts"

/** The lists of resources whose stores are not made of a declaration yet. */

type Failure = GatewayError | SqlError.SqlError

const ofType = (sql: SqlClient.SqlClient, { type }: ResourceQuery): ReadonlyArray<Statement.Fragment> =>
  type === undefined ? [] : [sql`t.type = ${type}`]

const byConfig = "octet_length(t.config::text)"

export const sources = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery
): Effect.fn.Return<ResourcePage<Source>, Failure, SqlClient.SqlClient | Sources> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* listRows<SourceRow>(sql, { plural: "sources", weight: byConfig }, team, query, ofType(sql, query))
  return yield* pageOf(query, rows, (yield* Sources).records)
})

/** A connection has no type of its own; `type` is that of its source. It shows its source. */
export const connections = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery
): Effect.fn.Return<ResourcePage<Connection>, Failure, SqlClient.SqlClient | Connections> {
  const sql = yield* SqlClient.SqlClient
  const { type } = query
  const weight = `octet_length(t.rules::text)
    + coalesce((select octet_length(s.config::text) from sources s where s.id = t.source_id), 0)`
  const rows = yield* listRows<ConnectionRow>(
    sql,
    { plural: "connections", weight },
    team,
    query,
    type === undefined ? [] : [sql`t.source_id in (select id from sources where team_id = ${team} and type = ${type})`]
  )
  return yield* pageOf(query, rows, (yield* Connections).records)
})
