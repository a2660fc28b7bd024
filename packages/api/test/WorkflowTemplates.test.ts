import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { templates } from "@tidegate/workflows/templates/Templates"
import type { Template } from "@tidegate/workflows/templates/Template"
import { call, layer as server } from "./ControlServer.ts"

let made = 0
const unique = (what: string): string => `${what}-${++made}`

const create = Effect.fnUntraced(function* (kind: string, body: object = {}) {
  const answer = yield* call("POST", `/${kind}`, { body: { name: unique(kind), ...body } })
  expect(answer.body).toMatchObject({ id: expect.any(String) })
  return answer.body.id as string
})

const places = {
  destination: create("destinations", { type: "HTTP", config: { url: "https://target.test/hook" } }),
  source: create("sources"),
  url: Effect.succeed("https://target.test/lookup")
}

/** Everything that a template has to be given. */
const bound = ({ bindings }: Template) =>
  Effect.map(
    Effect.forEach(bindings, ({ key, type }) => Effect.map(places[type], (place) => [key, place] as const)),
    Object.fromEntries
  )

layer(server, { excludeTestServices: true })("Workflow templates", (it) => {
  it.effect("List of workflow templates has all of them and what each requires", () =>
    Effect.gen(function* () {
      const list = yield* call("GET", "/workflow-templates")
      expect(list).toMatchObject({ status: 200, body: { count: templates.length } })
      expect(templates.length).toBeGreaterThanOrEqual(8)
      for (const [i, template] of templates.entries()) {
        expect(template.key).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
        expect(template.key.length).toBeLessThanOrEqual(96)
        const one = yield* call("GET", `/workflow-templates/${template.key}`)
        const { definition, ...outline } = one.body
        expect(outline).toEqual(list.body.models[i])
        // What would be made can be read before it is.
        expect(definition.steps.map(({ name }: { name: string }) => name)).toEqual(
          outline.steps.map(({ name }: { name: string }) => name)
        )
        for (const { key } of template.bindings) expect(JSON.stringify(definition)).toContain(`<${key}>`)
        expect(one.body).toMatchObject({ key: template.key, trigger: { name: "Webhook" }, version: template.version })
        expect(one.body.required_connections.map(({ key }: { key: string }) => key)).toEqual(
          template.bindings.map(({ key }) => key)
        )
        expect(one.body.steps.length).toBeGreaterThan(0)
      }
      expect(new Set(templates.map(({ key }) => key)).size).toBe(templates.length)
      expect(yield* call("GET", "/workflow-templates/none")).toMatchObject({
        status: 404,
        body: { code: "NOT_FOUND", data: { resource_type: "workflow_template" } }
      })
    })
  )

  for (const template of templates) {
    it.effect(`Workflow template ${template.key} becomes a draft that its sample passes through`, () =>
      Effect.gen(function* () {
        const name = unique(template.key)
        const source_id = yield* create("sources")
        const bindings = yield* bound(template)
        const answer = yield* call("POST", `/workflow-templates/${template.key}/instantiate`, {
          body: { name, source_id, bindings }
        })
        expect(answer).toMatchObject({
          status: 200,
          body: {
            id: expect.stringMatching(/^wfl_/),
            name,
            source_id,
            status: "draft",
            version: 1,
            capabilities: { runtime_executable: true },
            template: { key: template.key, version: template.version }
          }
        })
        const tested = yield* call("POST", `/workflows/${answer.body.id}/test`, {
          body: { trigger: { body: template.sample } }
        })
        expect(tested.body).toMatchObject({ status: "succeeded", outcome: "completed", failed_steps: 0 })
        expect(tested.body.steps.flatMap(({ warnings }: { warnings: ReadonlyArray<unknown> }) => warnings)).toEqual([])
        expect((yield* call("PATCH", `/workflows/${answer.body.id}`, { body: { status: "active" } })).status).toBe(200)
      })
    )
  }

  it.effect("Workflow template without a given source and name makes a draft with the template's name", () =>
    Effect.gen(function* () {
      const template = templates[0]!
      const path = `/workflow-templates/${template.key}/instantiate`
      const body = { bindings: yield* bound(template) }
      const first = yield* call("POST", path, { body })
      expect(first).toMatchObject({ status: 200, body: { name: template.name, source_id: null, source: null } })
      expect(yield* call("POST", path, { body })).toMatchObject({
        status: 409,
        body: { code: "RESOURCE_ALREADY_EXISTS", data: { id: first.body.id, resource_type: "workflow" } }
      })
      expect(yield* call("PATCH", `/workflows/${first.body.id}`, { body: { status: "active" } })).toMatchObject({
        status: 409,
        body: { code: "WORKFLOW_NOT_EXECUTABLE" }
      })
    })
  )

  it.effect("Workflow template with wrong bindings is refused with each fault and creates nothing", () =>
    Effect.gen(function* () {
      const path = "/workflow-templates/fallback-destination/instantiate"
      const name = unique("none")
      const primary = yield* places.destination
      const given = (bindings: object) => call("POST", path, { body: { name, bindings } })
      expect(yield* given({ primary })).toMatchObject({
        status: 422,
        body: {
          code: "TEMPLATE_BINDING_INVALID",
          data: { fields: [{ path: "bindings.fallback", message: "is required" }] }
        }
      })
      const strange = yield* given({ primary, fallback: yield* places.source, third: primary })
      expect(strange).toMatchObject({ status: 422, body: { code: "TEMPLATE_BINDING_INVALID" } })
      expect(strange.body.data.fields.map(({ path }: { path: string }) => path)).toEqual([
        "bindings.fallback",
        "bindings.third"
      ])
      expect(yield* given({ primary, fallback: "des_00000000000000000000000000" })).toMatchObject({
        status: 400,
        body: {
          code: "WORKFLOW_GRAPH_INVALID",
          data: { issues: [{ code: "RESOURCE_NOT_FOUND", step_id: "fallback" }] }
        }
      })
      const unknown = { name, source_id: "src_00000000000000000000000000", bindings: { primary, fallback: primary } }
      expect(yield* call("POST", path, { body: unknown })).toMatchObject({
        status: 404,
        body: { data: { resource_type: "source" } }
      })
      expect((yield* call("POST", path, { body: { name: 1 } })).body.code).toBe("VALIDATION_ERROR")
      expect((yield* call("GET", `/workflows?name=${name}`)).body.count).toBe(0)
    })
  )
})
