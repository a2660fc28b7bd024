import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { idBound, idTime, isId, prefixes } from "@tidegate/model/Ids"
import type { TracedRun } from "@tidegate/model/Trace"
import type { RunStatus, WorkflowActivity, WorkflowRun } from "@tidegate/model/WorkflowRun"
import { runOf } from "@tidegate/workflows/RunReport"
import { triggerKeys, sourceTrigger } from "../channels/SourceTrigger.ts"
import { triggerNames } from "@tidegate/model/WorkflowTriggers"
import * as Columns from "../journal/Columns.ts"
import { cutToLimit, resolvePage, type WindowedPage, windowedList } from "./Paging.ts"
import { gatherAtMost, timeRange } from "./Relations.ts"
import { entriesInLists, reportsOf, type RunRow, runTable } from "./RunRow.ts"
import { gather, plainEffort, runConditions, type RunFilter, searchEffort } from "./RunNarrowing.ts"
import { type Drive, scan, toPage } from "./Scan.ts"
import { type IdRange, idRange } from "./Window.ts"

type Fragment = Statement.Fragment

/** An existing workflow of the team. */
export const workflowOf = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<
  { readonly name: string; readonly version: number; readonly status: string },
  GatewayError | SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ name: string; version: number; status: string }>`
    select name, version, status from workflows where id = ${id} and team_id = ${team} and deleted_at is null`
  return row ?? (yield* notFound("workflow", id))
})

const ofStatus = (sql: SqlClient.SqlClient, statuses: ReadonlyArray<RunStatus>): ReadonlyArray<Fragment> =>
  statuses.length === 0 ? [] : [sql`w.status = any(${Columns.text(statuses)})`]

/** A page of a workflow's runs, newest first; without a window, of all, or of the last 24 hours when their previews are searched. */
export const list = Effect.fnUntraced(function* (
  team: string,
  workflowId: string,
  statuses: ReadonlyArray<RunStatus>,
  request: WindowedPage,
  filter: RunFilter = {}
) {
  const sql = yield* SqlClient.SqlClient
  const { limit } = request
  const span = filter.text === undefined ? Number.POSITIVE_INFINITY : undefined
  const at = yield* Effect.fromResult(resolvePage(request, yield* Clock.currentTimeMillis, span))
  const { status } = yield* workflowOf(team, workflowId)
  const range = beforeCursor(idRange(prefixes.workflowRun, at.window), at.position)
  const drive = { column: "workflow_id", values: [workflowId] }
  const residual = [...ofStatus(sql, statuses), ...runConditions(sql, filter, at.window)]
  if (filter.text !== undefined) {
    const { more, rows } = yield* gather({ team, drive, range, bounds: [], residual, limit }, searchEffort)
    const { last, page } = cutToLimit(rows, limit)
    const models = page.map((row) => runOf(row, status === "paused"))
    return windowedList(request, at, models, last?.id ?? more)
  }
  const part = yield* scan<RunRow>({
    team,
    table: runTable(sql),
    drive,
    bounds: [sql`w.id >= ${range.lower}`, sql`w.id < ${range.upper}`],
    residual,
    dir: "desc",
    limit
  })
  const { next, rows } = toPage([part], "desc", limit)
  return windowedList(
    request,
    at,
    rows.map((row) => runOf(row, status === "paused")),
    next
  )
})

/** A run of a workflow; null: there is none. */
export const one = Effect.fnUntraced(function* (
  team: string,
  workflowId: string,
  id: string
): Effect.fn.Return<WorkflowRun | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<RunRow & { readonly paused: boolean }>`
    select w.*, f.status = 'paused' as paused from workflow_runs w join workflows f on f.id = w.workflow_id
    where w.id = ${id} and w.workflow_id = ${workflowId} and w.team_id = ${team}`
  return row === undefined ? null : runOf(row, row.paused)
})

/** A run of any existing workflow of the team, by its id alone. */
export const byId = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<WorkflowRun, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<RunRow & { readonly paused: boolean }>`
    select w.*, f.status = 'paused' as paused
    from workflow_runs w join workflows f on f.id = w.workflow_id and f.deleted_at is null
    where w.id = ${id} and w.team_id = ${team}`
  return row === undefined ? yield* notFound("workflow_run", id) : runOf(row, row.paused)
})

/** The runs of a request whose steps are shown with it: each may have 200 journal entries to read. */
const withSteps = 20

