import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Debounced, type DebounceTimes, debounce, type KeyedRun } from "@tidegate/workflows/triggers/Debounce"
import * as Columns from "../journal/Columns.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"

/** Keys of a workflow whose last run waits for a later one. A run of a further key ends at once. */
export const maxWindows = 10_000

/** How long (days) a window is kept after its time, for a workflow that is paused. Runs end after that time. */
const keptForDays = 60

interface Row {
  readonly key: string
  readonly run_id: string
  readonly run_at: Date
  readonly opened_at: Date
  readonly due_at: Date
}

/** Only one transaction at a time works on the windows of a workflow. */
const lock = (sql: SqlClient.SqlClient, workflowId: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`workflow_windows/${workflowId}`}, 0))`

interface Asked {
  readonly workflowId: string
  readonly teamId: string
  /** In the order in which they were made. */
  readonly runs: ReadonlyArray<KeyedRun>
  readonly times: DebounceTimes
  readonly now: number
}

/** What becomes of these runs. `refused`: those whose key would be one too many. */
export interface Windowed extends Pick<Debounced, "begin" | "superseded"> {
  readonly refused: ReadonlySet<string>
  /** When the first of these runs that wait is due (Unix ms); Infinity: none waits. */
  readonly nextAt: number
}

const overflowOf = Effect.fnUntraced(function* (
  workflowId: string,
  fresh: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  if (fresh === 0) return 0
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ count: number }>`
    select count(*)::int4 as count from (
      select from workflow_windows where workflow_id = ${workflowId} limit ${maxWindows}) w`
  return Math.max(0, (row?.count ?? 0) + fresh - maxWindows)
})

const window = Effect.fnUntraced(function* ({
  now,
  runs,
  teamId,
  times,
  workflowId
}: Asked): Effect.fn.Return<Windowed, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* lock(sql, workflowId)
  const keys = [...new Set(runs.map(({ key }) => key))]
  const rows = yield* sql<Row>`
    select key, run_id, run_at, opened_at, due_at from workflow_windows
    where workflow_id = ${workflowId} and key = any(${Columns.text(keys)})`
  const stored = new Map(
    rows.map(({ due_at, key, opened_at, run_at, run_id }) => [
      key,
      { runId: run_id, runAt: run_at.getTime(), openedAt: opened_at.getTime(), dueAt: due_at.getTime() }
    ])
  )
  const { begin, superseded, windows } = debounce(runs, stored, times, now)
  const over = [...stored.keys()].filter((key) => windows.get(key) === null)
  const open = [...windows].flatMap(([key, window]) => (window === null ? [] : [{ key, ...window }]))
  const fresh = open.filter(({ key }) => !stored.has(key))
  const tooMany = new Set(fresh.slice(fresh.length - (yield* overflowOf(workflowId, fresh.length))))
  const kept = open.filter((one) => !tooMany.has(one))
  if (over.length > 0) {
    yield* sql`delete from workflow_windows where workflow_id = ${workflowId} and key = any(${Columns.text(over)})`
  }
  if (kept.length > 0) {
    const due = Columns.timestamptz(kept.map(({ dueAt }) => dueAt))
    yield* sql`
      insert into workflow_windows (workflow_id, key, team_id, run_id, run_at, opened_at, due_at, expires_at)
      select ${workflowId}, w.key, ${teamId}, w.run_id, w.run_at, w.opened_at, w.due_at,
        w.due_at + ${keptForDays}::int4 * interval '1 day'
      from unnest(${Columns.text(kept.map(({ key }) => key))}, ${Columns.text(kept.map(({ runId }) => runId))},
        ${Columns.timestamptz(kept.map(({ runAt }) => runAt))}, ${Columns.timestamptz(kept.map(({ openedAt }) => openedAt))},
        ${due}) as w (key, run_id, run_at, opened_at, due_at)
      on conflict (workflow_id, key) do update set run_id = excluded.run_id, run_at = excluded.run_at,
        opened_at = excluded.opened_at, due_at = excluded.due_at, expires_at = excluded.expires_at`
    yield* sql`
      update workflow_queue q set due_at = w.due_at
      from unnest(${Columns.text(kept.map(({ runId }) => runId))}, ${due}) as w (run_id, due_at)
      where q.run_id = any(${Columns.text(kept.map(({ runId }) => runId))}) and q.run_id = w.run_id`
  }
  const nextAt = Math.min(Infinity, ...kept.map(({ dueAt }) => dueAt))
  return { begin, superseded, refused: new Set([...tooMany].map(({ runId }) => runId)), nextAt }
})

/**
 * Lets these runs wait for later ones of their keys, and says which begin, and which have been superseded. It may be repeated: a run
 * that has not begun by then gets the same answer.
 */
export const windowed = (asked: Asked): Effect.Effect<Windowed, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(window(asked)))

const debounces = (row: WorkflowRow | null): boolean => row?.deleted_at === null && row.triggers?.debounce != null

/** Lets the runs go that wait for later ones, in the transaction that removes the setting. */
export const keepWindows = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: WorkflowRow | null,
  after: WorkflowRow,
  at: Date
): Effect.fn.Return<void, SqlError.SqlError> {
  if (!debounces(before) || debounces(after)) return
  yield* lock(sql, after.id)
  yield* sql`
    update workflow_queue set due_at = ${at}
    where run_id = any(array(select run_id from workflow_windows where workflow_id = ${after.id}))`
  yield* sql`delete from workflow_windows where workflow_id = ${after.id}`
})
