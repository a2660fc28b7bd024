import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import { storedHeaders } from "@tidegate/model/Message"
import type { RuntimeIssue, Workflow } from "@tidegate/model/Workflow"
import { completeTriggers } from "@tidegate/model/WorkflowTriggers"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { sampleOf } from "@tidegate/workflows/Sample"
import { shownGraph } from "@tidegate/workflows/StepCredentials"
import type { Shown } from "../control/Store.ts"
import * as Columns from "../journal/Columns.ts"
import { triggerKeys, sourceTrigger } from "../channels/SourceTrigger.ts"
import { latestSample } from "../reads/WorkflowSamples.ts"
import { lookUp } from "./TeamFacts.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"

/** How workflows are shown: with their source, a sample of its requests, and what prevents them from running. */

/** A fault that prevents a workflow from running. */
interface Hindrance {
  readonly code: RuntimeIssue["code"]
  readonly message: string
  /** The index of the step; null: it is not about a step. */
  readonly at: number | null
}

const disabledCode = (id: string): RuntimeIssue["code"] =>
  id.startsWith(prefixes.action) ? "workflow_action_disabled" : "workflow_resource_disabled"

/** Bytes of a request body; a larger one is not shown as a sample. */
const largestSample = 256 * 1024

interface SourceRow {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly disabled: boolean
  readonly provider_key: string | null
  readonly definition_key: string | null
}

const sourcesOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, rows: ReadonlyArray<WorkflowRow>) {
  const ids = [...new Set(rows.flatMap(({ source_id }) => source_id ?? []))]
  const found = yield* sql<SourceRow>`
    select s.id, s.name, s.type, s.disabled_at is not null as disabled, ${sql.literal(triggerKeys)}
    from sources s where s.id = any(${ids})`
  return new Map(found.map((row) => [row.id, row]))
})

/** The last request that a source accepted, with its secrets masked; null: there is none that can be shown. */
const latestOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, team_id: string, source_id: string) {
  const latest = yield* latestSample(team_id, source_id, largestSample).pipe(
    Effect.provideService(SqlClient.SqlClient, sql)
  )
  if (latest === null) return null
  return yield* inSlices(sampleOf({ ...latest, headers: storedHeaders(latest) }, latest.body ?? new Uint8Array(0)))
})

/** Without a request, a provider's own sample stands for one. */
const sourceOf = (source: SourceRow, latest: Schema.Json, listed: boolean): Workflow["source"] => {
  const { definition_key, described, name, provider_key } = sourceTrigger(source.provider_key, source.definition_key)
  const sample = latest ?? (listed || described === null ? null : { body: described.trigger.sample.output })
  return {
    id: source.id,
    name: source.name,
    type: source.type,
    status: source.disabled ? "disabled" : "enabled",
    provider_key,
    definition_key,
    definition_name: described === null ? null : name,
    output_schema: described?.trigger.output ?? null,
    schema_provenance: described !== null ? "provider" : sample === null ? "none" : "sample",
    primary_output: described?.trigger.primaryOutput ?? "body",
    export_path: described === null ? null : "body",
    sample
  }
}

const hindranceOf = (
  { named, source_id, triggers }: WorkflowRow,
  found: ReadonlyMap<string, { readonly enabled: boolean }>
): Hindrance | null => {
  if (source_id === null && triggers === null)
    return { code: "workflow_resource_missing", message: "its source was deleted", at: null }
  for (const [at, id] of named.entries()) {
    const resource = id === null ? undefined : found.get(id)
    if (id === null || resource?.enabled === true) continue
    return resource === undefined
      ? { code: "workflow_resource_missing", message: `${id} is not there`, at }
      : { code: disabledCode(id), message: `${id} is disabled`, at }
  }
  return null
}

/** The issues of rows with the steps that they are about: rows of a list have no steps. */
const issuesOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  rows: ReadonlyArray<WorkflowRow>,
  found: ReadonlyMap<string, { readonly enabled: boolean }>
): Effect.fn.Return<ReadonlyMap<string, RuntimeIssue>, SqlError.SqlError> {
  const hindered = rows.flatMap((row) => {
    const hindrance = hindranceOf(row, found)
    return hindrance === null ? [] : [{ id: row.id, ...hindrance }]
  })
  const about = hindered.filter(({ at }) => at !== null)
  const steps =
    about.length === 0
      ? []
      : yield* sql<{ id: string; step_id: string; step_name: string }>`
          select w.id, step ->> 'id' as step_id, step ->> 'name' as step_name
          from unnest(${Columns.text(about.map(({ id }) => id))}, ${Columns.int4(about.map(({ at }) => at!))}) as h (id, at)
            join workflows w on w.id = h.id cross join lateral (select w.steps -> h.at as step offset 0) s`
  const stepOf = new Map(steps.map((step) => [step.id, step]))
  return new Map(
    hindered.map(({ at, code, id, message }): [string, RuntimeIssue] => {
      const { step_id = null, step_name = null } = stepOf.get(id) ?? {}
      const step = { step_id, step_number: at === null ? null : at + 1, step_name }
      return [id, { code, message, ...step, field: at === null ? "source_id" : "resource_id" }]
    })
  )
})

/** The records of rows, in the same order. */
export const showWorkflows = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  rows: ReadonlyArray<WorkflowRow>,
  { listed = false }: Shown
): Effect.fn.Return<ReadonlyArray<Workflow>, SqlError.SqlError> {
  const [first] = rows
  if (first === undefined) return []
  const sources = yield* sourcesOf(sql, rows)
  const ids = rows.flatMap(({ named }) => named.flatMap((id) => id ?? []))
  const issues = yield* issuesOf(sql, rows, yield* lookUp(sql, first.team_id, ids))
  // Lists have no samples: each needs a read of its own.
  const sample = listed || first.source_id === null ? null : yield* latestOf(sql, first.team_id, first.source_id)
  return rows.map((row): Workflow => {
    const source = row.source_id === null ? undefined : sources.get(row.source_id)
    const runtime_issue = issues.get(row.id) ?? null
    return {
      id: row.id,
      team_id: row.team_id,
      source_id: row.source_id,
      name: row.name,
      description: row.description,
      status: row.status,
      version: row.version,
      run_label: row.run_label,
      source: source === undefined ? null : sourceOf(source, sample, listed),
      capabilities: {
        branching: true,
        fan_out: true,
        join: true,
        sequential_action_loop: true,
        runtime_executable: runtime_issue === null,
        runtime_issue
      },
      ...(listed ? {} : (shownGraph({ steps: row.steps, edges: row.edges }) as never)),
      ...(listed ? {} : { triggers: completeTriggers(row.triggers) }),
      steps_count: row.named.length,
      edges_count: row.edges_count,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString()
    }
  })
})
