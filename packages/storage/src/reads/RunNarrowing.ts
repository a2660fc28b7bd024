import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { idBound, prefixes } from "@tidegate/model/Ids"
import type { RunNarrowing } from "@tidegate/model/RecordFilter"
import * as Columns from "../journal/Columns.ts"
import { likePrefix } from "./Relations.ts"
import { type RunRow, runTable } from "./RunRow.ts"
import { type Drive, scan, type Scanned, toPage } from "./Scan.ts"
import type { IdRange, Window } from "./Window.ts"

type Fragment = Statement.Fragment

/** The filter of lists of runs, beside their states. Absent members do not filter. */
export interface RunFilter extends RunNarrowing {
  /** When the run started (Unix ms), both ends included. */
  readonly startedFrom?: number | undefined
  readonly startedTo?: number | undefined
}

/** The bytes of one run's previews that a search reads: those of its first steps. */
const searchedOfRun = 4 * 1024 * 1024

/** Previews are stored as JSON, with escapes. */
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The conditions of a filter on a row of `workflow_runs w`. `window`: a journal entry is never written before its run's request. */
export const runConditions = (
  sql: SqlClient.SqlClient,
  { error_code, error_step_id, label, label_prefix, outcome, startedFrom, startedTo, text }: RunFilter,
  window: Window
): ReadonlyArray<Fragment> => {
  const all: Array<Fragment> = []
  if (outcome !== undefined) all.push(sql`w.outcome = any(${Columns.text(outcome)})`)
  if (error_code !== undefined) all.push(sql`upper(w.error_code) = any(${Columns.text(error_code)})`)
  if (error_step_id !== undefined) all.push(sql`w.error_step_id = any(${Columns.text(error_step_id)})`)
  if (label !== undefined) all.push(sql`w.label = ${label}`)
  if (label_prefix !== undefined) all.push(sql`w.label like ${likePrefix(label_prefix)}`)
  if (startedFrom !== undefined) all.push(sql`w.started_at >= ${new Date(startedFrom)}`)
  if (startedTo !== undefined) all.push(sql`w.started_at <= ${new Date(startedTo)}`)
  if (text !== undefined) {
    all.push(sql`exists (
      select from (
        select s.previews, sum(octet_length(s.previews)) over (order by s.part) as until from workflow_steps s
        where s.run_id = w.id and s.id >= ${idBound(prefixes.workflowPart, Math.max(0, window.from))}
      ) p where p.until <= ${searchedOfRun} and position(lower(${inJson(text)}) in lower(p.previews)) > 0)`)
  }
  return all
}

interface Asked {
  readonly team: string
  readonly drive: Drive
  readonly range: IdRange
  readonly bounds: ReadonlyArray<Fragment>
  readonly residual: ReadonlyArray<Fragment>
  readonly limit: number
}

/** `more`: runs below this id were not examined; null: all were. There may be one row more than the limit. */
interface Gathered {
  readonly rows: ReadonlyArray<RunRow>
  readonly more: string | null
}

/** How a list continues when too few of the examined rows match. */
interface Effort {
  /** Rows of one batch, and how many of them are examined for it. */
  readonly rows: number
  readonly examine?: number
  readonly batches: number
  readonly ms: number
}

/** Rows that meet conditions on their own columns. */
export const plainEffort = (limit: number): Effort => ({ rows: limit + 1, batches: 5, ms: Number.POSITIVE_INFINITY })

/** A search in previews: each run may cost megabytes, so it is done in small batches, and a page ends when its time is over. */
export const searchEffort: Effort = { rows: 50, examine: 51, batches: 200, ms: 2_000 }

/** Runs, newest first, up to one more than the limit: as far as the effort goes. */
export const gather = Effect.fnUntraced(function* (
  { bounds, drive, limit, range, residual, team }: Asked,
  { batches, examine, ms, rows }: Effort
): Effect.fn.Return<Gathered, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const until = (yield* Clock.currentTimeMillis) + ms
  const found: Array<RunRow> = []
  let more: string | null = drive.values.length === 0 ? null : range.upper
  for (let batch = 0; more !== null && batch < batches && found.length <= limit; batch++) {
    if (batch > 0 && (yield* Clock.currentTimeMillis) >= until) break
    const part: Scanned<RunRow> = yield* scan<RunRow>({
      team,
      table: runTable(sql),
      drive,
      bounds: [sql`w.id >= ${range.lower}`, sql`w.id < ${more}`, ...bounds],
      residual,
      dir: "desc",
      limit: rows,
      once: true,
      ...(examine === undefined ? {} : { examine })
    })
    const page = toPage([part], "desc", rows)
    found.push(...page.rows)
    more = page.next
  }
  return { rows: found, more }
})
