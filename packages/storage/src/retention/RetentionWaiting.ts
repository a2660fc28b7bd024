import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { idBound, prefixes } from "@tidegate/model/Ids"
import { cancelEvents } from "../delivery/CancelPending.ts"
import * as Columns from "../journal/Columns.ts"
import { day } from "./Partitions.ts"
import { payloadGone, tablesThat } from "../Tables.ts"

/*
 * Waiting rows from retention's point of view: which days they keep, which have waited too long, and which wait for something
 * that is gone.
 */

/** Rows of one statement: its transaction is too short for its locks to matter. */
const batch = 1_000

/** A day's data of all teams except those that keep it. */
export interface DueDay {
  /** When the day begins (Unix ms). */
  readonly start: number
  readonly keepers: ReadonlyArray<string>
}

const notKept = (sql: SqlClient.SqlClient, column: string, { keepers }: DueDay): Statement.Fragment =>
  sql`(${sql.literal(column)} is null or ${sql.literal(column)} <> all(${Columns.text(keepers)}))`

/** The pending events of that day and (`retries`) the pending retries of its requests, which have later days themselves. */
const waitingEvents = (sql: SqlClient.SqlClient, due: DueDay) => {
  const from = (prefix: "event" | "request") => idBound(prefixes[prefix], due.start)
  const to = (prefix: "event" | "request") => idBound(prefixes[prefix], due.start + day)
  return {
    own: sql`from deliveries q join events e on e.id = q.event_id
      where q.event_id >= ${from("event")} and q.event_id < ${to("event")}
        and e.id >= ${from("event")} and e.id < ${to("event")} and ${notKept(sql, "e.team_id", due)}`,
    retries: (since: number) => sql`from events e join deliveries q on q.event_id = e.id
      where e.request_id >= ${from("request")} and e.request_id < ${to("request")} and e.retry_parent_event_id is not null
        and e.id >= ${idBound(prefixes.event, since)} and e.state = 'PENDING' and ${notKept(sql, "e.team_id", due)}`,
    routes: sql`from pending_routes p
      where p.request_id >= ${from("request")} and p.request_id < ${to("request")} and ${notKept(sql, "p.team_id", due)}`
  }
}

/**
 * Whether an event of that day, or a retry of one, waits for delivery that was made since `since` (Unix ms). Each is an index
 * range, so it may be read while tables are locked.
 */
export const hasWaitingEvents = Effect.fnUntraced(function* (
  due: DueDay,
  since: number
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { own, retries } = waitingEvents(sql, due)
  const [row] = yield* sql<{ waits: boolean }>`
    select exists (select ${own}) or exists (select ${retries(since)}) as waits`
  return row?.waits === true
})

/** Whether anything waits for that day's requests or events: new routing jobs are only for today's requests. */
export const isWaitedFor = Effect.fnUntraced(function* (
  due: DueDay
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  if (yield* hasWaitingEvents(due, due.start)) return true
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ waits: boolean }>`select exists (select ${waitingEvents(sql, due).routes}) as waits`
  return row?.waits === true
})

/** Repeats a statement batch by batch until one is not full; returns the sum. */
const inBatches = <E, R>(one: Effect.Effect<number, E, R>, full: number = batch): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    let total = 0
    let count = full
    while (count >= full) {
      count = yield* one
      total += count
    }
    return total
  })

/**
 * Gives up what still waits for that day: events become CANCELLED (CANCELLED_PAST_RETENTION), routing jobs are deleted. Locked
 * rows are skipped; the next run finds them.
 */
export const giveUpWaiting = Effect.fnUntraced(function* (
  due: DueDay
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { own, retries, routes } = waitingEvents(sql, due)
  let total = 0
  for (const events of [sql`${own} and e.state = 'PENDING'`, retries(due.start)]) {
    const doomed = sql`select e.id, e.team_id, e.connection_id, e.source_id, e.destination_id ${events} order by e.id
      limit ${batch} for update of e, q skip locked`
    total += yield* inBatches(cancelEvents(sql, doomed, "CANCELLED_PAST_RETENTION"))
  }
  total += yield* inBatches(
    Effect.map(
      sql`delete from pending_routes where ctid = any(array(
        select p.ctid ${routes} limit ${batch} for update skip locked)) returning 1`,
      ({ length }) => length
    )
  )
  if (total > 0) {
    const of_day = new Date(due.start).toISOString().slice(0, 10)
    yield* Effect.logWarning("what has waited past its retention was cancelled", { day: of_day, count: total })
  }
  return total
})

/**
 * Goes through all waiting rows in small steps and removes those that can never be finished: of an event that is missing or not
 * pending; of an event whose request or payload is gone (it becomes CANCELLED); of a routing job whose request is gone. Otherwise
 * such a row would wake its actor twice a second for ever.
 */
