import type { PgTypes } from "@effect/sql-pg"
import * as Columns from "./Columns.ts"
import { minuteOfId, writeCounts } from "./CountStatement.ts"
import { type Given, insertInto, Rows, texts } from "./Rows.ts"

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

/** The rows of a batch. What is written of them is set in the run; the others are of the journal entry, and of the queue. */
const runs = new Rows<RunTransition>(
  "g",
  [
    ["id", "text", ({ id }) => id, []],
    ["team_id", "text", ({ teamId }) => teamId, []],
    ["part", "int4", ({ part }) => part, ["parts"]],
    ["part_id", "text", ({ partId }) => partId, []],
    ["at", "timestamptz", ({ at }) => at, []],
    ["status", "text", ({ status }) => status],
    ["outcome", "text", ({ outcome }) => outcome],
    ["attempts", "int4", ({ attempts }) => attempts],
    ["succeeded", "int2", ({ succeeded }) => succeeded, ["succeeded_steps"]],
    ["failed", "int2", ({ failed }) => failed, ["failed_steps"]],
    ["skipped", "int2", ({ skipped }) => skipped, ["skipped_steps"]],
    ["running", "int2", ({ running }) => running, ["running_steps"]],
    ["kept", "int4", ({ kept }) => kept],
    ["error_code", "text", ({ error }) => error?.code ?? null],
    ["error_message", "text", ({ error }) => error?.message ?? null],
    ["error_step", "text", ({ error }) => error?.stepId ?? null, ["error_step_id"]],
    ["started_at", "timestamptz", ({ startedAt }) => startedAt],
    ["finished_at", "timestamptz", ({ finishedAt }) => finishedAt],
    { updated_at: "g.at" },
    ["due_at", "timestamptz", ({ dueAt }) => dueAt, []],
    ["carried", "text", ({ carried }) => carried, []],
    ["steps", "text", ({ steps }) => steps, []],
    ["resources", "text", ({ resources }) => resources, []],
    ["outputs", "text", ({ outputs }) => outputs, []],
    ["previews", "text", ({ previews }) => previews, []]
  ],
  // In most batches nothing has failed yet, and nothing is carried.
  ["attempts", "failed", "error_code", "error_message", "error_step", "carried"]
)

/** The journal entry of each run that has moved. */
const written = insertInto(
  "workflow_steps",
  [
    { id: "part_id" },
    "team_id",
    { run_id: "id" },
    "part",
    "steps",
    "resources",
    "outputs",
    "previews",
    { created_at: "at" }
  ],
  "moved"
)

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

/** How a batch is given, and whether one of its runs goes on at another time than before. */
interface Shape {
  readonly given: Given
  readonly moves: boolean
}

/**
 * One statement, hence one transaction, for runs of whatever workflows: their records, what their steps have come to, and when they go on.
 * A run that somebody else has taken on is left as it is, and is not among the ids that are answered. Queue rows are found by arrays: joined,
 * a plan that was made when there were few would read all of them.
 */
const statementFor = texts(
  ({ given, moves }: Shape): string => `
with moved as (
  update workflow_runs r set ${runs.assignments}
  from ${runs.from(3, given)}
  where ${given.single ? "" : "r.id = any($3::text[]) and "}r.id >= $1 and r.id <= $2 and r.id = g.id and r.parts = g.part - 1
  returning g.*, r.workflow_id
), written as (
  ${written}
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
)

export const runCommit = (
  items: ReadonlyArray<RunTransition>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => {
  const { given, parameters } = runs.bind(items)
  const moves = items.some((item) => item.moves)
  return {
    statement: statementFor(`${given.single} ${given.uniform} ${moves}`, { given, moves }),
    parameters: [...Columns.bounds(items.map(({ id }) => id)), ...parameters]
  }
}
