import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { fail, invalid, notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { completeTriggers } from "@tidegate/model/WorkflowTriggers"
import { workflow, type WorkflowFields } from "@tidegate/resources/Workflow"
import { checkDefinition, namedIds } from "@tidegate/resources/workflow/DefinitionCheck"
import type { DefinitionFacts } from "@tidegate/resources/workflow/DefinitionFacts"
import { onFailureFaults } from "@tidegate/resources/workflow/OnFailure"
import { triggerFaults } from "@tidegate/resources/workflow/Triggers"
import { definitionHash } from "@tidegate/workflows/DefinitionHash"
import { makeStore } from "../control/MakeStore.ts"
import { presentOf } from "../control/PresentOf.ts"
import { nobody, type Store, type Values } from "../control/Store.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { keepTurns } from "./RunTurns.ts"
import { keepWindows } from "./RunWindows.ts"
import { keepSchedules } from "./Schedules.ts"
import { holdNamed, statusOf, teamFacts } from "./TeamFacts.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"
import { keepVersion, makeRoomForVersion } from "./WorkflowVersions.ts"
import { showWorkflows } from "./WorkflowView.ts"

export interface WorkflowStore extends Store<typeof workflow> {
  /** The facts about a team's resources, to check a definition that is not saved. */
  readonly facts: (team_id: string) => DefinitionFacts<SqlError.SqlError>
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

/** The fields of a version. */
const versioned = ["name", "description", "source_id", "status", "run_label", "steps", "edges", "triggers"] as const

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

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

  const changedOnFailure = Effect.fnUntraced(function* (
    team_id: string,
    before: WorkflowRow | null,
    { triggers }: WorkflowFields
  ) {
    const workflow_id = triggers?.on_failure?.workflow_id ?? null
    if (workflow_id === null || workflow_id === before?.triggers?.on_failure?.workflow_id) return []
    const status = yield* statusOf(sql, team_id, workflow_id)
    return onFailureFaults({ workflow_id, by: before?.id ?? null, status })
  })

  const store = yield* makeStore<WorkflowRow, typeof workflow>(workflow, {
    show: (rows, options) => showWorkflows(sql, rows, options),
    fields: (fields) => ({ ...fields, triggers: completeTriggers(fields.triggers) }),
    hold: Effect.fnUntraced(function* (team_id, before, next) {
      const named = namedIds((next["steps"] as WorkflowFields["steps"] | undefined) ?? [])
      const after = next["source_id"] as string | null | undefined
      const sources = new Set([before?.source_id ?? null, after ?? null].flatMap((id) => id ?? []))
      yield* holdNamed(sql, prefixes.filter, team_id, named)
      yield* holdNamed(sql, prefixes.destination, team_id, named)
      yield* raise(team_id, [...sources])
      yield* holdNamed(sql, prefixes.source, team_id, named)
      yield* holdNamed(sql, prefixes.transformation, team_id, named)
      yield* holdNamed(sql, prefixes.action, team_id, named)
    }),
    prepare: Effect.fnUntraced(function* ({ team_id }, before, next) {
      if (next["steps"] === undefined) return next
      const written = next as unknown as WorkflowFields
      // Triggers, even without a schedule, say that the workflow is meant to be begun without a source.
      if (written.status === "active" && written.source_id === null && written.triggers === null) {
        yield* fail("WORKFLOW_NOT_EXECUTABLE", "the workflow has neither a source nor triggers: give it one of them", {
          issues: [{ code: "RESOURCE_REQUIRED", step_id: null, edge_id: null, field: "source_id", message: "is null" }]
        })
      }
      const { edges, steps } = yield* checkDefinition(written, before, teamFacts(sql, team_id))
      const onFailure = yield* changedOnFailure(team_id, before, written)
      const faults = [...triggerFaults({ ...written, steps }), ...onFailure]
      if (faults.length > 0) yield* invalid(faults)
      const after = { ...written, steps, edges }
      const stored = before === null ? null : { ...before, triggers: completeTriggers(before.triggers) }
      if (stored !== null && versioned.every((field) => isSameJson(stored[field], after[field]))) return null
      return {
        ...next,
        steps: JSON.stringify(steps),
        edges: JSON.stringify(edges),
        triggers: written.triggers === null ? null : JSON.stringify(written.triggers),
        version: before === null ? 1 : before.version + 1,
        definition_hash: definitionHash(steps, edges)
      } satisfies Values
    }),
    alone: () => null,
    follow: Effect.fnUntraced(function* (before, after, at, by) {
      yield* keepSchedules(sql, before, after, at)
      yield* keepTurns(sql, before, after, at)
      yield* keepWindows(sql, before, after, at)
      if (after.deleted_at !== null) {
        yield* sql`delete from workflow_versions where workflow_id = ${after.id}`
        yield* sql`delete from workflow_drafts where workflow_id = ${after.id}`
        yield* sql`delete from workflow_values where workflow_id = ${after.id}`
        // The deleted row stays for a while; it names no resources and takes little storage.
        yield* sql`update workflows set steps = '[]', edges = '[]', triggers = null, description = null where id = ${after.id}`
        return nobody
      }
      if (before !== null && before.version !== after.version) yield* makeRoomForVersion(sql, after, at)
      yield* keepVersion(sql, before, after, by)
      return nobody
    }),
    deleted: ({ source_id }) => Effect.succeed({ source_id, source_deleted: false })
  })
  return { ...store, facts: (team_id) => teamFacts(sql, team_id) } satisfies WorkflowStore
})