/** The runs of a request, oldest first; only of existing workflows. A run has the time of its request. */
export const ofRequest = Effect.fnUntraced(function* (
  team: string,
  requestId: string,
  limit: number
): Effect.fn.Return<ReadonlyArray<TracedRun>, SqlError.SqlError, SqlClient.SqlClient> {
  const range = timeRange(prefixes.workflowRun, requestId)
  if (range === null) return []
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<RunRow & { readonly paused: boolean; readonly workflow_name: string }>`
    select w.*, f.status = 'paused' as paused, f.name as workflow_name
    from workflow_runs w join workflows f on f.id = w.workflow_id and f.deleted_at is null
    where w.id >= ${range.lower} and w.id < ${range.upper} and w.request_id = ${requestId} and w.team_id = ${team}
    ${sql.literal(`order by w.id limit ${limit}`)}`.unprepared
  const reports = yield* reportsOf(rows.slice(0, withSteps))
  return rows.map((row) =>
    Object.assign(runOf(row, row.paused), {
      workflow_name: row.workflow_name,
      steps: reports.get(row.id)?.summaries(row.parts <= entriesInLists) ?? null
    })
  )
})

/** The range up to the end of the previous page. */
const beforeCursor = ({ lower, upper }: IdRange, position: { readonly id: string } | null): IdRange => ({
  lower,
  upper: position?.id ?? upper
})

/** The filter of a team's runs. Empty lists and undefined do not filter. */
export interface ActivityFilter extends RunFilter {
  readonly statuses: ReadonlyArray<RunStatus>
  readonly sources: ReadonlyArray<string>
  readonly workflows?: ReadonlyArray<string>
  readonly search: string | undefined
}

/** The ids of a team's resources whose name contains this text (case does not matter), up to a limit. */
const named = (sql: SqlClient.SqlClient, table: "workflows" | "sources", team: string, text: string) =>
  Effect.map(
    sql<{ id: string }>`
      select id from ${sql(table)} where team_id = ${team} and deleted_at is null
        and position(lower(${text}) in lower(name)) > 0 limit ${gatherAtMost}`,
    (rows) => rows.map(({ id }) => id)
  )

interface Searched {
  readonly drive: Drive
  readonly bounds: ReadonlyArray<Fragment>
  readonly residual: ReadonlyArray<Fragment>
}

/**
 * With more workflows than these, reading along their runs costs more than reading along the team's runs: for each workflow as
 * many rows are read as are to be shown.
 */
const maxDriven = 100

/** The characters of a request's id. */
const idText = /^[0-9a-z_]{1,30}$/

const everything = (team: string): Searched => ({
  drive: { column: "team_id", values: [team] },
  bounds: [],
  residual: []
})

/** Reads along the runs of these workflows; of all if there are none, or too many. */
const alongWorkflows = (team: string, workflows: ReadonlyArray<string>): Searched =>
  workflows.length === 0 || workflows.length > maxDriven
    ? everything(team)
    : { ...everything(team), drive: { column: "workflow_id", values: workflows } }

/** The same read along the team's runs: a search in previews takes them one by one. */
const alongTeam = (sql: SqlClient.SqlClient, team: string, { drive, ...found }: Searched): Searched => {
  if (drive.column === "team_id") return { ...found, drive }
  const among = sql`w.workflow_id = any(${Columns.text(drive.values)})`
  return { ...everything(team), bounds: found.bounds, residual: [...found.residual, among] }
}

const searched = Effect.fnUntraced(function* (team: string, text: string) {
  const sql = yield* SqlClient.SqlClient
  const id = text.toLowerCase()
  const found = everything(team)
  if (isId(prefixes.request, id)) {
    // A run has the time of its request.
    const at = idTime(id) ?? 0
    const bounds = [
      sql`w.id >= ${idBound(prefixes.workflowRun, at)}`,
      sql`w.id < ${idBound(prefixes.workflowRun, at + 1)}`
    ]
    return { ...found, bounds, residual: [sql`w.request_id = ${id}`] }
  }
  const workflows = yield* named(sql, "workflows", team, text)
  const sources = yield* named(sql, "sources", team, text)
  if (sources.length === 0 && !idText.test(id) && workflows.length <= maxDriven) {
    return { ...found, drive: { column: "workflow_id", values: workflows } }
  }
  const residual = sql`(w.workflow_id = any(${Columns.text(workflows)}) or w.source_id = any(${Columns.text(sources)})
    or position(${id} in w.request_id) > 0)`
  return { ...found, residual: [residual] }
})

