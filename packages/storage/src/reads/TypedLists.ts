import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Destination } from "@tidegate/model/Destination"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { type DestinationRow, Destinations } from "../Destinations.ts"
import { listRows, pageOf, type ResourcePage, type ResourceQuery } from "./ResourceLists.ts"

/** The lists of resources whose stores are not made of a declaration yet. */

type Failure = GatewayError | SqlError.SqlError

const ofType = (sql: SqlClient.SqlClient, { type }: ResourceQuery): ReadonlyArray<Statement.Fragment> =>
  type === undefined ? [] : [sql`t.type = ${type}`]

const byConfig = "octet_length(t.config::text)"

export const destinations = Effect.fnUntraced(function* (
  team: string,
  query: ResourceQuery
): Effect.fn.Return<ResourcePage<Destination>, Failure, SqlClient.SqlClient | Destinations> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* listRows<DestinationRow>(
    sql,
    { plural: "destinations", weight: byConfig },
    team,
    query,
    ofType(sql, query)
  )
  return yield* pageOf(query, rows, (yield* Destinations).records)
})
