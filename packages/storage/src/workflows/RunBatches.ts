import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type BatchableRun, batch, type BatchLimits } from "@tidegate/workflows/triggers/Batch"
import * as Columns from "../journal/Columns.ts"
import { retentionDefaults } from "../retention/Retention.ts"
import { keepingWindows, lockWindows } from "./RunWindows.ts"

/** A run that has not begun. */
export interface GatheringRun extends BatchableRun {
  readonly requestId: string
}

interface Asked {
  readonly workflowId: string
  readonly teamId: string
  /** In the order in which they were made. */
  readonly runs: ReadonlyArray<GatheringRun>
  readonly limits: BatchLimits
  readonly now: number
}

/** What becomes of these runs. `refused`: those whose key would be one too many. */
export interface Gathered {
  /** First runs of batches that have closed. */
  readonly begin: ReadonlySet<string>
  /** Runs that another one carries out, with its id. */
  readonly batched: ReadonlyMap<string, string>
  readonly refused: ReadonlySet<string>
  /** Whether others of those that begin are due now: they were not among these runs. */
  readonly others: boolean
  /** When the first of these batches closes that are open (Unix ms); Infinity: none is. */
  readonly nextAt: number
}

const gather = Effect.fnUntraced(function* ({
  limits,
  now,
  runs,
  teamId,
  workflowId
}: Asked): Effect.fn.Return<Gathered, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* lockWindows(sql, workflowId)
  // The process before may have died before it ended a run that is in a batch.
  const known = yield* sql<{ member_id: string; run_id: string }>`
    select member_id, run_id from workflow_batched
    where member_id = any(${Columns.text(runs.map(({ id }) => id))}) and member_id <> run_id and team_id = ${teamId}`
  const batched = new Map(known.map(({ member_id, run_id }) => [member_id, run_id]))
  const asking = runs.filter(({ id }) => !batched.has(id))
  const { answer, nextAt, refused } = yield* keepingWindows({
    workflowId,
    teamId,
    keys: asking.flatMap(({ key }) => (key === null ? [] : [key])),
    areForWaiting: true,
    decide: (stored) => batch(asking, stored, limits, now)
  })
  // A run in the batch of a refused one is refused as well.
  const added = [...answer.added].filter(([, first]) => !refused.has(first))
  const out = new Set([...answer.added].flatMap(([run, first]) => (refused.has(first) ? [run] : [])))
  for (const [run, first] of added) if (run !== first) batched.set(run, first)
  yield* store(
    teamId,
    asking.flatMap((run) => {
      const first = out.has(run.id) ? undefined : answer.added.get(run.id)
      return first === undefined ? [] : [{ ...run, first }]
    })
  )
  const asked = new Set(runs.map(({ id }) => id))
  const others = [...answer.begin].filter((id) => !asked.has(id))
  if (others.length > 0) {
    yield* sql`update workflow_queue set due_at = ${new Date(now)} where run_id = any(${Columns.text(others)})`
  }
  return { begin: answer.begin, batched, refused: out, others: others.length > 0, nextAt }
})

const store = Effect.fnUntraced(function* (
  teamId: string,
  members: ReadonlyArray<GatheringRun & { readonly first: string }>
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  if (members.length === 0) return
  const sql = yield* SqlClient.SqlClient
  // As long as an input of a run is kept.
  yield* sql`
    insert into workflow_batched (run_id, member_id, team_id, request_id, created_at, expires_at)
    select m.run_id, m.member_id, t.id, m.request_id, m.created_at, date_trunc('day', now())
      + (coalesce(t.payload_retention_days, ${retentionDefaults.payloadDays}) + 1) * interval '1 day'
    from unnest(${Columns.text(members.map(({ first }) => first))}, ${Columns.text(members.map(({ id }) => id))},
      ${Columns.text(members.map(({ requestId }) => requestId))},
      ${Columns.timestamptz(members.map(({ createdAt }) => createdAt))}) as m (run_id, member_id, request_id, created_at)
      join teams t on t.id = ${teamId}
    on conflict do nothing`
  const firsts = members.flatMap(({ first, id }) => (first === id ? [id] : []))
  const [from, to] = Columns.bounds(firsts)
  if (firsts.length === 0) return
  yield* sql`
    update workflow_runs set batch_id = id where id = any(${Columns.text(firsts)}) and id >= ${from} and id <= ${to}`
})

/**
 * Adds these runs to the batches of their keys, and says which batches have closed. It may be repeated: a run that has not begun or
 * ended by then gets the same answer.
 */
export const gathered = (asked: Asked): Effect.Effect<Gathered, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(gather(asked)))
