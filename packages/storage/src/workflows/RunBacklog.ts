import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"
import { firstOfEach, runQueue } from "../delivery/FirstOfEach.ts"

/** The unfinished runs of some shards. */
export interface RunBacklog {
  /** At most a thousand runs of a workflow are counted. */
  readonly waiting: number
  /** The due time of the oldest run of an active workflow (Unix ms); null: there is none. */
  readonly oldestDue: number | null
}

/** The workflows that are counted: those whose first run has been due for longest. */
const maxWorkflows = 500
/** The runs that are counted for one of them. */
const maxRuns = 1_000

/** The backlog of runs. Its cost is bounded: one index probe for each workflow with unfinished runs, and half a million index entries. */
export const runBacklog = Effect.fnUntraced(function* (
  shards: ReadonlyArray<number>
): Effect.fn.Return<RunBacklog, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ waiting: number; oldest: Date | null }>`
    with recursive ${firstOfEach(sql, "runs", shards, runQueue)}, chosen as (
      select * from runs order by due_at limit ${maxWorkflows}
    )
    select coalesce(sum(counted.waiting), 0)::int4 as waiting,
      min(c.due_at) filter (where coalesce((
        select w.status = 'active' and w.deleted_at is null from workflows w where w.id = c.workflow_id
      ), false)) as oldest
    from chosen c cross join lateral (
      select count(*)::int4 as waiting from (
        select 1 from workflow_queue q where q.shard = c.shard and q.workflow_id = c.workflow_id limit ${maxRuns}
      ) r
    ) counted`
  return { waiting: row?.waiting ?? 0, oldestDue: row?.oldest?.getTime() ?? null }
})
