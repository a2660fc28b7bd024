import type { PgTypes } from "@effect/sql-pg"
import * as Columns from "./Columns.ts"
import { minuteOfId, writeCounts } from "./CountStatement.ts"

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
  /** Characters of what its steps have given. */
  readonly kept: number
  readonly error: { readonly code: string; readonly message: string; readonly stepId: string | null } | null
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** When it goes on; null: it is at its end. */
  readonly dueAt: number | null
  /** Whether that is another time than before, or it carries something with it. */
  readonly moves: boolean
  /** What it needs of what may be gone by then; null: no more than before. */
  readonly carried: string | null
  /** JSON. */
  readonly steps: string
  /** Of the part that begins it: what its steps name, as it was then. JSON. */
  readonly resources: string | null
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
  "int4", // kept
  "text", // error_code
  "text", // error_message
  "text", // error_step
  "timestamptz", // started_at
  "timestamptz", // finished_at
  "timestamptz", // due_at
  "text", // carried
  "text", // steps
  "text", // resources
  "text", // outputs
  "text" // previews
] as const

const columns = `id, team_id, part, part_id, at, status, outcome, attempts, succeeded, failed, skipped, running, kept, error_code,
  error_message, error_step, started_at, finished_at, due_at, carried, steps, resources, outputs, previews`

/** What is counted of runs, under their workflow: that one has begun, and how it ended and when (ms). One that ends again, ends again. */
const counts = writeCounts(`(
    select team_id, workflow_id as key_id, null::text as source_id, null::text as destination_id, measure,
      ${minuteOfId("moved.id")} as minute, sum(n)::int8 as n
    from moved cross join lateral (values
      ('run', case when part = 1 then 1 else 0 end),
      (case when status = 'succeeded' then 'run_succeeded' else 'run_failed' end, case when finished_at is null then 0 else 1 end),
      ('run_ms', coalesce(extract(epoch from finished_at - started_at) * 1000, 0)::int8)
    ) as one (measure, n)
    where n > 0 group by 1, 2, 5, 6
  ) c`)

/** Whether a batch is of one run, and whether one of them goes on at another time than before. */
interface Shape {
  readonly single: boolean
  readonly moves: boolean
}

/**
 * One statement, hence one transaction, for runs of whatever workflows: their records, what their steps have come to, and when they go on.
 * A run that somebody else has taken on is left as it is, and is not among the ids that are answered. Queue rows are found by arrays: joined,
 * a plan that was made when there were few would read all of them.
 */
const buildStatement = ({ moves, single }: Shape): string => `
with moved as (
  update workflow_runs r set parts = g.part, status = g.status, outcome = g.outcome, attempts = g.attempts,
    succeeded_steps = g.succeeded, failed_steps = g.failed, skipped_steps = g.skipped, running_steps = g.running, kept = g.kept,
    error_code = g.error_code, error_message = g.error_message, error_step_id = g.error_step, started_at = g.started_at,
    finished_at = g.finished_at, updated_at = g.at
  from ${Columns.rowsFrom(types, 3, single)} as g (${columns})
  where ${single ? "" : "r.id = any($3::text[]) and "}r.id >= $1 and r.id <= $2 and r.id = g.id and r.parts = g.part - 1
  returning g.*, r.workflow_id
), written as (
  insert into workflow_steps (id, team_id, run_id, part, steps, resources, outputs, previews, created_at)
  select part_id, team_id, id, part, steps, resources, outputs, previews, at from moved
), counted as (
  ${counts}
), ended as (
  delete from workflow_queue where run_id = any(array(select id from moved where due_at is null))
)${
  moves
    ? `, waiting as (
  update workflow_queue q set due_at = moved.due_at, carried = coalesce(moved.carried, q.carried) from moved
  where q.run_id = any(array(select id from moved where due_at is not null)) and q.run_id = moved.id
    and (q.due_at <> moved.due_at or moved.carried is not null)
)`
    : ""
}
select id from moved`

const statements = new Map<string, string>()

const statementFor = (shape: Shape): string => {
  const name = `${shape.single} ${shape.moves}`
  let statement = statements.get(name)
  if (statement === undefined) {
    statement = buildStatement(shape)
    statements.set(name, statement)
  }
  return statement
}

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
      run.kept,
      run.error?.code ?? null,
      run.error?.message ?? null,
      run.error?.stepId ?? null,
      run.startedAt,
      run.finishedAt,
      run.dueAt,
      run.carried,
      run.steps,
      run.resources,
      run.outputs,
      run.previews
    ]
    for (const [i, value] of values.entries()) rows[i]!.push(value)
  }
  const single = items.length === 1
  return {
    statement: statementFor({ single, moves: items.some(({ moves }) => moves) }),
    parameters: [...Columns.bounds(items.map(({ id }) => id)), ...Columns.bind(types, rows, single)]
  }
}
