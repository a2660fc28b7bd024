import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import * as Columns from "../journal/Columns.ts"
import type { Owner } from "../secrets/SealedColumn.ts"

/**
 * The functions by which other resources use workflows, inside their own transactions: which workflows name a resource, and what a write changes in
 * them. The database keeps the ids that a definition's steps name in the column `named`, which has an index.
 */

/** The workflows of the team that have a step that names it. */
export const namedBy = (sql: SqlClient.SqlClient, { id, team_id }: Owner): Statement.Fragment =>
  sql`team_id = ${team_id} and deleted_at is null and named ? ${id}`

/** How many steps of the team's workflows name each of these. An id without steps is absent. */
export const stepsNaming = (
  sql: SqlClient.SqlClient,
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, number>, SqlError.SqlError> =>
  Effect.map(
    sql<{ id: string; count: number }>`
      with asked as materialized (select id from unnest(${[...ids]}::text[]) as a (id)),
      naming as materialized (
        select distinct w.id from asked join workflows w
          on w.team_id = ${team_id} and w.deleted_at is null and w.named ? asked.id
      )
      select step.id, count(*)::int4 as count
      from naming join workflows w on w.id = naming.id
        cross join jsonb_array_elements_text(w.named) as step (id) join asked on asked.id = step.id
      group by 1`,
    (rows) => new Map(rows.map(({ count, id }) => [id, count]))
  )

/** How many workflows an error names that prevent a delete. */
const nameAtMost = 10

/**
 * Fails when a workflow has a step that names it. A workflow that comes to name it locks its row until its commit: a search after
 * the lock finds that workflow.
 */
export const refuseUsedBySteps = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  resource_type: string,
  owner: Owner
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const users = yield* sql<{ id: string }>`
    select id from workflows where ${namedBy(sql, owner)} order by id limit ${nameAtMost}`
  if (users.length === 0) return
  yield* fail("RESOURCE_IN_USE", `workflows use the ${resource_type}: remove it from their steps first`, {
    id: owner.id,
    resource_type,
    workflows: users.map((user) => user.id)
  })
})

/**
 * The workflows of a deleted source stay, disabled, until they get another source. The source's row is locked, so none is added.
 */
export const loseSource = (sql: SqlClient.SqlClient, source_id: string, at: Date, by: string | null) => sql`
  with lost as (
    update workflows set source_id = null, status = 'disabled', version = version + 1, updated_at = ${at}
    where source_id = ${source_id} and deleted_at is null
    returning id, version, team_id, name, status, definition_hash
  ), unscheduled as (
    delete from workflow_schedules where workflow_id = any(array(select id from lost))
  )
  insert into workflow_versions
    (workflow_id, version, team_id, name, status, definition_hash, defined_in, settings, created_by_user_id, created_at)
  select lost.id, lost.version, lost.team_id, lost.name, lost.status, lost.definition_hash, before.defined_in,
    before.settings || '{"source_id": null}', ${by}, ${at}
  from lost join workflow_versions before on before.workflow_id = lost.id and before.version = lost.version - 1`

/** Keeps these versions for their runs, where the time of a run does not lead to its version. */
export const keepForRuns = (
  sql: SqlClient.SqlClient,
  versions: ReadonlyArray<{ readonly id: string; readonly version: number }>
) => sql`
  update workflow_versions v set has_run = true
  from unnest(${Columns.text(versions.map(({ id }) => id))}, ${Columns.int4(versions.map(({ version }) => version))}) as o (id, version)
  where v.workflow_id = o.id and v.version = o.version and not v.has_run`
