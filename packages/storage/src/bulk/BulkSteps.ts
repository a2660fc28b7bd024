import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type BulkOperation, sampleSize } from "@tidegate/model/BulkOperation"
import { GatewayError } from "@tidegate/model/GatewayError"
import { begin, finish, type Row } from "./BulkRow.ts"
import { carryOut, isOfRuns, type Made, nothing } from "./BulkTargets.ts"
import * as Columns from "../journal/Columns.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { filterKey } from "../reads/Cursor.ts"
import * as EventReads from "../reads/EventReads.ts"
import * as IgnoredEventReads from "../reads/IgnoredEventReads.ts"
import { eventFilterOf, ignoredFilterOf, requestFilterOf, runFilterOf } from "../reads/Narrowing.ts"
import * as RequestReads from "../reads/RequestReads.ts"
import * as RunReads from "../reads/RunReads.ts"
import type { Routing } from "./Replays.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { query } from "../Transaction.ts"

export type { Made } from "./BulkTargets.ts"

/** The steps of a bulk operation: its plan by pages, then its targets by batches. See `BulkOperations.ts`. */

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
    case "workflow_run_bulk_retry":
    case "workflow_run_bulk_cancel":
      return Effect.map(RunReads.idsOf(team_id, runFilterOf(narrowing), page), idsOf)
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

/** How many targets one step handles. */
export const batchOf = ({ rate, type }: Pick<Row, "rate" | "type">, { overMs, targets: max }: Share): number => {
  const isOfEvents = type === "event_bulk_retry" || type === "event_bulk_cancel"
  const atOnce = isOfEvents ? max : Math.min(max, overMs > 0 ? replayedAtOnce : replayedQuietly)
  return rate === null ? atOnce : Math.max(1, Math.min(atOnce, Math.ceil((rate * ratedMs) / 1_000)))
}

const work = Effect.fnUntraced(function* (row: Row, share: Share, routing: Routing) {
  const sql = yield* SqlClient.SqlClient
  const { id: operation_id, rate, team_id, type } = row
  // Workflows' actors handle them, outside of this transaction.
  if (isOfRuns(type)) return { ...atRest, isOver: false }
  const { overMs, targets: max } = share
  const batch = batchOf(row, share)
  const part = batch / max
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

export const atRest: Step = { ...nothing, isOver: true, part: 0, pauseMs: 0 }

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

/** The team and the kind of an operation that is not finished; null: there is none. */
export const unfinishedOperation = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<Pick<Row, "team_id" | "type"> | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Pick<Row, "team_id" | "type">>`
    select team_id, type from bulk_operations where id = ${id} and finished_at is null`
  return row ?? null
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
