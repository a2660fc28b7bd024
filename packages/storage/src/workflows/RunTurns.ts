import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import * as Columns from "../journal/Columns.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"

/**
 * The line of a workflow's runs before they begin. A run that has to wait is a row here, and its queue row is due at a time that
 * never comes: so it costs rows alone. When a run ends, the next one takes its turn and is due at once. The process that does that
 * may die in between, so one waiting run of each workflow stays due soon: its look finds what was left undone.
 */

/** Runs of a workflow that wait to begin. More end at once. */
export const maxWaitingRuns = 10_000

/** When a run that waits is due: never. */
const never = "9999-01-01T00:00:00Z"
/** How soon (ms) somebody looks after a workflow's waiting runs if nothing else happens. */
const lookAfter = 30_000
/** Turns that one transaction gives. */
const atOnce = 200

/** The settings by which runs wait. */
type TurnSettings = Pick<WorkflowTriggers, "concurrency" | "rate_limit">

export const isLimited = ({ concurrency, rate_limit }: TurnSettings): boolean =>
  (concurrency ?? rate_limit ?? null) !== null

/** A run that asks to begin. */
export interface AskingRun {
  readonly id: string
  readonly team_id: string
  readonly key: string
  /** Higher ones begin first. */
  readonly priority: number
  readonly created_at: Date
}

interface Asked {
  readonly workflowId: string
  readonly asking: ReadonlyArray<AskingRun>
  /** Runs that have left the process. Those that have ended give their turns back. */
  readonly left: ReadonlyArray<string>
  /** Whether to look at all waiting runs, and not only at those that may begin because of these runs. */
  readonly all: boolean
  readonly now: number
  /** Returns how many of so many runs the rate limit allows to begin now, and when the next one may begin (Unix ms). */
  readonly starts: (wanted: number) => { readonly count: number; readonly nextAt: number }
}

interface Given {
  /** The runs that asked and begin now. */
  readonly begin: ReadonlySet<string>
  /** The runs that asked and may not even wait. */
  readonly refused: ReadonlySet<string>
  /** When a waiting run is due, so that somebody looks (Unix ms); null: none waits. */
  readonly lookAt: number | null
  /** Whether others are due now. */
  readonly others: boolean
  /** Whether more may begin now than one transaction lets begin. */
  readonly more: boolean
}