/** The rows of a page of the runs of a team, newest first. `next`: where the next page begins. */
const rowsOf = Effect.fnUntraced(function* (
  team: string,
  { search, sources, statuses, workflows = [], ...filter }: ActivityFilter,
  request: WindowedPage
) {
  const sql = yield* SqlClient.SqlClient
  const at = yield* Effect.fromResult(resolvePage(request, yield* Clock.currentTimeMillis))
  const range = beforeCursor(idRange(prefixes.workflowRun, at.window), at.position)
  const { limit } = request
  const found = search === undefined ? alongWorkflows(team, workflows) : yield* searched(team, search)
  const { bounds, drive, residual } = filter.text === undefined ? found : alongTeam(sql, team, found)
  const narrowed = [
    ...residual,
    ...ofStatus(sql, statuses),
    ...runConditions(sql, filter, at.window),
    ...(sources.length === 0 ? [] : [sql`w.source_id = any(${Columns.text(sources)})`]),
    ...(workflows.length === 0 ? [] : [sql`w.workflow_id = any(${Columns.text(workflows)})`]),
    // The runs of a deleted workflow are deleted too, though not at once.
    sql.literal("exists (select from workflows f where f.id = w.workflow_id and f.deleted_at is null)")
  ]
  const { more, rows: gathered } = yield* gather(
    { team, drive, range, bounds, residual: narrowed, limit },
    filter.text === undefined ? plainEffort(limit) : searchEffort
  )
  const { last, page: rows } = cutToLimit(gathered, limit)
  return { at, rows, next: last?.id ?? more, hasMore: last !== null }
})

/** A page of the runs of all workflows of a team, newest first, with their steps. */
export const activity = Effect.fnUntraced(function* (team: string, filter: ActivityFilter, request: WindowedPage) {
  const { at, hasMore, next, rows } = yield* rowsOf(team, filter, request)
  const answer = windowedList(request, at, yield* shown(rows), next)
  // One more than are shown is known to be there.
  return hasMore ? { ...answer, total: answer.total + 1 } : answer
})

/** The ids of the same page. */
export const idsOf = Effect.fnUntraced(function* (team: string, filter: ActivityFilter, request: WindowedPage) {
  const { at, next, rows } = yield* rowsOf(team, filter, request)
  const ids = rows.map(({ id }) => ({ id }))
  return windowedList(request, at, ids, next)
})

const namesOf = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) =>
  Effect.map(
    sql<{ id: string; name: string }>`select id, name from workflows where id = any(${Columns.text(ids)})`,
    (rows) => new Map(rows.map(({ id, name }) => [id, name]))
  )

const sourcesOf = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) =>
  Effect.map(
    sql<{ id: string; name: string; provider_key: string | null; definition_key: string | null }>`
      select s.id, s.name, ${sql.literal(triggerKeys)} from sources s where s.id = any(${Columns.text(ids)})`,
    (rows) => new Map(rows.map((row) => [row.id, row]))
  )

const shown = Effect.fnUntraced(function* (
  rows: ReadonlyArray<RunRow>
): Effect.fn.Return<ReadonlyArray<WorkflowActivity>, SqlError.SqlError, SqlClient.SqlClient> {
  if (rows.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const workflows = yield* namesOf(sql, [...new Set(rows.map(({ workflow_id }) => workflow_id))])
  const sources = yield* sourcesOf(sql, [...new Set(rows.map(({ source_id }) => source_id))])
  const reports = yield* reportsOf(rows)
  return rows.map((row) => {
    const run = runOf(row, false)
    const source = sources.get(row.source_id)
    const { name: trigger_name, provider_key } = sourceTrigger(
      source?.provider_key ?? null,
      source?.definition_key ?? null
    )
    return {
      id: run.id,
      request_id: run.request_id,
      workflow_id: run.workflow_id,
      workflow_name: workflows.get(run.workflow_id) ?? null,
      workflow_version: run.workflow_version,
      label: run.label,
      source: {
        id: row.source_id,
        name: source?.name ?? null,
        provider_key,
        trigger_name: row.trigger == null ? trigger_name : triggerNames[row.trigger]
      },
      status: run.status,
      outcome: run.outcome,
      attempt_count: run.attempt_count,
      steps_count: run.steps_count,
      succeeded_steps: run.succeeded_steps,
      failed_steps: run.failed_steps,
      skipped_steps: run.skipped_steps,
      error_code: run.error_code,
      error_message: run.error_message,
      error_step_id: run.error_step_id,
      steps: reports.get(run.id)?.summaries(row.parts <= entriesInLists) ?? [],
      started_at: run.started_at,
      finished_at: run.finished_at,
      created_at: run.created_at,
      updated_at: run.updated_at
    }
  })
})
