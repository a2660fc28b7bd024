import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { Issue, IssueStatus } from "@tidegate/model/Issue"
import { type Listed, listed } from "@tidegate/model/Lists"
import * as Columns from "../journal/Columns.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "./Paging.ts"

type Times = "first_seen_at" | "opened_at" | "last_seen_at" | "resolved_at"

interface Row extends Omit<Issue, Times> {
  readonly first_seen_at: Date
  readonly opened_at: Date
  readonly last_seen_at: Date
  readonly resolved_at: Date | null
  /** `last_seen_at` in microseconds. */
  readonly place: string
}

const shown = (row: Row): Issue => {
  const { place: _, ...issue } = row
  return {
    ...issue,
    first_seen_at: row.first_seen_at.toISOString(),
    opened_at: row.opened_at.toISOString(),
    last_seen_at: row.last_seen_at.toISOString(),
    resolved_at: row.resolved_at?.toISOString() ?? null
  }
}

const columns = (sql: SqlClient.SqlClient) => sql`
  i.id, i.team_id, i.destination_id, coalesce(d.name, '') as destination_name, i.error_code, i.response_status, i.status,
  i.count::float8 as count, i.event_ids, i.first_seen_at, i.opened_at, i.last_seen_at, i.changed_by, i.resolved_at,
  (extract(epoch from i.last_seen_at) * 1000000)::bigint::text as place
  from issues i left join destinations d on d.id = i.destination_id`

/** The filters of a list of issues. An empty list does not filter. */
export interface IssueFilter {
  readonly statuses: ReadonlyArray<IssueStatus>
  readonly destinations: ReadonlyArray<string>
}

/** A page of the issues of a team, those that were seen last first. */
export const listIssues = Effect.fnUntraced(function* (
  team_id: string,
  { destinations, statuses }: IssueFilter,
  page: PageRequest
): Effect.fn.Return<Listed<Issue>, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const position = yield* Effect.fromResult(positionOf(page))
  const conditions = [sql`i.team_id = ${team_id}`]
  if (statuses.length > 0) conditions.push(sql`i.status = any(${Columns.text(statuses)})`)
  if (destinations.length > 0) conditions.push(sql`i.destination_id = any(${Columns.text(destinations)})`)
  if (position !== null) {
    const { id, value = "" } = position
    if (!/^\d{1,16}$/.test(value)) return yield* fail("INVALID_CURSOR", "the cursor is not one that this list returned")
    conditions.push(
      sql`(i.last_seen_at, i.id) < (timestamptz 'epoch' + ${value}::bigint * interval '1 microsecond', ${id})`
    )
  }
  const rows = yield* sql<Row>`
    select ${columns(sql)}
    where ${sql.and(conditions)} order by i.last_seen_at desc, i.id desc limit ${page.limit + 1}`
  const { last, page: found } = cutToLimit(rows, page.limit)
  return listed(found.map(shown), cursorAfter(page.key, last === null ? null : { id: last.id, value: last.place }))
})

/** An issue of a team. */
export const issueOf = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<Issue, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`select ${columns(sql)} where i.id = ${id} and i.team_id = ${team_id}`
  return row === undefined ? yield* notFound("issue", id) : shown(row)
})
