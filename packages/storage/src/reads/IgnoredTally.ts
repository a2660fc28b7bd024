import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { asksRows, type EventFilter } from "./EventPlan.ts"
import { likePrefix } from "./Relations.ts"
import { type Buckets, stepsOf } from "./Buckets.ts"
import { bucketsOf, readAtMost, type RowsOf, type Series } from "./Tally.ts"
import { idsOf } from "./Window.ts"

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
  if (destinations.length > 0 || statuses.length > 0 || asksRows({ ...filter, requests: [], search: undefined }))
    return Array.from({ length: stepsOf(buckets) }, () => 0)

  const owners = [connections, sources].filter((ids) => ids.length > 0)
  const isKept = owners.length <= 1 && search === undefined && requests.length === 0
  const rows: RowsOf = (stretch, max) => {
    const { lower, upper } = idsOf(prefixes.ignoredEvent, stretch)
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
    return Effect.succeed({
      matching: sql.and(matching),
      rows: sql`(
        select i.id, i.request_id, i.connection_id, i.source_id from ignored_events i where ${sql.and(found)} limit ${max + 1}) i`
    })
  }
  const series: Series = {
    team,
    keys: isKept ? { ids: owners[0] ?? [team], kept: "counts" } : null,
    measures: ["ignored"],
    prefix: prefixes.ignoredEvent,
    id: "i.id",
    kind: sql.literal("'ignored'"),
    rows
  }
  const found = yield* bucketsOf(series, buckets, atMost)
  return found === null ? null : found.buckets.map((bucket) => bucket.get("ignored") ?? 0)
})
