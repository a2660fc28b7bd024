import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { DataDeletion, DataDeletionFilter, DataDeletionStage } from "@tidegate/model/DataDeletion"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { Secrets } from "../secrets/Secrets.ts"
import { query, transaction } from "../Transaction.ts"
import { holdTeam } from "../teams/Teams.ts"
import { hashOfText } from "./SearchedText.ts"

/*
 * Deletions of data: they are asked for, confirmed and cancelled here; `DataRemoval.ts` carries them out. The row of a deletion that has
 * ended is the proof of what was deleted: a trigger of the database refuses every change of it.
 */

/** Deletions that a team's proof consists of: the oldest are forgotten. A list shows as many. */
export const maxKept = 500

export interface Row {
  readonly id: string
  readonly team_id: string
  readonly filter: DataDeletionFilter
  readonly text: string | null
  readonly text_hash: string | null
  readonly until: Date
  readonly stage: DataDeletionStage
  readonly requested_by: string | null
  readonly requested_at: Date
  readonly confirmed_by: string | null
  readonly confirmed_at: Date | null
  readonly pass: number
  readonly at_table: string | null
  readonly at_key: ReadonlyArray<string> | null
  readonly found: number
  readonly pass_at: Date | null
  readonly looked_at: number
  readonly unreadable: number
  readonly targets: number
  readonly planned: Readonly<Record<string, number>>
  readonly deleted: Readonly<Record<string, number>>
  readonly error: { readonly code: string; readonly message: string } | null
  readonly finished_at: Date | null
}

export const rowColumns = `id, team_id, filter, text, text_hash, until, stage, requested_by, requested_at, confirmed_by, confirmed_at, pass,
  at_table, at_key, found::float8 as found, pass_at, looked_at::float8 as looked_at, unreadable::float8 as unreadable,
  targets::float8 as targets, planned, deleted, error, finished_at`

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((total, count) => total + count, 0)

const shown = (row: Row): DataDeletion => ({
  id: row.id,
  team_id: row.team_id,
  stage: row.stage,
  filter: row.filter,
  text_hash: row.text_hash,
  requested_by: row.requested_by,
  requested_at: row.requested_at.toISOString(),
  confirmed_by: row.confirmed_by,
  confirmed_at: row.confirmed_at?.toISOString() ?? null,
  planned: row.planned,
  planned_total: sum(row.planned),
  deleted: row.deleted,
  deleted_total: sum(row.deleted),
  unreadable_count: row.unreadable,
  looked_at_count: row.looked_at,
  current_table: row.finished_at === null ? row.at_table : null,
  error: row.error,
  cancelable: row.finished_at === null,
  finished_at: row.finished_at?.toISOString() ?? null
})

/** Identifies a deletion. */
export interface Which {
  readonly id: string
  readonly team_id: string
}

