import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { HotSql } from "../Database.ts"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Values } from "@tidegate/model/Message"
import { withPartitions } from "../retention/Partitions.ts"
import { beginRun, jsonInput } from "./BegunRuns.ts"
import { partsOf, type StoredPart } from "./Runs.ts"

/**
 * Runs that steps of other runs begin. The row of a child is written with its run, so that a step that is repeated after a crash finds the
 * run that it has begun. The commit that ends a child is an arrival for its parent, and the other way round (`RunStatement.ts`).
 */

/** `depth`: calls below the first run. `children`: of one run. `tree`: all runs below the first one. */
export const childLimits = { depth: 5, children: 20, tree: 200 } as const

/** Longer than a run lives. */
const keptMs = 61 * 86_400_000

interface Call {
  readonly team_id: string
  readonly parent_run_id: string
  readonly step_id: string
  /** When the step began (Unix ms): a retry of the step begins another run. */
  readonly beganAt: number
  readonly workflow_id: string
  readonly shard: number
  readonly child_workflow_id: string
  readonly child_shard: number
  /** JSON. */
  readonly input: string
  /** Those of what the parent began with. */
  readonly headers: Values
}

/** Why no run begins. */
export type NotCalled = "gone" | "inactive" | "too_deep" | "too_many" | "ended"

/** Begins the run of a step, once; returns its id. `ended`: the parent has ended meanwhile. */
export const callWorkflow = Effect.fnUntraced(function* (
  call: Call
): Effect.fn.Return<{ readonly id: string } | NotCalled, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const {
    beganAt,
    child_shard,
    child_workflow_id,
    headers,
    input,
    parent_run_id,
    shard,
    step_id,
    team_id,
    workflow_id
  } = call
  const beginning = Effect.gen(function* (): Effect.fn.Return<
    { readonly id: string } | NotCalled,
    SqlError.SqlError,
    SqlClient.SqlClient
  > {
    // Its end waits for this commit, so that it finds the row of the child.
    const [parent] =
      yield* sql`select from workflow_queue where run_id = ${parent_run_id} and team_id = ${team_id} for update`
    if (parent === undefined) return "ended"
    const [known] = yield* sql<{ id: string }>`
      select child_run_id as id from workflow_children
      where parent_run_id = ${parent_run_id} and step_id = ${step_id} and began_at = ${new Date(beganAt)}`
    if (known !== undefined) return known
    const [called] = yield* sql<{ status: string }>`
      select status from workflows where id = ${child_workflow_id} and team_id = ${team_id} and deleted_at is null for share`
    if (called === undefined) return "gone"
    if (called.status !== "active" && called.status !== "paused") return "inactive"
    const [above] = yield* sql<{ root: string; depth: number }>`
      select root_run_id as root, depth from workflow_children where child_run_id = ${parent_run_id}`
    const root = above?.root ?? parent_run_id
    const depth = (above?.depth ?? 0) + 1
    if (depth > childLimits.depth) return "too_deep"
    // Calls of one tree are counted one after the other.
    yield* sql`select pg_advisory_xact_lock(hashtextextended(${`workflow_children/${root}`}, 0))`
    const [counts] = yield* sql<{ full: boolean }>`
      select (select count(*) from workflow_children where root_run_id = ${root}) >= ${childLimits.tree}
        or (select count(*) from workflow_children where parent_run_id = ${parent_run_id}) >= ${childLimits.children} as full`
    if (counts?.full === true) return "too_many"
    const id = newId(prefixes.workflowRun, now)
    yield* sql`
      insert into workflow_children (parent_run_id, step_id, began_at, child_run_id, root_run_id, depth, team_id, workflow_id, shard,
        child_workflow_id, child_shard, expires_at)
      values (${parent_run_id}, ${step_id}, ${new Date(beganAt)}, ${id}, ${root}, ${depth}, ${team_id}, ${workflow_id}, ${shard},
        ${child_workflow_id}, ${child_shard}, ${new Date(now + keptMs)})`
    yield* beginRun({
      id,
      teamId: team_id,
      workflowId: child_workflow_id,
      shard: child_shard,
      trigger: "workflow",
      input: jsonInput(input, headers),
      at: new Date(now)
    })
    return { id }
  })
  return yield* withPartitions(sql)(sql.withTransaction(beginning))
})

/** A child that has ended, with its journal. */
export interface EndedChild {
  readonly parent_run_id: string
  readonly step_id: string
  readonly workflow_id: string
  readonly outcome: string
  readonly error_code: string | null
  readonly error_message: string | null
  readonly parts: ReadonlyArray<StoredPart>
}

/** Null: there is no such child of the workflow's runs, or it has not ended, or another run of its step has begun since. */
export const readEndedChild = Effect.fnUntraced(function* (
  workflowId: string,
  childId: string
): Effect.fn.Return<EndedChild | null, SqlError.SqlError, HotSql | SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Omit<EndedChild, "parts">>`
    select c.parent_run_id, c.step_id, r.workflow_id, r.outcome, r.error_code, r.error_message
    from workflow_children c join workflow_runs r on r.id = c.child_run_id
    where c.child_run_id = ${childId} and c.workflow_id = ${workflowId} and r.id = ${childId} and r.finished_at is not null
      and not exists (select from workflow_children later where later.parent_run_id = c.parent_run_id
        and later.step_id = c.step_id and later.began_at > c.began_at)`
  if (row === undefined) return null
  return { ...row, parts: yield* partsOf([childId]) }
})