export const removeOrphans = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  let removed = 0
  let after: string | null = ""
  while (after !== null) {
    const rows: ReadonlyArray<{ event_id: string; state: string | null; gone: boolean }> = yield* sql<{
      event_id: string
      state: string | null
      gone: boolean
    }>`
      select d.event_id, e.state, r.headers is null or r.headers = ${payloadGone} as gone
      from (select event_id from deliveries where event_id > ${after} order by event_id limit ${batch}) d
        left join lateral (select state, request_id from events where events.id = d.event_id limit 1) e on true
        left join lateral (select headers from requests where requests.id = e.request_id limit 1) r on true
      order by d.event_id`
    const ids = (of: (row: (typeof rows)[number]) => boolean) => rows.filter(of).map(({ event_id }) => event_id)
    const without = ids(({ state }) => state !== "PENDING")
    if (without.length > 0) {
      // Checked again in the statement that deletes: rows that were made meanwhile stay.
      const deleted = yield* sql`
        delete from deliveries d where d.event_id = any(${Columns.text(without)})
          and not exists (select from events e where e.id = d.event_id and e.state = 'PENDING') returning 1`
      removed += deleted.length
    }
    const unsendable = ids(({ gone, state }) => state === "PENDING" && gone)
    if (unsendable.length > 0) {
      removed += yield* cancelEvents(
        sql,
        sql`select e.id, e.team_id, e.connection_id, e.source_id, e.destination_id from deliveries q
          join events e on e.id = q.event_id and e.state = 'PENDING'
          where q.event_id = any(${Columns.text(unsendable)}) for update of e, q skip locked`,
        "CANCELLED_PAST_RETENTION"
      )
    }
    after = rows.length < batch ? null : rows.at(-1)!.event_id
  }
  removed += yield* removeOrphanedRoutes
  removed += yield* removeOrphanedRuns
  if (removed > 0) yield* Effect.logWarning("what waited for records that are gone was removed", { count: removed })
  return removed
})

/** Removes queued runs whose record is gone: otherwise their workflow would be woken for ever. */
const removeOrphanedRuns = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  let removed = 0
  let after: string | null = ""
  while (after !== null) {
    const rows: ReadonlyArray<{ run_id: string; gone: boolean }> = yield* sql<{ run_id: string; gone: boolean }>`
      select q.run_id, r.id is null as gone
      from (select run_id from workflow_queue where run_id > ${after} order by run_id limit ${batch}) q
        left join lateral (select id from workflow_runs where workflow_runs.id = q.run_id limit 1) r on true
      order by q.run_id`
    const orphans = rows.flatMap(({ gone, run_id }) => (gone ? [run_id] : []))
    if (orphans.length > 0) yield* sql`delete from workflow_queue where run_id = any(${Columns.text(orphans)})`
    removed += orphans.length
    after = rows.length < batch ? null : rows.at(-1)!.run_id
  }
  return removed
})

const removeOrphanedRoutes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  let removed = 0
  let after: { readonly connection_id: string; readonly request_id: string } | null = {
    connection_id: "",
    request_id: ""
  }
  while (after !== null) {
    const { connection_id, request_id } = after as { connection_id: string; request_id: string }
    const rows = yield* sql<{ connection_id: string; request_id: string; gone: boolean }>`
      select p.connection_id, p.request_id, r.headers is null or r.headers = ${payloadGone} as gone
      from (select connection_id, request_id from pending_routes
          where (connection_id, request_id) > (${connection_id}, ${request_id})
          order by connection_id, request_id limit ${batch}) p
        left join lateral (select headers from requests where requests.id = p.request_id limit 1) r on true
      order by 1, 2`
    const orphans = rows.filter(({ gone }) => gone)
    if (orphans.length > 0) {
      yield* sql`
        delete from pending_routes p
        using unnest(${Columns.text(orphans.map((row) => row.connection_id))},
          ${Columns.text(orphans.map((row) => row.request_id))}) as o (connection_id, request_id)
        where p.connection_id = o.connection_id and p.request_id = o.request_id`
      removed += orphans.length
    }
    after = rows.length < batch ? null : rows.at(-1)!
  }
  return removed
})

/**
 * Sets the team of rows that processes of the previous version have stored without it. Needed until no such process runs and no
 * such row is left.
 */
export const fillInTeams = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const name of ["deliveries", "dedupe_keys"] as const) {
    const table = sql.literal(name)
    yield* inBatches(
      Effect.map(
        sql`update ${table} w set team_id = c.team_id from connections c
          where c.id = w.connection_id and w.ctid = any(array(
            select w.ctid from ${table} w where w.team_id is null and exists (select from connections c where c.id = w.connection_id)
            limit ${batch} for update skip locked)) returning 1`,
        ({ length }) => length
      )
    )
  }
})

/** How late a request may be worked off and still find the deduplication window that makes it a duplicate. */
const windowGraceMs = day

/** Deletes what has expired. Deduplication windows stay longer: a request received within one may be worked off later. */
export const forgetExpired = Effect.fnUntraced(function* (
  now: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const before = new Date(now - windowGraceMs)
  let total = 0
  for (const { at, name } of tablesThat("expires")) {
    const table = sql.literal(name)
    const over = sql`${sql.literal(at)} < ${before}`
    total += yield* inBatches(
      Effect.map(
        sql`delete from ${table} where ${over} and ctid = any(array(
          select ctid from ${table} where ${over} limit ${batch} for update skip locked)) returning 1`,
        ({ length }) => length
      )
    )
  }
  return total
})
