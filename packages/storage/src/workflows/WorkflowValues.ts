import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { addNumbers, type ExactNumber, isJsonNumber, isSameJson } from "@tidegate/json/ExactNumber"
import { readJson } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import type { StoreOperation } from "@tidegate/workflows/kinds/StoreStep"
import { oneAtATime, rememberedResult } from "./TeamValues.ts"

/** Values that the steps of one workflow store by key. They are deleted with the workflow. */

/** The limit of keys of one workflow. */
const maxKeys = 1_000

export interface ValuesOf {
  readonly team_id: string
  readonly workflow_id: string
}

/** Why nothing is stored. `gone`: the workflow is deleted. `full`: it has as many keys as it may. */
export type NotStored = "gone" | "full" | "not_a_number"

/** A value with its times. */
export interface KeptValue {
  readonly key: string
  readonly value: Json
  readonly updated_at: Date
  readonly expires_at: Date | null
}

export const readKept = Effect.fnUntraced(function* (
  { team_id, workflow_id }: ValuesOf,
  key: string
): Effect.fn.Return<KeptValue | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const [row] = yield* sql<KeptValue>`
    select key, value, updated_at, expires_at from workflow_values
    where workflow_id = ${workflow_id} and key = ${key} and team_id = ${team_id}
      and (expires_at is null or expires_at > ${now})`
  return row ?? null
})

const write = Effect.fnUntraced(function* (
  { team_id, workflow_id }: ValuesOf,
  key: string,
  value: Json,
  seconds: number | null
): Effect.fn.Return<"stored" | "gone" | "full", SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const until = seconds === null ? null : new Date(now + seconds * 1_000)
  // The lock of the workflow's row: a value is not added while the workflow is deleted.
  const [alive] = yield* sql`
    select 1 from workflows where id = ${workflow_id} and team_id = ${team_id} and deleted_at is null for share`
  if (alive === undefined) return "gone"
  const [written] = yield* sql`
    insert into workflow_values as v (workflow_id, team_id, key, value, updated_at, expires_at)
    select ${workflow_id}, ${team_id}, ${key}, ${JSON.stringify(value)}::json, ${new Date(now)}, ${until}::timestamptz
    where exists (select from workflow_values where workflow_id = ${workflow_id} and key = ${key})
      or (select count(*) from workflow_values where workflow_id = ${workflow_id}) < ${maxKeys}
    on conflict (workflow_id, key) do update
      set value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at
    returning 1`
  return written === undefined ? "full" : "stored"
})

const remove = ({ team_id, workflow_id }: ValuesOf, key: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`delete from workflow_values where workflow_id = ${workflow_id} and key = ${key} and team_id = ${team_id}`
  )

/** The result of a step. `found`: whether there is, or was, a value. `conflict`: there was another value than expected. */
export interface StoreResult {
  readonly found: boolean
  readonly value: Json
  readonly conflict: boolean
}

/** The stored form of a result: only what cannot be read again. */
interface Remembered {
  readonly found: boolean
  readonly conflict: boolean
  readonly sum?: number | ExactNumber
}

/**
 * Carries out the operation of a step. A change and its result are one transaction, so that it is made once for `stepKey`, however often
 * a step is repeated after a crash.
 */
export const storeByStep = Effect.fnUntraced(function* (
  of: ValuesOf,
  operation: StoreOperation,
  stepKey: string
): Effect.fn.Return<StoreResult | NotStored, SqlError.SqlError, SqlClient.SqlClient> {
  const { key } = operation
  if (operation.name === "get") {
    const kept = yield* readKept(of, key)
    return { found: kept !== null, value: kept?.value ?? null, conflict: false }
  }
  return yield* oneAtATime(
    of.team_id,
    Effect.gen(function* (): Effect.fn.Return<StoreResult | NotStored, SqlError.SqlError, SqlClient.SqlClient> {
      const sql = yield* SqlClient.SqlClient
      const [done] = yield* sql<{ result: string }>`
        select result from step_results where key = ${stepKey} and team_id = ${of.team_id}`
      const before = yield* readKept(of, key)
      if (done !== undefined) return shown(readJson(done.result) as Remembered, operation, before)
      const change = changeOf(operation, before)
      if (change === "not_a_number") return change
      const { remembered, to } = change
      if (to === "removed") yield* remove(of, key)
      else if (to !== "kept") {
        const written = yield* write(of, key, to.value, operation.seconds)
        if (written !== "stored") return written
      }
      yield* rememberedResult(of.team_id, stepKey, JSON.stringify(remembered))
      return shown(remembered, operation, before)
    })
  )
})

interface Change {
  readonly to: "kept" | "removed" | { readonly value: Json }
  readonly remembered: Remembered
}

type Writing = Exclude<StoreOperation, { readonly name: "get" }>

const changeOf = (operation: Writing, before: KeptValue | null): Change | "not_a_number" => {
  const stored = { found: true, conflict: false }
  if (operation.name === "delete") return { to: "removed", remembered: { ...stored, found: before !== null } }
  if (operation.name === "increment") {
    const value: unknown = before === null ? 0 : before.value
    const sum = isJsonNumber(value) ? addNumbers(value, operation.by) : null
    return sum === null ? "not_a_number" : { to: { value: sum as Json }, remembered: { ...stored, sum } }
  }
  // A missing value equals null.
  if (operation.name === "compare_and_set" && !isSameJson(before?.value ?? null, operation.expected)) {
    return { to: "kept", remembered: { found: before !== null, conflict: true } }
  }
  return { to: { value: operation.value }, remembered: stored }
}

/** The result of a change. After a conflict it has the value that is stored when it is read. */
const shown = ({ conflict, found, sum }: Remembered, operation: Writing, now: KeptValue | null): StoreResult => {
  if (conflict) return { found, conflict, value: now?.value ?? null }
  if (sum !== undefined) return { found, conflict, value: sum as Json }
  return { found, conflict, value: operation.name === "delete" ? null : (operation as { readonly value: Json }).value }
}

/** Sets a value outside of a run. */
export const setKept = (of: ValuesOf, key: string, value: Json, seconds: number | null) =>
  oneAtATime(of.team_id, write(of, key, value, seconds))

/** Returns whether there was one. */
export const deleteKept = Effect.fnUntraced(function* (
  of: ValuesOf,
  key: string
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  return yield* oneAtATime(
    of.team_id,
    Effect.gen(function* () {
      const before = yield* readKept(of, key)
      yield* remove(of, key)
      return before !== null
    })
  )
})

/** All keys of a workflow in their order, without values. */
export const listKept = Effect.fnUntraced(function* ({
  team_id,
  workflow_id
}: ValuesOf): Effect.fn.Return<ReadonlyArray<Omit<KeptValue, "value">>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  return yield* sql<Omit<KeptValue, "value">>`
    select key, updated_at, expires_at from workflow_values
    where workflow_id = ${workflow_id} and team_id = ${team_id} and (expires_at is null or expires_at > ${now})
    order by key limit ${maxKeys}`
})
