import { hash } from "node:crypto"
import { Clock, Context, Effect, Layer, type Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { type Env, runtime, type Transformation } from "@tidegate/model/Transformation"
import { HotSql } from "./Database.ts"
import { noCounts, rollupBins, total } from "./RollupBins.ts"
import { Secrets, type SecretUnreadable } from "./Secrets.ts"
import { overtaken, query, transaction } from "./Transaction.ts"
import { openEnv, sealEnv, showEnv } from "./TransformationEnv.ts"

/** A row of `transformations`. */
export interface TransformationRow {
  readonly id: string
  readonly team_id: string
  readonly name: string
  readonly code: string
  readonly code_hash: string
  /** Encrypted. */
  readonly env: string | null
  readonly deleted_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** What a caller can write of a transformation, checked; the variables in the clear. */
export interface TransformationFields {
  readonly name: string
  readonly code: string
  readonly env: Env
}

/** `env` is "unchanged" when the caller did not write it: then what is stored stays, even if it cannot be read. */
export interface TransformationChange extends Omit<TransformationFields, "env"> {
  readonly env: Env | "unchanged"
}

/** What runs: `env` is decrypted. */
export interface LoadedTransformation extends TransformationFields {
  readonly id: string
  readonly code_hash: string
}

/** How often they ran in the last 24 hours, and how many connections name them. */
interface Counts {
  readonly successful: ReadonlyMap<string, ReadonlyArray<number>>
  readonly failed: ReadonlyMap<string, ReadonlyArray<number>>
  readonly connections: ReadonlyMap<string, number>
}

const uncounted: Counts = { successful: new Map(), failed: new Map(), connections: new Map() }

/** SHA-256 of the code, hex: what a compiled copy is known by. */
export const codeHash = (code: string): string => hash("sha256", code, "hex")

const exists = (id: string): GatewayError =>
  fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", { id, resource_type: "transformation" })

/** Of the connections in the way of a delete, so many are named. */
const nameAtMost = 10

const inUse = (id: string, users: ReadonlyArray<{ readonly id: string }>): GatewayError =>
  fail("RESOURCE_IN_USE", "connections use the transformation: take it out of their rules first", {
    id,
    resource_type: "transformation",
    connections: users.map((user) => user.id)
  })

/**
 * The rows of `transformations`, for one team at a time. Every change is one transaction. Doors do not route by them: a
 * connection loads them as it works off a request, so a change holds for every request worked off after it.
 */
export class Transformations extends Context.Service<
  Transformations,
  {
    readonly get: (team_id: string, id: string) => Effect.Effect<Transformation, GatewayError>
    /** The id of the transformation of that name, or null. */
    readonly findByName: (team_id: string, name: string) => Effect.Effect<string | null, GatewayError>
    /** Rows as records, in the same order; with zeros for counts that were not asked for. Takes part in its caller's transaction. */
    readonly records: (
      rows: ReadonlyArray<TransformationRow>,
      options: { readonly counts: boolean }
    ) => Effect.Effect<ReadonlyArray<Transformation>, SqlError.SqlError>
    /** Repeating a create with the same id changes nothing and answers what is stored. */
    readonly create: (
      team_id: string,
      id: string,
      fields: TransformationFields
    ) => Effect.Effect<Transformation, GatewayError>
    /** `change` is given what is stored, and may be called more than once. */
    readonly update: (
      team_id: string,
      id: string,
      change: (stored: TransformationFields) => Result.Result<TransformationChange, GatewayError>
    ) => Effect.Effect<Transformation, GatewayError>
    /**
     * Refused with RESOURCE_IN_USE while a connection's rules name it. Its executions stay and its name is free; its
     * variables are forgotten.
     */
    readonly delete: (team_id: string, id: string) => Effect.Effect<void, GatewayError>
  }
>()("@tidegate/storage/Transformations") {
  static readonly layer: Layer.Layer<Transformations, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    Transformations,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets

  const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

  const count = Effect.fnUntraced(function* (ids: ReadonlyArray<string>): Effect.fn.Return<Counts, SqlError.SqlError> {
    const nowMs = yield* Clock.currentTimeMillis
    const rows = yield* sql<{ id: string; count: number }>`
      select t.id, (
        select count(*)::float8 from connections c
        where c.team_id = t.team_id and c.deleted_at is null
          and c.rules @> jsonb_build_array(jsonb_build_object('transformation_id', t.id))
      ) as count
      from transformations t where t.id = any(${[...ids]})`
    return {
      successful: yield* rollupBins(sql, ids, ["execution_successful"], nowMs),
      failed: yield* rollupBins(sql, ids, ["execution_failed"], nowMs),
      connections: new Map(rows.map((row) => [row.id, row.count]))
    }
  })

  const records = Effect.fnUntraced(function* (
    rows: ReadonlyArray<TransformationRow>,
    options: { readonly counts: boolean }
  ) {
    const counts = options.counts && rows.length > 0 ? yield* count(rows.map((row) => row.id)) : uncounted
    return yield* Effect.forEach(rows, (row) =>
      Effect.map(showEnv(secrets, row), (env): Transformation => {
        const successful = counts.successful.get(row.id) ?? noCounts()
        const failed = counts.failed.get(row.id) ?? noCounts()
        return {
          id: row.id,
          team_id: row.team_id,
          name: row.name,
          code: row.code,
          env,
          runtime,
          code_hash: row.code_hash,
          deleted_at: row.deleted_at?.toISOString() ?? null,
          executions_24h_count: total(successful) + total(failed),
          executions_24h_successful_count: total(successful),
          executions_24h_failed_count: total(failed),
          executions_24h_successful_bins: successful,
          executions_24h_failed_bins: failed,
          connections_count: counts.connections.get(row.id) ?? 0,
          created_at: row.created_at.toISOString(),
          updated_at: row.updated_at.toISOString()
        }
      })
    )
  })

  const record = (row: TransformationRow) =>
    Effect.map(records([row], { counts: true }), ([transformation]) => transformation as Transformation)

  const read = Effect.fnUntraced(function* (team_id: string, id: string, locking: "lock" | "look") {
    const [row] = yield* sql<TransformationRow>`
      select * from transformations where id = ${id} and team_id = ${team_id} and deleted_at is null
      ${locking === "lock" ? sql.literal("for update") : sql.literal("")}`
    return row ?? (yield* notFound("transformation", id))
  })

  const findByName = Effect.fnUntraced(function* (team_id: string, name: string) {
    const [row] = yield* sql<{ id: string }>`
      select id from transformations where team_id = ${team_id} and name = ${name} and deleted_at is null`
    return row?.id ?? null
  })

  const create = Effect.fnUntraced(function* (team_id: string, id: string, { code, env, name }: TransformationFields) {
    const at = yield* now
    const sealed = yield* sealEnv(secrets, { team_id, id }, env)
    const [created] = yield* sql<TransformationRow>`
      insert into transformations (id, team_id, name, code, code_hash, env, created_at, updated_at)
      values (${id}, ${team_id}, ${name}, ${code}, ${codeHash(code)}, ${sealed}, ${at}, ${at})
      on conflict do nothing returning *`
    if (created !== undefined) return created
    const holder = yield* findByName(team_id, name)
    if (holder !== null && holder !== id) return yield* exists(holder)
    const [stored] = yield* sql`select 1 from transformations where id = ${id}`
    return stored === undefined ? yield* overtaken("the name has become free") : yield* read(team_id, id, "look")
  })

  const update = Effect.fnUntraced(function* (
    team_id: string,
    id: string,
    change: (stored: TransformationFields) => Result.Result<TransformationChange, GatewayError>
  ) {
    const row = yield* read(team_id, id, "lock")
    const at = yield* now
    const stored = { name: row.name, code: row.code, env: yield* showEnv(secrets, row) }
    const { code, env, name } = yield* Effect.fromResult(change(stored))
    const holder = name === row.name ? null : yield* findByName(team_id, name)
    if (holder !== null) return yield* exists(holder)
    const sealed = env === "unchanged" ? row.env : yield* sealEnv(secrets, row, env)
    const [written] = yield* sql<TransformationRow>`
      update transformations set name = ${name}, code = ${code}, code_hash = ${codeHash(code)}, env = ${sealed},
        updated_at = ${at}
      where id = ${id} returning *`
    return written ?? row
  })

  // A connection that comes to name it holds the row until it has committed: looked for after the lock, it is seen.
  const remove = Effect.fnUntraced(function* (team_id: string, id: string) {
    yield* read(team_id, id, "lock")
    const users = yield* sql<{ id: string }>`
      select id from connections
      where team_id = ${team_id} and deleted_at is null
        and rules @> ${JSON.stringify([{ transformation_id: id }])}::jsonb
      order by id limit ${nameAtMost}`
    if (users.length > 0) yield* inUse(id, users)
    const at = yield* now
    yield* sql`update transformations set deleted_at = ${at}, env = null, updated_at = ${at} where id = ${id}`
  })

  return Transformations.of({
    get: (team_id, id) => query(Effect.flatMap(read(team_id, id, "look"), record)),
    findByName: (team_id, name) => query(findByName(team_id, name)),
    records,
    create: (team_id, id, fields) => transaction(sql)(Effect.flatMap(create(team_id, id, fields), record)),
    update: (team_id, id, change) => transaction(sql)(Effect.flatMap(update(team_id, id, change), record)),
    delete: (team_id, id) => transaction(sql)(remove(team_id, id))
  })
})

/**
 * A transformation as it runs now, or null when there is none (any more). Fails with `SecretUnreadable` when its variables
 * cannot be decrypted: what was to run has to wait, because the key may come back.
 */
export const loadTransformation = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<LoadedTransformation | null, SqlError.SqlError | SecretUnreadable, HotSql | Secrets> {
  const hot = yield* HotSql
  const [row] = yield* hot<Omit<TransformationRow, "deleted_at" | "created_at" | "updated_at">>`
    select id, team_id, name, code, code_hash, env from transformations
    where id = ${id} and team_id = ${team_id} and deleted_at is null`
  if (row === undefined) return null
  const { code, code_hash, name } = row
  return { id, name, code, code_hash, env: yield* openEnv(yield* Secrets, row) }
})
