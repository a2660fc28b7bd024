import { Context, Effect, Layer, Result, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { storedHeaders } from "@tidegate/model/Message"
import type { RuntimeIssue, Workflow, WorkflowStatus } from "@tidegate/model/Workflow"
import { workflow, type WorkflowFields } from "@tidegate/resources/Workflow"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import { definitionHash } from "@tidegate/workflows/DefinitionHash"
import type { Issue } from "@tidegate/workflows/Issue"
import { limits } from "@tidegate/workflows/Limits"
import { sampleOf } from "@tidegate/workflows/Sample"
import { judging, type Workflow as Compiled } from "@tidegate/workflows/Workflow"
import { credentialsIn, shownGraph } from "@tidegate/workflows/StepCredentials"
import { catalogFor, type SavedContent } from "./ActionCatalog.ts"
import { type ActionRow, contentOf } from "./Actions.ts"
import * as Columns from "../journal/Columns.ts"
import { presentOf } from "../control/PresentOf.ts"
import { latestSample } from "../reads/WorkflowSamples.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { makeRoomForVersion } from "./WorkflowVersions.ts"
import { makeStore, nobody, type Store, type StoredRow, type Values } from "../control/Store.ts"
import { query } from "../Transaction.ts"
import { changedKinds, ignoredInputs } from "./WorkflowPast.ts"

/** A row of `workflows`. */
export interface WorkflowRow extends StoredRow {
  readonly description: string | null
  readonly source_id: string | null
  readonly status: WorkflowStatus
  readonly version: number
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly definition_hash: string
  /** For each step, in order, the id of the resource that it names; the database computes it. */
  readonly named: ReadonlyArray<string | null>
  readonly edges_count: number
}

/** A fault that prevents a workflow from running. */
interface Hindrance {
  readonly code: RuntimeIssue["code"]
  readonly message: string
  /** The index of the step; null: it is not about a step. */
  readonly at: number | null
}

export interface WorkflowStore extends Store<typeof workflow> {
  /** Checks a definition as a save would; `standIns`: steps that need not be able to run, because a mock replaces them. */
  readonly compile: (
    team_id: string,
    graph: Pick<WorkflowFields, "steps" | "edges">,
    standIns: ReadonlySet<string>
  ) => Effect.Effect<Compiled, GatewayError>
  /** Warnings about a valid graph: references that find nothing when they run. */
  readonly warnings: (
    team_id: string,
    graph: Pick<WorkflowFields, "steps" | "edges">
  ) => Effect.Effect<Compiled["warnings"], GatewayError>
}

/**
 * The workflows of teams. A stored workflow compiles, and the resources that it names exist and cannot be deleted meanwhile. Each
 * real change makes an immutable version. Every change raises the version of the source (of both sources when the workflow
 * moves), so that ingress stops using the old definition. Rows are locked in the order filters, destinations, sources,
 * transformations, actions, workflows.
 */
export class Workflows extends Context.Service<Workflows, WorkflowStore>()("@tidegate/storage/Workflows") {
  static readonly layer: Layer.Layer<Workflows, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    Workflows,
    Effect.suspend(() => make)
  )
}

const member = (of: unknown, name: string): unknown =>
  typeof of === "object" && of !== null && Object.hasOwn(of, name)
    ? (of as Readonly<Record<string, unknown>>)[name]
    : undefined

/** The tables of resources that a step may name, by the prefix of their ids. */
const named = {
  [prefixes.filter]: "filters",
  [prefixes.destination]: "destinations",
  [prefixes.transformation]: "transformations",
  [prefixes.action]: "actions"
} as const

interface Reference {
  readonly step_id: string
  readonly id: string
}

/** The resources that steps name, even in a graph with faults. The check of the graph reports unknown kinds of ids. */
const referencesOf = (steps: ReadonlyArray<unknown>): ReadonlyArray<Reference> =>
  steps.slice(0, limits.steps).flatMap((step) => {
    const [step_id, id] = [member(step, "id"), member(step, "resource_id")]
    return typeof step_id === "string" && typeof id === "string" && /^(?:des|trs|act|flt)_/.test(id)
      ? [{ step_id: step_id.slice(0, 96), id: id.slice(0, 96) }]
      : []
  })

const noSteps: ReadonlySet<string> = new Set()

/**
 * Steps that named the same resource before. An active workflow may keep a resource that was disabled since: its runs report
 * that.
 */
const keptBy = (before: WorkflowRow | null, steps: ReadonlyArray<unknown>): ReadonlySet<string> => {
  if (before?.status !== "active") return noSteps
  const named = new Set(referencesOf(before.steps).map(({ id, step_id }) => `${step_id}/${id}`))
  return new Set(referencesOf(steps).flatMap(({ id, step_id }) => (named.has(`${step_id}/${id}`) ? [step_id] : [])))
}

