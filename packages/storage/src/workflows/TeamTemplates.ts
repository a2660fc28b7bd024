import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { completeTriggers } from "@tidegate/model/WorkflowTriggers"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"
import {
  maxTemplateBytes,
  type TeamTemplate,
  type TeamTemplateOutline,
  type TemplateSave
} from "@tidegate/resources/TeamTemplate"
import { shownStep } from "@tidegate/resources/TemplateUse"
import { presentOf } from "../control/PresentOf.ts"
import { holdTeam } from "../teams/Teams.ts"
import { transaction } from "../Transaction.ts"
import { draftDefinition } from "./Drafts.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"

/**
 * Templates that teams save from their workflows. A template is a copy: it keeps nothing that it names from being deleted, and a workflow that
 * is made of it is checked like any other. It has no actor, because nothing caches it.
 */

type Reading<A> = Effect.fn.Return<A, GatewayError | SqlError.SqlError, SqlClient.SqlClient>

const outlineColumns = "id, name, description, outline, created_at"

/** All templates of a team, by name. Their number is limited. */
export const listTeamTemplates = Effect.fnUntraced(function* (
  team: string
): Reading<ReadonlyArray<TeamTemplateOutline>> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<TeamTemplateOutline>`
    select ${sql.literal(outlineColumns)} from workflow_templates where team_id = ${team} order by name`
})

const rowOf = Effect.fnUntraced(function* (team: string, id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<TeamTemplate>`
    select ${sql.literal(outlineColumns)}, steps, edges, run_label, triggers
    from workflow_templates where id = ${id} and team_id = ${team}`
  return row
})

export const getTeamTemplate = Effect.fnUntraced(function* (team: string, id: string): Reading<TeamTemplate> {
  return (yield* rowOf(team, id)) ?? (yield* notFound("workflow_template", id))
})

type Live = Pick<WorkflowRow, "steps" | "edges" | "run_label" | "triggers" | "description">

/** The parts of a workflow that a template contains. A draft has no triggers. */
const definitionOf = Effect.fnUntraced(function* (
  team: string,
  { draft = false, workflow_id }: TemplateSave
): Reading<Live> {
  const sql = yield* SqlClient.SqlClient
  const [live] = yield* sql<Live>`
    select steps, edges, run_label, triggers, description from workflows
    where id = ${workflow_id} and ${presentOf(sql, team)}`
  if (live === undefined) return yield* notFound("workflow", workflow_id)
  return draft ? { ...live, ...(yield* draftDefinition(team, workflow_id)) } : live
})

/** The number and the bytes of the templates of a team, and the one that has this name. */
const usageOf = Effect.fnUntraced(function* (team: string, name: string) {
  const sql = yield* SqlClient.SqlClient
  const [usage] = yield* sql<{ readonly count: number; readonly bytes: number; readonly holder: string | null }>`
    select count(*)::int4 as count, coalesce(sum(bytes), 0)::int4 as bytes, min(id) filter (where name = ${name}) as holder
    from workflow_templates where team_id = ${team}`
  return usage!
})

/** Saves a workflow as a template. With the id of a template that is there, from a repeated call, nothing is changed. */
export const saveTeamTemplate = Effect.fnUntraced(function* (
  team: string,
  id: string,
  input: TemplateSave,
  by: string | null
): Effect.fn.Return<TeamTemplate, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const created_at = new Date(yield* Clock.currentTimeMillis)
  const limits = yield* TeamLimits
  return yield* transaction(sql)(
    Effect.gen(function* () {
      // The lock of the team's row: its templates are counted and added one after the other.
      yield* holdTeam(team)
      const before = yield* rowOf(team, id)
      if (before !== undefined) return before
      const name = input.name.trim()
      const { bytes, count, holder } = yield* usageOf(team, name)
      if (holder !== null) {
        const about = { id: holder, resource_type: "workflow_template" }
        yield* fail("RESOURCE_ALREADY_EXISTS", `another template of the team has the name ${name}`, about)
      }
      const most = limits["workflow_templates"]!
      if (count >= most) yield* beyondLimit("workflow_templates", most, "delete one first")
      const { edges, run_label, steps, ...live } = yield* definitionOf(team, input)
      const triggers = completeTriggers(live.triggers)
      const outline = steps.map((step) => shownStep(step as never))
      const texts = [outline, steps, edges, triggers].map((value) => JSON.stringify(value))
      const own = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
      if (bytes + own > maxTemplateBytes) {
        yield* fail(
          "LIMIT_EXCEEDED",
          `the templates of a team can have ${maxTemplateBytes} bytes together; delete one first`,
          { limit: maxTemplateBytes, resource: "workflow_templates" }
        )
      }
      const description = (input.description === undefined ? live.description : input.description) ?? ""
      yield* sql`
        insert into workflow_templates
          (id, team_id, name, description, outline, steps, edges, run_label, triggers, bytes, created_by_user_id, created_at)
        values (${id}, ${team}, ${name}, ${description}, ${texts[0]!}::jsonb, ${texts[1]!}::jsonb, ${texts[2]!}::jsonb,
          ${run_label}, ${triggers === null ? null : texts[3]!}::jsonb, ${own}, ${by}, ${created_at})`
      return { id, name, description, outline, steps, edges, run_label, triggers, created_at }
    })
  )
})

export const deleteTeamTemplate = Effect.fnUntraced(function* (
  team: string,
  id: string
): Reading<{ readonly id: string; readonly deleted: true }> {
  const sql = yield* SqlClient.SqlClient
  const gone = yield* sql`delete from workflow_templates where id = ${id} and team_id = ${team} returning 1`
  if (gone.length === 0) yield* notFound("workflow_template", id)
  return { id, deleted: true }
})
