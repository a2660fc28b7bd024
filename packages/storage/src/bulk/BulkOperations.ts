import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import {
  type BulkBucket,
  type BulkFilter,
  type BulkKind,
  type BulkOf,
  type BulkOperation,
  type BulkStatus,
  kindsOf,
  sampleSize
} from "@tidegate/model/BulkOperation"
import { fail, GatewayError, notFound } from "@tidegate/model/GatewayError"
import { idBound, prefixes } from "@tidegate/model/Ids"
import { type Listed, listed } from "@tidegate/model/Lists"
import { placeOf } from "./BulkShards.ts"
import { carryOut, type Made, nothing } from "./BulkTargets.ts"
import * as Columns from "../journal/Columns.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { filterKey } from "../reads/Cursor.ts"
import * as EventReads from "../reads/EventReads.ts"
import * as IgnoredEventReads from "../reads/IgnoredEventReads.ts"
import { eventFilterOf, ignoredFilterOf, requestFilterOf } from "../reads/Narrowing.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "../reads/Paging.ts"
import * as RequestReads from "../reads/RequestReads.ts"
import type { Routing } from "./Replays.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { query, transaction } from "../Transaction.ts"

export type { Made } from "./BulkTargets.ts"

/*
 * The rows of a bulk operation. An operation is planned first: the records that its filter finds are stored as its targets, by
 * the pages of the list that the filter narrows. An operation that is not confirmed waits then. Otherwise its targets are
 * processed in batches. Each step is one transaction that locks the operation's row, and a target is removed by the transaction
 * that retries it. So a process that dies, or resumes too late, at any point, leaves nothing out and repeats nothing. An
 * operation's plan never finds the records that the operation makes.
 */

/** Rows of one page of the plan. */
const plannedAtOnce = 500
/** Requests replayed by one step when its results are spread over time: their routing jobs all come due at once. */
const replayedAtOnce = 10
/** The same without live traffic. Each request may have a routing job for every connection of its source. */
const replayedQuietly = 100
/** How long a plan waits to be confirmed (ms); then it is deleted. */
const plansKeptMs = 86_400_000
/** An operation with a rate of its own processes about this much of it in a step (ms). */
const ratedMs = 200
/** How long a finished operation can be looked up. */
const keptMs = 30 * 86_400_000
/** The largest number of a team's operations under way. */
const maxOngoing = 50

interface Row extends Omit<
  BulkOperation,
  "filter" | "done_count" | "cancelable" | "created_at" | "planned_at" | "started_at" | "finished_at"
> {
  readonly filter: BulkFilter
  readonly plan_cursor: string | null
  readonly created_at: Date
  readonly planned_at: Date | null
  readonly started_at: Date | null
  readonly finished_at: Date | null
}

const recordOf = (row: Row): BulkOperation => ({
  id: row.id,
  team_id: row.team_id,
  type: row.type,
  status: row.status,
  filter: row.filter,
  rate: row.rate,
  confirmed: row.confirmed,
  requested_by: row.requested_by,
  total_count: row.total_count,
  queued_count: row.queued_count,
  done_count: row.queued_count,
  failed_count: row.failed_count,
  sample: row.sample,
  error: row.error,
  cancelable: row.finished_at === null,
  created_at: row.created_at.toISOString(),
  // The previous version has not stored it.
  planned_at: (row.planned_at ?? row.started_at)?.toISOString() ?? null,
  started_at: row.started_at?.toISOString() ?? null,
  finished_at: row.finished_at?.toISOString() ?? null
})

/** Identifies an operation: its team and its kind of records. */
export interface Which {
  readonly team_id: string
  readonly of: BulkOf
  readonly id: string
}

