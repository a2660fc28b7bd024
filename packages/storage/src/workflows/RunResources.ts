import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { idBound, idTime, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"

/** A resource that a step names, as it was when the run began. Destinations and credentials are read when they are used. */
export interface NamedResource {
  readonly id: string
  readonly name: string
  readonly content_hash: string
  readonly updated_at: string
  /** For a saved action: its version, which is stored. */
  readonly revision?: number
  /** For a stored filter: its conditions, because earlier ones are stored nowhere else. */
  readonly conditions?: Schema.Json
}

interface Row extends Omit<NamedResource, "updated_at"> {
  readonly updated_at: Date
}

/**
 * The content that identifies the state of each kind: a transformation's code, a destination's type and settings (encrypted where
 * they are).
 */
const contents = {
  [prefixes.destination]: [
    "destinations",
    "encode(sha256(convert_to(type || ' ' || config::text, 'UTF8')), 'hex') as content_hash"
  ],
  [prefixes.transformation]: ["transformations", "code_hash as content_hash"],
  [prefixes.filter]: ["filters", "hash as content_hash, conditions"],
  [prefixes.action]: [
    "actions",
    `version as revision, (select v.content_hash from action_versions v
      where v.action_id = actions.id and v.version = actions.version) as content_hash`
  ]
} as const

/** The existing resources of the team; with `lost`, also deleted filters: a run of an older version uses their conditions. */
export const namedResources = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>,
  { lost = false }: { readonly lost?: boolean } = {}
): Effect.fn.Return<ReadonlyArray<NamedResource>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const found: Array<NamedResource> = []
  for (const [prefix, [table, columns]] of Object.entries(contents)) {
    const own = ids.filter((id) => id.startsWith(prefix))
    if (own.length === 0) continue
    const rows = yield* sql<Row>`
      select id, name, updated_at, ${sql.literal(columns)} from ${sql(table)}
      where id = any(${Columns.text(own)}) and team_id = ${team_id}
        and ${lost && prefix === prefixes.filter ? sql`true` : sql`deleted_at is null`}`
    for (const row of rows) {
      const hash = row.content_hash.startsWith("sha256:") ? row.content_hash : `sha256:${row.content_hash}`
      found.push({ ...row, content_hash: hash, updated_at: row.updated_at.toISOString() })
    }
  }
  return found
})

/** The resources of these runs as recorded when they began: JSON. */
export const namedBefore = Effect.fnUntraced(function* (
  runIds: ReadonlyArray<string>
): Effect.fn.Return<
  ReadonlyArray<{ readonly run_id: string; readonly resources: string }>,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  if (runIds.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const [first] = Columns.bounds(runIds)
  return yield* sql<{ run_id: string; resources: string }>`
    select run_id, resources from workflow_steps
    where run_id = any(${Columns.text(runIds)}) and part = 1 and resources is not null
      and id >= ${idBound(prefixes.workflowPart, idTime(first) ?? 0)}`
})
