import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { idBound, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { query } from "../Transaction.ts"

/** The measurements by which bulk operations leave capacity for live traffic. */

/** How many of these targets still wait: requests for their slow rules, events for a delivery that is due. */
export const stillWaiting = Effect.fnUntraced(function* (
  requestIds: ReadonlyArray<string>,
  eventIds: ReadonlyArray<string>
): Effect.fn.Return<number, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const [row] = yield* query(sql<{ count: number }>`
    select (select count(*) from pending_routes where request_id = any(${Columns.text(requestIds)}))::int4
      + (select count(*) from deliveries where event_id = any(${Columns.text(eventIds)}) and due_at <= ${now})::int4 as count`)
  return row?.count ?? 0
})

/** The sample of live traffic: the time (ms) and the largest number of records. */
const liveMs = 2_000
const lookedAtMost = 20

/**
 * Counts received requests without replays, and measures how long their events wait for a first attempt (ms): the median of the
 * latest events, where an event that still waits counts with its waiting time until now. Null: no event has waited for one.
 */
export const liveTraffic: Effect.Effect<
  { readonly requests: number; readonly waitMs: number | null },
  GatewayError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* query(sql<{ requests: number; waitMs: number | null }>`
    select
      (select count(*)::int4 from (
        select from requests where id >= ${idBound(prefixes.request, now - liveMs)} and retry_kind is null limit ${lookedAtMost}
      ) r) as requests,
      (select percentile_cont(0.5) within group (
        order by date_part('epoch', coalesce(e.first_attempt_at, ${new Date(now)}) - e.created_at) * 1000)
      from (
        select first_attempt_at, created_at from events
        where id >= ${idBound(prefixes.event, now - liveMs)} and retry_kind is null
          and (first_attempt_at is not null or (state = 'PENDING' and due_at <= ${new Date(now)}))
        order by id desc limit ${lookedAtMost}
      ) e)::float8 as "waitMs"`)
  return {
    requests: row?.requests ?? 0,
    waitMs: row?.waitMs === null || row === undefined ? null : Math.max(0, row.waitMs)
  }
})
