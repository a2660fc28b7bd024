import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { BulkBucket, BulkFilter, BulkKind, BulkOperation, BulkStatus } from "@tidegate/model/BulkOperation"
import { EventStatus } from "@tidegate/model/Event"
import { fail, GatewayError, notFound } from "@tidegate/model/GatewayError"
import { idBound, newId, prefixes } from "@tidegate/model/Ids"
import { retryEvents } from "./EventRetry.ts"
import * as Columns from "./journal/Columns.ts"
import { withPartitions } from "./Partitions.ts"
import { filterKey } from "./reads/Cursor.ts"
import * as EventReads from "./reads/EventReads.ts"
import * as RequestReads from "./reads/RequestReads.ts"
import { exactly, originals, type Routing, storeReplays } from "./Replays.ts"
import type { Secrets } from "./Secrets.ts"
import { query, transaction } from "./Transaction.ts"

/*
 * The rows of a bulk operation. It is planned first: what its filter finds is written down as its targets, by the pages of the very list
 * that the filter narrows. Then these are retried in batches. Each step is one transaction that holds the operation's row: a target goes
 * with the transaction that retries it. So a process that dies, or wakes up too late, anywhere, leaves nothing out and repeats nothing; and
 * what an operation makes is never found by its own plan.
 */

/** Rows of a page of the plan. */
const plannedAtOnce = 500
/** Requests that are replayed at once where what a step makes is to come due little by little: their routes all come due now. */
const replayedAtOnce = 10
/** The same where nobody else waits: each may have a route for every connection of its source. */
const replayedQuietly = 100
/** Bodies of requests that are replayed by one step, in bytes (the first always is). */
const bytesAtOnce = 2 * 1024 * 1024
/** For how long a finished operation can be looked up. */
const keptMs = 30 * 86_400_000
/** Operations of a team under way. */
const mostOngoing = 50

interface Row extends Omit<BulkOperation, "done_count" | "cancelable" | "created_at" | "started_at" | "finished_at"> {
  readonly plan_cursor: string | null
  readonly created_at: Date
  readonly started_at: Date | null
  readonly finished_at: Date | null
}

const recordOf = (row: Row): BulkOperation => ({
  id: row.id,
  team_id: row.team_id,
  type: row.type,
  status: row.status,
  filter: row.filter,
  requested_by: row.requested_by,
  total_count: row.total_count,
  queued_count: row.queued_count,
  done_count: row.queued_count,
  failed_count: row.failed_count,
  cancelable: row.finished_at === null,
  created_at: row.created_at.toISOString(),
  started_at: row.started_at?.toISOString() ?? null,
  finished_at: row.finished_at?.toISOString() ?? null
})

/** Which operation: of one team, and of one kind. */
export interface Which {
  readonly team_id: string
  readonly type: BulkKind
  readonly id: string
}