const find = Effect.fnUntraced(function* ({ id, of, team_id }: Which, locking: "lock" | "look") {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select * from bulk_operations where id = ${id} and team_id = ${team_id} and type = any(${Columns.text(kindsOf[of])})
    ${sql.literal(locking === "lock" ? "for update" : "")}`
  return row ?? (yield* notFound("bulk operation", id))
})

export const getOperation = (which: Which): Effect.Effect<BulkOperation, GatewayError, SqlClient.SqlClient> =>
  query(Effect.map(find(which, "look"), recordOf))

/** A page of the operations on one kind of records, newest first. */
export const listOperations = Effect.fnUntraced(function* (
  { of, team_id }: Omit<Which, "id">,
  bucket: BulkBucket,
  page: PageRequest
): Effect.fn.Return<Listed<BulkOperation>, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const position = yield* Effect.fromResult(positionOf(page))
  const only = {
    all: [],
    ongoing: [sql.literal("finished_at is null")],
    history: [sql.literal("finished_at is not null")]
  }
  const rows = yield* query(sql<Row>`
    select * from bulk_operations
    where ${sql.and([
      sql`team_id = ${team_id}`,
      sql`type = any(${Columns.text(kindsOf[of])})`,
      ...only[bucket],
      ...(position === null ? [] : [sql`id < ${position.id}`])
    ])}
    order by id desc limit ${page.limit + 1}`)
  const { last, page: shown } = cutToLimit(rows, page.limit)
  return listed(shown.map(recordOf), cursorAfter(page.key, last))
})

/** A new operation. */
export interface Asked extends Omit<Which, "of"> {
  readonly type: BulkKind
  readonly filter: BulkFilter
  readonly rate: number | null
  /** Whether it starts when its plan is complete; otherwise it waits for confirmation. */
  readonly confirmed: boolean
  readonly requested_by: string | null
  readonly shard: number
}

const isOf = (type: BulkKind): BulkOf =>
  (Object.keys(kindsOf) as ReadonlyArray<BulkOf>).find((of) => kindsOf[of].includes(type)) ?? "events"

/** Creates an operation, which is planned first. A repetition with the same id changes nothing. */
export const createOperation = Effect.fnUntraced(function* (
  asked: Asked
): Effect.fn.Return<BulkOperation, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { confirmed, filter, id, rate, requested_by, shard, team_id, type } = asked
  const now = new Date(yield* Clock.currentTimeMillis)
  // One at a time per team, so that the count includes every operation that is being created.
  const create = sql`
    insert into bulk_operations (id, team_id, type, filter, rate, confirmed, requested_by, shard, created_at)
    select ${id}, ${team_id}, ${type}, ${JSON.stringify(filter)}::jsonb, ${rate}::int4, ${confirmed}::bool,
      ${requested_by}::text, ${placeOf(shard)}::smallint, ${now}
    where (select count(*) from bulk_operations where team_id = ${team_id} and finished_at is null) < ${maxOngoing}
    on conflict (id) do nothing`
  yield* transaction(sql)(
    Effect.andThen(sql`select pg_advisory_xact_lock(hashtextextended(${`bulk_operations/${team_id}`}, 0))`, create)
  )
  return yield* Effect.catchIf(
    getOperation({ id, team_id, of: isOf(type) }),
    ({ code }) => code === "NOT_FOUND",
    () =>
      Effect.fail(
        fail("TEAM_LIMIT_REACHED", `a team can have ${maxOngoing} bulk operations under way; wait for one to end`, {
          limit: maxOngoing
        })
      )
  )
})

const finish = Effect.fnUntraced(function* (id: string, status: BulkStatus, error: BulkOperation["error"] = null) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  yield* sql`
    update bulk_operations set status = ${status}, finished_at = ${new Date(now)}, expires_at = ${new Date(now + keptMs)},
      error = ${error === null ? null : JSON.stringify(error)}::text::jsonb
    where id = ${id}`
})

/** Cancels an operation. Targets that it has queued already are still delivered. */
export const cancelOperation = Effect.fnUntraced(function* (
  which: Which
): Effect.fn.Return<BulkOperation, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* query(
    sql.withTransaction(
      Effect.gen(function* () {
        const { finished_at, status } = yield* find(which, "lock")
        if (finished_at !== null) {
          yield* fail("BULK_OPERATION_NOT_CANCELABLE", `the bulk operation is ${status}: it has come to its end`)
        }
        yield* finish(which.id, "CANCELLED")
        yield* sql`delete from bulk_targets where operation_id = ${which.id}`
      })
    )
  )
  return yield* getOperation(which)
})

/** The operation starts, or completes at once when it has no targets. Returns whether it has completed. */
const begin = Effect.fnUntraced(function* (id: string, total: number) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`update bulk_operations set status = 'RUNNING', started_at = ${now}, expires_at = null where id = ${id}`
  if (total === 0) yield* finish(id, "COMPLETED")
  return total === 0
})

/** Confirms a plan: the operation starts at once, or when its plan is complete. A repetition changes nothing. */
export const runOperation = Effect.fnUntraced(function* (
  which: Which
): Effect.fn.Return<BulkOperation, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* query(
    sql.withTransaction(
      Effect.gen(function* () {
        const { confirmed, planned_at, status, total_count } = yield* find(which, "lock")
        if (status === "CANCELLED") yield* fail("BULK_OPERATION_NOT_RUNNABLE", "the bulk operation is CANCELLED")
        if (confirmed) return
        yield* sql`update bulk_operations set confirmed = true where id = ${which.id}`
        if (planned_at !== null) yield* begin(which.id, total_count)
      })
    )
  )
  return yield* getOperation(which)
})

interface Page {
  readonly next_cursor: string | null
  readonly models: ReadonlyArray<{ readonly id: string }>
}

/** The next page of the list that the operation's filter narrows. */
const pageFrom = ({ filter: { from, to, ...narrowing }, id, plan_cursor, team_id, type }: Row) => {
  const page = {
    key: filterKey("bulk", { id }),
    window: { from, to },
    cursor: plan_cursor ?? undefined,
    limit: plannedAtOnce
  }
  const idsOf = ({ models, next_cursor }: Page) => ({ ids: models.map(({ id }) => id), next_cursor })
  switch (type) {
    case "request_bulk_retry": {
      const plain = { data: false, eventSummary: false }
      return Effect.map(RequestReads.list(team_id, requestFilterOf(narrowing), page, plain), idsOf)
    }
    case "ignored_event_bulk_retry":
      return Effect.map(IgnoredEventReads.list(team_id, ignoredFilterOf(narrowing), page), idsOf)
    default:
      return Effect.map(EventReads.list(team_id, eventFilterOf(narrowing), page, { data: false }), idsOf)
  }
}

/**
 * A cursor of another version may be invalid. Then planning starts again: targets that are stored already are not added twice,
 * and the operation does not stay until somebody cancels it.
 */
const nextPage = (row: Row) =>
  Effect.catchIf(
    pageFrom(row),
    (error) => error instanceof GatewayError && error.code === "INVALID_CURSOR" && row.plan_cursor !== null,
    () => pageFrom({ ...row, plan_cursor: null })
  )

/** Stores a page of the plan. Returns whether there is nothing more to do, for now or at all. */
const plan = Effect.fnUntraced(function* (row: Row) {
  const sql = yield* SqlClient.SqlClient
  const { ids, next_cursor } = yield* nextPage(row)
  const added = yield* sql`
    insert into bulk_targets (operation_id, target_id, team_id)
    select ${row.id}, target_id, ${row.team_id} from unnest(${Columns.text(ids)}) as t (target_id)
    on conflict do nothing returning 1`
  const total = row.total_count + added.length
  const sample = [...new Set([...row.sample, ...ids])].slice(0, sampleSize)
  yield* sql`
    update bulk_operations set total_count = ${total}, sample = ${Columns.text(sample)}, plan_cursor = ${next_cursor}
    where id = ${row.id}`
  if (next_cursor !== null) return false
  const now = yield* Clock.currentTimeMillis
  yield* sql`update bulk_operations set planned_at = ${new Date(now)} where id = ${row.id}`
  if (row.confirmed || total === 0) return yield* begin(row.id, total)
  yield* sql`update bulk_operations set expires_at = ${new Date(now + plansKeptMs)} where id = ${row.id}`
  return true
})

const work = Effect.fnUntraced(function* (row: Row, { overMs, targets: most }: Share, routing: Routing) {
  const sql = yield* SqlClient.SqlClient
  const { id: operation_id, rate, team_id, type } = row
  const isOfRequests = type === "request_bulk_retry" || type === "ignored_event_bulk_retry"
  const atOnce = isOfRequests ? Math.min(most, overMs > 0 ? replayedAtOnce : replayedQuietly) : most
  const batch = rate === null ? atOnce : Math.max(1, Math.min(atOnce, Math.ceil((rate * ratedMs) / 1_000)))
  const part = batch / most
  // The lock of the operation's row excludes other processes.
  const targets = (yield* sql<{ target_id: string }>`
    delete from bulk_targets where operation_id = ${operation_id} and target_id = any(array(
      select target_id from bulk_targets where operation_id = ${operation_id} order by target_id limit ${batch}
    )) returning target_id`)
    .map(({ target_id }) => target_id)
    .toSorted()
  const { done, left, ...made } =
    targets.length === 0
      ? { ...nothing, done: 0, left: [] }
      : yield* carryOut(
          {
            type,
            team_id,
            operation_id,
            ids: targets,
            unresolved: row.filter["resolved"] === false,
            overMs: part * overMs
          },
          routing
        )
  if (left.length > 0) {
    yield* sql`
      insert into bulk_targets (operation_id, target_id, team_id)
      select ${operation_id}, target_id, ${team_id} from unnest(${Columns.text(left)}) as t (target_id)`
  }
  const queued = row.queued_count + done
  const failed = row.failed_count + targets.length - left.length - done
  yield* sql`update bulk_operations set queued_count = ${queued}, failed_count = ${failed} where id = ${operation_id}`
  const isOver = targets.length < batch && left.length === 0
  if (isOver) yield* finish(operation_id, queued === 0 && failed > 0 ? "FAILED" : "COMPLETED")
  const pauseMs = rate === null ? 0 : ((targets.length - left.length) * 1_000) / rate
  return { ...made, isOver, part, pauseMs }
})

/** The size of a step: how many targets to retry, and the time over which their events come due (ms). */
export interface Share {
  readonly targets: number
  readonly overMs: number
}

/** The result of a step. */
export interface Step extends Made {
  readonly isOver: boolean
  /** How much of the allowed size it has used, from 0 to 1. */
  readonly part: number
  /** When this operation may take its next step, by its own rate (ms from the beginning of this step). */
  readonly pauseMs: number
}

const atRest: Step = { ...nothing, isOver: true, part: 0, pauseMs: 0 }

/** Takes the operation one step further: a page of its plan, or a batch of its targets. */
export const stepOperation = Effect.fnUntraced(function* (
  id: string,
  share: Share,
  routing: Routing
): Effect.fn.Return<Step, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  return yield* query(
    withPartitions(sql)(
      sql.withTransaction(
        Effect.gen(function* () {
          const [row] = yield* sql<Row>`
            select * from bulk_operations where id = ${id} and finished_at is null for update`
          if (row === undefined) return atRest
          if (row.status !== "PLANNED") return yield* work(row, share, routing)
          if (row.planned_at !== null) return atRest
          return { ...nothing, isOver: yield* plan(row), part: 1, pauseMs: 0 }
        })
      )
    )
  )
})

/** The team of an operation that is not finished; null: there is none. */
export const teamOfOperation = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<string | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ team_id: string }>`
    select team_id from bulk_operations where id = ${id} and finished_at is null`
  return row?.team_id ?? null
})

/** Fails an operation that is not continued: another operation can take its targets. */
export const setOperationAside = Effect.fnUntraced(function* (
  id: string,
  error: NonNullable<BulkOperation["error"]>
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* finish(id, "FAILED", error)
  yield* sql`delete from bulk_targets where operation_id = ${id}`
})

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
