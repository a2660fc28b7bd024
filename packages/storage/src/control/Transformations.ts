import { hash } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { type Isolation, runtime, type Transformation } from "@tidegate/model/Transformation"
import { transformation, type TransformationFields } from "@tidegate/resources/Transformation"
import { HotSql } from "../Database.ts"
import { binsByMeasure } from "../retention/RollupBins.ts"
import { connectionsByTransformation, executionFields, executionMeasures } from "../reads/ExecutionCounts.ts"
import { presentOf } from "./PresentOf.ts"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"
import { makeStore } from "./MakeStore.ts"
import { nobody, type Store, type StoredRow } from "./Store.ts"
import { isolationNow } from "../delivery/RoutingJobs.ts"
import { openEnv, showEnv } from "./TransformationEnv.ts"
import { refuseUsedBySteps } from "../workflows/WorkflowLinks.ts"

/** A row of `transformations`. */
export interface TransformationRow extends StoredRow {
  readonly code: string
  readonly code_hash: string
  /** Encrypted. */
  readonly env: string | null
  readonly isolation: Isolation | null
  /** The hash of the code that gave different results in a reused isolate, and the difference. */
  readonly pinned_hash: string | null
  readonly pinned_reason: string | null
}

/** A transformation to run: `env` is decrypted. */
export interface LoadedTransformation extends TransformationFields {
  readonly id: string
  readonly isolation: Isolation
  readonly code_hash: string
}

/** SHA-256 of the code in hex; identifies a compiled copy. */
export const codeHash = (code: string): string => hash("sha256", code, "hex")

/** How many connections an error names that prevent a delete. */
const nameAtMost = 10

/** No workflow run is older than this: no run uses code that was replaced before. */
const keptDays = 61
/** How many earlier versions of a transformation's code are kept, however often it is saved. */
const keptAtMost = 100

const inUse = (id: string, users: ReadonlyArray<{ readonly id: string }>): GatewayError =>
  fail("RESOURCE_IN_USE", "connections use the transformation: remove it from their rules first", {
    id,
    resource_type: "transformation",
    connections: users.map((user) => user.id)
  })

/**
 * The transformations of teams. Ingress does not use them: a connection loads its transformation when it works off a request, so
 * a change holds for every request worked off after it. A transformation that a connection's rules name cannot be deleted
 * (RESOURCE_IN_USE). After a delete its executions stay and its variables are removed.
 */