const find = Effect.fnUntraced(function* ({ id, team_id, type }: Which, locking: "lock" | "look") {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select * from bulk_operations where id = ${id} and team_id = ${team_id} and type = ${type}
    ${sql.literal(locking === "lock" ? "for update" : "")}`
  return row ?? (yield* notFound("bulk operation", id))
})

export const getOperation = (which: Which): Effect.Effect<BulkOperation, GatewayError, SqlClient.SqlClient> =>
  query(Effect.map(find(which, "look"), recordOf))

/** The operations of one kind, newest first. */
export const listOperations = Effect.fnUntraced(function* (
  { team_id, type }: Omit<Which, "id">,
  bucket: BulkBucket,
  limit: number
): Effect.fn.Return<ReadonlyArray<BulkOperation>, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const only = { all: "", ongoing: "and finished_at is null", history: "and finished_at is not null" }[bucket]
  const rows = yield* query(sql<Row>`
    select * from bulk_operations where team_id = ${team_id} and type = ${type} ${sql.literal(only)}
    order by id desc limit ${limit}`)
  return rows.map(recordOf)
})

/** Creates one, to be planned. Repeating it with the same id changes nothing. */
export const createOperation = Effect.fnUntraced(function* (
  of: Which & { readonly filter: BulkFilter; readonly requested_by: string | null; readonly shard: number }
): Effect.fn.Return<BulkOperation, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { filter, id, requested_by, shard, team_id, type } = of
  const now = new Date(yield* Clock.currentTimeMillis)
  // One of a team at a time, so that none is counted before another that is about to be there.
  const create = sql`
    insert into bulk_operations (id, team_id, type, filter, requested_by, shard, created_at)
    select ${id}, ${team_id}, ${type}, ${JSON.stringify(filter)}::jsonb, ${requested_by}::text, ${shard}::smallint, ${now}
    where (select count(*) from bulk_operations where team_id = ${team_id} and finished_at is null) < ${mostOngoing}
    on conflict (id) do nothing`
  yield* transaction(sql)(
    Effect.andThen(sql`select pg_advisory_xact_lock(hashtextextended(${`bulk_operations/${team_id}`}, 0))`, create)
  )
  return yield* Effect.catchIf(
    getOperation(of),
    ({ code }) => code === "NOT_FOUND",
    () =>
      Effect.fail(
        fail("TEAM_LIMIT_REACHED", `a team can have ${mostOngoing} bulk operations under way; wait for one to end`, {
          limit: mostOngoing
        })
      )
  )
})

const finish = Effect.fnUntraced(function* (id: string, status: BulkStatus) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  yield* sql`
    update bulk_operations set status = ${status}, finished_at = ${new Date(now)}, expires_at = ${new Date(now + keptMs)}
    where id = ${id}`
})

/** Ends one before its time. What it has queued is delivered all the same. */
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

const isStatus = (text: string): text is EventStatus => (EventStatus.literals as ReadonlyArray<string>).includes(text)

/** The next page of the list that the operation's filter narrows. */
const pageFrom = ({ filter, id, plan_cursor, team_id, type }: Row) => {
  const { connection_id = [], destination_id = [], q: search, source_id: sources = [], status = [] } = filter
  const page = {
    key: filterKey("bulk", { id }),
    window: { from: filter.from, to: filter.to },
    cursor: plan_cursor ?? undefined,
    limit: plannedAtOnce
  }
  if (type === "event_bulk_retry") {
    const narrowed = {
      statuses: status.filter(isStatus),
      sources,
      connections: connection_id,
      destinations: destination_id,
      operation: undefined,
      operationScope: "retries" as const,
      search
    }
    return Effect.map(EventReads.list(team_id, narrowed, page, { data: false }), ({ models, next_cursor }) => ({
      ids: models.map(({ id }) => id),
      next_cursor
    }))
  }
  const [only] = status
  const narrowed = {
    status: only === "accepted" || only === "rejected" ? only : undefined,
    verified: undefined,
    sources,
    connections: [],
    operation: undefined,
    isRetry: undefined,
    retryKind: undefined,
    search
  } as const
  return Effect.map(
    RequestReads.list(team_id, narrowed, page, { data: false, eventSummary: false }),
    ({ models, next_cursor }) => ({ ids: models.map(({ id }) => id), next_cursor })
  )
}

/**
 * A cursor that another version has written may be none any more. Then the plan begins anew: what it has already is not added again, and the
 * operation does not wait for somebody to cancel it.
 */
const nextPage = (row: Row) =>
  Effect.catchIf(
    pageFrom(row),
    (error) => error instanceof GatewayError && error.code === "INVALID_CURSOR" && row.plan_cursor !== null,
    () => pageFrom({ ...row, plan_cursor: null })
  )

/** Writes down a page of the plan. Answers whether the operation is over, because there is nothing to retry. */
const plan = Effect.fnUntraced(function* (row: Row) {
  const sql = yield* SqlClient.SqlClient
  const { ids, next_cursor } = yield* nextPage(row)
  const added = yield* sql`
    insert into bulk_targets (operation_id, target_id, team_id)
    select ${row.id}, target_id, ${row.team_id} from unnest(${Columns.text(ids)}) as t (target_id)
    on conflict do nothing returning 1`
  const total = row.total_count + added.length
  yield* sql`update bulk_operations set total_count = ${total}, plan_cursor = ${next_cursor} where id = ${row.id}`
  if (next_cursor !== null) return false
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`update bulk_operations set status = 'RUNNING', started_at = ${now} where id = ${row.id}`
  if (total === 0) yield* finish(row.id, "COMPLETED")
  return total === 0
})

/** What a step has made, for those whom it concerns. */
export interface Made {
  readonly events: ReadonlyArray<{ readonly id: string; readonly destination_id: string }>
  readonly requests: ReadonlyArray<{
    readonly id: string
    readonly connections: ReadonlyArray<string>
    readonly workflows: ReadonlyArray<string>
  }>
}

const nothing: Made = { events: [], requests: [] }

/** Retries targets: what it made, and which of them are left for another step. */
const retry = Effect.fnUntraced(function* (
  { id, team_id, type }: Row,
  targets: ReadonlyArray<string>,
  overMs: number,
  routing: Routing
): Effect.fn.Return<Made & { readonly left: ReadonlyArray<string> }, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  if (type === "event_bulk_retry") {
    const events = yield* retryEvents({
      team_id,
      event_ids: targets,
      operation_id: id,
      overMs,
      shardOf: routing.shardOf
    })
    return { ...nothing, events, left: [] }
  }
  const { found, left } = yield* originals(team_id, targets, bytesAtOnce)
  if (found.length === 0) return { ...nothing, left }
  const now = yield* Clock.currentTimeMillis
  const replays = found.map((one) => exactly(one, newId(prefixes.request, now), { kind: "bulk", operation_id: id }))
  const stored = yield* storeReplays(replays, routing)
  const requests = stored.flatMap((one) =>
    typeof one === "object" ? [{ id: one.request_id, connections: one.connections, workflows: one.workflows }] : []
  )
  return { ...nothing, requests, left }
})

const work = Effect.fnUntraced(function* (row: Row, { overMs, targets: most }: Share, routing: Routing) {
  const sql = yield* SqlClient.SqlClient
  const batch = row.type === "request_bulk_retry" ? Math.min(most, overMs > 0 ? replayedAtOnce : replayedQuietly) : most
  const part = batch / most
  // Whoever holds the operation's row is alone with them.
  const targets = (yield* sql<{ target_id: string }>`
    delete from bulk_targets where operation_id = ${row.id} and target_id = any(array(
      select target_id from bulk_targets where operation_id = ${row.id} order by target_id limit ${batch}
    )) returning target_id`)
    .map(({ target_id }) => target_id)
    .toSorted()
  const { left, ...made } =
    targets.length === 0 ? { ...nothing, left: [] } : yield* retry(row, targets, overMs, routing)
  if (left.length > 0) {
    yield* sql`
      insert into bulk_targets (operation_id, target_id, team_id)
      select ${row.id}, target_id, ${row.team_id} from unnest(${Columns.text(left)}) as t (target_id)`
  }
  const queued = row.queued_count + made.events.length + made.requests.length
  const failed = row.failed_count + targets.length - left.length - made.events.length - made.requests.length
  yield* sql`update bulk_operations set queued_count = ${queued}, failed_count = ${failed} where id = ${row.id}`
  const isOver = targets.length < batch && left.length === 0
  if (isOver) yield* finish(row.id, queued === 0 && failed > 0 ? "FAILED" : "COMPLETED")
  return { ...made, isOver, part }
})

/** What a step may do: retry so many targets, whose events come due one after the other over so long (ms). */
export interface Share {
  readonly targets: number
  readonly overMs: number
}

/** What a step has come to. */
export interface Step extends Made {
  readonly isOver: boolean
  /** How much of its share it has taken, from 0 to 1. */
  readonly part: number
}

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
          if (row === undefined) return { ...nothing, isOver: true, part: 0 }
          return row.status === "PLANNED"
            ? { ...nothing, isOver: yield* plan(row), part: 1 }
            : yield* work(row, share, routing)
        })
      )
    )
  )
})

/** How many of these still wait for their turn: requests for their rules, events for a delivery that is due. */
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

/** How many requests have come in within the last second, replays apart: at most `most`, because more is not counted. */
export const liveRequests = Effect.fnUntraced(function* (
  most: number
): Effect.fn.Return<number, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const since = idBound(prefixes.request, (yield* Clock.currentTimeMillis) - 1_000)
  const [row] = yield* query(sql<{ count: number }>`
    select count(*)::int4 as count from (
      select from requests where id >= ${since} and retry_kind is null limit ${most}
    ) r`)
  return row?.count ?? 0
})
