import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import type { RequestMeasure } from "@tidegate/model/Metrics"
import { likePrefix } from "./Relations.ts"
import { conditions, isOfRejected, type RequestFilter } from "./RequestConditions.ts"
import {
  bucketOf,
  type Buckets,
  countAtMost,
  type Counted,
  countParts,
  idsOf,
  partsOfSeries,
  readAtMost,
  rolledPart,
  rolledSeries,
  rolledSum,
  rowsPart,
  signed,
  stepsOf,
  type Stretch,
  together
} from "./Rolled.ts"

type Fragment = Statement.Fragment

/** Counts requests: by the rollups, or by the rows when the rollups do not cover the filter. */

/** The ids whose rollups cover a filter; null: none do. */
const keysOf = (team: string, filter: RequestFilter): ReadonlyArray<string> | null => {
  const { connections, isRetry, operation, rejectionCauses = [], retryKind, search, sources, verified } = filter
  const others = [operation, verified, isRetry, retryKind, search]
  if (connections.length > 0 || rejectionCauses.length > 0 || others.some((value) => value !== undefined)) return null
  return sources.length > 0 ? sources : [team]
}

const measuresOf = ({ status }: RequestFilter): ReadonlyArray<string> =>
  status === undefined ? ["accepted", "rejected"] : [status]

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
    const between = (prefix: typeof prefixes.event | typeof prefixes.ignoredEvent) => {
      const ids = idsOf(prefix, stretch)
      return sql`id >= ${ids.lower} and id < ${ids.upper}`
    }
    found.push(sql`r.id in (
      select request_id from events where ${of} and ${between(prefixes.event)} and retry_parent_event_id is null
      union select request_id from ignored_events where ${of} and ${between(prefixes.ignoredEvent)}
      union select request_id from pending_routes where ${of})`)
  }
  return {
    matching: sql.and(matching),
    rows: sql`(
      select r.* from requests r where ${sql.and(found)} limit ${atMost + 1}) r`
  }
}

/** How many requests a stretch has. */
export const countRequests = Effect.fnUntraced(function* (
  team: string,
  filter: RequestFilter,
  whole: Stretch,
  atMost: number = countAtMost
): Effect.fn.Return<Counted, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const keys = keysOf(team, filter)
  return yield* countParts({ team, whole, rolled: keys === null ? null : "counts", atMost }, (parts) => {
    const { rolled } = parts
    const told = rolled === null || keys === null ? [] : [rolledSum(sql, team, keys, measuresOf(filter), rolled)]
    return Effect.succeed([
      ...told.map((sum) => rolledPart(sum, sql)),
      ...signed(parts).map(([sign, stretch]) => {
        const { matching, rows } = rowsOf(sql, team, filter, stretch, atMost)
        return rowsPart(sql, sign, rows, matching)
      })
    ])
  })
})

/** The requests of a bucket. */
export type RequestBucket = Readonly<Record<RequestMeasure, number>>

interface Row {
  readonly kind: "accepted" | "rejected"
  readonly bucket: number
  readonly n: number
  readonly examined: number
}

/** Requests by bucket. Null: too many rows would have to be read. */
export const requestBuckets = Effect.fnUntraced(function* (
  team: string,
  filter: RequestFilter,
  buckets: Buckets,
  atMost: number = readAtMost
): Effect.fn.Return<ReadonlyArray<RequestBucket> | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const keys = keysOf(team, filter)
  const { rolled, rows: older } = yield* partsOfSeries(buckets, keys === null ? null : "counts")
  const parts: Array<Fragment> = []
  if (rolled !== null && keys !== null) {
    parts.push(rolledSeries(sql, team, keys, measuresOf(filter), buckets, rolled))
  }
  if (older !== null) {
    const { matching, rows } = rowsOf(sql, team, filter, older, atMost)
    const { bucket, joins } = bucketOf(sql, sql.literal("r.id"), prefixes.request, buckets)
    parts.push(sql`select r.status as kind, ${bucket} as bucket,
      count(*) filter (where ${matching})::float8 as n, count(*)::float8 as examined from ${rows} ${joins} group by 1, 2`)
  }
  const rows = yield* sql<Row>`${together(sql, parts)}`.unprepared
  if (rows.reduce((sum, { examined }) => sum + examined, 0) > atMost) return null
  const found = Array.from({ length: stepsOf(buckets) }, () => ({
    accepted: 0,
    rejected: 0
  }))
  for (const { bucket, kind, n } of rows) {
    const of = found[bucket - 1]
    if (of !== undefined) of[kind] = n
  }
  return found.map(({ accepted, rejected }) => ({
    count: accepted + rejected,
    accepted_count: accepted,
    rejected_count: rejected
  }))
})
