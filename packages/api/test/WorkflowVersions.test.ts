import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { call } from "./ControlServer.ts"
import { somebody } from "./SignedIn.ts"
import { createWorkflow, from, layer as server, receive, trim, unique } from "./workflowRuns.ts"

/* What is kept of a version: who asked for it, and what a filter that is gone left in it. */

const conditions = { body: { status: "paid" } }
const steps = [{ id: "only_paid", kind: "filter", config: { conditions } }]
const edges = [{ source_type: "trigger", target_step_id: "only_paid" }]

const chain = [from(null, "tidy"), from("tidy", "only_paid")]

/** Who asked for each of the workflow's versions. */
const authors = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ created_by_user_id: string | null }>`
    select created_by_user_id from workflow_versions where workflow_id = ${id} order by version`
  return rows.map((row) => row.created_by_user_id)
})

layer(server, { excludeTestServices: true })("Workflow versions", (it) => {
  it.effect("Workflow version names the user who made it, or null for an API key", () =>
    Effect.gen(function* () {
      const [ada, bob] = [yield* somebody, yield* somebody]
      const made = yield* createWorkflow(steps, edges)
      const change = (key: string | undefined, body: object) =>
        call("PATCH", `/workflows/${made.id}`, { body, ...(key === undefined ? {} : { key }) })
      yield* change(ada.token, { description: "one" })
      yield* change(undefined, { description: "two" })
      // What changes nothing makes no version.
      yield* change(ada.token, { description: "two" })
      const { body } = yield* change(bob.token, { description: "three" })
      expect(yield* authors(made.id)).toEqual([null, ada.user, null, bob.user])
      const { run } = yield* receive({ ...made, ...body }, { status: "paid" })
      const shown = yield* call("GET", `/workflows/${made.id}/runs/${run}`)
      expect(shown.body.version).toMatchObject({ number: 4, created_by_user_id: bob.user })
    })
  )

  it.effect("Workflow version names its author for every way to make one", () =>
    Effect.gen(function* () {
      const { token: key, user } = yield* somebody
      const source = (yield* call("POST", "/sources", { body: { name: unique("shop") } })).body
      const body = { name: unique("flow"), source_id: source.id, steps, edges }
      const created = yield* call("POST", "/workflows", { key, body })
      const upserted = yield* call("PUT", "/workflows", { key, body: { ...body, description: "again" } })
      expect(upserted.body.id).toBe(created.body.id)
      const put = yield* call("PUT", `/workflows/${created.body.id}`, { key, body: { status: "paused" } })
      expect(put.body.version).toBe(3)
      expect(yield* authors(created.body.id)).toEqual([user, user, user])
      const saved = yield* call("PUT", "/workflows/aggregate", {
        key,
        body: { source: { name: unique("shop") }, workflow: { name: unique("flow"), steps, edges } }
      })
      const { id } = saved.body.workflow
      yield* call("PUT", "/workflows/aggregate", { key, body: { workflow_id: id, workflow: { status: "paused" } } })
      yield* call("PUT", "/workflows/aggregate", { body: { workflow_id: id, workflow: { status: "active" } } })
      expect(yield* authors(id)).toEqual([user, user, null])
      const [template] = (yield* call("GET", "/workflow-templates")).body.models
      const destination = (yield* call("POST", "/destinations", {
        body: { name: unique("d"), type: "MOCK_API", config: {} }
      })).body
      const values: Record<string, string> = {
        destination: destination.id,
        source: source.id,
        url: "https://example.com/"
      }
      const bindings = Object.fromEntries(
        template.required_connections.map(({ key, type }: { key: string; type: string }) => [key, values[type]])
      )
      const instance = yield* call("POST", `/workflow-templates/${template.key}/instantiate`, {
        key,
        body: { name: unique("flow"), bindings }
      })
      expect(yield* authors(instance.body.id)).toEqual([user])
      // A source that is deleted takes itself out of its workflows: whoever deleted it asked for that.
      yield* call("DELETE", `/sources/${source.id}`, { key })
      expect(yield* authors(created.body.id)).toEqual([user, user, user, user])
    })
  )

  it.effect("Workflow version keeps the conditions of a deleted filter and records the filter's id and name", () =>
    Effect.gen(function* () {
      const { token: key, user } = yield* somebody
      const name = unique("paid").replace(" ", "-")
      const filter = (yield* call("POST", "/filters", { key, body: { name, conditions } })).body
      const named = [{ id: "only_paid", kind: "filter", resource_id: filter.id, config: { note: "asked for" } }]
      const made = yield* createWorkflow(named, edges)
      expect((yield* call("DELETE", `/filters/${filter.id}`, { key })).status).toBe(200)
      const path = `/workflows/${made.id}`
      const after = (yield* call("GET", path)).body
      expect(yield* authors(made.id)).toEqual([null, user])
      const detached_from_filter = { id: filter.id, name, detached_at: after.updated_at }
      const config = { note: "asked for", conditions, detached_from_filter }
      expect(after).toMatchObject({ version: 2, steps: [{ resource_id: null }] })
      expect(after.steps[0].config).toEqual(config)
      const { run } = yield* receive({ ...made, ...after }, { status: "paid" })
      expect((yield* call("GET", `${path}/runs/${run}`)).body.version.steps).toEqual(after.steps)
      // Kept by a change of something else; and taken as it was read, which changes nothing.
      const touched = yield* call("PATCH", path, { body: { description: "touched" } })
      expect(touched.body).toMatchObject({ version: 3, steps: after.steps })
      const again = yield* call("PATCH", path, { body: { steps: touched.body.steps, edges: touched.body.edges } })
      expect(again).toMatchObject({ status: 200, body: { version: 3, steps: after.steps } })
      // It belongs to conditions, not to a filter that is there, and has a shape.
      const other = (yield* call("POST", "/filters", { key, body: { name: `${name}-2`, conditions } })).body
      for (const step of [
        { resource_id: other.id, config: { detached_from_filter } },
        { config: { conditions, detached_from_filter: { id: filter.id } } },
        { config: { conditions, detached_from_filter: "x" } }
      ]) {
        const refused = yield* call("PATCH", path, { body: { steps: [{ id: "only_paid", kind: "filter", ...step }] } })
        expect(refused).toMatchObject({ status: 400, body: { code: "WORKFLOW_GRAPH_INVALID" } })
        expect(refused.body.data.issues[0].field).toMatch(/^config\.detached_from_filter/)
      }
    })
  )

  it.effect("Filter step keeps testing its own input after its filter is deleted", () =>
    Effect.gen(function* () {
      const headers = { "X-Kind": { $in: ["paid", "free"] } }
      const filter = { name: unique("kind").replace(" ", "-"), conditions: { headers, query: { a: ["1", "2"] } } }
      const { token: key } = yield* somebody
      const stored = (yield* call("POST", "/filters", { key, body: filter })).body
      const invocation_inputs = { headers: { "x-kind": "{{trigger.body.kind}}" }, query: "a=1&a=2" }
      const made = yield* createWorkflow(
        [{ id: "only_some", kind: "filter", resource_id: stored.id, invocation_inputs }],
        [{ source_type: "trigger", target_step_id: "only_some" }]
      )
      const path = `/workflows/${made.id}`
      const matched = Effect.fnUntraced(function* (kind: string) {
        const body = { trigger: { body: { kind } } }
        const tried = yield* call("POST", `${path}/test`, { body })
        return tried.body.steps[0].output_preview.preview
      })
      const before = [yield* matched("paid"), yield* matched("other")]
      expect((yield* call("DELETE", `/filters/${stored.id}`, { key })).status).toBe(200)
      expect([yield* matched("paid"), yield* matched("other")]).toEqual(before)
      expect(before).toEqual([{ matched: true }, { matched: false }])
      const read = (yield* call("GET", path)).body
      expect(read).toMatchObject({ version: 2, steps: [{ resource_id: null, invocation_inputs }] })
      const again = yield* call("PATCH", path, { body: { steps: read.steps, edges: read.edges, version: 2 } })
      expect(again).toMatchObject({ status: 200, body: { version: 2, steps: read.steps } })
      expect((yield* call("PATCH", path, { body: { status: "paused" } })).status).toBe(200)
    })
  )

  it.effect("Versions of a workflow are listed in pages, shown and compared by the ids of steps and edges", () =>
    Effect.gen(function* () {
      const { token: key } = yield* somebody
      const made = yield* createWorkflow([trim("tidy", "{{trigger.body.name}}"), ...steps], chain)
      const path = `/workflows/${made.id}`
      const changed = [trim("tidy", "{{trigger.body.title}}"), trim("last", "x")]
      const edges = [
        { id: "e_00", ...from(null, "tidy") },
        { id: "e_01", ...from("tidy", "last") }
      ]
      yield* call("PATCH", path, { key, body: { steps: changed, edges, description: "two" } })
      const first = (yield* call("GET", `${path}/versions?limit=1`, { key })).body
      expect(first).toMatchObject({ count: 1, has_more: true, models: [{ version: 2, is_current: true }] })
      const second = (yield* call("GET", `${path}/versions?limit=1&cursor=${first.next_cursor}`, { key })).body
      expect(second).toMatchObject({ has_more: false, models: [{ version: 1, is_current: false, description: null }] })
      const shown = (yield* call("GET", `${path}/versions/1`, { key })).body
      expect(shown).toMatchObject({ version: 1, steps: made.steps, edges: made.edges, source_id: made.source_id })
      const compared = (yield* call("GET", `${path}/versions/1/compare`, { key })).body
      expect(compared).toMatchObject({
        from_version: 1,
        to_version: 2,
        steps: {
          added: [{ id: "last" }],
          removed: [{ id: "only_paid" }],
          changed: [
            { id: "tidy", members: [{ name: "invocation_inputs", after: { input: "{{trigger.body.title}}" } }] }
          ]
        },
        edges: {
          added: [],
          removed: [],
          changed: [{ id: "e_01", members: [{ name: "target_step_id", before: "only_paid", after: "last" }] }]
        },
        settings: [{ name: "description", before: null, after: "two" }]
      })
      expect((yield* call("GET", `${path}/versions/2/compare?with=2`, { key })).body).toMatchObject({ settings: [] })
      expect((yield* call("GET", `${path}/versions/3`, { key })).status).toBe(404)
      expect((yield* call("GET", `${path}/versions/x`, { key })).status).toBe(404)
      const back = yield* call("POST", `${path}/versions/1/restore`, { key, body: { version: 2 } })
      expect(back).toMatchObject({ status: 200, body: { version: 3, description: "two", steps: made.steps } })
      const late = yield* call("POST", `${path}/versions/2/restore`, { key, body: { version: 2 } })
      expect(late).toMatchObject({ status: 409, body: { code: "workflow_conflict", data: { current_version: 3 } } })
    })
  )

  it.effect("One step of a workflow is changed and removed by its id, and a chain closes again", () =>
    Effect.gen(function* () {
      const { token: key } = yield* somebody
      const source = (yield* call("POST", "/sources", { body: { name: unique("shop") } })).body
      const body = {
        name: unique("flow"),
        source_id: source.id,
        steps: ["one1", "two2", "six6"].map((id) => trim(id, "x"))
      }
      const { id } = (yield* call("POST", "/workflows", { key, body })).body
      const path = `/workflows/${id}/steps`
      const patched = yield* call("PATCH", `${path}/two2`, { key, body: { name: "Two", version: 1 } })
      expect(patched).toMatchObject({ status: 200, body: { version: 2, steps: [{}, { id: "two2", name: "Two" }, {}] } })
      const late = yield* call("PATCH", `${path}/two2`, { key, body: { name: "Late", version: 1 } })
      expect(late).toMatchObject({ status: 409, body: { code: "workflow_conflict" } })
      expect((yield* call("PATCH", `${path}/none`, { key, body: { name: "x" } })).body.code).toBe("NOT_FOUND")
      const faulty = yield* call("PATCH", `${path}/two2`, { key, body: { config: { nonsense: 1 } } })
      expect(faulty).toMatchObject({ status: 400, body: { code: "WORKFLOW_GRAPH_INVALID" } })
      const removed = yield* call("DELETE", `${path}/two2?version=2`, { key })
      expect(removed).toMatchObject({
        status: 200,
        body: { version: 3, edges: [{ target_step_id: "one1" }, { source_step_id: "one1", target_step_id: "six6" }] }
      })
    })
  )

  it.effect("A draft is written, tested, tried with stored requests and published beside the live version", () =>
    Effect.gen(function* () {
      const { token: key, user } = yield* somebody
      const made = yield* createWorkflow(steps, edges)
      const path = `/workflows/${made.id}`
      expect((yield* call("GET", `${path}/draft`, { key })).body.code).toBe("NOT_FOUND")
      const stricter = [{ ...steps[0], config: { conditions: { body: { status: "paid", total: { $gt: 10 } } } } }]
      const drafted = yield* call("PUT", `${path}/draft`, { key, body: { steps: stricter } })
      expect(drafted).toMatchObject({
        status: 200,
        body: { based_on_version: 1, updated_by_user_id: user, changes: { steps: { changed: [{ id: "only_paid" }] } } }
      })
      expect((yield* call("GET", path, { key })).body).toMatchObject({ version: 1, steps: made.steps })
      const bad = yield* call("PUT", `${path}/draft`, { key, body: { steps: [{ id: "only_paid", kind: "none" }] } })
      expect(bad.body.code).toBe("WORKFLOW_GRAPH_INVALID")

      const trigger = { body: { status: "paid", total: 1 } }
      const tried = (draft: boolean) => call("POST", `${path}/test`, { key, body: { trigger, draft } })
      expect([(yield* tried(false)).body.outcome, (yield* tried(true)).body.outcome]).toEqual(["completed", "filtered"])
      const both = yield* call("POST", `${path}/test`, { key, body: { trigger, draft: true, steps } })
      expect(both.body.data.fields[0].path).toBe("draft")

      const small = yield* receive(made, { status: "paid", total: 1 })
      const large = yield* receive(made, { status: "paid", total: 20 })
      yield* receive(made, { status: "open" })
      const check = yield* call("POST", `${path}/draft/check`, { key, body: { limit: 2 } })
      expect(check).toMatchObject({ status: 200, body: { checked: 2, complete: true, skipped: 0 } })
      const all = (yield* call("POST", `${path}/draft/check`, { key })).body
      expect(all).toMatchObject({ checked: 3, same: 2, different: 1, complete: true })
      const byId = new Map(all.requests.map((one: { request_id: string }) => [one.request_id, one]))
      expect(byId.get(small.request)).toMatchObject({
        same: false,
        live: { outcome: "completed" },
        draft: { outcome: "filtered" },
        different_steps: ["only_paid"]
      })
      expect(byId.get(large.request)).toMatchObject({ same: true })

      yield* call("PATCH", path, { key, body: { description: "meanwhile" } })
      const late = yield* call("POST", `${path}/draft/publish`, { key })
      expect(late).toMatchObject({ status: 409, body: { code: "workflow_conflict", data: { current_version: 2 } } })
      const published = yield* call("POST", `${path}/draft/publish`, { key, body: { version: 2 } })
      expect(published).toMatchObject({ status: 200, body: { version: 3, description: "meanwhile" } })
      expect(published.body.steps[0].config).toEqual(stricter[0]!.config)
      expect((yield* call("POST", `${path}/draft/publish`, { key })).body.code).toBe("NOT_FOUND")
      yield* call("PUT", `${path}/draft`, { key, body: { steps } })
      expect((yield* call("DELETE", `${path}/draft`, { key })).body).toEqual({ id: made.id, deleted: true })
      expect((yield* call("GET", `${path}/draft`, { key })).status).toBe(404)
    })
  )

  it.effect("A workflow is copied as a draft with its definition, triggers and run label", () =>
    Effect.gen(function* () {
      const { token: key } = yield* somebody
      const fields = { run_label: "order {{trigger.body.id}}", triggers: { schedule: [{ cron: "0 9 * * *" }] } }
      const made = yield* createWorkflow(steps, edges, fields)
      const name = unique("copy")
      const copied = yield* call("POST", `/workflows/${made.id}/clone`, { key, body: { name } })
      const { edges: e, run_label, source_id, steps: s, triggers } = made
      expect(copied).toMatchObject({
        status: 200,
        body: { name, status: "draft", version: 1, steps: s, edges: e, source_id, run_label, triggers }
      })
      expect(copied.body.id).not.toBe(made.id)
      const again = yield* call("POST", `/workflows/${made.id}/clone`, { key, body: { name } })
      expect(again).toMatchObject({ status: 409, body: { code: "RESOURCE_ALREADY_EXISTS" } })
      const body = { name: unique("copy"), source_id: null }
      expect((yield* call("POST", `/workflows/${made.id}/clone`, { key, body })).body.source_id).toBeNull()
    })
  )
})