const disabledCode = (id: string): RuntimeIssue["code"] =>
  id.startsWith(prefixes.action) ? "workflow_action_disabled" : "workflow_resource_disabled"

const invalidGraph = (issues: ReadonlyArray<Issue>): GatewayError => {
  const [first] = issues
  const more = issues.length === 1 ? "" : ` (and ${issues.length - 1} more, see data.issues)`
  return fail("WORKFLOW_GRAPH_INVALID", `${first?.code}: ${first?.message}${more}`, {
    issues: issues.map((issue) => ({ ...issue }))
  })
}

/** Bytes of a request body; a larger one is not shown as a sample. */
const largestSample = 256 * 1024

/** The fields of a version. */
const versioned = ["name", "description", "source_id", "status", "steps", "edges"] as const

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /**
   * Which of these ids exist in one table, and whether they are enabled; `held`: locked against deletion until the transaction
   * ends.
   */
  const lookUpIn = Effect.fnUntraced(function* (
    prefix: keyof typeof named,
    team_id: string,
    ids: ReadonlyArray<string>,
    held: boolean
  ) {
    const wanted = [...new Set(ids.filter((id) => id.startsWith(prefix)))]
    if (wanted.length === 0) return []
    const table = named[prefix]
    return yield* sql<{ id: string; enabled: boolean }>`
      select id, ${sql.literal(table === "transformations" || table === "filters" ? "true" : "disabled_at is null")} as enabled
      from ${sql(table)} where id = any(${wanted})
        and ${presentOf(sql, team_id)}
      order by id ${sql.literal(held ? "for share" : "")}`
  })

  /** Which of these ids exist, and whether they are enabled. */
  const lookUp = Effect.fnUntraced(function* (team_id: string, ids: ReadonlyArray<string>) {
    const filters = yield* lookUpIn(prefixes.filter, team_id, ids, false)
    const destinations = yield* lookUpIn(prefixes.destination, team_id, ids, false)
    const transformations = yield* lookUpIn(prefixes.transformation, team_id, ids, false)
    const actions = yield* lookUpIn(prefixes.action, team_id, ids, false)
    return new Map([...filters, ...destinations, ...transformations, ...actions].map((row) => [row.id, row]))
  })

  /** The current versions of the named saved actions. */
  const savedActions = Effect.fnUntraced(function* (team_id: string, references: ReadonlyArray<Reference>) {
    const ids = references.flatMap(({ id }) => (id.startsWith(prefixes.action) ? [id] : []))
    if (ids.length === 0) return new Map<string, SavedContent>()
    const rows = yield* sql<Pick<ActionRow, "id" | "provider_key" | "action_key" | "config"> & { holds: boolean }>`
      select id, provider_key, action_key, config, credentials is not null as holds from actions where id = any(${ids}) and ${presentOf(sql, team_id)}`
    return new Map(rows.map((row) => [row.id, { ...contentOf(row), holdsCredentials: row.holds }]))
  })

  /** The current conditions of the named stored filters. */
  const storedConditions = Effect.fnUntraced(function* (team_id: string, steps: ReadonlyArray<unknown>) {
    const ids = referencesOf(steps).flatMap(({ id }) => (id.startsWith(prefixes.filter) ? [id] : []))
    if (ids.length === 0) return new Map<string, Schema.Json>()
    const rows = yield* sql<{ id: string; conditions: Schema.Json }>`
      select id, conditions from filters where id = any(${ids}) and ${presentOf(sql, team_id)}`
    return new Map(rows.map((row) => [row.id, row.conditions]))
  })

  /** Compiles the definition to be stored; all faults of the graph, and all ids of missing resources, are reported together. */
  const compiled = Effect.fnUntraced(function* (
    team_id: string,
    { edges, status, steps }: Pick<WorkflowFields, "edges" | "status" | "steps">,
    standIns: ReadonlySet<string>,
    filters: ReadonlyMap<string, Schema.Json> = new Map(),
    before: WorkflowRow | null = null
  ) {
    const references = referencesOf(steps)
    const saved = yield* savedActions(team_id, references)
    // A stored definition stays as it was written, even when a new one like it would be refused: it can still be paused and
    // renamed.
    const isStored = before !== null && isSameJson([before.steps, before.edges], [steps, edges])
    const catalog = yield* catalogFor(steps, saved, filters)
    const result = yield* inSlices(judging(steps, edges, isStored ? { ...catalog, isStored } : catalog))
    const found = yield* lookUp(
      team_id,
      references.map(({ id }) => id)
    )
    const about = <Code extends string>(code: Code, { id, step_id }: Reference, what: string) => {
      return { code, step_id, edge_id: null, field: "resource_id", message: `${id} ${what}` }
    }
    const missing = references
      .filter(({ id }) => !found.has(id))
      .map((reference) => about("RESOURCE_NOT_FOUND", reference, "was not found"))
    if (Result.isFailure(result)) return yield* invalidGraph([...result.failure, ...missing])
    const further = isStored
      ? missing
      : [
          ...missing,
          ...(yield* changedKinds(sql, before, result.success.steps)),
          ...(yield* ignoredInputs(sql, team_id, result.success.steps, result.success.edges)),
          ...newCredentials(before, result.success)
        ]
    if (further.length > 0) return yield* invalidGraph(further)
    const disabled = references.filter(({ id, step_id }) => found.get(id)?.enabled === false && !standIns.has(step_id))
    if (status === "active" && disabled.length > 0) {
      yield* fail("WORKFLOW_NOT_EXECUTABLE", "the workflow names what is disabled: enable it first", {
        issues: disabled.map((reference) => about("RESOURCE_DISABLED", reference, "is disabled"))
      })
    }
    return result.success
  })

  const warnings = Effect.fnUntraced(function* (
    team_id: string,
    { edges, steps }: Pick<WorkflowFields, "edges" | "steps">
  ) {
    const catalog = yield* catalogFor(steps, yield* savedActions(team_id, referencesOf(steps)))
    const result = yield* inSlices(judging(steps, edges, catalog))
    return Result.isSuccess(result) ? result.success.warnings : []
  })

  /** Raises the versions of these sources, so that ingress routes again, and locks them. */
  const raise = Effect.fnUntraced(function* (team_id: string, ids: ReadonlyArray<string>) {
    if (ids.length === 0) return
    const raised = yield* sql<{ id: string }>`
      with concerned as materialized (
        select id from sources where id = any(${[...ids]}) and ${presentOf(sql, team_id)} order by id for update
      )
      update sources set version = version + 1 from concerned where sources.id = concerned.id returning sources.id`
    const gone = ids.find((id) => !raised.some((row) => row.id === id))
    if (gone !== undefined) yield* notFound("source", gone)
  })

  const sourcesOf = Effect.fnUntraced(function* (rows: ReadonlyArray<WorkflowRow>) {
    const ids = [...new Set(rows.flatMap(({ source_id }) => source_id ?? []))]
    const found = yield* sql<{ id: string; name: string; type: string; disabled: boolean }>`
      select id, name, type, disabled_at is not null as disabled from sources where id = any(${ids})`
    return new Map(found.map((row) => [row.id, row]))
  })

  /** The last request that a source accepted, with its secrets masked; null: there is none that can be shown. */
  const latestOf = Effect.fnUntraced(function* (team_id: string, source_id: string) {
    const latest = yield* latestSample(team_id, source_id, largestSample).pipe(
      Effect.provideService(SqlClient.SqlClient, sql)
    )
    if (latest === null) return null
    return yield* inSlices(sampleOf({ ...latest, headers: storedHeaders(latest) }, latest.body ?? new Uint8Array(0)))
  })

  const hindranceOf = (
    { named, source_id }: WorkflowRow,
    found: ReadonlyMap<string, { readonly enabled: boolean }>
  ): Hindrance | null => {
    if (source_id === null) return { code: "workflow_resource_missing", message: "its source was deleted", at: null }
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

  const store = yield* makeStore<WorkflowRow, typeof workflow>(workflow, {
    show: Effect.fnUntraced(function* (rows, { listed = false }) {
      const [first] = rows
      if (first === undefined) return []
      const sources = yield* sourcesOf(rows)
      const ids = rows.flatMap(({ named }) => named.flatMap((id) => id ?? []))
      const issues = yield* issuesOf(rows, yield* lookUp(first.team_id, ids))
      // Lists have no samples: each needs a read of its own.
      const sample = listed || first.source_id === null ? null : yield* latestOf(first.team_id, first.source_id)
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
          source:
            source === undefined
              ? null
              : {
                  id: source.id,
                  name: source.name,
                  type: source.type,
                  status: source.disabled ? "disabled" : "enabled",
                  provider_key: null,
                  definition_key: null,
                  definition_name: null,
                  output_schema: null,
                  schema_provenance: sample === null ? "none" : "sample",
                  primary_output: "body",
                  export_path: null,
                  sample
                },
          capabilities: {
            branching: true,
            fan_out: true,
            join: true,
            sequential_action_loop: true,
            runtime_executable: runtime_issue === null,
            runtime_issue
          },
          ...(listed ? {} : (shownGraph({ steps: row.steps, edges: row.edges }) as never)),
          steps_count: row.named.length,
          edges_count: row.edges_count,
          created_at: row.created_at.toISOString(),
          updated_at: row.updated_at.toISOString()
        }
      })
    }),
    hold: Effect.fnUntraced(function* (team_id, before, next) {
      const named = referencesOf((next["steps"] as WorkflowFields["steps"] | undefined) ?? []).map(({ id }) => id)
      const after = next["source_id"] as string | null | undefined
      const sources = new Set([before?.source_id ?? null, after ?? null].flatMap((id) => id ?? []))
      yield* lookUpIn(prefixes.filter, team_id, named, true)
      yield* lookUpIn(prefixes.destination, team_id, named, true)
      yield* raise(team_id, [...sources])
      yield* lookUpIn(prefixes.transformation, team_id, named, true)
      yield* lookUpIn(prefixes.action, team_id, named, true)
    }),
    prepare: Effect.fnUntraced(function* ({ team_id }, before, next) {
      if (next["steps"] === undefined) return next
      const written = next as unknown as WorkflowFields
      if (written.status === "active" && written.source_id === null) {
        yield* fail("WORKFLOW_NOT_EXECUTABLE", "the workflow has no source: give it one", {
          issues: [{ code: "RESOURCE_REQUIRED", step_id: null, edge_id: null, field: "source_id", message: "is null" }]
        })
      }
      const { edges, steps } = yield* compiled(team_id, written, keptBy(before, written.steps), new Map(), before)
      const after = { ...written, steps, edges }
      if (before !== null && versioned.every((field) => isSameJson(before[field], after[field]))) return null
      return {
        ...next,
        steps: JSON.stringify(steps),
        edges: JSON.stringify(edges),
        version: before === null ? 1 : before.version + 1,
        definition_hash: definitionHash(steps, edges)
      } satisfies Values
    }),
    createsMore: true,
    follow: Effect.fnUntraced(function* (before, after, at, by) {
      if (after.deleted_at !== null) {
        yield* sql`delete from workflow_versions where workflow_id = ${after.id}`
        // The deleted row stays for a while; it names no resources and takes little storage.
        yield* sql`update workflows set steps = '[]', edges = '[]', description = null where id = ${after.id}`
        return nobody
      }
      if (before !== null && before.version !== after.version) yield* makeRoomForVersion(sql, after, at)
      yield* keepVersion(sql, before, after, by)
      return nobody
    }),
    deleted: ({ source_id }) => Effect.succeed({ source_id, source_deleted: false })
  })
  return {
    ...store,
    compile: (team_id, graph, standIns) =>
      query(
        Effect.flatMap(storedConditions(team_id, graph.steps), (filters) =>
          compiled(team_id, { ...graph, status: "active" }, standIns, filters)
        )
      ),
    warnings: (team_id, graph) => query(warnings(team_id, graph))
  } satisfies WorkflowStore
})

