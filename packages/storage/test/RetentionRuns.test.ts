import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { idBound, newId, prefixes } from "@tidegate/model/Ids"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { day, ensurePartitions, startOfDay } from "../src/retention/Partitions.ts"
import { keptVersions } from "../src/retention/RetentionRuns.ts"
import * as RunDetail from "../src/reads/RunDetail.ts"
import { retain } from "../src/retention/Retention.ts"
import { makeDays } from "./OldDays.ts"

const world = Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))).pipe(
  (database) => Layer.provideMerge(Layer.effectDiscard(migrate), database),
  Layer.provideMerge(Logger.layer([])),
  Layer.orDie
)

const now = Date.now()
const defaults = { payloadDays: 5, recordDays: 12 }
const team = "tm_runs"

const steps = [{ id: "only", kind: "filter", name: "Only", resource_id: null, config: {} }]
const edges = [
  { id: "e_00", source_type: "trigger", source_step_id: null, source_port: "out", target_step_id: "only", position: 0 }
]
const at = now - day
const progress = {
  run: {},
  steps: { 0: { status: "succeeded", attempt: 1, ports: ["matched"], startedAt: at, finishedAt: at, warnings: [] } },
  edges: { 0: "taken" }
}
const preview = { available: true, preview: { only: 1 } }

/**
 * A workflow with so many versions, the first of them made so many days ago and the others later. It has changed so often since that
 * none of them is among its last ones.
 */
