import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import type { EventFilter } from "./EventPlan.ts"
import { likePrefix } from "./Relations.ts"
import { bucketOf, type Buckets, idsOf, readAtMost, rolledSeries, rolledSince, stepsOf, tells } from "./Rolled.ts"

/**
 * Ignored events by bucket; null: more rows would have to be read than may be. They have no destination, no status and no bulk operation: where a
 * filter names one, there are none.
 */
export const ignoredBuckets = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  buckets: Buckets,
  atMost: number = readAtMost
): Effect.fn.Return<ReadonlyArray<number> | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { connections, destinations, operation, search, sources, statuses } = filter
  const counts = Array.from({ length: stepsOf(buckets) }, () => 0)
  if (destinations.length > 0 || statuses.length > 0 || operation !== undefined) return counts

  const keys =
    connections.length === 0 ? (sources.length === 0 ? [team] : sources) : sources.length === 0 ? connections : null
  let statement: Statement.Fragment
  if (
    keys !== null &&
    search === undefined &&
    tells(buckets, yield* rolledSince(team, yield* Clock.currentTimeMillis))
  ) {
    statement = rolledSeries(sql, team, keys, ["ignored"], buckets)
  } else {
    const { lower, upper } = idsOf(prefixes.ignoredEvent, buckets)
    const found: Array<Statement.Fragment> = [sql`i.team_id = ${team}`, sql`i.id >= ${lower}`, sql`i.id < ${upper}`]
    const matching: Array<Statement.Fragment> = [sql.literal("true")]
    if (connections.length > 0) found.push(sql`i.connection_id = any(${Columns.text(connections)})`)
    if (sources.length > 0) matching.push(sql`i.source_id = any(${Columns.text(sources)})`)
    if (search !== undefined) {
      const like = likePrefix(search)
      matching.push(sql`(i.id like ${like} or i.request_id like ${like} or i.connection_id = ${search} or i.source_id = ${search}
        or exists (select from requests r where r.id = i.request_id and r.team_id = ${team} and r.external_id like ${like}))`)
    }
    statement = sql`
      select ${bucketOf(sql, sql.literal("i.id"), prefixes.ignoredEvent, buckets)} as bucket,
        count(*) filter (where ${sql.and(matching)})::float8 as n, count(*)::float8 as examined
      from (select i.id, i.request_id, i.connection_id, i.source_id from ignored_events i where ${sql.and(found)} limit ${atMost + 1}) i
      group by 1`
  }
  const rows = yield* sql<{ bucket: number; n: number; examined: number }>`${statement}`.unprepared
  if (rows.reduce((sum, { examined }) => sum + examined, 0) > atMost) return null
  for (const { bucket, n } of rows) if (bucket >= 1 && bucket <= counts.length) counts[bucket - 1] = n
  return counts
})
