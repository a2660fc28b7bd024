import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { idBound, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { unhurried } from "./RetentionClearing.ts"
import { removeRuns } from "../workflows/RunHistory.ts"

/** Rows of one statement: its transaction is too short for its locks to matter. */
const batch = 500
/** Workflows of one run; the next run does the rest. */
const maxWorkflows = 1_000

/** A version is kept for this many days longer than the records of its runs: what waits for a day may extend its life. */
const versionGraceDays = 30
/** How long after a version was replaced a run of it may still be committed (ms). In practice that takes seconds. */
const supersededMs = 3_600_000
/**
 * A run has the time of its request, from another process's clock. When that is older by more than this (ms), `keepForRuns` marks
 * the version of the run.
 */
const clocksDifferMs = 600_000

/**
 * Removes what workflows leave behind: finished runs of deleted workflows, and versions that no run uses or can use any more.
 */
export const removeHistory = Effect.fnUntraced(function* (
  now: number,
  recordDays: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  const runs = yield* runsOfDeleted
  const unused = yield* versionsWithoutRuns(now)
  const old = yield* versionsOfOldRuns(now, recordDays)
  return runs + unused + old
})

const runsOfDeleted = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  let removed = 0
  const gone = yield* sql<{ id: string }>`
    select w.id from workflows w where w.deleted_at is not null
      and exists (select from workflow_runs r where r.workflow_id = w.id and r.finished_at is not null)
    limit ${maxWorkflows}`
  for (const { id } of gone) {
    for (;;) {
      const runs = yield* sql<{ id: string }>`
        select id from workflow_runs where workflow_id = ${id} and finished_at is not null order by id limit ${batch}`
      const count = runs.length === 0 ? 0 : yield* removeRuns(runs.map((run) => run.id))
      removed += count
      if (count < batch) break
    }
  }
  return removed
})

/**
 * Until when a version was its workflow's current one: when the next stored version was made. The current version has no such
 * time.
 */
const untilNext = `cross join lateral (select created_at as superseded_at from workflow_versions n
  where n.workflow_id = v.workflow_id and n.version > v.version order by n.version limit 1) next`

/** A version that later versions are defined by stays until those are gone. */
const definesNone = `not exists (select from workflow_versions o
  where o.workflow_id = v.workflow_id and o.version > v.version and o.defined_in = v.version)`

/**
 * The last versions of a workflow are kept for people, who look at them and go back to them. Older ones are kept only as long as
 * runs use them.
 */
export const keptVersions = 50
const isOld = `exists (select from workflows w where w.id = v.workflow_id and v.version <= w.version - ${keptVersions})`

interface SupersededVersion {
  readonly workflow_id: string
  readonly version: number
  readonly created_at: Date
  readonly superseded_at: Date
}

/**
 * Removes old versions that no run used: a workflow that is saved all day keeps the last ones, and those that were run.
 * Each version is checked once.
 */
const versionsWithoutRuns = Effect.fnUntraced(function* (now: number) {
  const sql = yield* SqlClient.SqlClient
  let removed = 0
  let found: ReadonlyArray<SupersededVersion>
  do {
    found = yield* sql<SupersededVersion>`
      select v.workflow_id, v.version, v.created_at, superseded_at
      from workflow_versions v ${sql.literal(untilNext)}
      where not v.has_run and superseded_at < ${new Date(now - supersededMs)} and ${sql.literal(definesNone)}
        and ${sql.literal(isOld)}
      order by v.workflow_id, v.version limit ${batch}`
    for (const [id, versions] of Map.groupBy(found, ({ workflow_id }) => workflow_id)) {
      const from = Math.min(...versions.map(({ created_at }) => created_at.getTime())) - clocksDifferMs
      const to = Math.max(...versions.map(({ superseded_at }) => superseded_at.getTime())) + clocksDifferMs
      const runs = yield* unhurried(sql<{ version: number }>`
        select distinct version from workflow_runs where workflow_id = ${id}
          and id >= ${idBound(prefixes.workflowRun, Math.max(0, from))} and id < ${idBound(prefixes.workflowRun, to)}`)
      const named = new Set(runs.map(({ version }) => version))
      const [used, unused] = [true, false].map((isUsed) =>
        versions.flatMap(({ version }) => (named.has(version) === isUsed ? [version] : []))
      ) as [Array<number>, Array<number>]
      yield* sql`update workflow_versions set has_run = true where workflow_id = ${id} and version = any(${Columns.int4(used)})`
      yield* sql`delete from workflow_versions where workflow_id = ${id} and version = any(${Columns.int4(unused)})`
      removed += unused.length
    }
  } while (found.length === batch)
  return removed
})

/** Removes versions whose runs are all deleted: those began before the next version was made, and their records have expired. */
const versionsOfOldRuns = Effect.fnUntraced(function* (now: number, recordDays: number) {
  const sql = yield* SqlClient.SqlClient
  let removed = 0
  let count: number
  do {
    const versions = yield* sql`
      delete from workflow_versions where ctid = any(array(
        select v.ctid from workflow_versions v join teams t on t.id = v.team_id ${sql.literal(untilNext)}
        where superseded_at < ${new Date(now)}::timestamptz
            - (coalesce(t.record_retention_days, ${recordDays}::int4) + ${versionGraceDays}::int4) * interval '1 day'
          and ${sql.literal(definesNone)} and ${sql.literal(isOld)}
        limit ${batch} for update of v skip locked)) returning 1`
    count = versions.length
    removed += count
  } while (count === batch)
  return removed
})
