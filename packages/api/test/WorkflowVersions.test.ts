import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { call } from "./ControlServer.ts"
import { somebody } from "./SignedIn.ts"
import { createWorkflow, layer as server, receive, unique } from "./workflowRuns.ts"

/* What is kept of a version: who asked for it, and what a filter that is gone left in it. */

const conditions = { body: { status: "paid" } }
const steps = [{ id: "only_paid", kind: "filter", config: { conditions } }]
const edges = [{ source_type: "trigger", target_step_id: "only_paid" }]

/** Who asked for each of the workflow's versions. */
const authors = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ created_by_user_id: string | null }>`
    select created_by_user_id from workflow_versions where workflow_id = ${id} order by version`
  return rows.map((row) => row.created_by_user_id)
})

layer(server, { timeout: "60 seconds", excludeTestServices: true })("Workflow versions", (it) => {
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
})
