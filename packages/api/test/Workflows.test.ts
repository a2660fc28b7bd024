import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { workflow } from "../../client/src/workflow/index.ts"
import { stepKinds } from "@tidegate/workflows/StepKinds"
import { call, layer as server, teams } from "./ControlServer.ts"

let made = 0

const parts = {
  steps: [{ id: "only_paid", kind: "filter", config: { conditions: { body: { status: "paid" } } } }],
  edges: [{ source_type: "trigger", target_step_id: "only_paid" }]
}

const bodyOf = Effect.fnUntraced(function* () {
  const name = `flow-${++made}`
  const source = (yield* call("POST", "/sources", { body: { name } })).body
  return { name, source_id: source.id as string, ...parts }
})

layer(server, { excludeTestServices: true })("Workflow calls", (it) => {
  for (const prefix of ["", "/v1"]) {
    it.effect(`Workflow can be created, read, changed and deleted under ${prefix}/workflows`, () =>
      Effect.gen(function* () {
        const list = `${prefix}/workflows`
        const body = yield* bodyOf()
        const created = yield* call("POST", list, { body })
        expect(created).toMatchObject({
          status: 200,
          body: {
            id: expect.stringMatching(/^wfl_/),
            team_id: teams.a.id,
            name: body.name,
            description: null,
            source_id: body.source_id,
            status: "active",
            version: 1,
            steps: [{ id: "only_paid", kind: "filter", resource_id: null }],
            edges: [{ id: "e_00", source_port: "out" }],
            steps_count: 1,
            edges_count: 1
          }
        })
        const { id } = created.body
        const one = `${list}/${id}`
        expect(yield* call("GET", one)).toMatchObject({ status: 200, body: created.body })
        for (const [index, method] of ["PATCH", "PUT"].entries()) {
          const patch = { description: method, version: index + 1 }
          expect(yield* call(method, one, { body: patch })).toMatchObject({
            status: 200,
            body: { id, description: method, version: index + 2, steps_count: 1 }
          })
        }
        expect(yield* call("PATCH", one, { body: { description: "late", version: 1 } })).toMatchObject({
          status: 409,
          body: {
            error: "Conflict",
            code: "workflow_conflict",
            message: "Workflow was changed since version 1",
            data: { current_version: 3, supplied_version: 1 }
          }
        })
        const [row] = (yield* call("GET", `${list}?id=${id}`)).body.models
        expect(row).toMatchObject({ id, version: 3, steps_count: 1 })
        expect(row).not.toHaveProperty("steps")
        expect(row).not.toHaveProperty("edges")
        const deleted = { id, deleted: true, source_id: body.source_id, source_deleted: false }
        expect(yield* call("DELETE", one)).toEqual(expect.objectContaining({ status: 200, body: deleted }))
        expect((yield* call("GET", one)).status).toBe(404)
        expect((yield* call("GET", `/sources/${body.source_id}`)).status).toBe(200)
      })
    )
  }

  it.effect("Upsert of a workflow by name is refused when it was made from an older version", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf()
      const { id } = (yield* call("POST", "/workflows", { body })).body
      const put = (more: object) => call("PUT", "/workflows", { body: { ...body, ...more } })
      expect(yield* put({ description: "first", version: 1 })).toMatchObject({ status: 200, body: { id, version: 2 } })
      expect(yield* put({ description: "late", version: 1 })).toMatchObject({
        status: 409,
        body: { code: "workflow_conflict", data: { current_version: 2, supplied_version: 1 } }
      })
      expect(yield* put({ version: "2" })).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
      expect((yield* call("GET", `/workflows/${id}`)).body).toMatchObject({ description: "first", version: 2 })
      expect(yield* put({ description: "last" })).toMatchObject({ status: 200, body: { description: "last" } })
      // There is nothing that a new one could be later than: a copy of what was read is made as it was.
      const copy = yield* call("POST", "/workflows", { body: { ...body, name: `${body.name}-copy`, version: 7 } })
      expect(copy).toMatchObject({ status: 200, body: { version: 1 } })
    })
  )

  it.effect("Description of a workflow is limited by characters and not by bytes", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf()
      for (const [description, status] of [
        ["\u{1f4e6}".repeat(4_001), 400],
        ["x".repeat(4_001), 400],
        ["\u{1f4e6}".repeat(4_000), 200]
      ] as const) {
        expect((yield* call("POST", "/workflows", { body: { ...body, description } })).status).toBe(status)
      }
    })
  )

  it.effect("One of many concurrent changes of the same workflow version succeeds", () =>
    Effect.gen(function* () {
      const { id } = (yield* call("POST", "/workflows", { body: yield* bodyOf() })).body
      const answers = yield* Effect.all(
        Array.from({ length: 50 }, (_, index) =>
          call("PATCH", `/workflows/${id}`, { body: { description: `change ${index}`, version: 1 } })
        ),
        { concurrency: "unbounded" }
      )
      const statuses = answers.map(({ status }) => status).toSorted((left, right) => left - right)
      expect(statuses).toEqual([200, ...Array.from({ length: 49 }, () => 409)])
      expect((yield* call("GET", `/workflows/${id}`)).body.version).toBe(2)
    })
  )

  it.effect("Step cannot change its kind, and a path that its destination does not forward is refused", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf()
      const made = yield* call("POST", "/workflows", { body })
      const one = `/workflows/${made.body.id}`
      const delay = { id: "only_paid", kind: "delay", config: { mode: "for", amount: 1, unit: "hours" } }
      const issuesOf = ({ body: { data } }: { readonly body: { readonly data: { readonly issues: unknown } } }) =>
        data.issues
      const kept = { code: "STEP_KIND_CHANGED", step_id: "only_paid", field: "kind" }
      expect(issuesOf(yield* call("PATCH", one, { body: { steps: [delay] } }))).toMatchObject([kept])
      // Nor once the step is gone.
      const other = { ...delay, id: "wait_1h" }
      const edges = [{ source_type: "trigger", target_step_id: "wait_1h" }]
      expect((yield* call("PATCH", one, { body: { steps: [other], edges } })).status).toBe(200)
      expect(issuesOf(yield* call("PATCH", one, { body: { steps: [delay], edges: body.edges } }))).toMatchObject([kept])

      const url = "https://api.example.com/hooks"
      const destination = { name: body.name, type: "HTTP", config: { url, path_forwarding_disabled: true } }
      const { id } = (yield* call("POST", "/destinations", { body: destination })).body
      const send = { id: "to_crm", kind: "destination", resource_id: id, invocation_inputs: { path: "/orders" } }
      const way = [{ id: "begin", source_type: "trigger", target_step_id: "to_crm", mapping: { query: { a: 1 } } }]
      const graph = { ...body, name: `${body.name}-path`, steps: [send], edges: way }
      expect(issuesOf(yield* call("POST", "/workflows", { body: graph }))).toMatchObject([
        { code: "STEP_CONFIG_INVALID", step_id: "to_crm", field: "invocation_inputs.path" },
        { code: "STEP_CONFIG_INVALID", edge_id: "begin", field: "mapping.query" }
      ])
      yield* call("PATCH", `/destinations/${id}`, { body: { config: { path_forwarding_disabled: false } } })
      expect((yield* call("POST", "/workflows", { body: graph })).status).toBe(200)
      // What is stored goes on, and can be paused, whatever its destination leaves out by now.
      yield* call("PATCH", `/destinations/${id}`, { body: { config: { path_forwarding_disabled: true } } })
      const stored = (yield* call("GET", `/workflows?name=${graph.name}`)).body.models[0]
      expect((yield* call("PATCH", `/workflows/${stored.id}`, { body: { status: "paused" } })).status).toBe(200)
    })
  )

  it.effect("Workflow with an invalid graph is refused with all faults, whether it is draft or active", () =>
    Effect.gen(function* () {
      for (const status of ["draft", "active"]) {
        const written = {
          ...(yield* bodyOf()),
          status,
          steps: [
            { id: "one_1", kind: "action", action: { provider_key: "formatter", action_key: "text.shout" } },
            { id: "two_2", kind: "filter", config: { conditions: { body: { a: { $nonsense: 1 } } } } }
          ],
          edges: [{ source_type: "trigger", target_step_id: "one_1" }]
        }
        const answer = yield* call("POST", "/workflows", { body: written })
        expect(answer).toMatchObject({ status: 400, body: { code: "WORKFLOW_GRAPH_INVALID" } })
        const codes = answer.body.data.issues.map(({ code }: { code: string }) => code)
        expect(codes).toContain("STEP_WITHOUT_INPUT")
      }
    })
  )

  it.effect("Workflows are listed by their latest change and can be filtered by status", () =>
    Effect.gen(function* () {
      const ids: Array<string> = []
      for (let place = 0; place < 3; place++) {
        ids.push((yield* call("POST", "/workflows", { body: yield* bodyOf() })).body.id)
      }
      yield* call("PATCH", `/workflows/${ids[0]}`, { body: { status: "paused" } })
      const of = `id=${ids.join(",")}`
      const idsOf = (body: { readonly models: ReadonlyArray<{ readonly id: string }> }) =>
        body.models.map(({ id }) => id)
      expect(idsOf((yield* call("GET", `/workflows?${of}`)).body)).toEqual([ids[0], ids[2], ids[1]])
      expect(idsOf((yield* call("GET", `/workflows?${of}&status=paused`)).body)).toEqual([ids[0]])
      expect(yield* call("GET", `/workflows?status=asleep`)).toMatchObject({
        status: 400,
        body: { code: "VALIDATION_ERROR", data: { fields: [{ path: "status" }] } }
      })
    })
  )

  it.effect("Unknown output names in a workflow get warnings at every write and every test", () =>
    Effect.gen(function* () {
      const action = yield* call("POST", "/actions", {
        body: { name: `trim-${++made}`, provider_key: "formatter", action_key: "text.trim", inputs: {} }
      })
      expect(action.status).toBe(201)
      const written = (name: string) => ({
        steps: [
          { id: "trim", kind: "action", resource_id: action.body.id, invocation_inputs: { input: " a " } },
          {
            id: "length",
            kind: "action",
            action: { provider_key: "formatter", action_key: "text.length" },
            invocation_inputs: { input: `{{steps.trim.output.${name}}}` }
          }
        ],
        edges: [
          { source_type: "trigger", target_step_id: "trim" },
          { source_type: "step", source_step_id: "trim", target_step_id: "length" }
        ]
      })
      const warnings = [
        {
          code: "OUTPUT_MEMBER_UNKNOWN",
          message: "of the step trim, the output has no reslut: there are result; did you mean result?",
          path: "steps[1].invocation_inputs.input"
        }
      ]
      const body = { ...(yield* bodyOf()), ...written("reslut") }
      const created = yield* call("POST", "/workflows", { body })
      expect(created).toMatchObject({ status: 200, body: { version: 1, warnings } })
      const one = `/workflows/${created.body.id}`
      expect((yield* call("GET", one)).body).not.toHaveProperty("warnings")
      for (const [method, path, sent] of [
        ["PUT", "/workflows", body],
        ["PATCH", one, { description: "other" }],
        ["PUT", one, written("reslut")],
        ["POST", "/workflows/test", { ...written("reslut"), trigger: { body: {} } }],
        ["POST", `${one}/test`, { trigger: { body: {} } }]
      ] as const) {
        expect(yield* call(method, path, { body: sent })).toMatchObject({ status: 200, body: { warnings } })
      }
      const mended = yield* call("PATCH", one, { body: written("result") })
      expect([mended.status, mended.body.warnings]).toEqual([200, undefined])
      const tried = yield* call("POST", `${one}/test`, { body: { trigger: { body: {} } } })
      expect([tried.status, tried.body.warnings]).toEqual([200, undefined])
    })
  )

  it.effect("Names that the source's items do not have get warnings, unless a schedule begins runs too", () =>
    Effect.gen(function* () {
      const provider = {
        provider_key: "websub",
        definition_key: "entry.added",
        inputs: { url: "https://blog.test/feed" }
      }
      const source = yield* call("POST", "/sources", {
        body: { name: `feed-${++made}`, type: "PROVIDER", config: { provider } }
      })
      const step = {
        id: "length",
        kind: "action",
        action: { provider_key: "formatter", action_key: "text.length" },
        invocation_inputs: { input: "{{trigger.body.titel}}" }
      }
      const body = { name: `flow-${++made}`, source_id: source.body.id, steps: [step] }
      const warnings = [
        {
          code: "TRIGGER_MEMBER_UNKNOWN",
          message: expect.stringMatching(/^of the source, the body has no titel: .*; did you mean title\?$/),
          path: "steps[0].invocation_inputs.input"
        }
      ]
      const created = yield* call("POST", "/workflows", { body })
      expect([created.status, created.body.warnings]).toEqual([200, warnings])
      const triggers = { schedule: [{ cron: "0 9 * * *" }] }
      const scheduled = yield* call("PATCH", `/workflows/${created.body.id}`, { body: { triggers } })
      expect([scheduled.status, scheduled.body.warnings]).toEqual([200, undefined])
    })
  )

  it.effect("Workflow without edges is a chain of its steps, and stays one when its steps are replaced", () =>
    Effect.gen(function* () {
      const step = (id: string) => ({ id, kind: "delay", config: { mode: "for", amount: 1, unit: "days" } })
      const { edges: _, ...body } = yield* bodyOf()
      const ways = ({ edges }: { edges: ReadonlyArray<{ source_step_id: string | null; target_step_id: string }> }) =>
        edges.map(({ source_step_id, target_step_id }) => [source_step_id, target_step_id])
      const made = yield* call("PUT", "/workflows", { body: { ...body, steps: [step("one_1"), step("two_2")] } })
      expect([made.status, ways(made.body)]).toEqual([
        200,
        [
          [null, "one_1"],
          ["one_1", "two_2"]
        ]
      ])
      const steps = [step("one_1"), step("three"), step("two_2")]
      const longer = yield* call("PUT", "/workflows", { body: { ...body, steps } })
      expect([longer.body.version, ways(longer.body)]).toEqual([
        2,
        [
          [null, "one_1"],
          ["one_1", "three"],
          ["three", "two_2"]
        ]
      ])
      // The same write again makes no version.
      expect((yield* call("PUT", "/workflows", { body: { ...body, steps } })).body.version).toBe(2)
      // Written edges are kept, as those of any graph are; and an empty list leads to no step.
      const edges = [
        { target_step_id: "one_1", source_type: "trigger" },
        { source_step_id: "one_1", target_step_id: "two_2" }
      ]
      const one = `/workflows/${made.body.id}`
      const written = yield* call("PATCH", one, { body: { edges, steps: [step("one_1"), step("two_2")] } })
      expect(written.body.edges[1]).toMatchObject({ source_type: "step", source_step_id: "one_1" })
      expect(yield* call("PATCH", one, { body: { steps } })).toMatchObject({
        status: 400,
        body: { code: "WORKFLOW_GRAPH_INVALID", data: { issues: [{ code: "STEP_WITHOUT_INPUT", step_id: "three" }] } }
      })
      expect((yield* call("PATCH", one, { body: { steps, edges: [] } })).status).toBe(400)
      const tested = yield* call("POST", "/workflows/test", { body: { steps, trigger: { body: {} } } })
      expect(tested.body).toMatchObject({ status: "succeeded", succeeded_steps: 3 })
    })
  )

  it.effect("A chain leaves out the steps that undo others, and a test shows the undo", () =>
    Effect.gen(function* () {
      const called = (id: string, config: object = {}) => {
        const action = { provider_key: "http", action_key: "request" }
        return { id, kind: "action", action, invocation_inputs: { url: "https://example.com" }, config }
      }
      const { edges: _, ...body } = yield* bodyOf()
      const steps = [called("charge", { compensate: "refund" }), called("refund"), called("tell")]
      const made = yield* call("PUT", "/workflows", { body: { ...body, steps } })
      expect([made.status, made.body.edges.map((edge: { target_step_id: string }) => edge.target_step_id)]).toEqual([
        200,
        ["charge", "tell"]
      ])
      const mocks = { tell: { error: { code: "BAD_RESPONSE", message: "HTTP 500" } } }
      const tested = yield* call("POST", "/workflows/test", { body: { steps, mocks, trigger: { body: {} } } })
      expect(tested.body).toMatchObject({
        status: "failed",
        error_code: "BAD_RESPONSE",
        steps: [
          { step_id: "charge", status: "succeeded", compensates: null },
          { step_id: "tell", status: "failed" },
          { step_id: "refund", status: "succeeded", compensates: "charge" }
        ]
      })
      mocks.tell.error.message = "again"
      const undoFails = { ...mocks, refund: mocks.tell }
      const failed = yield* call("POST", "/workflows/test", {
        body: { steps, mocks: undoFails, trigger: { body: {} } }
      })
      expect(failed.body).toMatchObject({ error_code: "UNDO_INCOMPLETE", error_step_id: "refund" })
    })
  )

  it.effect("Workflow of the client's builder is accepted without warnings, and runs", () =>
    Effect.gen(function* () {
      const { name, source_id } = yield* bodyOf()
      const crm = { name, type: "MOCK_API", config: {} }
      const destination: string = (yield* call("POST", "/destinations", { body: crm })).body.id
      const built = workflow(name)
        .on<{ total: number; customer: { name: string }; lines: ReadonlyArray<{ sku: string }> }>(source_id)
        .filter("has_lines", { body: { lines: { $exist: true } } })
        .action("fmt_name", "formatter/text.titlecase", ({ trigger }) => ({ input: trigger.body.customer.name }))
        .forEach(({ trigger }) => trigger.body.lines)
        .action("fmt_sku", "formatter/text.uppercase", ({ item }) => ({ input: item.sku }))
        .branch("by_total", {
          big: {
            when: ({ trigger }) => ({ body: { total: { $gt: trigger.query.limit } } }),
            steps: (path) => path.http("notify", { url: "https://example.com/big", method: "POST" })
          },
          rest: { fallback: true }
        })
        .delay("wait_1d", { mode: "for", amount: 1, unit: "days" })
        .destination("to_crm", destination, ({ steps }) => ({
          body: { name: steps.fmt_name.output.result, skus: steps.fmt_sku.output.items().result }
        }))
        .onError((path) => path.destination("alarm", destination, { body: "failed" }).end())
        .toJSON()
      const saved = yield* call("PUT", "/workflows", { body: built })
      expect(saved).toMatchObject({ status: 200, body: { version: 1, steps_count: 8, edges_count: 9 } })
      expect(saved.body.warnings ?? []).toEqual([])
      const body = { total: 9, customer: { name: "ada lovelace" }, lines: [{ sku: "a1" }, { sku: "b2" }] }
      const tested = yield* call("POST", `/workflows/${saved.body.id}/test`, {
        body: { trigger: { query: { limit: "10" }, body }, include_previews: true }
      })
      const sent = tested.body.steps.find(({ step_id }: { step_id: string }) => step_id === "to_crm")
      expect([tested.body.status, sent.input_preview.preview.body]).toEqual([
        "succeeded",
        { name: "Ada Lovelace", skus: ["A1", "B2"] }
      ])
    })
  )

  it.effect("JSON Schema of a workflow describes every kind of step, and a file that names it is accepted", () =>
    Effect.gen(function* () {
      const { body: schema, status } = yield* call("GET", "/schemas/workflow.json", { key: null })
      expect([status, schema.required]).toEqual([200, ["name", "source_id"]])
      const kinds: ReadonlyArray<string> = schema.$defs.WorkflowStep.anyOf.map(({ $ref }: { $ref: string }) => $ref)
      expect(kinds).toHaveLength(stepKinds.length)
      const names = [...JSON.stringify(schema).matchAll(/"#\/\$defs\/(\w+)"/g)].map(([, name]) => name)
      expect(names).toEqual(names.filter((name) => typeof schema.$defs[name!] === "object"))
      const outputs = stepKinds.flatMap(({ kind, output }) => (output === null ? [] : [[`Output_${kind}`, output]]))
      expect(schema.$defs).toMatchObject(Object.fromEntries(outputs))
      const body = { $schema: "https://hooks.example.com/schemas/workflow.json", ...(yield* bodyOf()) }
      const saved = yield* call("PUT", "/workflows", { body })
      expect([saved.status, Object.keys(saved.body).includes("$schema")]).toEqual([200, false])
      const patched = yield* call("PATCH", `/workflows/${saved.body.id}`, { body: { $schema: body.$schema } })
      expect([patched.status, patched.body.version]).toEqual([200, 1])
      expect((yield* call("PUT", "/workflows", { body: { ...body, $schema: 1 } })).status).toBe(400)
    })
  )
})
