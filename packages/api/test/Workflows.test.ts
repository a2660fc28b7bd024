import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
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

layer(server, { excludeTestServices: true })("workflows", (it) => {
  for (const prefix of ["", "/v1"]) {
    it.effect(`the life of one of ${prefix}/workflows`, () =>
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

  it.effect("an upsert by name is refused when it was made from an earlier version, as a change by id is", () =>
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

  it.effect("a description has as many characters as are stated, however many bytes", () =>
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

  it.effect("of many changes of one version at once, one is made", () =>
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

  it.effect("a graph with faults is answered with all of them, in every status", () =>
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

  it.effect("a list is of the latest change first, and knows the states", () =>
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
})
