import { Clock, Context, Effect, PartitionedSemaphore } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { addNumbers, type ExactNumber, isJsonNumber, readNumber } from "@tidegate/json/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import { HotSql } from "../Database.ts"

/** Values that a team's workflows store by key, and the results that their steps have stored by step key. */

/** The limit of keys of one team. */
const maxKeys = 10_000
/** Longer than any run lives. */
const rememberedMs = 61 * 86_400_000

/** Why a value is not stored: `full`: the team has reached its limit; `not_a_number`: the stored value cannot be added to. */
export type Refused = "full" | "not_a_number"

export const readValue = Effect.fnUntraced(function* (
  team_id: string,
  key: string
): Effect.fn.Return<{ readonly value: Json } | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ value: Json }>`
    select value from team_values where team_id = ${team_id} and key = ${key}`
  return row ?? null
})

/**
 * Limits the database connections of these writes in a process: each waits for its team's lock, or for a row, while it has a
 * connection. Without the limit one busy team would use up the connections that store requests. Teams take turns.
 */
const Connections = Context.Reference<PartitionedSemaphore.PartitionedSemaphore<string>>(
  "@tidegate/storage/TeamValues/Connections",
  { defaultValue: () => PartitionedSemaphore.makeUnsafe({ permits: 2 }) }
)

const bounded = <A, E, R>(team_id: string, writing: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Connections, (connections) => connections.withPermit(team_id)(writing))

/** One write at a time for a team, so that none adds a key beyond the limit. */
export const oneAtATime = Effect.fnUntraced(function* <A, E, R>(team_id: string, writing: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const lock = sql`select pg_advisory_xact_lock(hashtextextended(${`team_values/${team_id}`}, 0))`
  return yield* bounded(team_id, sql.withTransaction(Effect.andThen(lock, writing)))
})

const write = Effect.fnUntraced(function* (team_id: string, key: string, value: Json) {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(yield* Clock.currentTimeMillis)
  const text = JSON.stringify(value)
  const [changed] = yield* sql`
    update team_values set value = ${text}::json, updated_at = ${at} where team_id = ${team_id} and key = ${key} returning 1`
  if (changed !== undefined) return true
  const [added] = yield* sql`
    insert into team_values (team_id, key, value, updated_at)
    select ${team_id}, ${key}, ${text}::json, ${at}
    where (select count(*) from team_values where team_id = ${team_id}) < ${maxKeys} returning 1`
  return added !== undefined
})

export const setValue = Effect.fnUntraced(function* (
  team_id: string,
  key: string,
  value: Json
): Effect.fn.Return<"set" | Refused, SqlError.SqlError, SqlClient.SqlClient> {
  return (yield* oneAtATime(team_id, write(team_id, key, value))) ? "set" : "full"
})

/** Returns whether there was one. */
export const deleteValue = Effect.fnUntraced(function* (
  team_id: string,
  key: string
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const deleted = yield* bounded(
    team_id,
    sql`delete from team_values where team_id = ${team_id} and key = ${key} returning 1`
  )
  return deleted.length > 0
})

/** The stored result of a step; `made` when there is none yet, which is then stored. */
export const rememberedResult = Effect.fnUntraced(function* (
  team_id: string,
  stepKey: string,
  made: string
): Effect.fn.Return<{ readonly result: string; readonly isNew: boolean }, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const until = new Date((yield* Clock.currentTimeMillis) + rememberedMs)
  // Waits for another attempt of the same step that is under way.
  const [added] = yield* sql`
    insert into step_results (key, team_id, result, expires_at) values (${stepKey}, ${team_id}, ${made}, ${until})
    on conflict (key) do nothing returning 1`
  if (added !== undefined) return { result: made, isNew: true }
  const [row] = yield* sql<{ result: string }>`
    select result from step_results where key = ${stepKey} and team_id = ${team_id}`
  return { result: row?.result ?? made, isNew: false }
})

/** The sum, added once for `stepKey`, however often it is called. */
export const increment = Effect.fnUntraced(function* (
  team_id: string,
  key: string,
  by: number | ExactNumber,
  stepKey: string
): Effect.fn.Return<number | ExactNumber | Refused, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* oneAtATime(
    team_id,
    Effect.gen(function* () {
      const [row] = yield* sql<{ value: Json }>`
        select value from team_values where team_id = ${team_id} and key = ${key}`
      const before: unknown = row === undefined ? 0 : row.value
      const sum = isJsonNumber(before) ? addNumbers(before, by) : null
      const done = yield* sql<{ result: string }>`
        select result from step_results where key = ${stepKey} and team_id = ${team_id}`
      if (done[0] !== undefined) return readNumber(done[0].result)
      if (sum === null) return "not_a_number" as const
      if (!(yield* write(team_id, key, sum as Json))) return "full" as const
      yield* rememberedResult(team_id, stepKey, String(sum))
      return sum
    })
  )
})
