import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

/** Arrivals for the waiting steps of a workflow, until its actor has given them to the steps. */

export interface Arrival {
  readonly about: string
  readonly team_id: string
  readonly again_at: Date | null
}

/** The due arrivals of a workflow, the oldest first. */
export const dueArrivals = Effect.fnUntraced(function* (
  shard: number,
  workflowId: string,
  limit: number
): Effect.fn.Return<ReadonlyArray<Arrival>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  return yield* sql<Arrival>`
    select about, team_id, again_at from workflow_arrivals
    where shard = ${shard} and workflow_id = ${workflowId} and due_at <= ${now}
    order by shard, workflow_id, due_at, about limit ${limit}`
})

/** These have been given to the steps; a look that is repeated comes due again. */
export const arrivalsDone = Effect.fnUntraced(function* (
  workflowId: string,
  done: ReadonlyArray<Arrival>
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [again, over] = [done.filter((one) => one.again_at !== null), done.filter((one) => one.again_at === null)]
  const ids = (of: ReadonlyArray<Arrival>) => Columns.text(of.map(({ about }) => about))
  if (over.length > 0) {
    yield* sql`delete from workflow_arrivals where workflow_id = ${workflowId} and about = any(${ids(over)}) and again_at is null`
  }
  if (again.length > 0) {
    yield* sql`update workflow_arrivals set due_at = again_at, again_at = null
      where workflow_id = ${workflowId} and about = any(${ids(again)}) and again_at is not null`
  }
})