/**
 * Stores a version of the current row, and who asked for it. When the definition has not changed, it refers to the version that
 * has it.
 */
export const keepVersion = (
  sql: SqlClient.SqlClient,
  before: WorkflowRow | null,
  { definition_hash, edges, id, name, status, steps, team_id, updated_at, version }: WorkflowRow,
  by: string | null
) => {
  const isSame = before !== null && isSameJson([before.steps, before.edges], [steps, edges])
  const defined_in = isSame
    ? sql`(select defined_in from workflow_versions where workflow_id = ${id} and version = ${before.version})`
    : sql`${version}`
  return sql`
    insert into workflow_versions
      (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, created_by_user_id, created_at)
    select ${id}, ${version}, ${team_id}, ${name}, ${status}, ${definition_hash}, ${defined_in},
      ${isSame ? null : JSON.stringify(steps)}::jsonb, ${isSame ? null : JSON.stringify(edges)}::jsonb, ${by}, ${updated_at}`
}

/** Credentials that a change would put into steps. Those that were stored before this rule stay until they are changed. */
const newCredentials = (
  before: Pick<WorkflowRow, "steps" | "edges"> | null,
  { edges, steps }: Parameters<typeof credentialsIn>[0]
): ReadonlyArray<Issue> => {
  const isKept = (
    kept: ReadonlyArray<{ readonly id: string }>,
    among: ReadonlyArray<{ readonly id: string }>,
    id: string | null
  ) =>
    isSameJson(
      kept.find((one) => one.id === id) ?? null,
      among.find((one) => one.id === id)
    )
  return credentialsIn({ steps, edges }).filter(
    ({ edge_id, step_id }) =>
      before === null ||
      !(step_id === null ? isKept(before.edges, edges, edge_id) : isKept(before.steps, steps, step_id))
  )
}
