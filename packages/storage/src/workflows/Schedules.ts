import { Clock, Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { MissedRule, WorkflowSchedule } from "@tidegate/model/WorkflowTriggers"
import { yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import { compileSchedule, ticksOf } from "@tidegate/workflows/triggers/Schedule"
import * as Columns from "../journal/Columns.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { beginRun, jsonInput } from "./BegunRuns.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"

/**
 * The schedules of workflows. A row's `due_at` is its next occurrence. The transaction that begins the runs of an occurrence moves
 * it on, so each occurrence begins its run once, however many processes look, and whatever their clocks say.
 */

const schedulesOf = (row: WorkflowRow | null): ReadonlyArray<WorkflowSchedule> =>
  row === null || row.deleted_at !== null || (row.status !== "active" && row.status !== "paused")
    ? []
    : (row.triggers?.schedule ?? [])

/** The first occurrence after `at`. Null: there is none, or the expression cannot be read: then it begins nothing. */
const nextOf = ({ cron, timezone }: WorkflowSchedule, at: Date): Date | null => {
  const next = Result.getOrNull(compileSchedule(cron, timezone))?.after(at.getTime()) ?? null
  return next === null ? null : new Date(next)
}

/**
 * Updates the rows after a change of the workflow, in the same transaction. A schedule that stays keeps its next occurrence, so that missed
 * occurrences are known when a paused workflow goes on. A disabled workflow has no rows, so it misses nothing.
 */
export const keepSchedules = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: WorkflowRow | null,
  after: WorkflowRow,
  at: Date
): Effect.fn.Return<void, SqlError.SqlError> {
  const wanted = schedulesOf(after)
  if (wanted.length === 0 && schedulesOf(before).length === 0) return
  const crons = Columns.text(wanted.map(({ cron }) => cron))
  const zones = Columns.text(wanted.map(({ timezone }) => timezone))
  yield* sql`
    delete from workflow_schedules s where s.workflow_id = ${after.id}
      and not exists (select from unnest(${crons}, ${zones}) as w (cron, timezone) where w.cron = s.cron and w.timezone = s.timezone)`
  const active = after.status === "active"
  for (const schedule of wanted) {
    yield* sql`
      insert into workflow_schedules (workflow_id, team_id, cron, timezone, missed, active, due_at)
      values (${after.id}, ${after.team_id}, ${schedule.cron}, ${schedule.timezone}, ${schedule.missed}, ${active}, ${nextOf(schedule, at)})
      on conflict (workflow_id, cron, timezone) do update set missed = excluded.missed, active = excluded.active`
  }
})

interface DueSchedule {
  readonly workflow_id: string
  readonly team_id: string
  readonly cron: string
  readonly timezone: string
  readonly missed: MissedRule
  readonly due_at: Date
}

/** Schedules that one transaction works on: it must not hold its locks for long. */
const atOnce = 20

/** The request that a run of a schedule has in its context. */
const inputOf = ({ cron, timezone }: DueSchedule, occurrence: number) =>
  jsonInput(JSON.stringify({ scheduled_at: new Date(occurrence).toISOString(), cron, timezone }))

/**
 * Begins the runs of schedules that are due at `now` (Unix ms). Returns their workflows, which have to be woken, and how many
 * schedules were due. `shardOf`: the shard of a workflow's actor.
 */
export const beginScheduled = Effect.fnUntraced(function* (
  now: number,
  shardOf: (workflowId: string) => number
): Effect.fn.Return<
  { readonly workflows: ReadonlyArray<string>; readonly more: boolean },
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const begun = sql.withTransaction(
    Effect.gen(function* () {
      const due = yield* sql<DueSchedule>`
        select workflow_id, team_id, cron, timezone, missed, due_at from workflow_schedules
        where active and due_at <= ${new Date(now)} order by due_at limit ${atOnce} for update skip locked`
      const workflows = new Set<string>()
      for (const schedule of due) {
        const { cron, due_at, missed, team_id: teamId, timezone, workflow_id: workflowId } = schedule
        const since = performance.now()
        const compiled = Result.getOrNull(compileSchedule(cron, timezone))
        const { begin, next } =
          compiled === null ? { begin: [], next: null } : ticksOf(compiled, missed, due_at.getTime(), now)
        yield* yieldIfSpent(since)
        for (const occurrence of begin) {
          workflows.add(workflowId)
          const at = yield* Clock.currentTimeMillis
          const id = newId(prefixes.workflowRun, at)
          const run = { id, teamId, workflowId, shard: shardOf(workflowId), trigger: "schedule" } as const
          yield* beginRun({ ...run, input: inputOf(schedule, occurrence), at: new Date(at) })
        }
        yield* sql`
          update workflow_schedules set due_at = ${next === null ? null : new Date(next)}
          where workflow_id = ${workflowId} and cron = ${cron} and timezone = ${timezone}`
      }
      return { workflows: [...workflows], more: due.length === atOnce }
    })
  )
  return yield* withPartitions(sql)(begun)
})

/** When the next schedule is due (Unix ms). Null: none is. */
export const nextScheduled: Effect.Effect<number | null, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ due_at: Date }>`
      select due_at from workflow_schedules where active and due_at is not null order by due_at limit 1`
    return row?.due_at.getTime() ?? null
  }
)
