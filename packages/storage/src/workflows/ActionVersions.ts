import { createHash } from "node:crypto"
import { Effect, type Schema } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { SavedContent } from "@tidegate/actions/ActionCatalog"
import { HotSql } from "../Database.ts"
import type { Owner } from "../secrets/SealedColumn.ts"

/** The versions of saved actions. A run that began with one uses it to its end. */

/** No run is older than this: no run uses a version that was replaced before. */
const keptDays = 61
/**
 * How many earlier versions of an action are kept, however often it is saved. A run that began with an older one fails at the
 * step.
 */
const keptAtMost = 100

const hashOf = (content: SavedContent): string =>
  `sha256:${createHash("sha256").update(JSON.stringify(content)).digest("hex")}`

/** Stores the version that the action has now, and deletes those that no run uses. */
export const keepVersion = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id, team_id, version }: Owner & { readonly version: number },
  content: SavedContent,
  at: Date
): Effect.fn.Return<void, SqlError.SqlError> {
  yield* sql`
    update action_versions set superseded_at = ${at} where action_id = ${id} and superseded_at is null`
  yield* sql`
    delete from action_versions where action_id = ${id} and (
      superseded_at < ${at}::timestamptz - make_interval(days => ${keptDays})
      or version <= ${version - keptAtMost}::int4)`
  yield* sql`
    insert into action_versions (action_id, version, team_id, schema_version, inputs, content_hash)
    values (${id}, ${version}, ${team_id}, ${content.version}, ${JSON.stringify(content.inputs)}, ${hashOf(content)})`
})

export interface PinnedAction extends SavedContent {
  readonly id: string
  readonly name: string
  /** The revision of the action. */
  readonly revision: number
  readonly content_hash: string
  readonly updated_at: string
}

interface PinnedRow {
  readonly id: string
  readonly name: string
  readonly provider_key: string
  readonly action_key: string
  readonly revision: number
  readonly schema_version: string
  readonly inputs: Schema.JsonObject
  readonly content_hash: string
  readonly updated_at: Date
}

const pinnedOf = ({ schema_version, updated_at, ...row }: PinnedRow): PinnedAction => ({
  ...row,
  version: schema_version,
  updated_at: updated_at.toISOString()
})

/** The current versions of the saved actions with these ids, for a new run to be pinned to. */
export const currentActions = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, PinnedAction>, SqlError.SqlError, HotSql> {
  if (ids.length === 0) return new Map()
  const hot = yield* HotSql
  const rows = yield* hot<PinnedRow>`
    select a.id, a.name, a.provider_key, a.action_key, v.version as revision, v.schema_version, v.inputs, v.content_hash, a.updated_at
    from actions a join action_versions v on v.action_id = a.id and v.version = a.version
    where a.id = any(${[...ids]}) and a.team_id = ${team_id} and a.deleted_at is null`
  return new Map(rows.map((row) => [row.id, pinnedOf(row)]))
})

/** The versions that a run was pinned to. A missing one was deleted meanwhile. */
export const pinnedActions = Effect.fnUntraced(function* (
  team_id: string,
  pins: ReadonlyArray<{ readonly id: string; readonly revision: number }>
): Effect.fn.Return<ReadonlyMap<string, PinnedAction>, SqlError.SqlError, HotSql> {
  if (pins.length === 0) return new Map()
  const hot = yield* HotSql
  const rows = yield* hot<PinnedRow>`
    select a.id, a.name, a.provider_key, a.action_key, v.version as revision, v.schema_version, v.inputs, v.content_hash, a.updated_at
    from unnest(${pins.map(({ id }) => id)}::text[], ${pins.map(({ revision }) => revision)}::int4[]) as pin (id, revision)
      join action_versions v on v.action_id = pin.id and v.version = pin.revision
      join actions a on a.id = v.action_id
    where v.team_id = ${team_id}`
  return new Map(rows.map((row) => [row.id, pinnedOf(row)]))
})
