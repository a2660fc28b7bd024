import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { EventStatus } from "@tidegate/model/Event"
import type { EventMeasure } from "@tidegate/model/Metrics"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { pairKey } from "../journal/CountStatement.ts"
import { asksRows, type EventFilter, plan } from "./EventPlan.ts"
import { eventTable } from "./EventRow.ts"
import {
  bucketOf,
  type Buckets,
  countAtMost,
  type Counted,
  countParts,
  idsOf,
  type Kept,
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

/*
 * Counts events. Finished events are counted by the rollups, or by the rows of `events` when the rollups do not cover the filter;
 * waiting events by the rows of `deliveries`. It is one statement, so that an event is in exactly one of them.
 */

/** Pairs of sources and destinations to look up; for more, rows are counted. */
const maxPairs = 500

interface Keys {
  readonly ids: ReadonlyArray<string>
  readonly kept: Kept
}

/** The rollups that cover a filter: those of one kind of owner, or of pairs of sources and destinations; null: none. */
const keysOf = (team: string, filter: EventFilter): Keys | null => {
  if (asksRows(filter)) return null
  const { connections, destinations, sources } = filter
  const owners = [connections, destinations, sources].filter((ids) => ids.length > 0)
  if (owners.length <= 1) return { ids: owners[0] ?? [team], kept: "counts" }
  if (connections.length > 0 || sources.length * destinations.length > maxPairs) return null
  const pairs = sources.flatMap((source) => destinations.map((destination) => pairKey(source, destination)))
  return { ids: pairs, kept: "pairs" }
}

const measureOf = { SUCCESSFUL: "successful", FAILED: "failed", CANCELLED: "cancelled" } as const
type Ended = keyof typeof measureOf
const isEnded = (status: string): status is Ended => Object.hasOwn(measureOf, status)

/** Statuses that a pending event may have. */
const isPending = (status: EventStatus): boolean => status !== "SUCCESSFUL" && status !== "FAILED"

/** The events of a stretch of time that the filter's index finds, at most so many, and the conditions left to check on each. */
const rowsOf = Effect.fnUntraced(function* (team: string, filter: EventFilter, stretch: Stretch, atMost: number) {
  const sql = yield* SqlClient.SqlClient
  const { among, bounds, driven, residual } = yield* plan(team, filter, idsOf(prefixes.event, stretch))
  const { statuses } = filter
  const hasFailed = statuses.length > 0 && statuses.every((status) => status === "FAILED" || status === "CANCELLED")
  return {
    residual,
    rows: sql`(
      select e.* from events e
      where ${sql.and([
        sql`e.team_id = ${team}`,
        ...bounds,
        ...driven,
        ...among,
        ...(hasFailed ? [sql.literal("e.failed")] : [])
      ])}
      limit ${atMost + 1}) e`
  }
})

/**
 * The waiting events of a stretch with what determines their status, at most so many. Each is looked up by its id: a join would
 * read all events of the stretch for the few that wait.
 */
const waitingOf = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  stretch: Stretch,
  atMost: number,
  now: number
) {
  const sql = yield* SqlClient.SqlClient
  const { lower, upper } = idsOf(prefixes.event, stretch)
  const { among, bounds, driven, residual } = yield* plan(team, filter, { lower, upper })
  const table = eventTable(sql, now)
  const { connections } = filter
  return {
    status: table.status,
    matching: sql.and([sql.literal("true"), ...residual, ...driven, ...among]),
    rows: sql`(
      select event_id, due_at, ready_at, started_at from deliveries
      where connection_id = any(array(
          select id from connections where team_id = ${team}
          ${connections.length === 0 ? sql.literal("") : sql`and id = any(${Columns.text(connections)})`}
        ))
        and event_id >= ${lower} and event_id < ${upper}
      limit ${atMost + 1}
    ) q cross join lateral (
      select * from events e where ${sql.and([
        sql.literal("e.id = q.event_id and e.state = 'PENDING'"),
        sql`e.team_id = ${team}`,
        ...bounds
      ])}
      limit 1
    ) e ${sql.literal(table.joins)}`
  }
})

/** How many events a stretch has. */
export const countEvents = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  whole: Stretch,
  atMost: number = countAtMost
): Effect.fn.Return<Counted, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const { statuses } = filter
  const ended = statuses.filter(isEnded)
  const keys = keysOf(team, filter)
  const measures = statuses.length === 0 ? ["created"] : ended.map((status) => measureOf[status])
  const state = statuses.length === 0 ? sql.literal("true") : sql`e.state = any(${Columns.text(ended)})`

  return yield* countParts(
    { team, whole, rolled: keys?.kept ?? null, atMost },
    Effect.fnUntraced(function* (parts) {
      const made: Array<Fragment> = []
      if (measures.length > 0) {
        const { rolled } = parts
        if (rolled !== null && keys !== null)
          made.push(rolledPart(rolledSum(sql, team, keys.ids, measures, rolled), sql))
        for (const [sign, stretch] of signed(parts)) {
          const { residual, rows } = yield* rowsOf(team, filter, stretch, atMost)
          made.push(rowsPart(sql, sign, rows, sql.and([state, ...residual])))
        }
      }
      if (statuses.some(isPending)) {
        const { matching, rows, status } = yield* waitingOf(team, filter, whole, atMost, now)
        made.push(rowsPart(sql, 1, rows, sql.and([matching, sql`${status} = any(${Columns.text(statuses)})`])))
      }
      return made
    })
  )
})

