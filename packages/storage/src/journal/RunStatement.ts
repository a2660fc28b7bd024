import type { PgTypes } from "@effect/sql-pg"
import * as Columns from "./Columns.ts"

/** What a commit makes of a run of a workflow. Times are Unix milliseconds. */
export interface RunTransition {
  readonly id: string
  readonly teamId: string
  /** Which part of the run this is, from 1. Of two that hand in the same, one is stored. */
  readonly part: number
  readonly partId: string
  readonly at: number
  readonly status: "queued" | "running" | "succeeded" | "failed"
  readonly outcome: string | null
  /** Step retries that were asked for, and 1. */
  readonly attempts: number
  readonly succeeded: number
  readonly failed: number
  readonly skipped: number
  readonly running: number
  readonly error: { readonly code: string; readonly message: string; readonly stepId: string | null } | null
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** When it goes on; null: it is at its end. */
  readonly dueAt: number | null
  /** What it needs of what may be gone by then. */
  readonly carried: string | null
  /** JSON. */
  readonly steps: string
  readonly outputs: string | null
  readonly previews: string | null
}

const types = [
  "text", // id
  "text", // team_id
  "int4", // part
  "text", // part_id
  "timestamptz", // at
  "text", // status
  "text", // outcome
  "int4", // attempts
  "int2", // succeeded
  "int2", // failed
  "int2", // skipped
  "int2", // running
  "text", // error_code
  "text", // error_message
  "text", // error_step
  "timestamptz", // started_at
  "timestamptz", // finished_at
  "timestamptz", // due_at
  "text", // carried
  "text", // steps
  "text", // outputs
  "text" // previews
] as const

const columns = `id, team_id, part, part_id, at, status, outcome, attempts, succeeded, failed, skipped, running, error_code,
  error_message, error_step, started_at, finished_at, due_at, carried, steps, outputs, previews`

/**
 * One statement, hence one transaction, for runs of whatever workflows: their records, what their steps have come to, and when they go on.
 * A run that somebody else has taken on is left as it is, and is not among the ids that are answered.
 */
const buildStatement = (single: boolean): string => `
with given as materialized (
  select * from ${Columns.rowsFrom(types, 3, single)} as g (${columns})
), moved as (
  update workflow_runs r set parts = g.part, status = g.status, outcome = g.outcome, attempts = g.attempts,
    succeeded_steps = g.succeeded, failed_steps = g.failed, skipped_steps = g.skipped, running_steps = g.running,
    error_code = g.error_code, error_message = g.error_message, error_step_id = g.error_step, started_at = g.started_at,
    finished_at = g.finished_at, updated_at = g.at
  from given g
  where r.id = g.id and r.id >= $1 and r.id <= $2 and r.parts = g.part - 1
  returning r.id
), written as (
  insert into workflow_steps (id, team_id, run_id, part, steps, outputs, previews, created_at)
  select g.part_id, g.team_id, g.id, g.part, g.steps, g.outputs, g.previews, g.at from given g join moved m on m.id = g.id
), ended as (
  delete from workflow_queue q using given g, moved m where q.run_id = g.id and m.id = g.id and g.due_at is null
), waiting as (
  update workflow_queue q set due_at = g.due_at, carried = g.carried from given g, moved m
  where q.run_id = g.id and m.id = g.id and g.due_at is not null
    and (q.due_at, q.carried) is distinct from (g.due_at, g.carried)
)
select id from moved`

const statements = { one: buildStatement(true), more: buildStatement(false) }

export const runCommit = (
  items: ReadonlyArray<RunTransition>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => {
  const rows: Array<Array<unknown>> = types.map(() => [])
  for (const run of items) {
    const values = [
      run.id,
      run.teamId,
      run.part,
      run.partId,
      run.at,
      run.status,
      run.outcome,
      run.attempts,
      run.succeeded,
      run.failed,
      run.skipped,
      run.running,
      run.error?.code ?? null,
      run.error?.message ?? null,
      run.error?.stepId ?? null,
      run.startedAt,
      run.finishedAt,
      run.dueAt,
      run.carried,
      run.steps,
      run.outputs,
      run.previews
    ]
    for (const [i, value] of values.entries()) rows[i]!.push(value)
  }
  const single = items.length === 1
  return {
    statement: single ? statements.one : statements.more,
    parameters: [...Columns.bounds(items.map(({ id }) => id)), ...Columns.bind(types, rows, single)]
  }
}
