import type { PgTypes } from "@effect/sql-pg"
import { idTime } from "@tidegate/model/Ids"
import { isFailure } from "@tidegate/model/RunEnds"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"
import { tellFailures } from "./FailureStatement.ts"
import { writeFailedRuns } from "./OccurrenceStatement.ts"
import { type Given, insertInto, Rows, texts } from "./Rows.ts"

/** The changes of one commit to a workflow run. Times are Unix milliseconds. */
export interface RunTransition {
  readonly id: string
  readonly teamId: string
  /** The number of the journal entry, from 1. Of two commits with the same number one is stored. */
  readonly part: number
  readonly partId: string
  readonly at: number
  readonly status: "queued" | "running" | "succeeded" | "failed"
  readonly outcome: string | null
  /** The number of requested step retries, plus 1. */
  readonly attempts: number
  readonly succeeded: number
  readonly failed: number
  readonly skipped: number
  readonly running: number
  /** The characters of its steps' outputs. */
  readonly kept: number
  readonly error: { readonly code: string; readonly message: string; readonly stepId: string | null } | null
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** For the first journal entry: the run's label; null: it has none, or it stays. */
  readonly label?: string | null
  /** When it continues; null: it is finished. */
  readonly dueAt: number | null
  /** Whether this time has changed, or `carried` is set. */
  readonly moves: boolean
  /** Data that it needs later and that may be deleted by then; null: nothing new. */
  readonly carried: string | null
  /** JSON. */
  readonly steps: string
  /** For the first journal entry: the resources that its steps name, as they are then. JSON. */
  readonly resources: string | null
  readonly outputs: string | null
  readonly previews: string | null
  /** Its request follows from a system event, so its failure is not reported. */
  readonly silent?: boolean
  /** No run has begun it, and it begins none, so its end means nothing for other runs. */
  readonly alone?: boolean
}

/** The minute of the run's id (Unix ms), in which it is counted. */
const minuteOf = ({ at, id }: RunTransition): number => Math.floor((idTime(id) ?? at) / 60_000) * 60_000

/** The rows of a batch. Columns with a target are set in the run; the others are for the journal entry and the queue. */
const runs = new Rows<RunTransition>(
  "g",
  [
    ["id", "text", ({ id }) => id, []],
    ["team_id", "text", ({ teamId }) => teamId, []],
    ["part", "int4", ({ part }) => part, ["parts"]],
    ["part_id", "text", ({ partId }) => partId, []],
    ["at", "timestamptz", ({ at }) => at, []],
    ["minute", "timestamptz", minuteOf, []],
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
    ["label", "text", ({ label }) => label ?? null, []],
    { label: "coalesce(g.label, r.label)" },
    ["due_at", "timestamptz", ({ dueAt }) => dueAt, []],
    ["carried", "text", ({ carried }) => carried, []],
    ["steps", "text", ({ steps }) => steps, []],
    ["resources", "text", ({ resources }) => resources, []],
    ["outputs", "text", ({ outputs }) => outputs, []],
    ["previews", "text", ({ previews }) => previews, []]
  ],
  // In most batches nothing has failed yet, nothing is carried, and all runs are of one minute.
  ["minute", "attempts", "failed", "error_code", "error_message", "error_step", "label", "carried"]
)

/** Inserts the journal entry of each changed run. */
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

/**
 * The counts of runs by workflow: started runs, ended runs by result, and their duration (ms). A run that ends again is counted
 * again.
 */
const counts = writeCounts(`(
    select team_id, workflow_id as key_id, null::text as source_id, null::text as destination_id, measure, minute, n
    from (
      select team_id, workflow_id, minute, count(*) filter (where part = 1) as begun,
        count(*) filter (where finished_at is not null and status = 'succeeded') as succeeded,
        count(*) filter (where finished_at is not null and status <> 'succeeded') as failed,
        sum(greatest((date_part('epoch', finished_at - started_at) * 1000)::int8, 0))::int8 as ms
      from moved group by 1, 2, 3
    ) as sums cross join lateral (values
      ('run', begun), ('run_succeeded', succeeded), ('run_failed', failed), ('run_ms', ms)
    ) as one (measure, n)
    where n > 0
  ) c`)

