import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"
import * as Columns from "../journal/Columns.ts"

/** The largest number of stored holds of one team. Further holds are only in the memory of a process. */
const maxStored = 1_000

/**
 * Stores until when (Unix ms) the target of a team's actions accepts no calls, unless a later time is stored. Expired holds are
 * replaced. Any process may write it, because it is what the target has answered. Returns whether it is stored.
 */
export const storeActionHold = Effect.fnUntraced(function* (
  team_id: string,
  target: string,
  until: number,
  now: number
): Effect.fn.Return<boolean, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const at = new Date(now)
  const rows = yield* sql`
    with over as (
      delete from action_holds where team_id = ${team_id} and target = any(array(
        select target from action_holds where team_id = ${team_id} and held_until <= ${at} and target <> ${target}
        limit ${maxStored} for update skip locked))
    )
    insert into action_holds (team_id, target, held_until)
    select ${team_id}, ${target}, ${new Date(until)} where ${maxStored} > (
      select count(*) from action_holds where team_id = ${team_id} and held_until > ${at} and target <> ${target})
    on conflict (team_id, target) do update set held_until = excluded.held_until
    where action_holds.held_until < excluded.held_until
    returning target`
  return rows.length > 0
})

/** The ends of the holds of saved actions; an action without a hold is absent. */
export const actionsHeld = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  ids: ReadonlyArray<string>,
  now: number
): Effect.fn.Return<ReadonlyMap<string, Date>, SqlError.SqlError> {
  const rows = yield* sql<{ target: string; held_until: Date }>`
    select target, held_until from action_holds
    where team_id = ${team_id} and target = any(${Columns.text(ids)}) and held_until > ${new Date(now)}`
  return new Map(rows.map(({ held_until, target }) => [target, held_until]))
})
