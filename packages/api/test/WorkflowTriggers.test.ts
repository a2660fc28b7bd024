import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { claimKeys } from "@tidegate/storage/workflows/RunKeys"
import { beginScheduled, nextScheduled } from "@tidegate/storage/workflows/Schedules"
import { shardOf } from "../../entities/src/Shards.ts"
import { Sharding } from "effect/cluster"
import { askAnswer } from "../../entities/src/Workflow/RunAnswering.ts"
import { call, teams } from "./ControlServer.ts"
import {
  carryOut,
  coming,
  createDestination,
  createWorkflow,
  from,
  layer as world,
  receive,
  send,
  trim,
  unique
} from "./workflowRuns.ts"

const flow = (fields: object = {}) =>
  createWorkflow([trim("name", "{{trigger.body.name}}")], [from(null, "name")], fields)

const detail = (workflow: string, run: string) =>
  Effect.map(call("GET", `/workflows/${workflow}/runs/${run}?include_previews=true`), ({ body }) => body)

const runsOf = (workflow: string) =>
  Effect.map(call("GET", `/workflows/${workflow}/runs?limit=100`), ({ body }) => body.models)

/** Every tick that is due at this time. */
const tickAt = Effect.fnUntraced(function* (at: string) {
  const sharding = yield* Sharding.Sharding
  const now = Date.parse(at)
  for (let more = true; more;) more = (yield* beginScheduled(now, (id) => shardOf(sharding, id))).more
})

