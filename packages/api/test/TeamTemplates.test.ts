import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { maxTemplateBytes } from "@tidegate/resources/TeamTemplate"
import { teamLimits } from "@tidegate/resources/TeamLimits"
import { templates } from "@tidegate/workflows/templates/Templates"
import { call, layer as server, teams } from "./ControlServer.ts"

/** Templates that teams save from their workflows. */

let made = 0
const unique = (what: string): string => `${what}-${++made}`

const create = Effect.fnUntraced(function* (kind: string, body: object = {}) {
  const answer = yield* call("POST", `/${kind}`, { body: { name: unique(kind), ...body } })
  expect(answer.body).toMatchObject({ id: expect.any(String) })
  return answer.body as { readonly id: string; readonly name: string; readonly [member: string]: unknown }
})

const stepsTo = (destination: string) => [
  { id: "only_paid", kind: "filter", name: "Paid only", config: { conditions: { body: { status: "paid" } } } },
  { id: "to_crm", kind: "destination", name: "CRM", resource_id: destination }
]

const workflowTo = Effect.fnUntraced(function* (fields: object = {}) {
  const destination = yield* create("destinations", { type: "HTTP", config: { url: "https://target.test/" } })
  const source = yield* create("sources")
  const steps = stepsTo(destination.id)
  return { destination, source, workflow: yield* create("workflows", { source_id: source.id, steps, ...fields }) }
})

const save = (workflow_id: string, more: object = {}, key?: string) =>
  call("POST", "/workflow-templates", {
    ...(key === undefined ? {} : { key }),
    body: { name: unique("template"), workflow_id, ...more }
  })

const begin = (key: string, body: object = {}) =>
  call("POST", `/workflow-templates/${key}/instantiate`, { body: { name: unique("begun"), ...body } })