export class Transformations extends Context.Service<Transformations, Store<typeof transformation>>()(
  "@tidegate/storage/Transformations"
) {
  static readonly layer: Layer.Layer<Transformations, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    Transformations,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets

  /** Keeps the code that a workflow run may have begun with. */
  const keepCode = Effect.fnUntraced(function* ({ code, code_hash, id, team_id }: TransformationRow, at: Date) {
    yield* sql`
      insert into transformation_versions (transformation_id, code_hash, team_id, code, superseded_at)
      values (${id}, ${code_hash}, ${team_id}, ${code}, ${at})
      on conflict (transformation_id, code_hash) do update set superseded_at = excluded.superseded_at`
    yield* sql`
      delete from transformation_versions where transformation_id = ${id} and (
        superseded_at < ${at}::timestamptz - make_interval(days => ${keptDays})
        or code_hash not in (
          select code_hash from transformation_versions where transformation_id = ${id}
          order by superseded_at desc, code_hash limit ${keptAtMost}))`
  })

  return yield* makeStore<TransformationRow, typeof transformation>(transformation, {
    show: Effect.fnUntraced(function* (rows, { counts }) {
      const [first] = rows
      if (first === undefined) return []
      const ids = rows.map(({ id }) => id)
      // Without counts there are no ids to count, so nothing is read.
      const nowMs = yield* Clock.currentTimeMillis
      const of = yield* binsByMeasure(sql, null, counts ? ids : [], executionMeasures, nowMs)
      const users = counts ? yield* connectionsByTransformation(sql, first.team_id, ids) : new Map<string, number>()
      return yield* Effect.forEach(rows, (row) =>
        Effect.map(showEnv(secrets, row), (env): Transformation => ({
          id: row.id,
          team_id: row.team_id,
          name: row.name,
          code: row.code,
          env,
          runtime,
          code_hash: row.code_hash,
          isolation: row.isolation,
          isolation_reason: row.isolation !== "fresh" && row.pinned_hash === row.code_hash ? row.pinned_reason : null,
          deleted_at: row.deleted_at?.toISOString() ?? null,
          ...executionFields(of(row.id)),
          connections_count: users.get(row.id) ?? 0,
          created_at: row.created_at.toISOString(),
          updated_at: row.updated_at.toISOString()
        }))
      )
    }),
    prepare: (_owner, _before, next) =>
      Effect.succeed(next["code"] === undefined ? next : { ...next, code_hash: codeHash(next["code"] as string) }),
    // A connection that comes to name it locks the row until its commit: a search after the lock finds that connection.
    remove: Effect.fnUntraced(function* ({ id, team_id }) {
      const users = yield* sql<{ id: string }>`
        select id from connections
        where team_id = ${team_id} and deleted_at is null
          and rules @> ${JSON.stringify([{ transformation_id: id }])}::jsonb
        order by id limit ${nameAtMost}`
      if (users.length > 0) yield* inUse(id, users)
      yield* refuseUsedBySteps(sql, "transformation", { id, team_id })
      return { env: null }
    }),
    follow: Effect.fnUntraced(function* (before, after, at) {
      if (after.deleted_at !== null) {
        yield* sql`delete from transformation_versions where transformation_id = ${after.id}`
      } else if (before !== null && before.code_hash !== after.code_hash) yield* keepCode(before, at)
      return nobody
    })
  })
})

/**
 * Stores why this code of a transformation has to run in a fresh context for each call. Nothing is stored when the transformation
 * has other code by now. It does not count as a change of the transformation.
 */
export const pinTransformation = Effect.fnUntraced(function* (
  id: string,
  code_hash: string,
  reason: string
): Effect.fn.Return<void, SqlError.SqlError, HotSql> {
  const hot = yield* HotSql
  yield* hot`
    update transformations set pinned_hash = code_hash, pinned_reason = ${reason}
    where id = ${id} and code_hash = ${code_hash} and pinned_hash is distinct from code_hash`
})

/**
 * A transformation as it runs now; null when it does not exist (any more). With `pinned`: the code with that hash, or null when
 * that is no longer kept. Variables are always the current ones. Fails with `SecretUnreadable` when they cannot be decrypted: the
 * run has to wait, because the key may come back.
 */
export const loadTransformation = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  pinned: string | null = null
): Effect.fn.Return<LoadedTransformation | null, SqlError.SqlError | SecretUnreadable, HotSql | Secrets> {
  const hot = yield* HotSql
  const [row] = yield* hot<
    Pick<TransformationRow, "id" | "team_id" | "name" | "code" | "code_hash" | "env"> & { isolation: Isolation }
  >`
    select id, team_id, name, code, code_hash, env, ${hot.literal(isolationNow)} as isolation from transformations
    where id = ${id} and ${presentOf(hot, team_id)}`
  if (row === undefined) return null
  const env = yield* openEnv(yield* Secrets, row)
  const { code, code_hash, isolation, name } = row
  if (pinned === null || pinned === code_hash) return { id, name, code, code_hash, isolation, env }
  const [before] = yield* hot<{ code: string }>`
    select code from transformation_versions
    where transformation_id = ${id} and code_hash = ${pinned} and team_id = ${team_id}`
  // Replaced code is no longer tested for a reused isolate.
  return before === undefined ? null : { id, name, code: before.code, code_hash: pinned, isolation: "fresh", env }
})