/** Sets the next occurrence of a workflow's schedules, as if the workflow had been written before it. */
const dueAt = Effect.fnUntraced(function* (workflow: string, at: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update workflow_schedules set due_at = ${new Date(at)} where workflow_id = ${workflow}`
})

const dueOf = Effect.fnUntraced(function* (workflow: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ due_at: Date | null; active: boolean }>`
    select due_at, active from workflow_schedules where workflow_id = ${workflow} order by cron`
  return rows.map(({ active, due_at }) => ({ active, due_at: due_at?.toISOString() ?? null }))
})

layer(world, { excludeTestServices: true })("Triggers of workflows", (it) => {
  it.effect("A call begins a run with its own input, which the run's detail shows", () =>
    Effect.gen(function* () {
      const workflow = yield* flow()
      const body = {
        trigger: {
          body: { name: " Ada " },
          headers: { "X-Kind": "test", authorization: "Bearer h34d3rs3cr3t" },
          query: { a: "1" }
        }
      }
      const begun = yield* call("POST", `/workflows/${workflow.id}/runs`, { body })
      expect(begun).toMatchObject({
        status: 202,
        body: { workflow_id: workflow.id, trigger_type: "api", status: "queued" }
      })
      yield* carryOut(workflow.id)
      const run = yield* detail(workflow.id, begun.body.id)
      expect(run).toMatchObject({
        status: "succeeded",
        trigger_type: "api",
        trigger: {
          type: "api",
          delivery_mode: "manual",
          source: { id: workflow.source_id, trigger_name: "API call" },
          method: "POST",
          path: "/",
          content_type: "application/json",
          preview: { available: true, preview: { query: { a: "1" }, body: { name: " Ada " } } }
        }
      })
      expect(run.steps[0].output_preview.preview).toMatchObject({ result: "Ada" })
      const sql = yield* SqlClient.SqlClient
      const [kept] = yield* sql<{
        headers: string
      }>`select headers from workflow_inputs where run_id = ${begun.body.id}`
      expect(kept!.headers).toContain("authorization")
      expect(kept!.headers).not.toContain("h34d3rs3cr3t")
    })
  )

  it.effect("A repeated call with the same idempotency key begins no second run", () =>
    Effect.gen(function* () {
      const workflow = yield* flow()
      const headers = { "idempotency-key": unique("key").replace(" ", "-") }
      const body = { trigger: { body: { name: "x" } } }
      const first = yield* call("POST", `/workflows/${workflow.id}/runs`, { body, headers })
      const second = yield* call("POST", `/workflows/${workflow.id}/runs`, { body, headers })
      expect(second.status).toBe(202)
      expect(second.body.id).toBe(first.body.id)
      expect(yield* runsOf(workflow.id)).toHaveLength(1)
    })
  )

  it.effect("A run without a body has null as its trigger's body, and a paused workflow keeps it waiting", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ status: "paused" })
      const begun = yield* call("POST", `/workflows/${workflow.id}/runs`)
      expect(begun).toMatchObject({ status: 202, body: { hold_reason: "paused" } })
      yield* call("PATCH", `/workflows/${workflow.id}`, { body: { status: "active" } })
      yield* carryOut(workflow.id)
      expect((yield* detail(workflow.id, begun.body.id)).trigger.preview.preview.body).toBeNull()
    })
  )

  it.effect("No run begins of a draft, of another team's workflow, or by an invalid input", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ status: "draft" })
      const path = `/workflows/${workflow.id}/runs`
      expect(yield* call("POST", path)).toMatchObject({ status: 409, body: { code: "WORKFLOW_NOT_EXECUTABLE" } })
      expect((yield* call("POST", path, { key: teams.b.key })).status).toBe(404)
      expect(yield* call("POST", path, { body: { trigger: { path: "x" } } })).toMatchObject({
        status: 400,
        body: { data: { fields: [{ path: "trigger.path" }] } }
      })
      expect(yield* runsOf(workflow.id)).toEqual([])
    })
  )

  it.effect("A failed step of a run that a call began can be retried with the run's own input", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination
      const workflow = yield* createWorkflow([send("crm1", destination.id)], [from(null, "crm1")])
      const body = { trigger: { body: { name: "Ada" } } }
      const begun = yield* call("POST", `/workflows/${workflow.id}/runs`, { body })
      coming.push({ kind: "failed", error: { code: "BAD_RESPONSE", message: "HTTP 500", status: 500 } })
      yield* carryOut(workflow.id)
      const path = `/workflows/${workflow.id}/runs/${begun.body.id}`
      expect((yield* call("GET", path)).body).toMatchObject({ status: "failed", error_step_id: "crm1" })
      expect((yield* call("POST", `${path}/retry`, { body: { step_id: "crm1" } })).status).toBe(202)
      yield* carryOut(workflow.id)
      const run = yield* detail(workflow.id, begun.body.id)
      expect(run).toMatchObject({ status: "succeeded", attempt_count: 2 })
      expect(run.steps[0].input_preview.preview).toMatchObject({ body: { name: "Ada" } })
    })
  )

  it.effect("Triggers are stored with their defaults, belong to the version, and are validated", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ triggers: { schedule: [{ cron: " 0  9 * * 1-5 ", timezone: "Europe/Berlin" }] } })
      const schedule = [{ cron: "0 9 * * 1-5", timezone: "Europe/Berlin", missed: "once" }]
      const unset = {
        answer: null,
        deduplicate: null,
        concurrency: null,
        rate_limit: null,
        priority: null,
        debounce: null,
        batch: null,
        on_failure: null
      }
      expect(workflow).toMatchObject({ version: 1, triggers: { schedule, ...unset } })
      const change = (triggers: unknown) => call("PATCH", `/workflows/${workflow.id}`, { body: { triggers } })
      expect((yield* change({ schedule })).body.version).toBe(1)
      expect((yield* change(null)).body).toMatchObject({ version: 2, triggers: null })
      const faultOf = (triggers: unknown) =>
        Effect.map(change(triggers), ({ body, status }) => [status, body.data?.fields])
      expect(yield* faultOf({ schedule: [{ cron: "0 9 * *" }] })).toMatchObject([
        400,
        [{ path: "triggers.schedule.0" }]
      ])
      expect(yield* faultOf({ schedule: [{ cron: "0 0 30 2 *" }] })).toMatchObject([400, [{ message: "never occurs" }]])
      expect(
        yield* faultOf({ schedule: Array.from({ length: 11 }, (_, i) => ({ cron: `${i} 9 * * *` })) })
      ).toMatchObject([400, [{ message: "must be at most 10" }]])
      expect(
        yield* faultOf({ schedule: [{ cron: "0 9 * * *" }, { cron: "0  9 * * *", missed: "all" }] })
      ).toMatchObject([400, [{ path: "triggers.schedule", message: "must have different times" }]])
      expect(yield* faultOf({ schedule: [], schedules: [] })).toMatchObject([400, [{ path: "triggers.schedules" }]])
      expect(yield* faultOf({ answer: { step_id: "nome" } })).toMatchObject([
        400,
        [{ path: "triggers.answer.step_id" }]
      ])
      expect(yield* faultOf({ deduplicate: { key: "trigger.body.id", window_ms: 1_000 } })).toMatchObject([
        400,
        [{ path: "triggers.deduplicate.key" }]
      ])
      expect(yield* faultOf({ answer: { step_id: "name", timeout_ms: 60_000 } })).toMatchObject([
        400,
        [{ path: "triggers.answer.timeout_ms" }]
      ])
    })
  )

  it.effect("Limits on runs are stored with their defaults, belong to the version, and are validated", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({
        triggers: { concurrency: { limit: 3 }, rate_limit: { count: 60, period: "minute" } }
      })
      expect(workflow.triggers).toMatchObject({
        concurrency: { limit: 3, key: null },
        rate_limit: { count: 60, period: "minute" }
      })
      const change = (triggers: unknown) => call("PATCH", `/workflows/${workflow.id}`, { body: { triggers } })
      const same = { concurrency: { limit: 3, key: null }, rate_limit: { count: 60, period: "minute" } }
      expect((yield* change(same)).body.version).toBe(1)
      expect((yield* change({ concurrency: { limit: 3, key: "body.id" } })).body).toMatchObject({
        version: 2,
        triggers: { concurrency: { limit: 3, key: "body.id" }, rate_limit: null }
      })
      const pathsOf = (triggers: unknown) =>
        Effect.map(change(triggers), ({ body, status }) => [
          status,
          body.data?.fields?.map(({ path }: { path: string }) => path)
        ])
      for (const [written, path] of [
        [{ concurrency: { limit: 0 } }, "concurrency.limit"],
        [{ concurrency: { limit: 1_001 } }, "concurrency.limit"],
        [{ concurrency: { limit: 1, key: "trigger.body.id" } }, "concurrency.key"],
        [{ concurrency: { limit: 1, most: 2 } }, "concurrency.most"],
        [{ rate_limit: { count: 101, period: "second" } }, "rate_limit.count"],
        [{ rate_limit: { count: 1.5, period: "day" } }, "rate_limit.count"],
        [{ rate_limit: { count: 1, period: "week" } }, "rate_limit.period"],
        [{ priority: { key: "urgent" }, concurrency: { limit: 1 } }, "priority.key"],
        [{ priority: { default: 1 }, concurrency: { limit: 1 } }, "priority.key"],
        [{ priority: { key: "body.urgent", default: 101 }, concurrency: { limit: 1 } }, "priority.default"],
        [{ priority: { key: "body.urgent", default: 0.5 }, concurrency: { limit: 1 } }, "priority.default"],
        [{ debounce: { wait_ms: 999 } }, "debounce.wait_ms"],
        [{ debounce: { wait_ms: 60_000, max_wait_ms: 59_999 } }, "debounce.max_wait_ms"],
        [{ debounce: { wait_ms: 60_000, key: "path" } }, "debounce.key"],
        [{ debounce: { wait_ms: 60_000 }, answer: { step_id: "name" } }, "answer"],
        [{ batch: { window_ms: 999 } }, "batch.window_ms"],
        [{ batch: { window_ms: 3_600_001 } }, "batch.window_ms"],
        [{ batch: { window_ms: 60_000, max_count: 1 } }, "batch.max_count"],
        [{ batch: { window_ms: 60_000, max_count: 501 } }, "batch.max_count"],
        [{ batch: { window_ms: 60_000, key: "path" } }, "batch.key"],
        [{ batch: { window_ms: 60_000, wait_ms: 1_000 } }, "batch.wait_ms"],
        [{ batch: { window_ms: 60_000 }, answer: { step_id: "name" } }, "answer"],
        [{ batch: { window_ms: 60_000 }, debounce: { wait_ms: 60_000 } }, "batch"]
      ] as const) {
        expect([written, yield* pathsOf(written)]).toEqual([written, [400, [`triggers.${path}`]]])
      }
      expect((yield* change({ debounce: { wait_ms: 60_000 } })).body).toMatchObject({
        version: 3,
        triggers: { debounce: { key: null, wait_ms: 60_000, max_wait_ms: 600_000 } }
      })
      expect((yield* change({ batch: { window_ms: 60_000 } })).body).toMatchObject({
        version: 4,
        triggers: { debounce: null, batch: { key: null, max_count: 100, window_ms: 60_000 } }
      })
      const rate_limit = { count: 1, period: "day" }
      expect((yield* change({ rate_limit, priority: { key: "query.urgent" } })).body).toMatchObject({
        version: 5,
        triggers: { batch: null, rate_limit, priority: { key: "query.urgent", default: 0 } }
      })
      const priority = { key: "body.urgent" }
      for (const without of [{ priority }, { priority, debounce: { wait_ms: 1_000 } }]) {
        const message = "has no effect without concurrency or rate_limit: no run waits for its turn"
        expect((yield* change(without)).body.data).toEqual({ fields: [{ path: "triggers.priority", message }] })
      }
      // A version that was stored before there were limits has none.
      const sql = yield* SqlClient.SqlClient
      yield* sql`update workflows set triggers = triggers - 'concurrency' - 'rate_limit' - 'priority' - 'debounce' - 'batch' - 'on_failure' where id = ${workflow.id}`
      const old = (yield* call("GET", `/workflows/${workflow.id}`)).body
      expect(old.triggers).toMatchObject({
        concurrency: null,
        rate_limit: null,
        priority: null,
        debounce: null,
        batch: null,
        on_failure: null
      })
      expect((yield* change({})).body.version).toBe(old.version)
    })
  )

  it.effect("A workflow with triggers needs no source", () =>
    Effect.gen(function* () {
      const body = { name: unique("nightly"), source_id: null, steps: [trim("name", "{{trigger.body.cron}}")] }
      const edges = [from(null, "name")]
      expect((yield* call("POST", "/workflows", { body: { ...body, edges } })).body.code).toBe(
        "WORKFLOW_NOT_EXECUTABLE"
      )
      const triggers = { schedule: [{ cron: "0 3 * * *" }] }
      const made = yield* call("POST", "/workflows", { body: { ...body, edges, triggers } })
      expect(made).toMatchObject({
        status: 200,
        body: { source_id: null, capabilities: { runtime_executable: true, runtime_issue: null } }
      })
      yield* dueAt(made.body.id, "2026-05-01T03:00:00Z")
      yield* tickAt("2026-05-01T03:00:01Z")
      yield* carryOut(made.body.id)
      const [run] = yield* runsOf(made.body.id)
      expect(run).toMatchObject({ status: "succeeded", trigger_type: "schedule" })
      expect((yield* detail(made.body.id, run.id)).trigger).toMatchObject({
        type: "schedule",
        source: { trigger_name: "Schedule" },
        preview: { preview: { body: { scheduled_at: "2026-05-01T03:00:00.000Z", cron: "0 3 * * *", timezone: "UTC" } } }
      })
      yield* call("DELETE", `/workflows/${made.body.id}`)
      expect(yield* dueOf(made.body.id)).toEqual([])
    })
  )

  it.effect("Each occurrence begins one run, though several processes look and their clocks jump", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ triggers: { schedule: [{ cron: "0 * * * *", missed: "all" }] } })
      yield* dueAt(workflow.id, "2026-05-01T00:00:00Z")
      const clocks = ["2026-05-01T00:00:05Z", "2026-04-30T12:00:00Z", "2026-05-01T03:30:00Z", "2026-05-01T01:00:00Z"]
      for (const clock of clocks) {
        yield* Effect.all([tickAt(clock), tickAt(clock), tickAt(clock)], { concurrency: "unbounded" })
      }
      const sql = yield* SqlClient.SqlClient
      const bodies = yield* sql<{ body: Uint8Array }>`
        select i.body from workflow_inputs i join workflow_runs r on r.id = i.run_id where r.workflow_id = ${workflow.id}`
      const hourOf = (body: Uint8Array): string => JSON.parse(Buffer.from(body).toString()).scheduled_at.slice(11, 13)
      const hours = bodies.map(({ body }) => hourOf(body)).toSorted()
      expect(hours).toEqual(["00", "01", "02", "03"])
      expect(yield* dueOf(workflow.id)).toEqual([{ active: true, due_at: "2026-05-01T04:00:00.000Z" }])
    })
  )

  it.effect("A change of the clock to summer time leaves out no daily run and doubles none", () =>
    Effect.gen(function* () {
      const triggers = { schedule: [{ cron: "30 2 * * *", timezone: "Europe/Berlin", missed: "all" }] }
      const workflow = yield* flow({ triggers })
      yield* dueAt(workflow.id, "2026-03-27T01:30:00Z")
      for (let hour = 0; hour < 96; hour++) {
        yield* tickAt(new Date(Date.parse("2026-03-27T00:00:00Z") + hour * 3_600_000).toISOString())
      }
      expect(yield* runsOf(workflow.id)).toHaveLength(4)
    })
  )

  it.effect("A paused workflow makes up for missed times when it goes on, and a disabled one has missed none", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ triggers: { schedule: [{ cron: "0 * * * *" }] } })
      const set = (status: string) => call("PATCH", `/workflows/${workflow.id}`, { body: { status } })
      yield* dueAt(workflow.id, "2026-05-01T00:00:00Z")
      yield* set("paused")
      yield* tickAt("2026-05-01T05:30:00Z")
      expect(yield* runsOf(workflow.id)).toEqual([])
      yield* set("active")
      yield* tickAt("2026-05-01T05:30:00Z")
      expect(yield* runsOf(workflow.id)).toHaveLength(1)
      yield* set("disabled")
      expect(yield* dueOf(workflow.id)).toEqual([])
      yield* set("active")
      const [schedule] = yield* dueOf(workflow.id)
      expect(Date.parse(schedule!.due_at!)).toBeGreaterThan(yield* Clock.currentTimeMillis)
      expect(yield* nextScheduled).not.toBeNull()
    })
  )

  it.effect("A redelivery within the window repeats the first run and carries nothing out", () =>
    Effect.gen(function* () {
      const deduplicate = { key: "body.id", window_ms: 60_000 }
      const workflow = yield* flow({ triggers: { deduplicate } })
      expect(workflow.triggers.deduplicate).toEqual(deduplicate)
      const sent = (id: unknown) => Effect.map(receive(workflow, { id, name: "Ada" }), ({ run }) => run)
      // Two of one batch, one of a later batch, a number that is written as a text, another key, and no key.
      const [first, together] = [yield* sent(7), yield* sent(7)]
      yield* carryOut(workflow.id)
      const [later, text, other, none, again] = [
        yield* sent(7),
        yield* sent("7"),
        yield* sent(8),
        yield* sent(null),
        yield* sent(null)
      ]
      yield* carryOut(workflow.id)
      const runs = new Map((yield* runsOf(workflow.id)).map((run: { id: string }) => [run.id, run]))
      for (const id of [first, other, none, again]) {
        expect(runs.get(id)).toMatchObject({ status: "succeeded", outcome: "completed", error_code: null })
      }
      for (const id of [together, later, text]) {
        expect(runs.get(id)).toMatchObject({
          status: "succeeded",
          outcome: "duplicate",
          error_code: "DUPLICATE_RUN",
          error_message: `repeats ${first}`,
          succeeded_steps: 0,
          skipped_steps: 1
        })
      }
      expect((yield* detail(workflow.id, later)).steps[0]).toMatchObject({
        status: "skipped",
        skip_reason: "run_stopped"
      })
      const sql = yield* SqlClient.SqlClient
      yield* sql`update workflow_keys set expires_at = now() - interval '1 second' where workflow_id = ${workflow.id}`
      const anew = yield* sent(7)
      yield* carryOut(workflow.id)
      expect((yield* detail(workflow.id, anew)).outcome).toBe("completed")
    })
  )

  it.effect("A run that was about to begin when its process died does not repeat itself", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ triggers: { deduplicate: { key: "body.id", window_ms: 60_000 } } })
      const { run } = yield* receive(workflow, { id: 1 })
      const keyed = { id: run, team_id: teams.a.id, key: "k", created_at: new Date() }
      expect(yield* claimKeys(workflow.id, 60_000, [keyed])).toEqual(new Map([["k", run]]))
      expect(yield* claimKeys(workflow.id, 60_000, [keyed])).toEqual(new Map([["k", run]]))
      expect(yield* claimKeys(workflow.id, 60_000, [{ ...keyed, id: "wfr_other" }])).toEqual(new Map([["k", run]]))
    })
  )

  it.effect("A sender is answered by the output of a step, whether it asks before the run or after it", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ triggers: { answer: { step_id: "name" } } })
      expect(workflow.triggers.answer).toEqual({ step_id: "name", timeout_ms: 10_000 })
      const ask = yield* askAnswer
      const about = (run_id: string, step_id = "name", timeout_ms = 10_000) =>
        ask(workflow.id, { team_id: teams.a.id, run_id, step_id, timeout_ms })
      const { run } = yield* receive(workflow, { name: " Ada " })
      const [early] = yield* Effect.all([about(run), carryOut(workflow.id)], { concurrency: "unbounded" })
      const expected = { status: 200, contentType: "application/json; charset=utf-8", body: '{"result":"Ada"}' }
      expect(early).toMatchObject(expected)
      expect(yield* about(run)).toMatchObject(expected)
      expect(yield* about(run, "other")).toBeNull()
      expect(yield* about(newId(prefixes.workflowRun, Date.now()))).toBeNull()
      expect(
        yield* ask(workflow.id, { team_id: teams.b.id, run_id: run, step_id: "name", timeout_ms: 1_000 })
      ).toBeNull()
    })
  )

  it.effect("A sender whose run fails is not kept waiting until the limit, and nobody waits longer than that", () =>
    Effect.gen(function* () {
      const workflow = yield* createWorkflow(
        [
          { id: "wait", kind: "delay", config: { mode: "for", amount: 1, unit: "hours" } },
          trim("name", "{{steps.wait.output.released_at}}")
        ],
        [from(null, "wait"), from("wait", "name")]
      )
      const ask = yield* askAnswer
      const { run } = yield* receive(workflow, {})
      const about = { team_id: teams.a.id, run_id: run, step_id: "name" }
      expect(yield* ask(workflow.id, { ...about, timeout_ms: 200 })).toBeNull()
      const stopped = call("PATCH", `/workflows/${workflow.id}`, { body: { status: "disabled" } })
      const [answer] = yield* Effect.all([ask(workflow.id, { ...about, timeout_ms: 200_000 }), stopped], {
        concurrency: "unbounded"
      })
      expect(answer).toBeNull()
    })
  )
})
