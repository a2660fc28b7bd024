import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { idBound, idTime, prefixes } from "@tidegate/model/Ids"
import { yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import type { Outline, RunRecord } from "@tidegate/workflows/RunReport"
import { StepReports } from "@tidegate/workflows/RunReport"
import * as Columns from "../journal/Columns.ts"
import type { Table } from "./Scan.ts"

/** A row of `workflow_runs`. */
export interface RunRow extends RunRecord {
  readonly team_id: string
  readonly source_id: string
  readonly parts: number
  readonly retried_step_id: string | null
  readonly retried_at: Date | null
}

export const runTable = (sql: SqlClient.SqlClient): Table => ({
  name: "workflow_runs",
  alias: "w",
  columns: sql.literal("w.*"),
  joins: ""
})

/** Limits of one read of journal entries. An entry has the changes of a run's steps, without their outputs. */
const entriesAtOnce = { rows: 500, bytes: 4 * 1024 * 1024 }

interface EntryRow {
  readonly run_id: string
  readonly part: number
  readonly created_at: Date
  readonly steps: string
}

/**
 * Passes the journal entries of these runs to a function, in their order; `ends`: only that many of a run's first and last
 * entries; null: all. They are read and processed a few at a time.
 */
export const visitEntries = Effect.fnUntraced(function* (
  runs: ReadonlyArray<Pick<RunRow, "id" | "parts">>,
  ends: number | null,
  visit: (row: EntryRow) => void
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const begun = runs.filter(({ parts }) => parts > 0)
  if (begun.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const ids = begun.map(({ id }) => id)
  const [first] = Columns.bounds(ids)
  const after = begun.map(({ parts }) => (ends === null ? 0 : Math.max(0, parts - ends)))
  let last = { run_id: "", part: 0 }
  for (;;) {
    const rows = yield* sql<EntryRow>`
      with listed as (
        select p.id, p.run_id, p.part, octet_length(p.steps) as size
        from unnest(${Columns.text(ids)}, ${Columns.int4(after)}) as r (id, after)
          join workflow_steps p on p.run_id = r.id and (p.part > r.after or p.part <= ${ends ?? 0})
        where p.id >= ${idBound(prefixes.workflowPart, idTime(first) ?? 0)}
          and (p.run_id, p.part) > (${last.run_id} collate "C", ${last.part})
        order by p.run_id, p.part limit ${entriesAtOnce.rows}
      ), chosen as (
        select id, run_id, part, sum(size) over (order by run_id, part) - size as before from listed
      )
      select p.run_id, p.part, p.created_at, p.steps
      from chosen c cross join lateral (select * from workflow_steps s where s.id = c.id limit 1) p
      where c.before < ${entriesAtOnce.bytes} order by p.run_id, p.part`.unprepared
    for (const row of rows) {
      const since = performance.now()
      visit(row)
      yield* yieldIfSpent(since)
    }
    const end = rows.at(-1)
    if (end === undefined) return
    last = end
  }
})

interface OutlineRow extends Outline {
  readonly workflow_id: string
  readonly version: number
}

/** The outlines of these runs' versions, by `workflow version`; the inputs of their steps are not read. */
export const outlinesOf = Effect.fnUntraced(function* (
  runs: ReadonlyArray<Pick<RunRow, "workflow_id" | "version">>
): Effect.fn.Return<ReadonlyMap<string, Outline>, SqlError.SqlError, SqlClient.SqlClient> {
  const wanted = new Map(runs.map((run) => [`${run.workflow_id} ${run.version}`, run]))
  if (wanted.size === 0) return new Map()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<OutlineRow>`
    select v.workflow_id, v.version,
      coalesce((select json_agg(json_build_object('id', s.value -> 'id', 'kind', s.value -> 'kind', 'name', s.value -> 'name',
          'resource_id', s.value -> 'resource_id', 'config', '{}'::json) order by s.at)
        from jsonb_array_elements(d.steps) with ordinality s (value, at)), '[]') as steps,
      coalesce((select json_agg(json_build_object('source_type', e.value -> 'source_type', 'source_step_id', e.value -> 'source_step_id',
          'source_port', e.value -> 'source_port', 'target_step_id', e.value -> 'target_step_id', 'position', e.value -> 'position')
          order by e.at)
        from jsonb_array_elements(d.edges) with ordinality e (value, at)), '[]') as edges
    from unnest(${Columns.text([...wanted.values()].map(({ workflow_id }) => workflow_id))},
        ${Columns.int4([...wanted.values()].map(({ version }) => version))}) as a (workflow_id, version)
      join workflow_versions v on v.workflow_id = a.workflow_id and v.version = a.version
      join workflow_versions d on d.workflow_id = v.workflow_id and d.version = v.defined_in`.unprepared
  return new Map(rows.map((row) => [`${row.workflow_id} ${row.version}`, row]))
})

const nothing: Outline = { steps: [], edges: [] }

/** In lists, at most this many of a run's first and last entries are read: those of a long run change little in between. */
export const entriesInLists = 200

/** The reports about the steps of each of these runs. */
export const reportsOf = Effect.fnUntraced(function* (runs: ReadonlyArray<RunRow>) {
  const outlines = yield* outlinesOf(runs)
  const reports = new Map<string, StepReports>()
  for (const { id, version, workflow_id } of runs) {
    const since = performance.now()
    reports.set(id, new StepReports(id, outlines.get(`${workflow_id} ${version}`) ?? nothing))
    yield* yieldIfSpent(since)
  }
  yield* visitEntries(runs, entriesInLists / 2, ({ created_at, part, run_id, steps }) =>
    reports.get(run_id)!.take({ part, at: created_at.getTime(), steps })
  )
  return reports
})
