import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { OpenBatch } from "@tidegate/workflows/triggers/Batch"
import {
  type Debounced,
  type DebounceTimes,
  debounce,
  type KeyedRun,
  type Window
} from "@tidegate/workflows/triggers/Debounce"
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
  readonly members: number
  readonly bytes: number
}

/** Only one transaction at a time works on the windows of a workflow. */
export const lockWindows = (sql: SqlClient.SqlClient, workflowId: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`workflow_windows/${workflowId}`}, 0))`

/** A window. Only a batch also has a count of its runs. */
type Kept = Window & Partial<OpenBatch>

interface Decided {
  /** The windows of these keys from now on. Null: there is none. */
  readonly windows: ReadonlyMap<string, Kept | null>
}

interface Keeping<Answer> {
  readonly workflowId: string
  readonly teamId: string
  readonly keys: ReadonlyArray<string>
  /** Whether only windows count whose run still waits: it may have been cancelled. Until the end of the transaction it is not. */
  readonly areForWaiting: boolean
  readonly decide: (stored: ReadonlyMap<string, OpenBatch>) => Answer
}

interface WindowsKept<Answer> {
  readonly answer: Answer
  /** Runs of windows whose key would be one too many. */
  readonly refused: ReadonlySet<string>
  /** When the first of these windows is over (Unix ms); Infinity: there is none. */
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

/**
 * Reads the windows of these keys, and stores the decisions about them. Their runs are due when the windows are over. The caller has locked the
 * windows of the workflow, in the same transaction.
 */
export const keepingWindows = Effect.fnUntraced(function* <Answer extends Decided>({
  areForWaiting,
  decide,
  keys,
  teamId,
  workflowId
}: Keeping<Answer>): Effect.fn.Return<WindowsKept<Answer>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Row>`
    select key, run_id, run_at, opened_at, due_at, members, bytes from workflow_windows
    where workflow_id = ${workflowId} and key = any(${Columns.text([...new Set(keys)])})`
  const waiting =
    areForWaiting && rows.length > 0
      ? yield* sql<{ run_id: string }>`
          select run_id from workflow_queue where run_id = any(${Columns.text(rows.map(({ run_id }) => run_id))})
          order by run_id for key share`
      : rows
  const isWaiting = new Set(waiting.map(({ run_id }) => run_id))
  const stored = new Map(
    rows.flatMap(({ bytes, due_at, key, members, opened_at, run_at, run_id }) =>
      isWaiting.has(run_id)
        ? [
            [
              key,
              {
                runId: run_id,
                runAt: run_at.getTime(),
                openedAt: opened_at.getTime(),
                dueAt: due_at.getTime(),
                members,
                bytes
              }
            ] as const
          ]
        : []
    )
  )
  const answer = decide(stored)
  const over = [...answer.windows].flatMap(([key, window]) => (window === null ? [key] : []))
  const open = [...answer.windows].flatMap(([key, window]) => (window === null ? [] : [{ key, ...window }]))
  const known = new Set(rows.map(({ key }) => key))
  const fresh = open.filter(({ key }) => !known.has(key))
  const tooMany = new Set(fresh.slice(fresh.length - (yield* overflowOf(workflowId, fresh.length))))
  const kept = open.filter((one) => !tooMany.has(one))
  if (over.some((key) => known.has(key))) {
    yield* sql`delete from workflow_windows where workflow_id = ${workflowId} and key = any(${Columns.text(over)})`
  }
  if (kept.length > 0) {
    const due = Columns.timestamptz(kept.map(({ dueAt }) => dueAt))
    yield* sql`
      insert into workflow_windows (workflow_id, key, team_id, run_id, run_at, opened_at, due_at, members, bytes, expires_at)
      select ${workflowId}, w.key, ${teamId}, w.run_id, w.run_at, w.opened_at, w.due_at, w.members, w.bytes,
        w.due_at + ${keptForDays}::int4 * interval '1 day'
      from unnest(${Columns.text(kept.map(({ key }) => key))}, ${Columns.text(kept.map(({ runId }) => runId))},
        ${Columns.timestamptz(kept.map(({ runAt }) => runAt))}, ${Columns.timestamptz(kept.map(({ openedAt }) => openedAt))},
        ${due}, ${Columns.int4(kept.map(({ members = 1 }) => members))}, ${Columns.int4(kept.map(({ bytes = 0 }) => bytes))}
      ) as w (key, run_id, run_at, opened_at, due_at, members, bytes)
      on conflict (workflow_id, key) do update set run_id = excluded.run_id, run_at = excluded.run_at,
        opened_at = excluded.opened_at, due_at = excluded.due_at, members = excluded.members, bytes = excluded.bytes,
        expires_at = excluded.expires_at`
    yield* sql`
      update workflow_queue q set due_at = w.due_at
      from unnest(${Columns.text(kept.map(({ runId }) => runId))}, ${due}) as w (run_id, due_at)
      where q.run_id = any(${Columns.text(kept.map(({ runId }) => runId))}) and q.run_id = w.run_id`
  }
  const nextAt = Math.min(Infinity, ...kept.map(({ dueAt }) => dueAt))
  return { answer, refused: new Set([...tooMany].map(({ runId }) => runId)), nextAt }
})

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

/**
 * Lets these runs wait for later ones of their keys, and says which begin, and which have been superseded. It may be repeated: a run
 * that has not begun by then gets the same answer.
 */
export const windowed = Effect.fnUntraced(function* ({
  now,
  runs,
  teamId,
  times,
  workflowId
}: Asked): Effect.fn.Return<Windowed, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const keeping = keepingWindows({
    workflowId,
    teamId,
    keys: runs.map(({ key }) => key),
    areForWaiting: false,
    decide: (stored) => debounce(runs, stored, times, now)
  })
  const { answer, nextAt, refused } = yield* sql.withTransaction(Effect.andThen(lockWindows(sql, workflowId), keeping))
  return { begin: answer.begin, superseded: answer.superseded, refused, nextAt }
})

/** The setting by which the runs of a workflow wait for others; null: they do not. */
const waitsBy = (row: WorkflowRow | null): "debounce" | "batch" | null => {
  if (row === null || row.deleted_at !== null) return null
  if (row.triggers?.debounce != null) return "debounce"
  return row.triggers?.batch == null ? null : "batch"
}

/** Lets the runs go that wait for others, in the transaction that removes or replaces the setting. */
export const keepWindows = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: WorkflowRow | null,
  after: WorkflowRow,
  at: Date
): Effect.fn.Return<void, SqlError.SqlError> {
  const by = waitsBy(before)
  if (by === null || by === waitsBy(after)) return
  yield* lockWindows(sql, after.id)
  yield* sql`
    update workflow_queue set due_at = ${at}
    where run_id = any(array(select run_id from workflow_windows where workflow_id = ${after.id}))`
  yield* sql`delete from workflow_windows where workflow_id = ${after.id}`
})
