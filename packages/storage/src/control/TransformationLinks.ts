import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Rule } from "@tidegate/model/Rule"
import type { Env } from "@tidegate/model/Transformation"
import type { ConnectionFields } from "@tidegate/resources/Connection"
import { presentOf } from "./PresentOf.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { takePlace } from "../teams/TeamCounts.ts"
import { codeHash } from "./Transformations.ts"
import { sealEnv } from "./TransformationEnv.ts"
import { overtaken } from "../Transaction.ts"

/** How the write of a connection uses transformations, inside its own transaction. */

/**
 * Locks the transformations that the connection's rules name against deletion until the transaction ends. Fails with NOT_FOUND
 * for the first one that does not exist. Locks in id order.
 */
export const holdTransformations = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  if (ids.length === 0) return
  const held = yield* sql<{ id: string }>`
    select id from transformations where id = any(${[...ids]}) and ${presentOf(sql, team_id)}
    order by id for share`
  const missing = ids.find((id) => !held.some((row) => row.id === id))
  if (missing !== undefined) yield* notFound("transformation", missing)
})

/**
 * Stores a transformation that was written inside a rule: updates the one of that name (absent variables stay) or creates it.
 * Returns its id; it is locked until the transaction ends. The caller has checked `fields` and compiled the code. When another
 * transaction creates one of that name at the same moment, it fails with a serialization error, and the transaction has to be
 * repeated (as `transaction` does).
 */
export const upsertTransformation = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  secrets: Secrets["Service"],
  team_id: string,
  fields: { readonly name: string; readonly code: string; readonly env: Env | undefined }
): Effect.fn.Return<string, GatewayError | SqlError.SqlError> {
  const { code, env, name } = fields
  const nowMs = yield* Clock.currentTimeMillis
  const at = new Date(nowMs)
  const hash = codeHash(code)
  const [stored] = yield* sql<{ id: string; env: string | null }>`
    select id, env from transformations where team_id = ${team_id} and name = ${name} and deleted_at is null for update`
  const id = stored?.id ?? newId(prefixes.transformation, nowMs)
  if (stored === undefined) yield* takePlace(sql, "transformations", { id, team_id })
  const sealed = env === undefined ? (stored?.env ?? null) : yield* sealEnv(secrets, { team_id, id }, env)
  const [written] =
    stored === undefined
      ? yield* sql`
          insert into transformations (id, team_id, name, code, code_hash, env, created_at, updated_at)
          values (${id}, ${team_id}, ${name}, ${code}, ${hash}, ${sealed}, ${at}, ${at})
          on conflict do nothing returning id`
      : yield* sql`
          update transformations set code = ${code}, code_hash = ${hash}, env = ${sealed}, updated_at = ${at}
          where id = ${id} returning id`
  return written === undefined ? yield* overtaken("the name has been taken") : id
})

/** Links the transformations of rules: those written inside a rule are stored, and all are locked against deletion. */
export const linkTransformations = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  secrets: Secrets["Service"],
  team_id: string,
  rules: ConnectionFields["rules"]
): Effect.fn.Return<ReadonlyArray<Rule>, GatewayError | SqlError.SqlError> {
  const linked: Array<Rule> = []
  for (const rule of rules) {
    if (rule.type !== "transform" || !("transformation" in rule)) {
      linked.push(rule)
      continue
    }
    const { code, env, name } = rule.transformation
    const transformation_id = yield* upsertTransformation(sql, secrets, team_id, { name, code, env })
    linked.push({ type: "transform", transformation_id })
  }
  const ids = linked.flatMap((rule) => ("transformation_id" in rule ? [rule.transformation_id] : []))
  yield* holdTransformations(sql, team_id, ids)
  return linked
})
