import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { call, layer as server } from "./ControlServer.ts"

let made = 0
const unique = (what: string): string => `${what}-${++made}`

const steps = [{ id: "only_paid", kind: "filter", config: { conditions: { body: { status: "paid" } } } }]
const edges = [{ source_type: "trigger", target_step_id: "only_paid" }]
const save = (body: object) => call("PUT", "/workflows/aggregate", { body })

const countOf = Effect.fnUntraced(function* (kind: string, name: string) {
  return (yield* call("GET", `/${kind}?name=${name}`)).body.count as number
})

layer(server, { excludeTestServices: true })("Workflow with its source and actions in one call", (it) => {
  it.effect("Workflow and its source are created in one call, and the workflow is changed by its id", () =>
    Effect.gen(function* () {
      const [name, shop] = [unique("flow"), unique("shop")]
      const first = yield* save({ source: { name: shop }, workflow: { name, steps, edges } })
      expect(first).toMatchObject({
        status: 200,
        body: {
          workflow: { name, status: "active", version: 1, steps_count: 1, source: { name: shop } },
          source: { name: shop, id: expect.stringMatching(/^src_/) },
          actions: [],
          created: { workflow: true, source: true, actions: [] }
        }
      })
      const { source, workflow } = first.body
      expect(workflow.source_id).toBe(source.id)
      expect((yield* call("GET", `/sources/${source.id}`)).body).toEqual(source)
      const other = unique("shop")
      const second = yield* save({
        workflow_id: workflow.id,
        version: 1,
        source: { name: other },
        workflow: { description: "moved" }
      })
      expect(second).toMatchObject({
        status: 200,
        body: {
          workflow: { id: workflow.id, version: 2, description: "moved", steps_count: 1 },
          source: { name: other },
          created: { workflow: false, source: true }
        }
      })
      const third = yield* save({ workflow_id: workflow.id, source: { id: source.id }, workflow: {} })
      expect(third.body).toMatchObject({ workflow: { version: 3, source_id: source.id }, created: { source: false } })
      const fourth = yield* save({ workflow_id: workflow.id, source_id: source.id, workflow: {} })
      expect(fourth.body).toMatchObject({ workflow: { version: 3 } })
    })
  )

  it.effect("Combined call returns the warnings of the source that it creates and of the workflow", () =>
    Effect.gen(function* () {
      const body = {
        source: { name: unique("shop"), type: "STRIPE" },
        workflow: { name: unique("flow"), steps, edges }
      }
      const first = yield* save(body)
      expect(first.body.warnings).toEqual([
        { code: "NOT_VERIFIED", message: expect.stringContaining("webhook_secret_key"), path: "source.config.auth" }
      ])
      // Of one that was there nothing was written.
      const [{ id: workflow_id }, { id: source_id }] = [first.body.workflow, first.body.source]
      const second = yield* save({ workflow_id, source_id, workflow: { description: "again" } })
      expect([second.status, second.body.warnings]).toEqual([200, undefined])
      const trim = { action: { provider_key: "formatter", action_key: "text.trim" }, kind: "action" }
      const unknown = yield* save({
        workflow_id,
        source_id,
        workflow: {
          steps: [
            { ...trim, id: "first", invocation_inputs: { input: "a" } },
            { ...trim, id: "second", invocation_inputs: { input: "{{steps.first.output.reslut}}" } }
          ],
          edges: [
            { source_type: "trigger", target_step_id: "first" },
            { source_type: "step", source_step_id: "first", target_step_id: "second" }
          ]
        }
      })
      expect(unknown.body.warnings).toMatchObject([
        { code: "OUTPUT_MEMBER_UNKNOWN", path: expect.stringMatching(/^workflow\.steps/) }
      ])
    })
  )

  it.effect("Actions are saved with a workflow, and its steps name them by reference", () =>
    Effect.gen(function* () {
      const [name, shop, ledger] = [unique("flow"), unique("shop"), unique("ledger")]
      const saved = {
        ref: "ledger",
        name: ledger,
        provider_key: "http",
        action_key: "request",
        inputs: { url: "https://ledger.test/" }
      }
      const body = {
        source: { name: shop },
        actions: [saved],
        workflow: {
          name,
          steps: [{ id: "post", kind: "action", resource_id: "ref:ledger" }],
          edges: [{ source_type: "trigger", target_step_id: "post" }]
        }
      }
      const broken = { ...body, workflow: { ...body.workflow, edges: [] } }
      expect((yield* save(broken)).body.code).toBe("WORKFLOW_GRAPH_INVALID")
      expect([yield* countOf("actions", ledger), yield* countOf("sources", shop)]).toEqual([0, 0])
      const answer = yield* save(body)
      expect(answer).toMatchObject({
        status: 200,
        body: {
          actions: [{ id: expect.stringMatching(/^act_/), name: ledger, provider_key: "http" }],
          created: { workflow: true, source: true, actions: ["ledger"] }
        }
      })
      expect(answer.body.workflow.steps[0].resource_id).toBe(answer.body.actions[0].id)
      const taken = { ...body, source: { name: unique("shop") }, workflow: { ...body.workflow, name: unique("flow") } }
      expect((yield* save(taken)).body).toMatchObject({
        code: "RESOURCE_ALREADY_EXISTS",
        data: { id: answer.body.actions[0].id, resource_type: "action" }
      })
      expect(yield* countOf("sources", taken.source.name)).toBe(0)
    })
  )

  it.effect("Combined call writes nothing when one part is refused", () =>
    Effect.gen(function* () {
      const kept = yield* save({ source: { name: unique("shop") }, workflow: { name: unique("flow") } })
      const { source, workflow } = kept.body
      const [name, shop] = [unique("flow"), unique("shop")]
      const faulty = { name, steps, edges: [] }
      for (const [body, code] of [
        [{ source: { name: shop }, workflow: faulty }, "WORKFLOW_GRAPH_INVALID"],
        [{ source: { name: shop }, workflow: { name: workflow.name } }, "RESOURCE_ALREADY_EXISTS"],
        [{ source: { name: source.name }, workflow: { name } }, "RESOURCE_ALREADY_EXISTS"],
        [{ workflow_id: workflow.id, version: 7, source: { name: shop }, workflow: { name } }, "workflow_conflict"],
        [{ workflow_id: "wfl_00000000000000000000000000", source: { name: shop }, workflow: { name } }, "NOT_FOUND"],
        [{ source_id: "src_00000000000000000000000000", workflow: { name } }, "NOT_FOUND"]
      ] as const) {
        expect((yield* save(body)).body).toMatchObject({ code })
        expect([yield* countOf("sources", shop), yield* countOf("workflows", name)]).toEqual([0, 0])
      }
      expect((yield* call("GET", `/workflows/${workflow.id}`)).body).toEqual(workflow)
    })
  )

  it.effect("One of many concurrent combined calls with one name succeeds, with all of its parts", () =>
    Effect.gen(function* () {
      const [name, shop] = [unique("flow"), unique("shop")]
      const answers = yield* Effect.all(
        Array.from({ length: 10 }, (_, i) =>
          save({ source: { name: `${shop}-${i}` }, workflow: { name, steps, edges } })
        ),
        { concurrency: "unbounded" }
      )
      expect(answers.map(({ status }) => status).toSorted((left, right) => left - right)).toEqual([
        200,
        ...Array.from({ length: 9 }, () => 409)
      ])
      const winner = answers.find(({ status }) => status === 200)!.body
      const counts = yield* Effect.forEach(answers, (_, i) => countOf("sources", `${shop}-${i}`))
      expect(counts.reduce((sum, count) => sum + count)).toBe(1)
      expect((yield* call("GET", `/workflows/${winner.workflow.id}`)).body.source_id).toBe(winner.source.id)
      const [id, version] = [winner.workflow.id, winner.workflow.version]
      const changes = yield* Effect.all(
        Array.from({ length: 10 }, (_, i) =>
          save({ workflow_id: id, version, source: { name: `${shop}-moved-${i}` }, workflow: {} })
        ),
        { concurrency: "unbounded" }
      )
      expect(changes.map(({ status }) => status).toSorted((left, right) => left - right)).toEqual([
        200,
        ...Array.from({ length: 9 }, () => 409)
      ])
      const moved = yield* Effect.forEach(changes, (_, i) => countOf("sources", `${shop}-moved-${i}`))
      expect(moved.reduce((sum, count) => sum + count)).toBe(1)
    })
  )

  it.effect("Combined call reports each fault with its path in the body", () =>
    Effect.gen(function* () {
      const name = unique("flow")
      const id = "src_00000000000000000000000000"
      for (const [body, paths] of [
        [{}, ["workflow"]],
        [{ workflow: 1, source: [] }, ["workflow", "source"]],
        [{ workflow: { name: 1 }, source: { name: 1 } }, ["source.name", "workflow.name"]],
        [{ workflow: { name }, source_id: id, source: { name } }, ["source_id"]],
        [{ workflow: { name }, source: { id, name } }, ["source.id"]],
        [{ workflow: { name, source_id: id }, source: { name } }, ["workflow.source_id"]],
        [{ workflow: { name }, source: { name }, version: 1 }, ["version"]],
        [{ workflow: { name }, source: { name }, actions: 1 }, ["actions"]],
        [
          { workflow: { name }, source: { name }, actions: [{ ref: "a" }, { ref: "a" }, 1] },
          ["actions[1].ref", "actions[2]"]
        ],
        [
          { workflow: { name, steps: [{ resource_id: "ref:a" }] }, source: { name } },
          ["workflow.steps[0].resource_id"]
        ],
        [{ workflow: { name } }, ["workflow.source_id"]]
      ] as const) {
        const answer = yield* save(body)
        expect(answer, JSON.stringify(body)).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
        expect(answer.body.data.fields.map(({ path }: { path: string }) => path)).toEqual(paths)
      }
    })
  )
})
