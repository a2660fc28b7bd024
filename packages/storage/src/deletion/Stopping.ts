import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { cancelEvents } from "../delivery/CancelPending.ts"
import { isTarget } from "./Selection.ts"

/*
 * What waits of the selected requests and runs. It is cancelled before its rows are deleted, so that actors begin nothing more of it.
 * Nothing of this is progress: when it is interrupted it begins again, and finds less.
 */

/** Waiting rows that are looked at at once. */
const atOnce = 1_000

/** A part of the waiting rows. `after`: where the next part begins. Null: this was the last part. */
interface Part<A> {
  readonly stopped: A
  readonly after: string | null
}

const afterOf = (rows: ReadonlyArray<{ readonly id: string }>): string | null =>
  rows.length < atOnce ? null : rows.at(-1)!.id

/** Cancels waiting events of the selected requests, behind the id `after`. Returns their number. */
export const cancelSelectedEvents = Effect.fnUntraced(function* (
  { id, team_id }: { readonly id: string; readonly team_id: string },
  after: string
): Effect.fn.Return<Part<number>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select event_id as id from deliveries where event_id > ${after} order by event_id limit ${atOnce}`
  if (rows.length === 0) return { stopped: 0, after: null }
  const last = rows.at(-1)!.id
  const stopped = yield* cancelEvents(
    sql,
    sql`select r.id, r.team_id, r.connection_id, r.source_id, r.destination_id from deliveries q
      join events r on r.id = q.event_id and r.state = 'PENDING'
      where q.event_id > ${after} and q.event_id <= ${last} and r.id > ${after} and r.id <= ${last} and r.team_id = ${team_id}
        and ${isTarget(sql, id, "request_id")}
      order by r.id for update of r, q skip locked`,
    "CANCELLED"
  )
  return { stopped, after: afterOf(rows) }
})

/** A run that has not ended. */
export interface SelectedRun {
  readonly id: string
  readonly workflow_id: string
}

/** The selected runs that have not ended, behind the id `after`. Their workflows' actors cancel them. */
export const selectedRuns = Effect.fnUntraced(function* (
  { id, team_id }: { readonly id: string; readonly team_id: string },
  after: string
): Effect.fn.Return<Part<ReadonlyArray<SelectedRun>>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<SelectedRun & { selected: boolean }>`
    select r.run_id as id, r.workflow_id, r.team_id = ${team_id} and ${isTarget(sql, id, "run_id")} as selected
    from (select run_id, workflow_id, team_id from workflow_queue where run_id > ${after} order by run_id limit ${atOnce}) r
    order by r.run_id`
  return { stopped: rows.filter(({ selected }) => selected), after: afterOf(rows) }
})

/** Everything that waits has stopped: rows may be deleted. */
export const beginDataRemoval = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update data_deletions set stage = 'removing' where id = ${id} and stage = 'stopping'`
})
