import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import {
  type BulkBucket,
  type BulkFilter,
  type BulkKind,
  type BulkOf,
  type BulkOperation,
  kindsOf
} from "@tidegate/model/BulkOperation"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { type Listed, listed } from "@tidegate/model/Lists"
import { begin, find, finish, recordOf, type Row, type Which } from "./BulkRow.ts"
import { placeOf } from "./BulkShards.ts"
import * as Columns from "../journal/Columns.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "../reads/Paging.ts"
import { query, transaction } from "../Transaction.ts"

/*
 * The rows of a bulk operation. An operation is planned first: the records that its filter finds are stored as its targets, by
 * the pages of the list that the filter narrows. An operation that is not confirmed waits then. Otherwise its targets are
 * processed in batches. Each step is one transaction that locks the operation's row, and a target is removed by the transaction
 * that retries it. So a process that dies, or resumes too late, at any point, leaves nothing out and repeats nothing. An
 * operation's plan never finds the records that the operation makes.
 */

/** The largest number of a team's operations under way. */
const maxOngoing = 50

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
          yield* fail("BULK_OPERATION_NOT_CANCELABLE", `the bulk operation is ${status}: it is finished`)
        }
        yield* finish(which.id, "CANCELLED")
        yield* sql`delete from bulk_targets where operation_id = ${which.id}`
      })
    )
  )
  return yield* getOperation(which)
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
