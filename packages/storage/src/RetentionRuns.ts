import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { removeRuns } from "./RunHistory.ts"

/** Rows of one statement: its transaction is over before anybody notices the locks. */
const batch = 500
/** Workflows of one run: the next one goes on. */
const mostWorkflows = 1_000

/** A version stays for so many days beyond the records of its runs: a day may be held for what waits for it. */
const versionGraceDays = 30

/**
 * Removes what workflows leave behind: runs, at their end, of those that were deleted, and versions that nobody can name any more. A version is
 * needed as long as a run may go by it: those began before the next one was made, and their records are gone by then.
 */
export const removeHistory = Effect.fnUntraced(function* (
  now: number,
  recordDays: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  let removed = 0
  const gone = yield* sql<{ id: string }>`
    select w.id from workflows w where w.deleted_at is not null
      and exists (select from workflow_runs r where r.workflow_id = w.id and r.finished_at is not null)
    limit ${mostWorkflows}`
  for (const { id } of gone) {
    for (;;) {
      const runs = yield* sql<{ id: string }>`
        select id from workflow_runs where workflow_id = ${id} and finished_at is not null order by id limit ${batch}`
      const count = runs.length === 0 ? 0 : yield* removeRuns(runs.map((run) => run.id))
      removed += count
      if (count < batch) break
    }
  }
  for (let count = batch; count === batch;) {
    const versions = yield* sql`
      delete from workflow_versions where ctid = any(array(
        select v.ctid from workflow_versions v
          join workflow_versions next on next.workflow_id = v.workflow_id and next.version = v.version + 1
          join teams t on t.id = v.team_id
        where next.created_at < ${new Date(now)}::timestamptz
            - (coalesce(t.record_retention_days, ${recordDays}::int4) + ${versionGraceDays}::int4) * interval '1 day'
          and not exists (select from workflow_versions o
            where o.workflow_id = v.workflow_id and o.version > v.version and o.defined_in = v.version)
        limit ${batch} for update of v skip locked)) returning 1`
    count = versions.length
    removed += count
  }
  return removed
})