const makeWorkflow = Effect.fnUntraced(function* (
  id: string,
  versions: ReadonlyArray<{ readonly age: number; readonly defined_in: number }>
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into teams (id, name) values (${team}, ${team}) on conflict do nothing`
  yield* sql`insert into workflows (id, team_id, name, status, version, steps, edges, definition_hash, created_at, updated_at)
    values (${id}, ${team}, ${id}, 'active', ${versions.length + keptVersions}, '[]', '[]', '', now(), now())`
  for (const [index, { age, defined_in }] of versions.entries()) {
    const own = defined_in === index + 1
    yield* sql`insert into workflow_versions (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, created_at)
      values (${id}, ${index + 1}, ${team}, ${id}, 'active', '', ${defined_in}, ${own ? JSON.stringify(steps) : null}::jsonb,
        ${own ? JSON.stringify(edges) : null}::jsonb, ${new Date(now - age * day)})`
  }
})

/** A run that began, and ended, so many days ago; `open`: it has not. */
const makeRun = Effect.fnUntraced(function* (workflow: string, age: number, open = false) {
  const sql = yield* SqlClient.SqlClient
  const ms = startOfDay(now) - age * day + 3_600_000
  const id = newId(prefixes.workflowRun, ms)
  const ended = open ? null : new Date(ms)
  yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, parts, steps_count,
      started_at, finished_at, created_at, updated_at)
    values (${id}, ${team}, ${workflow}, ${newId(prefixes.request, ms)}, 'src_x', 1, ${open ? "running" : "succeeded"}, 1, 1, ${new Date(ms)},
      ${ended}, ${new Date(ms)}, ${new Date(ms)})`
  yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, outputs, previews, created_at)
    values (${newId(prefixes.workflowPart, ms)}, ${team}, ${id}, 1, ${JSON.stringify(progress)}, '{}',
      ${JSON.stringify({ 0: { output: preview } })}, ${new Date(ms)})`
  if (open) {
    yield* sql`insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
      values (${id}, ${team}, 1, ${workflow}, now() + interval '1 day')`
  }
  return id
})

const rows = Effect.fnUntraced(function* (table: "workflow_runs" | "workflow_queue", column: string) {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql.unsafe<{ id: string }>(`select ${column} as id from ${table} order by 1`)
  return found.map(({ id }) => id)
})

layer(world, { excludeTestServices: true })("Retention of workflows", (it) => {
  it.effect("Workflow runs are kept as long as records, and their outputs and previews as long as payloads", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* makeDays({ now, days: 16 })
      const workflow = newId(prefixes.workflow, now)
      yield* makeWorkflow(workflow, [{ age: 100, defined_in: 1 }])
      const gone = yield* makeRun(workflow, 15)
      const waitsForGone = yield* makeRun(workflow, 14, true)
      const [pruned, waits, whole] = [
        yield* makeRun(workflow, 8),
        yield* makeRun(workflow, 7, true),
        yield* makeRun(workflow, 2)
      ]
      yield* retain(defaults)
      yield* retain(defaults)
      expect(yield* rows("workflow_runs", "id")).toEqual([pruned, waits, whole].toSorted())
      expect(yield* rows("workflow_queue", "run_id")).toEqual([waits])
      expect([gone, waitsForGone].map((id) => id < idBound(prefixes.workflowRun, now - 12 * day))).toEqual([true, true])
      const parts = yield* sql<{ run_id: string; kept: boolean }>`
        select run_id, outputs is not null and previews is not null as kept from workflow_steps order by run_id`
      expect(parts).toEqual([
        { run_id: pruned, kept: false },
        { run_id: waits, kept: false },
        { run_id: whole, kept: true }
      ])
      const shown = Effect.fnUntraced(function* (id: string) {
        const { steps, trigger } = yield* RunDetail.get(team, workflow, id, true)
        return [steps[0]!.status, steps[0]!.output_preview, trigger.preview?.reason]
      })
      expect(yield* shown(whole)).toEqual(["succeeded", expect.objectContaining(preview), "expired"])
      expect(yield* shown(pruned)).toEqual([
        "succeeded",
        expect.objectContaining({ available: false, preview: null, reason: "expired" }),
        "expired"
      ])
    })
  )

  it.effect("Nothing is kept of a deleted workflow once its runs have ended", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = newId(prefixes.workflow, now)
      yield* makeWorkflow(workflow, [{ age: 1, defined_in: 1 }])
      const [, open] = [yield* makeRun(workflow, 1), yield* makeRun(workflow, 1, true)]
      yield* sql`update workflows set deleted_at = now() where id = ${workflow}`
      const before = (yield* rows("workflow_runs", "id")).length
      yield* retain(defaults)
      const after = yield* rows("workflow_runs", "id")
      expect([after.length, after.includes(open)]).toEqual([before - 1, true])
    })
  )

  it.effect("Versions that nothing can refer to are removed, unless other versions are based on them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = newId(prefixes.workflow, now)
      yield* makeWorkflow(workflow, [
        { age: 400, defined_in: 1 },
        { age: 300, defined_in: 2 },
        { age: 200, defined_in: 2 },
        { age: 100, defined_in: 4 },
        { age: 50, defined_in: 2 }
      ])
      // Runs have gone by each of them.
      yield* sql`update workflow_versions set has_run = true where workflow_id = ${workflow}`
      yield* sql`update teams set record_retention_days = 100 where id = ${team}`
      yield* retain(defaults)
      const kept = yield* sql<{ version: number }>`
        select version from workflow_versions where workflow_id = ${workflow} order by version`
      expect(kept.map(({ version }) => version)).toEqual([2, 3, 4, 5])
      yield* sql`update teams set record_retention_days = 60 where id = ${team}`
      yield* retain(defaults)
      const left = yield* sql<{ version: number }>`
        select version from workflow_versions where workflow_id = ${workflow} order by version`
      expect(left.map(({ version }) => version)).toEqual([2, 4, 5])
    })
  )

  /** The versions of a workflow that are there. */
  const versionsOf = Effect.fnUntraced(function* (workflow: string) {
    const sql = yield* SqlClient.SqlClient
    const found = yield* sql<{ version: number }>`
      select version from workflow_versions where workflow_id = ${workflow} order by version`
    return found.map(({ version }) => version)
  })

  it.effect("Versions without runs are removed after an hour, unless others are based on them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = newId(prefixes.workflow, now)
      const hour = 1 / 24
      yield* makeWorkflow(workflow, [
        { age: 9 * hour, defined_in: 1 },
        { age: 8 * hour, defined_in: 2 },
        { age: 7 * hour, defined_in: 3 },
        { age: 6 * hour, defined_in: 3 },
        { age: 5 * hour, defined_in: 5 },
        { age: 4 * hour, defined_in: 6 },
        { age: 0.5 * hour, defined_in: 6 },
        { age: 0.2 * hour, defined_in: 6 }
      ])
      // Runs carry the time of their request: of the second version one that came just before it, of the fourth one in its time.
      const begin = (ms: number, version: number) => sql`
        insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, parts, steps_count, created_at, updated_at)
        values (${newId(prefixes.workflowRun, ms)}, ${team}, ${workflow}, ${newId(prefixes.request, ms)}, 'src_x', ${version}, 'running', 0, 1,
          ${new Date(ms)}, ${new Date(ms)})`
      yield* ensurePartitions(now - day)
      yield* ensurePartitions(now)
      yield* begin(now - 8 * hour * day - 60_000, 2)
      yield* begin(now - 5.5 * hour * day, 4)
      yield* retain(defaults)
      expect(yield* versionsOf(workflow)).toEqual([2, 3, 4, 6, 7, 8])
      // Asked about once: of those two it is known.
      const known = yield* sql<{ version: number }>`
        select version from workflow_versions where workflow_id = ${workflow} and has_run order by version`
      expect(known.map(({ version }) => version)).toEqual([2, 4])
      // Nothing else is in the way of those: their runs are.
      yield* retain(defaults)
      expect(yield* versionsOf(workflow)).toEqual([2, 3, 4, 6, 7, 8])
      yield* sql`delete from workflow_runs where workflow_id = ${workflow}`
    })
  )

  it.effect("A workflow that is saved all day keeps its last 50 versions and those that were used", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = newId(prefixes.workflow, now)
      yield* makeWorkflow(workflow, [{ age: 1, defined_in: 1 }])
      yield* sql`insert into workflow_versions (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, created_at)
        select workflow_id, n, team_id, name, status, '', n, steps, edges, created_at + n * interval '10 seconds'
        from workflow_versions, generate_series(2, 1201) n where workflow_id = ${workflow}`
      yield* sql`update workflows set version = 1201 where id = ${workflow}`
      yield* retain(defaults)
      expect(yield* versionsOf(workflow)).toEqual(Array.from({ length: keptVersions }, (_, index) => 1152 + index))
    })
  )

  it.effect("Deleted workflows, actions and filters are removed once nothing refers to them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const at = (days: number) => new Date(now - days * day)
      const [bare, busy, fresh] = [0, 1, 2].map(() => newId(prefixes.workflow, now)) as [string, string, string]
      for (const id of [bare, busy, fresh]) yield* makeWorkflow(id, [])
      yield* sql`update workflows set deleted_at = ${at(2)} where id in (${bare}, ${busy})`
      yield* sql`update workflows set deleted_at = ${at(0.5)} where id = ${fresh}`
      yield* makeRun(busy, 1, true)
      for (const [id, days] of [
        ["act_new", 0.5],
        ["act_old", 2]
      ] as const) {
        yield* sql`insert into actions (id, team_id, name, provider_key, action_key, config, version, deleted_at, created_at, updated_at)
          values (${id}, ${team}, ${id}, 'http', 'request', '{}', 1, ${at(days)}, now(), now())`
      }
      for (const [id, days] of [
        ["flt_new", 60],
        ["flt_old", 62]
      ] as const) {
        yield* sql`insert into filters (id, team_id, name, conditions, hash, deleted_at, created_at, updated_at)
          values (${id}, ${team}, ${id}, '{}', '', ${at(days)}, now(), now())`
      }
      yield* retain(defaults)
      const left = yield* sql<{ id: string }>`
        select id from workflows where id in (${bare}, ${busy}, ${fresh}) union all
        select id from actions union all select id from filters order by 1`
      expect(left.map(({ id }) => id).toSorted()).toEqual([busy, fresh, "act_new", "flt_new"].toSorted())
    })
  )
})
