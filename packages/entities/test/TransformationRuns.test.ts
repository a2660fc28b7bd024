import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestRunner } from "effect/cluster"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import { Transformations } from "@tidegate/storage/control/Transformations"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import type { Members } from "@tidegate/resources/Input"
import * as TransformationBehaviour from "../src/Transformation/TransformationBehaviour.ts"
import { TransformationEntity } from "../src/Transformation/TransformationProtocol.ts"

/** The actor over the real sandbox: what code does is that package's suite, what becomes of it here. */

const { team: team_id, unique } = ControlPlane

const world = TransformationBehaviour.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(TestRunner.layer, Sandbox.layer({ children: 1, spares: 0 }), Transformations.layer)
  ),
  Layer.provideMerge(ControlPlane.layer)
)

const fresh = Effect.map(TransformationEntity.client, (client) => client(newId(prefixes.transformation, Date.now())))
const run = (input: Members) => Effect.flatMap(fresh, (target) => target.Run({ team_id, input }))

const code = `addHandler("transform", (request, context) => {
  console.log("for", context.team_id, process.env.TENANT)
  if (request.body.fail) throw new TypeError("as asked")
  return { ...request, path: "/out" + request.path, body: { ...request.body, tenant: context.env.TENANT } }
})`

layer(world, { excludeTestServices: true })("Transformations in the real sandbox", (it) => {
  it.effect("A stored transformation runs with its variables", () =>
    Effect.gen(function* () {
      const id = newId(prefixes.transformation, Date.now())
      const target = (yield* TransformationEntity.client)(id)
      yield* target.Create({ team_id, input: { name: unique("real"), code, env: { TENANT: "acme" } } })
      const input = { transformation_id: id, request: { body: { n: 1 }, path: "/in", query: { q: "1" } } }
      const answer = yield* target.Run({ team_id, input })
      expect(answer.request).toStrictEqual({
        headers: {},
        body: { n: 1, tenant: "acme" },
        query: { q: "1" },
        parsed_query: { q: "1" },
        path: "/out/in",
        method: "POST"
      })
      expect(answer.console).toStrictEqual([`for ${team_id} acme`])
      expect([answer.log_level, answer.error]).toStrictEqual(["info", null])
      expect(answer.stats.duration_ms).toBeGreaterThanOrEqual(0)
    })
  )

  it.effect("A handler that throws is reported with its line", () =>
    Effect.gen(function* () {
      const answer = yield* run({ code, request: { body: { fail: true } } })
      expect([answer.log_level, answer.request, answer.error]).toStrictEqual([
        "error",
        null,
        { code: "RUNTIME_ERROR", name: "TypeError", message: "as asked", line: 3 }
      ])
      expect((yield* run({ code: "1" })).error?.code).toBe("NO_HANDLER")
    })
  )

  it.effect("A result that would take long to show is shown as text", () =>
    Effect.gen(function* () {
      const returning = (members: string) =>
        run({ code: `addHandler("transform", (request) => ({ ...request, ${members} }))` })
      const deep = yield* returning("body: JSON.parse('['.repeat(300) + ']'.repeat(300))")
      expect(deep.request?.body).toBe("[".repeat(300) + "]".repeat(300))
      expect(deep.warnings).toHaveLength(1)
      const plain = yield* returning("body: Array(1_000).fill([0])")
      expect(plain.request?.body).toBeInstanceOf(Array)
      expect(plain.warnings).toStrictEqual([])
      const headers = "Object.fromEntries(Array.from({ length: 100_001 }, (_, i) => ['a' + i, '']))"
      for (const members of [`headers: ${headers}`, "body: Array(100_001).fill(0)"]) {
        const many = yield* returning(members)
        expect([many.request, many.error?.code, many.log_level]).toStrictEqual([null, "INVALID_OUTPUT", "error"])
      }
    })
  )

  it.effect("Code that does not compile is rejected with its line", () =>
    Effect.gen(function* () {
      const wrong = { name: unique("real"), code: `${code}\n)` }
      const create = Effect.flatMap(fresh, (target) => target.Create({ team_id, input: wrong }))
      for (const error of [yield* Effect.flip(run(wrong)), yield* Effect.flip(create)]) {
        expect(error).toMatchObject({ code: "TRANSFORMATION_INVALID" })
        expect("data" in error ? error.data : {}).toMatchObject({ line: 6 })
      }
    })
  )
})