/** The events of a bucket by status. */
export type EventBucket = Readonly<Record<Exclude<EventMeasure, "ignored_count">, number>>

/** `kind` is a measure of the rollups, a stored state in lower case, or the status of a waiting event. */
interface Row {
  readonly kind: string
  readonly bucket: number
  readonly n: number
  readonly examined: number
}

const fold = (rows: ReadonlyArray<Row>, statuses: ReadonlyArray<EventStatus>, steps: number): Array<EventBucket> => {
  const found = Array.from({ length: steps }, () => new Map<string, number>())
  for (const { bucket, kind, n } of rows) found[bucket - 1]?.set(kind, n)
  const has = (status: EventStatus): boolean => statuses.length === 0 || statuses.includes(status)
  return found.map((of) => {
    const n = (kind: string): number => of.get(kind) ?? 0
    const only = (status: EventStatus, ...kinds: ReadonlyArray<string>): number =>
      has(status) ? kinds.reduce((sum, kind) => sum + n(kind), 0) : 0
    const parts = {
      delivered_count: only("SUCCESSFUL", "successful"),
      failed_count: only("FAILED", "failed"),
      queued_count: only("QUEUED", "QUEUED") + only("SCHEDULED", "SCHEDULED"),
      processing_count: only("QUEUED", "PROCESSING"),
      hold_count: only("HOLD", "HOLD")
    }
    const narrowed = Object.values(parts).reduce((sum, part) => sum + part, only("CANCELLED", "cancelled", "CANCELLED"))
    const all = n("created") + (of.has("created") ? 0 : n("successful") + n("failed") + n("cancelled") + n("pending"))
    return Object.assign(parts, { count: statuses.length === 0 ? all : narrowed })
  })
}

/**
 * Events by bucket. Null: too many rows would have to be read. `partial`: more events wait than are read, so the counts of
 * queued, delivering and held events are lower bounds.
 */
export const eventBuckets = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  buckets: Buckets,
  atMost: number = readAtMost
): Effect.fn.Return<
  { readonly buckets: ReadonlyArray<EventBucket>; readonly partial: boolean } | null,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const { statuses } = filter
  const keys = keysOf(team, filter)
  const { bucket, joins } = bucketOf(sql, sql.literal("e.id"), prefixes.event, buckets)
  const parts: Array<Fragment> = []
  if (statuses.length === 0 || statuses.some(isEnded)) {
    const { rolled, rows: older } = yield* partsOfSeries(buckets, keys?.kept ?? null)
    if (rolled !== null && keys !== null) {
      const measures = ["created", "successful", "failed", "cancelled"]
      parts.push(rolledSeries(sql, team, keys.ids, measures, buckets, rolled))
    }
    if (older !== null) {
      const { residual, rows } = yield* rowsOf(team, filter, older, atMost)
      parts.push(sql`select lower(e.state) as kind, ${bucket} as bucket,
        count(*) filter (where ${sql.and([sql.literal("true"), ...residual])})::float8 as n, count(*)::float8 as examined
        from ${rows} ${joins} group by 1, 2`)
    }
  }
  if (statuses.length === 0 || statuses.some(isPending)) {
    const { matching, rows, status } = yield* waitingOf(team, filter, buckets, atMost, now)
    // A delivery is under way when its start is stored and no attempt was recorded after it.
    parts.push(sql`select case when ${status} = 'QUEUED' and q.started_at >= coalesce(q.ready_at, q.due_at) then 'PROCESSING'
        else ${status} end as kind, ${bucket} as bucket,
      count(*) filter (where ${matching})::float8 as n, count(*)::float8 as examined
      from ${rows} ${joins} group by 1, 2`)
  }
  const rows = yield* sql<Row>`${together(sql, parts)}`.unprepared
  const waits = ({ kind }: Row): boolean => kind === kind.toUpperCase()
  const examined = (of: ReadonlyArray<Row>): number => of.reduce((sum, row) => sum + row.examined, 0)
  if (examined(rows.filter((row) => !waits(row))) > atMost) return null
  return {
    buckets: fold(rows, statuses, stepsOf(buckets)),
    partial: examined(rows.filter(waits)) > atMost
  }
})