const find = Effect.fnUntraced(function* ({ id, team_id }: Which, locking: "lock" | "look") {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select ${sql.literal(rowColumns)} from data_deletions where id = ${id} and team_id = ${team_id}
    ${sql.literal(locking === "lock" ? "for update" : "")}`
  return row ?? (yield* notFound("data deletion", id))
})

export const readDeletion = (
  which: Which
): Effect.Effect<DataDeletion, GatewayError | SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.map(find(which, "look"), shown)

/** All deletions of a team, the latest first. */
export const listDeletions = Effect.fnUntraced(function* (
  team_id: string
): Effect.fn.Return<ReadonlyArray<DataDeletion>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Row>`
    select ${sql.literal(rowColumns)} from data_deletions where team_id = ${team_id} order by id desc limit ${maxKept}`
  return rows.map(shown)
})

/** A new deletion. */
export interface Asked extends Which {
  readonly filter: DataDeletionFilter
  /** The text that is looked for; null: the filter selects. */
  readonly text: string | null
  readonly by: string | null
}

/** Asks for a deletion: it is planned first. A repetition with the same id changes nothing. */
export const requestDeletion = Effect.fnUntraced(function* (
  asked: Asked
): Effect.fn.Return<DataDeletion, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const { by, filter, id, team_id, text } = asked
  const at = new Date(yield* Clock.currentTimeMillis)
  const sealed =
    text === null ? null : yield* secrets.encrypt({ team_id, table: "data_deletions", column: "text", id }, text)
  const hashed = text === null ? null : yield* hashOfText(text)
  const until = filter.to === undefined ? at : new Date(Math.min(at.getTime(), Date.parse(filter.to)))
  yield* transaction(sql)(
    Effect.gen(function* () {
      // Only one at a time for each team, so that nothing comes between the check and the insert.
      if (!(yield* holdTeam(team_id))) yield* notFound("team", team_id)
      const [open] = yield* sql<{ id: string }>`
        select id from data_deletions where team_id = ${team_id} and (finished_at is null or id = ${id})
        order by id = ${id} desc limit 1`
      if (open?.id === id) return
      if (open !== undefined) {
        yield* fail("TEAM_LIMIT_REACHED", `the deletion ${open.id} is under way, and a team has one at a time`, {
          limit: 1
        })
      }
      yield* sql`
        insert into data_deletions (id, team_id, filter, text, text_hash, until, requested_by, requested_at)
        values (${id}, ${team_id}, ${JSON.stringify(filter)}::text::jsonb, ${sealed}, ${hashed}, ${until}, ${by}, ${at})`
      yield* sql`
        delete from data_deletions where team_id = ${team_id} and id in (
          select id from data_deletions where team_id = ${team_id} order by id desc offset ${maxKept})`
    })
  )
  return yield* query(readDeletion(asked))
})

/**
 * Confirms a plan. The deletion searches again and deletes everything that matches now, but nothing that is received later. A repeated call changes
 * nothing.
 */
export const confirmDeletion = Effect.fnUntraced(function* (
  which: Which,
  by: string | null
): Effect.fn.Return<DataDeletion, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(yield* Clock.currentTimeMillis)
  yield* transaction(sql)(
    Effect.gen(function* () {
      const { confirmed_at, filter, stage } = yield* find(which, "lock")
      if (confirmed_at !== null) return
      if (stage !== "planned") {
        yield* fail(
          "BULK_OPERATION_NOT_RUNNABLE",
          `the deletion is ${stage}: only a plan that is complete can be confirmed`
        )
      }
      const until = filter.to === undefined ? at : new Date(Math.min(at.getTime(), Date.parse(filter.to)))
      yield* sql`delete from data_deletion_targets where deletion_id = ${which.id}`
      yield* sql`
        update data_deletions set stage = 'searching', pass = 1, at_table = null, at_key = null, found = 0, targets = 0, unreadable = 0,
          pass_at = null, confirmed_at = ${at}, confirmed_by = ${by}, until = ${until}
        where id = ${which.id}`
    })
  )
  return yield* query(readDeletion(which))
})

/** Ends a deletion: its text and its targets are forgotten. */
export const endDeletion = Effect.fnUntraced(function* (
  id: string,
  stage: "done" | "cancelled" | "failed",
  error: Row["error"] = null
) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`delete from data_deletion_targets where deletion_id = ${id}`
  yield* sql`
    update data_deletions set stage = ${stage}, text = null, at_table = null, at_key = null, finished_at = ${now},
      error = ${error === null ? null : JSON.stringify(error)}::text::jsonb
    where id = ${id} and finished_at is null`
})

/** Cancels a deletion. What it has deleted already does not come back. A repetition changes nothing. */
export const cancelDeletion = Effect.fnUntraced(function* (
  which: Which
): Effect.fn.Return<DataDeletion, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* transaction(sql)(
    Effect.gen(function* () {
      const { finished_at, stage } = yield* find(which, "lock")
      if (stage === "cancelled") return
      if (finished_at !== null) {
        yield* fail("BULK_OPERATION_NOT_CANCELABLE", `the deletion is ${stage}: it has ended`)
      }
      yield* endDeletion(which.id, "cancelled")
    })
  )
  return yield* query(readDeletion(which))
})
