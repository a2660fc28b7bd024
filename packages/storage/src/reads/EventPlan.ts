import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { EventStatus } from "@tidegate/model/Event"
import { isId, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { eventsOfRequests, gatherAtMost, likePrefix, requestsByExternalId } from "./Relations.ts"
import type { Drive } from "./Scan.ts"
import type { IdRange } from "./Window.ts"

type Fragment = Statement.Fragment

/** What a list of events is narrowed to. Empty lists and undefined narrow nothing. */
export interface EventFilter {
  readonly statuses: ReadonlyArray<EventStatus>
  readonly requests?: ReadonlyArray<string>
  readonly sources: ReadonlyArray<string>
  readonly connections: ReadonlyArray<string>
  readonly destinations: ReadonlyArray<string>
  readonly operation: string | undefined
  readonly operationScope: "retries" | "targets" | "related"
  readonly search: string | undefined
}

/** How a filter is read: along an index, or by ids already gathered; and what is left to check on each row. */
export interface Plan {
  readonly drive: Drive
  readonly ids: ReadonlyArray<string> | null
  readonly bounds: ReadonlyArray<Fragment>
  readonly residual: ReadonlyArray<Fragment>
  /** The drive's own conditions, for when another index is followed. */
  readonly driven: ReadonlyArray<Fragment>
}

/** What events are narrowed by, and the columns that name it. */
export const dimensions = [
  ["connection_id", "connections"],
  ["destination_id", "destinations"],
  ["source_id", "sources"]
] as const

export const plan = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  range: IdRange
): Effect.fn.Return<Plan, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const bounds = [sql`e.id >= ${range.lower}`, sql`e.id < ${range.upper}`]
  const residual: Array<Fragment> = []
  let ids: ReadonlyArray<string> | null = null

  const wanted = { connections: filter.connections, destinations: filter.destinations, sources: filter.sources }
  const { search } = filter
  if (search !== undefined) {
    const named = dimensions.find(([column]) => search.startsWith(prefixes[dimensionPrefix[column]]))
    if (search.startsWith(prefixes.event)) bounds.push(sql`e.id >= ${search}`, sql`e.id < ${`${search}~`}`)
    else if (isId(prefixes.request, search)) ids = (yield* eventsOfRequests(team, [search])).map(({ id }) => id)
    else if (search.startsWith(prefixes.request)) residual.push(sql`e.request_id like ${likePrefix(search)}`)
    else if (named !== undefined && wanted[named[1]].length === 0) wanted[named[1]] = [search]
    else if (named !== undefined) residual.push(sql`${sql.literal(`e.${named[0]}`)} = ${search}`)
    else {
      // A retry may be younger than its request's window.
      const requests = yield* requestsByExternalId(team, search, { lower: prefixes.request, upper: "req_~" })
      if (requests !== null) ids = (yield* eventsOfRequests(team, requests)).map(({ id }) => id)
      else {
        residual.push(sql`exists (select from requests r where r.id = e.request_id and r.team_id = ${team}
          and r.external_id like ${likePrefix(search)})`)
      }
    }
  }

  const { requests = [] } = filter
  if (requests.length > 0) {
    const found = yield* eventsOfRequests(team, requests)
    // As many as are gathered may not be all.
    if (found.length < gatherAtMost) {
      const before = ids
      ids = found.map(({ id }) => id).filter((id) => before === null || before.includes(id))
    } else residual.push(sql`e.request_id = any(${Columns.text(requests)})`)
  }

  let drive: Drive | null = null
  let driven: ReadonlyArray<Fragment> = []
  if (filter.operation !== undefined) {
    const made = sql`e.retry_operation_id = ${filter.operation}`
    const retried = sql`exists (select from events t where t.request_id = e.request_id
      and t.retry_parent_event_id = e.id and t.retry_operation_id = ${filter.operation})`
    if (filter.operationScope === "retries") {
      drive = { column: "retry_operation_id", values: [filter.operation] }
      driven = [made]
    } else residual.push(filter.operationScope === "targets" ? retried : sql`(${made} or ${retried})`)
  }
  for (const [column, name] of dimensions) {
    const values = wanted[name]
    if (values.length === 0) continue
    const condition = sql`${sql.literal(`e.${column}`)} = any(${Columns.text(values)})`
    if (drive === null) {
      drive = { column, values }
      driven = [condition]
    } else residual.push(condition)
  }
  return { drive: drive ?? { column: "team_id", values: [team] }, ids, bounds, residual, driven }
})

const dimensionPrefix = { connection_id: "connection", destination_id: "destination", source_id: "source" } as const

const statesOf: Record<EventStatus, ReadonlyArray<string>> = {
  SCHEDULED: ["PENDING"],
  QUEUED: ["PENDING"],
  HOLD: ["PENDING"],
  CANCELLED: ["PENDING", "CANCELLED"],
  SUCCESSFUL: ["SUCCESSFUL"],
  FAILED: ["FAILED"]
}

/** The stored state first: it decides most rows without their connection and destination. */
export const hasStatus = (
  sql: SqlClient.SqlClient,
  status: Fragment,
  statuses: ReadonlyArray<EventStatus>
): ReadonlyArray<Fragment> => {
  const states = [...new Set(statuses.flatMap((name) => statesOf[name]))]
  const stored = sql`e.state = any(${Columns.text(states)})`
  return states.includes("PENDING") ? [stored, sql`${status} = any(${Columns.text(statuses)})`] : [stored]
}