/** Only one transaction at a time works on the line of a workflow, even if two processes believe that they own it. */
const lock = (sql: SqlClient.SqlClient, workflowId: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`workflow_turns/${workflowId}`}, 0))`

/** The next waiting runs that the concurrency limit allows: first those with the highest priority, and among these the oldest. */
const candidates = (
  sql: SqlClient.SqlClient,
  workflowId: string,
  limit: number | null,
  keys: ReadonlyArray<string> | "all"
) => {
  if (keys !== "all") {
    const room =
      limit === null
        ? sql`${atOnce}`
        : sql`least(${atOnce}, greatest(0, ${limit}::int4 - (select count(*) from (
            select from workflow_turns t where t.workflow_id = ${workflowId} and t.key = k.key and t.taken limit ${limit}) t)))`
    return sql<{ run_id: string }>`
      select w.run_id from unnest(${Columns.text(keys)}) as k (key) cross join lateral (
        select run_id, priority, created_at from workflow_turns w where w.workflow_id = ${workflowId} and w.key = k.key and not w.taken
        order by w.priority desc, w.created_at, w.run_id limit ${room}
      ) w
      order by w.priority desc, w.created_at, w.run_id limit ${atOnce}`
  }
  return sql<{ run_id: string }>`
    select run_id from (
      select w.run_id, w.priority, w.created_at,
        row_number() over (partition by w.key order by w.priority desc, w.created_at, w.run_id) + coalesce(t.taken, 0) as place
      from workflow_turns w left join (
        select key, count(*) as taken from workflow_turns where workflow_id = ${workflowId} and taken group by key
      ) t on t.key = w.key
      where w.workflow_id = ${workflowId} and not w.taken
    ) w
    where ${limit}::int4 is null or place <= ${limit}::int4
    order by priority desc, created_at, run_id limit ${atOnce}`
}

/**
 * Takes the turns of ended runs back, and gives them to the next ones. Runs that asked and have no turn wait. Null:
 * the workflow has no limits any more, and nothing was written.
 */
const give = Effect.fnUntraced(function* ({
  all,
  asking,
  left,
  now,
  starts,
  workflowId
}: Asked): Effect.fn.Return<Given | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* lock(sql, workflowId)
  // Read under the lock: a change of the settings has let all runs go, or will.
  const [settings] = yield* sql<TurnSettings>`
    select triggers -> 'concurrency' as concurrency, triggers -> 'rate_limit' as rate_limit from workflows
    where id = ${workflowId} and deleted_at is null and status in ('active', 'paused')`
  if (settings === undefined || !isLimited(settings)) return null
  const limit = settings.concurrency?.limit ?? null
  /** Takes back the turns of runs that have ended: of all, or of these. */
  const takeBack = (of: ReadonlyArray<string> | "all") => sql<{ key: string }>`
    delete from workflow_turns t where t.workflow_id = ${workflowId}
      and ${of === "all" ? sql`true` : sql`t.run_id = any(${Columns.text(of)})`}
      and not exists (select from workflow_queue q where q.run_id = t.run_id)
    returning t.key`
  const freed = yield* takeBack(all ? "all" : left)
  const asks = asking.map(({ id }) => id)
  const added =
    asking.length === 0
      ? []
      : yield* sql<{ run_id: string }>`
          insert into workflow_turns (run_id, team_id, workflow_id, key, priority, created_at)
          select r.run_id, r.team_id, ${workflowId}, r.key, r.priority, r.created_at
          from unnest(${Columns.text(asks)}, ${Columns.text(asking.map(({ team_id }) => team_id))},
            ${Columns.text(asking.map(({ key }) => key))}, ${Columns.int4(asking.map(({ priority }) => priority))},
            ${Columns.timestamptz(asking.map(({ created_at }) => created_at.getTime()))})
            as r (run_id, team_id, key, priority, created_at)
          where exists (select from workflow_queue q where q.run_id = r.run_id)
          on conflict (run_id) do nothing returning run_id`
  // A run that already waits also checks the other waiting runs, and finished runs whose end was not recorded: a run may be interrupted while its
  // last commit is under way.
  const looksAfter = added.length < asks.length
  if (looksAfter && !all) yield* takeBack("all")
  // By a rate limit any key may be next.
  const looksAtAll = all || looksAfter || (settings.rate_limit !== null && settings.concurrency?.key != null)
  const keys = settings.concurrency?.key == null ? [""] : [...freed, ...asking].map(({ key }) => key)
  const next = yield* candidates(sql, workflowId, limit, looksAtAll ? "all" : [...new Set(keys)])
  const { count, nextAt } = starts(next.length)
  const given = next.slice(0, count).map(({ run_id }) => run_id)
  const others = given.filter((id) => !asks.includes(id))
  if (given.length > 0) yield* sql`update workflow_turns set taken = true where run_id = any(${Columns.text(given)})`
  if (others.length > 0) {
    yield* sql`update workflow_queue set due_at = ${new Date(now)} where run_id = any(${Columns.text(others)})`
  }
  const taken =
    asks.length === 0
      ? []
      : yield* sql<{ run_id: string }>`
          select run_id from workflow_turns where run_id = any(${Columns.text(asks)}) and taken`
  const begin = new Set(taken.map(({ run_id }) => run_id))
  const isNew = new Set(added.map(({ run_id }) => run_id))
  const waiting = asking.filter(({ id }) => !begin.has(id))
  const refused = yield* refusing(
    workflowId,
    waiting.filter(({ id }) => isNew.has(id))
  )
  const parked = waiting.flatMap(({ id }) => (refused.has(id) ? [] : [id]))
  if (parked.length > 0) {
    yield* sql`update workflow_queue set due_at = ${never}::timestamptz where run_id = any(${Columns.text(parked)})`
  }
  const look = new Date(Math.min(now + lookAfter, count < next.length ? Math.max(nextAt, now + 1) : Infinity))
  const looking = yield* sql<{ due_at: Date }>`
    with head as (
      select q.run_id, least(q.due_at, ${look}::timestamptz) as due_at from (
        select run_id from workflow_turns where workflow_id = ${workflowId} and not taken
        order by workflow_id, key, priority desc, created_at, run_id limit 1
      ) w join workflow_queue q on q.run_id = w.run_id
    ), moved as (
      update workflow_queue set due_at = ${look}::timestamptz
      where run_id = (select run_id from head) and due_at > ${look}::timestamptz
    )
    select due_at from head`
  const lookAt = looking[0]?.due_at.getTime() ?? null
  return { begin, refused, lookAt, others: others.length > 0, more: given.length === atOnce }
})

/** Takes the newest runs out of a line that is too long. */
const refusing = Effect.fnUntraced(function* (
  workflowId: string,
  added: ReadonlyArray<AskingRun>
): Effect.fn.Return<ReadonlySet<string>, SqlError.SqlError, SqlClient.SqlClient> {
  if (added.length === 0) return new Set()
  const sql = yield* SqlClient.SqlClient
  const [line] = yield* sql<{ count: number }>`
    select count(*)::int4 as count from (
      select from workflow_turns where workflow_id = ${workflowId} and not taken limit ${maxWaitingRuns + added.length}) w`
  const over = Math.max(0, (line?.count ?? 0) - maxWaitingRuns)
  if (over === 0) return new Set()
  const refused = added
    .toSorted((a, b) => a.created_at.getTime() - b.created_at.getTime())
    .slice(-over)
    .map(({ id }) => id)
  yield* sql`delete from workflow_turns where run_id = any(${Columns.text(refused)})`
  return new Set(refused)
})

export const giveTurns = (asked: Asked): Effect.Effect<Given | null, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(give(asked)))

const waits = (row: WorkflowRow | null): boolean =>
  row !== null &&
  row.deleted_at === null &&
  (row.status === "active" || row.status === "paused") &&
  row.triggers !== null &&
  isLimited(row.triggers)

/** Lets all runs of a workflow go that has no limits any more, in the transaction that changes it. */
export const keepTurns = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: WorkflowRow | null,
  after: WorkflowRow,
  at: Date
): Effect.fn.Return<void, SqlError.SqlError> {
  if (!waits(before) || waits(after)) return
  yield* lock(sql, after.id)
  yield* sql`
    update workflow_queue set due_at = ${at}
    where run_id = any(array(select run_id from workflow_turns where workflow_id = ${after.id} and not taken))`
  yield* sql`delete from workflow_turns where workflow_id = ${after.id}`
})
