import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Owner } from "./SealedColumn.ts"

/** What the writes of others do with workflows, inside their own transactions. */

/** Of the workflows in the way of a delete, so many are named. */
const nameAtMost = 10

/**
 * Fails when a workflow has a step that names it. A workflow that comes to name it holds its row until it has committed: looked for
 * after the row was locked, it is seen.
 */
export const refuseUsedBySteps = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  resource_type: string,
  { id, team_id }: Owner
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const users = yield* sql<{ id: string }>`
    select id from workflows
    where team_id = ${team_id} and deleted_at is null and steps @> ${JSON.stringify([{ resource_id: id }])}::jsonb
    order by id limit ${nameAtMost}`
  if (users.length === 0) return
  yield* fail("RESOURCE_IN_USE", `workflows use the ${resource_type}: take it out of their steps first`, {
    id,
    resource_type,
    workflows: users.map((user) => user.id)
  })
})

/** The workflows of a source that is deleted stay, disabled, until they are given another. Its row is locked: none is added. */
export const loseSource = (sql: SqlClient.SqlClient, source_id: string, at: Date) => sql`
  with lost as (
    update workflows set source_id = null, status = 'disabled', version = version + 1, updated_at = ${at}
    where source_id = ${source_id} and deleted_at is null
    returning id, version, team_id, name, status, definition_hash
  )
  insert into workflow_versions (workflow_id, version, team_id, name, status, definition_hash, defined_in, created_at)
  select lost.id, lost.version, lost.team_id, lost.name, lost.status, lost.definition_hash, before.defined_in, ${at}
  from lost join workflow_versions before on before.workflow_id = lost.id and before.version = lost.version - 1`
