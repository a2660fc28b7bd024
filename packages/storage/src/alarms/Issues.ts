import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { idBound, newId, prefixes } from "@tidegate/model/Ids"
import { maxIssueEvents } from "@tidegate/model/Issue"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"
import type { Occurrence } from "./Occurrences.ts"

/*
 * Issues: deliveries to a destination that fail with an error code. There is one row for each, so a destination has at most as many as
 * there are error codes. An issue opens with a failed attempt. It is resolved when deliveries have succeeded after the last failure, and
 * none has failed with its code for a minute. A later failure opens the same issue again.
 */

const minute = 60_000
const day = 24 * 60 * minute

/** How long (ms) after the last failure an issue is resolved at the earliest, and how often the gateway looks. */
export const quietMs = minute
const lookAgainMs = minute / 2

/** How long (ms) after the last failure an issue is kept, whether it is resolved or not. */
export const issuesKeptMs = 90 * day

/** How many issues one transaction checks, and how many attempts it reads for each. */
const lookedAtOnce = 50
const attemptsRead = 100
/** Attempts of older events are not checked, so that only few partitions are read. */
const eventsOfMs = 8 * day

const failures = new Rows<Occurrence & { readonly id: string }>("o", [
  ["id", "text", ({ id }) => id],
  ["team_id", "text", ({ team_id }) => team_id],
  ["destination_id", "text", ({ subject_id }) => subject_id],
  ["error_code", "text", ({ code }) => code],
  ["count", "int8", ({ count }) => BigInt(Math.round(count))],
  ["response_status", "int4", ({ response_status }) => response_status],
  ["event_ids", "text", ({ samples }) => samples.join(",")],
  ["first_at", "timestamptz", ({ first_at }) => first_at.getTime()],
  ["last_at", "timestamptz", ({ last_at }) => last_at.getTime()]
])

/** Counts failed attempts in their issues. Returns the destinations that have issues now. To be called in a transaction. */
export const countFailures = Effect.fnUntraced(function* (
  occurrences: ReadonlyArray<Occurrence>,
  now: number
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  if (occurrences.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const rows = occurrences.map((occurrence) => Object.assign({ id: newId(prefixes.issue, now) }, occurrence))
  const quiet = `${quietMs} milliseconds`
  const kept = `${issuesKeptMs} milliseconds`
  const counted = yield* sql<{ destination_id: string }>`
    insert into issues (id, team_id, destination_id, error_code, status, count, response_status, event_ids, first_seen_at, last_seen_at,
      opened_at, check_at, expires_at)
    select o.id, o.team_id, o.destination_id, o.error_code, 'open', o.count, o.response_status, string_to_array(o.event_ids, ','),
      o.first_at, o.last_at, o.first_at, o.last_at + ${quiet}::interval, o.last_at + ${kept}::interval
    from ${failures.unnest(sql, rows)}
      join destinations d on d.id = o.destination_id and d.team_id = o.team_id and d.deleted_at is null
    on conflict (destination_id, error_code) do update set
      status = case when issues.status = 'resolved' then 'open' else issues.status end,
      count = case when issues.status = 'resolved' then 0 else issues.count end + excluded.count,
      opened_at = case when issues.status = 'resolved' then excluded.opened_at else issues.opened_at end,
      changed_by = case when issues.status = 'resolved' then null else issues.changed_by end,
      resolved_at = null,
      response_status = excluded.response_status,
      event_ids = (excluded.event_ids || array(select unnest(issues.event_ids) except select unnest(excluded.event_ids)))[1:${sql.literal(String(maxIssueEvents))}],
      last_seen_at = greatest(issues.last_seen_at, excluded.last_seen_at),
      check_at = greatest(issues.last_seen_at, excluded.last_seen_at) + ${quiet}::interval,
      expires_at = greatest(issues.expires_at, excluded.expires_at)
    returning destination_id`
  return [...new Set(counted.map(({ destination_id }) => destination_id))]
})

interface Due {
  readonly id: string
  readonly destination_id: string
  readonly last_seen_at: Date
}

/** Resolves the issues that are over. Returns their destinations. To be called in a transaction. */
export const resolveIssues = Effect.fnUntraced(function* (
  now: number
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const due = yield* sql<Due>`
    select id, destination_id, last_seen_at from issues
    where check_at <= ${new Date(now)} order by check_at limit ${lookedAtOnce} for update skip locked`
  if (due.length === 0) return []
  const after = due.map(({ last_seen_at }) => idBound(prefixes.attempt, last_seen_at.getTime() + 1))
  const over = yield* sql<{ id: string }>`
    select o.id from unnest(${Columns.text(due.map(({ id }) => id))}, ${Columns.text(due.map((one) => one.destination_id))},
      ${Columns.text(after)}) as o (id, destination_id, after)
    where not exists (select from destinations d where d.id = o.destination_id and d.deleted_at is null)
      or exists (
        select from (
          select a.status from attempts a
          where a.destination_id = o.destination_id and a.id >= o.after and a.event_id >= ${idBound(prefixes.event, now - eventsOfMs)}
          order by a.id desc limit ${attemptsRead}
        ) latest where latest.status = 'SUCCESSFUL'
      )`
  const at = new Date(now)
  const resolved = yield* sql<{ destination_id: string }>`
    update issues set status = 'resolved', resolved_at = ${at}, check_at = null
    where id = any(${Columns.text(over.map(({ id }) => id))}) returning destination_id`
  const isOver = new Set(over.map(({ id }) => id))
  const open = due.filter(({ id }) => !isOver.has(id))
  yield* sql`update issues set check_at = ${new Date(now + lookAgainMs)}
    where id = any(${Columns.text(open.map(({ id }) => id))})`
  return [...new Set(resolved.map(({ destination_id }) => destination_id))]
})