layer(server, { excludeTestServices: true })("Templates of a team", (it) => {
  it.effect("A team saves a workflow as a template, begins others from it and deletes it", () =>
    Effect.gen(function* () {
      const fields = {
        description: "For one shop",
        run_label: "order {{trigger.body.id}}",
        triggers: { schedule: [{ cron: "0 9 * * *" }] }
      }
      const { workflow } = yield* workflowTo(fields)
      const name = unique("Paid orders")
      const saved = yield* save(workflow.id, { name: ` ${name} ` })
      const outline = {
        key: expect.stringMatching(/^wft_/),
        origin: "team",
        version: 1,
        name,
        description: "For one shop",
        steps: [
          { name: "Paid only", kind: "filter", provider_key: null, action_key: null },
          { name: "CRM", kind: "destination", provider_key: null, action_key: null }
        ],
        required_connections: [],
        sample: null
      }
      expect(saved).toMatchObject({ status: 200, body: outline })
      const { key } = saved.body
      expect(yield* save(workflow.id, { name })).toMatchObject({
        status: 409,
        body: { code: "RESOURCE_ALREADY_EXISTS", data: { id: key, resource_type: "workflow_template" } }
      })

      // In one list with those of the gateway, which come first.
      const { models } = (yield* call("GET", "/workflow-templates")).body
      const origins = (models as ReadonlyArray<{ readonly origin: string }>).map(({ origin }) => origin)
      expect(origins.slice(0, templates.length)).toEqual(templates.map(() => "gateway"))
      expect(models.slice(templates.length)).toContainEqual(saved.body)

      // The template is a copy: what becomes of the workflow does not change it.
      const { edges, run_label, steps, triggers } = workflow
      yield* call("DELETE", `/workflows/${workflow.id}`)
      expect(yield* call("GET", `/workflow-templates/${key}`)).toMatchObject({
        status: 200,
        body: { ...outline, definition: { steps, edges, run_label, triggers } }
      })
      const source = yield* create("sources")
      const begun = yield* begin(key, { source_id: source.id })
      expect(begun).toMatchObject({
        status: 200,
        body: {
          status: "draft",
          version: 1,
          source_id: source.id,
          description: "For one shop",
          steps,
          edges,
          run_label,
          triggers,
          template: { key, version: 1 }
        }
      })
      expect((yield* call("PATCH", `/workflows/${begun.body.id}`, { body: { status: "active" } })).status).toBe(200)
      expect(yield* begin(key, { bindings: { alerts: "des_1" } })).toMatchObject({
        status: 422,
        body: { code: "TEMPLATE_BINDING_INVALID", data: { fields: [{ path: "bindings.alerts" }] } }
      })

      expect((yield* call("DELETE", `/workflow-templates/${key}`)).body).toEqual({ id: key, deleted: true })
      for (const gone of [
        yield* call("DELETE", `/workflow-templates/${key}`),
        yield* call("GET", `/workflow-templates/${key}`),
        yield* begin(key)
      ]) {
        expect(gone).toMatchObject({ status: 404, body: { data: { resource_type: "workflow_template" } } })
      }
      expect((yield* call("GET", `/workflows/${begun.body.id}`)).status).toBe(200)
    })
  )

  it.effect("A template is made of the draft of a workflow when that is asked for", () =>
    Effect.gen(function* () {
      const { workflow } = yield* workflowTo()
      expect(yield* save(workflow.id, { draft: true })).toMatchObject({
        status: 404,
        body: { data: { resource_type: "workflow_draft" } }
      })
      const steps = [
        { id: "wait_a_bit", kind: "delay", name: "Wait", config: { mode: "for", amount: 1, unit: "minutes" } }
      ]
      expect((yield* call("PUT", `/workflows/${workflow.id}/draft`, { body: { steps } })).status).toBe(200)
      const live = yield* save(workflow.id, { description: null })
      expect(live.body).toMatchObject({ description: "", steps: [{ name: "Paid only" }, { name: "CRM" }] })
      const saved = yield* save(workflow.id, { draft: true, description: "Only waits" })
      expect(saved.body).toMatchObject({ description: "Only waits", steps: [{ name: "Wait", kind: "delay" }] })
      expect((yield* begin(saved.body.key)).body).toMatchObject({ steps: [{ id: "wait_a_bit" }] })
    })
  )

  it.effect("A workflow is not made of a template that names a deleted resource", () =>
    Effect.gen(function* () {
      const { destination, workflow } = yield* workflowTo()
      const { body } = yield* save(workflow.id)
      yield* call("DELETE", `/workflows/${workflow.id}`)
      // The template does not hold it.
      expect((yield* call("DELETE", `/destinations/${destination.id}`)).status).toBe(200)
      expect(yield* begin(body.key)).toMatchObject({
        status: 400,
        body: {
          code: "WORKFLOW_GRAPH_INVALID",
          data: { issues: [{ code: "RESOURCE_NOT_FOUND", step_id: "to_crm" }] }
        }
      })
    })
  )

  it.effect("A team neither sees nor uses nor deletes templates and workflows of another team", () =>
    Effect.gen(function* () {
      const { workflow } = yield* workflowTo()
      const { body: own } = yield* save(workflow.id)
      const { key } = teams.b
      const { models } = (yield* call("GET", "/workflow-templates", { key })).body
      expect((models as ReadonlyArray<{ readonly key: string }>).map((one) => one.key)).not.toContain(own.key)
      const path = `/workflow-templates/${own.key}`
      for (const answer of [
        yield* call("GET", path, { key }),
        yield* call("DELETE", path, { key }),
        yield* call("POST", `${path}/instantiate`, { key, body: { name: unique("theirs") } })
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { data: { resource_type: "workflow_template" } } })
      }
      expect(yield* save(workflow.id, {}, key)).toMatchObject({
        status: 404,
        body: { data: { resource_type: "workflow" } }
      })
      expect((yield* call("GET", path)).status).toBe(200)
      // Each team has its own names.
      const theirs = yield* call("POST", "/workflows", {
        key,
        body: { name: unique("theirs"), source_id: null, status: "draft" }
      })
      expect((yield* save(theirs.body.id, { name: own.name }, key)).status).toBe(200)
    })
  )

  it.effect("Templates of the gateway cannot be deleted, and a template with invalid members is refused", () =>
    Effect.gen(function* () {
      expect(yield* call("DELETE", `/workflow-templates/${templates[0]!.key}`)).toMatchObject({
        status: 404,
        body: { data: { resource_type: "workflow_template" } }
      })
      const { workflow } = yield* workflowTo()
      for (const wrong of [{ draft: 1 }, { description: 1 }, { description: "x".repeat(1_001) }, { name: "" }]) {
        expect((yield* save(workflow.id, wrong)).status, JSON.stringify(wrong)).toBe(400)
      }
    })
  )

  it.effect(
    "The number and the bytes of a team's templates are limited, also when the last ones are saved at the same time",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { workflow } = yield* workflowTo()
        const team = teams.a.id
        const { most } = teamLimits["workflow_templates"]!
        const [{ count }] = (yield* sql<{ count: number }>`
        select count(*)::int4 as count from workflow_templates where team_id = ${team}`) as [{ count: number }]
        yield* sql`insert into workflow_templates (id, team_id, name, description, outline, steps, edges, bytes, created_at)
        select 'crowd' || n, ${team}, 'crowd' || n, '', '[]', '[]', '[]', 1, now()
        from generate_series(1, ${most - 2 - count}::int) n`
        const attempts = Array.from({ length: 6 }, () => save(workflow.id))
        const answers = yield* Effect.all(attempts, { concurrency: "unbounded" })
        expect(answers.filter(({ status }) => status === 200).length).toBe(2)
        for (const { body, status } of answers) {
          if (status !== 200) {
            expect(body).toMatchObject({
              code: "LIMIT_EXCEEDED",
              data: { limit: most, resource: "workflow_templates" }
            })
          }
        }

        yield* sql`delete from workflow_templates where id like 'crowd%' and id <> 'crowd1'`
        yield* sql`update workflow_templates set bytes = ${maxTemplateBytes - 100_000} where id = 'crowd1'`
        const large = Array.from({ length: 40 }, (_, n) => ({
          id: `send_${n}`,
          kind: "delay",
          name: "x".repeat(155),
          config: { mode: "for", amount: 1, unit: "minutes" },
          position: { x: n, y: n }
        }))
        expect((yield* save(workflow.id)).status).toBe(200)
        const big = yield* create("workflows", { source_id: null, status: "draft", steps: large })
        yield* sql`update workflow_templates set bytes = ${maxTemplateBytes - 5_000} where id = 'crowd1'`
        expect(yield* save(big.id)).toMatchObject({
          status: 409,
          body: { code: "LIMIT_EXCEEDED", data: { limit: maxTemplateBytes, resource: "workflow_templates" } }
        })
        yield* sql`delete from workflow_templates where id = 'crowd1'`
        expect((yield* save(big.id)).status).toBe(200)
      })
  )
})