/** The form of a batch, and whether one of its runs has failed, continues at another time than before, or ends and is not alone. */
interface Shape {
  readonly given: Given
  readonly fails: boolean
  readonly moves: boolean
  readonly joins: boolean
}

/**
 * The effects of a run's end on other runs: the run that has begun it continues, and runs that it has begun end. Their actors find this as arrivals.
 */
const joined = `), joined as (
  insert into workflow_arrivals (workflow_id, about, team_id, shard, due_at, expires_at)
  select workflow_id, 'run/' || child_run_id, team_id, shard, (select min(at) from moved), now() + interval '31 days'
  from workflow_children where child_run_id = any(array(select id from moved where due_at is null))
  union all
  select child_workflow_id, 'cancel/' || child_run_id, team_id, child_shard, (select min(at) from moved), now() + interval '31 days'
  from workflow_children where parent_run_id = any(array(select id from moved where due_at is null))
  on conflict (workflow_id, about) do update set due_at = excluded.due_at
`

/** The consequences of failures: some are reported to the team, and some begin a run. */
const failing = `, failing as (
  ${writeFailedRuns(`$${runs.width + 3}::text[]`)}
), telling as (
  ${tellFailures(`$${runs.width + 4}::text[]`)}
)`

/**
 * One statement, so one transaction, for runs of any workflows: their records, the results of their steps, and when they
 * continue. A run that another process has continued stays as it is, and is not among the returned ids. Queue rows are found by
 * arrays: with a join, a plan that was made when there were few rows would read all of them.
 */
const statementFor = texts(
  ({ fails, given, joins, moves }: Shape): string => `
with moved as (
  update workflow_runs r set ${runs.assignments}
  from ${runs.from(3, given)}
  where ${given.single ? "" : "r.id = any($3::text[]) and "}r.id >= $1 and r.id <= $2 and r.id = g.id and r.parts = g.part - 1
  returning g.*, r.workflow_id${fails ? ", r.source_id, r.trigger" : ""}
), written as (
  ${written}
), counted as (
  ${counts}
${joins ? joined : ""}), ended as (
  delete from workflow_queue where run_id = any(array(select id from moved where due_at is null))
)${
    moves
      ? `, waiting as (
  update workflow_queue q set due_at = moved.due_at, carried = coalesce(moved.carried, q.carried) from moved
  where q.run_id = any(array(select id from moved where due_at is not null)) and q.run_id = moved.id
    and (q.due_at <> moved.due_at or moved.carried is not null)
)`
      : ""
  }${fails ? failing : ""}
select id from moved`
)

export const runCommit = (
  items: ReadonlyArray<RunTransition>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => {
  const { given, parameters } = runs.bind(items)
  const moves = items.some((item) => item.moves)
  const failures = items.filter((item) => item.finishedAt !== null && isFailure(item))
  // Who cancels a run, knows it.
  const failed = failures.filter(({ outcome, silent }) => outcome !== "cancelled" && silent !== true)
  const fails = failures.length > 0
  const idsOf = (of: ReadonlyArray<RunTransition>) => Columns.text(of.map(({ id }) => id))
  const joins = items.some(({ alone, dueAt }) => dueAt === null && alone !== true)
  return {
    statement: statementFor(`${given.single} ${given.uniform} ${moves} ${fails} ${joins}`, {
      fails,
      given,
      joins,
      moves
    }),
    parameters: [
      ...Columns.bounds(items.map(({ id }) => id)),
      ...parameters,
      ...(fails ? [idsOf(failed), idsOf(failures)] : [])
    ]
  }
}
