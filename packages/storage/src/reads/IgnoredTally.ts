import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { asksRows, type EventFilter } from "./EventPlan.ts"
import { likePrefix } from "./Relations.ts"
import { bucketOf, type Buckets, idsOf, partsOfSeries, readAtMost, rolledSeries, stepsOf, together } from "./Rolled.ts"

/**
 * Ignored events by bucket. Null: too many rows would have to be read. They have no destination, status, answer, retry or bulk
 * operation: a filter that names one matches none.
 */
export const ignoredBuckets = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  buckets: Buckets,
  atMost: number = readAtMost
): Effect.fn.Return<ReadonlyArray<number> | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { connections, destinations, requests = [], search, sources, statuses } = filter
  const counts = Array.from({ length: stepsOf(buckets) }, () => 0)
  if (destinations.length > 0 || statuses.length > 0 || asksRows({ ...filter, requests: [], search: undefined }))
    return counts

  const keys =
    connections.length === 0 ? (sources.length === 0 ? [team] : sources) : sources.length === 0 ? connections : null
  const isKept = keys !== null && search === undefined && requests.length === 0
  const { rolled, rows: older } = yield* partsOfSeries(buckets, isKept ? "counts" : null)
  const parts: Array<Statement.Fragment> = []
  if (rolled !== null && keys !== null) parts.push(rolledSeries(sql, team, keys, ["ignored"], buckets, rolled))
  if (older !== null) {
    const { lower, upper } = idsOf(prefixes.ignoredEvent, older)
    const found: Array<Statement.Fragment> = [sql`i.team_id = ${team}`, sql`i.id >= ${lower}`, sql`i.id < ${upper}`]
    const matching: Array<Statement.Fragment> = [sql.literal("true")]
    if (connections.length > 0) found.push(sql`i.connection_id = any(${Columns.text(connections)})`)
    if (requests.length > 0) matching.push(sql`i.request_id = any(${Columns.text(requests)})`)
    if (sources.length > 0) matching.push(sql`i.source_id = any(${Columns.text(sources)})`)
    if (search !== undefined) {
      const like = likePrefix(search)
      matching.push(sql`(i.id like ${like} or i.request_id like ${like} or i.connection_id = ${search} or i.source_id = ${search}
        or exists (select from requests r where r.id = i.request_id and r.team_id = ${team} and r.external_id like ${like}))`)
    }
    const { bucket, joins } = bucketOf(sql, sql.literal("i.id"), prefixes.ignoredEvent, buckets)
    parts.push(sql`
      select 'ignored' as kind, ${bucket} as bucket,
        count(*) filter (where ${sql.and(matching)})::float8 as n, count(*)::float8 as examined
      from (select i.id, i.request_id, i.connection_id, i.source_id from ignored_events i where ${sql.and(found)} limit ${atMost + 1}) i
      ${joins} group by 1, 2`)
  }
  const rows = yield* sql<{ bucket: number; n: number; examined: number }>`${together(sql, parts)}`.unprepared
  if (rows.reduce((sum, { examined }) => sum + examined, 0) > atMost) return null
  for (const { bucket, n } of rows) if (bucket >= 1 && bucket <= counts.length) counts[bucket - 1] = n
  return counts
})
