import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import type { RequestMeasure } from "@tidegate/model/Metrics"
import { likePrefix } from "./Relations.ts"
import { conditions, isOfRejected, type RequestFilter } from "./RequestConditions.ts"
import type { Buckets } from "./Buckets.ts"
import {
  bucketsOf,
  countAtMost,
  type Counted,
  countOf,
  type Keys,
  readAtMost,
  type RowsOf,
  type Tally
} from "./Tally.ts"
import { idsOf, type Stretch } from "./Window.ts"

type Fragment = Statement.Fragment

/** Counts requests: by the rollups, or by the rows when the rollups do not cover the filter. */

/** The rollups that cover a filter; null: none do. */
const keysOf = (team: string, filter: RequestFilter): Keys | null => {
  const { connections, isRetry, operation, rejectionCauses = [], retryKind, search, sources, verified } = filter
  const others = [operation, verified, isRetry, retryKind, search]
  if (connections.length > 0 || rejectionCauses.length > 0 || others.some((value) => value !== undefined)) return null
  return { ids: sources.length > 0 ? sources : [team], kept: "counts" }
}

/** The requests of a stretch of time that an index finds, at most so many, and the conditions left to check on each. */
const rowsOf = (
  sql: SqlClient.SqlClient,
  team: string,
  filter: RequestFilter,
  stretch: Stretch,
  atMost: number
): { readonly rows: Fragment; readonly matching: Fragment } => {
  const { connections, search } = filter
  const { lower, upper } = idsOf(prefixes.request, stretch)
  const found: Array<Fragment> = [sql`r.team_id = ${team}`, sql`r.id >= ${lower}`, sql`r.id < ${upper}`]
  const matching: Array<Fragment> = [sql.literal("true")]
  // Conditions that the index covers limit the rows that are read; the others are checked on each row.
  for (const [name, condition] of conditions(sql, filter)) {
    if (name === "operation" || name === "sources" || name === "retries") found.push(condition)
    else matching.push(condition)
  }
  // There are few retries, and an index has only them.
  if (filter.retryKind !== undefined) found.push(sql.literal("r.retry_kind is not null"))
  if (isOfRejected(filter)) found.push(sql.literal("r.status = 'rejected'"))
  if (search?.startsWith(prefixes.request) === true) {
    found.push(sql`r.id >= ${search}`, sql`r.id < ${`${search}~`}`)
  } else if (search !== undefined) {
    found.push(sql`r.external_id is not null`, sql`r.external_id like ${likePrefix(search)}`)
  }
  if (connections.length > 0) {
    const of = sql`connection_id = any(${Columns.text(connections)}) and team_id = ${team}`
    // A request has at most one of these rows for each connection.
    const most = Math.min((atMost + 1) * connections.length, 2_000_000_000)
    const between = (prefix: typeof prefixes.event | typeof prefixes.ignoredEvent) => {
      const ids = idsOf(prefix, stretch)
      return sql`id >= ${ids.lower} and id < ${ids.upper}`
    }
    found.push(sql`r.id in (
      (select request_id from events where ${of} and ${between(prefixes.event)} and retry_parent_event_id is null limit ${most})
      union (select request_id from ignored_events where ${of} and ${between(prefixes.ignoredEvent)} limit ${most})
      union (select request_id from pending_routes where ${of} limit ${most}))`)
  }
  return {
    matching: sql.and(matching),
    rows: sql`(
      select r.* from requests r where ${sql.and(found)} limit ${atMost + 1}) r`
  }
}

const tallyOf = (team: string, filter: RequestFilter): Tally => {
  const { status } = filter
  const rows: RowsOf = (stretch, atMost) =>
    Effect.map(SqlClient.SqlClient, (sql) => rowsOf(sql, team, filter, stretch, atMost))
  const measures = status === undefined ? ["accepted", "rejected"] : [status]
  return { team, keys: keysOf(team, filter), measures, rows }
}

/** How many requests a stretch has. */
export const countRequests = (
  team: string,
  filter: RequestFilter,
  whole: Stretch,
  atMost: number = countAtMost
): Effect.Effect<Counted, SqlError.SqlError, SqlClient.SqlClient> => countOf(tallyOf(team, filter), whole, atMost)

/** The requests of a bucket. */
export type RequestBucket = Readonly<Record<RequestMeasure, number>>

/** Requests by bucket. Null: too many rows would have to be read. */
export const requestBuckets = Effect.fnUntraced(function* (
  team: string,
  filter: RequestFilter,
  buckets: Buckets,
  atMost: number = readAtMost
): Effect.fn.Return<ReadonlyArray<RequestBucket> | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const series = { ...tallyOf(team, filter), prefix: prefixes.request, id: "r.id", kind: sql.literal("r.status") }
  const found = yield* bucketsOf(series, buckets, atMost)
  if (found === null) return null
  return found.buckets.map((bucket) => {
    const { accepted, rejected } = { accepted: bucket.get("accepted") ?? 0, rejected: bucket.get("rejected") ?? 0 }
    return { count: accepted + rejected, accepted_count: accepted, rejected_count: rejected }
  })
})
