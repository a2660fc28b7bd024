import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { deleteKept, listKept, readKept, setKept, storeByStep } from "@tidegate/storage/workflows/WorkflowValues"
import { otherTeam, team } from "../../storage/test/controlPlane.ts"
import { makeStoreStep } from "../src/Workflow/effects/StoreEffect.ts"
import { create, from, trim, world } from "./RunsWorld.ts"

const values = Effect.map(create([trim("first", "x")], [from(null, "first")]), ({ id }) => ({
  team_id: team,
  workflow_id: id
}))

const stepKey = () => newId(prefixes.workflowStep, Date.now())

type Operation = "get" | "set" | "delete" | "increment" | "compare_and_set"

/** Carries a step out, as a run does. */
const carryOut = Effect.fnUntraced(function* (
  of: { readonly workflow_id: string },
  operation: Operation,
  inputs: object,
  key = stepKey()
) {
  const step = yield* makeStoreStep
  const effect = {
    context: { workflow: { id: of.workflow_id } },
    inputs: { values: inputs },
    step: { step: { config: { operation } } }
  }
  return yield* step(effect as never, { team_id: team } as never, key)
})

layer(world, { excludeTestServices: true })("Step that stores values of its workflow", (it) => {
  it.effect("Values are set, read, incremented and deleted, and belong to one workflow", () =>
    Effect.gen(function* () {
      const [of, other] = [yield* values, yield* values]
      expect(yield* carryOut(of, "get", { key: "a" })).toMatchObject({ output: { found: false, value: null } })
      yield* carryOut(of, "set", { key: "a", value: { n: [1, "\u0000"] } })
      expect(yield* carryOut(of, "get", { key: "a" })).toEqual({
        kind: "succeeded",
        output: { key: "a", found: true, value: { n: [1, "\u0000"] }, conflict: false },
        ports: ["out"]
      })
      expect(yield* carryOut(other, "get", { key: "a" })).toMatchObject({ output: { found: false } })
      expect(yield* carryOut(of, "increment", { key: "n" })).toMatchObject({ output: { value: 1 } })
      expect(yield* carryOut(of, "increment", { key: "n", by: 0.2 })).toMatchObject({ output: { value: 1.2 } })
      expect(yield* carryOut(of, "increment", { key: "a" })).toMatchObject({ error: { code: "INPUT_INVALID" } })
      expect(yield* carryOut(of, "delete", { key: "a" })).toMatchObject({ output: { found: true, value: null } })
      expect(yield* carryOut(of, "delete", { key: "a" })).toMatchObject({ output: { found: false } })
      expect((yield* listKept(of)).map(({ key }) => key)).toEqual(["n"])
      expect(yield* listKept({ ...of, team_id: otherTeam })).toEqual([])
      expect(yield* readKept({ ...of, team_id: otherTeam }, "n")).toBeNull()
    })
  )

  it.effect("A change is made once for its step, however often the step is repeated, and with the same result", () =>
    Effect.gen(function* () {
      const of = yield* values
      const keys = Array.from({ length: 10 }, stepKey)
      const sums = yield* Effect.forEach([...keys, ...keys], (key) => carryOut(of, "increment", { key: "n" }, key), {
        concurrency: "unbounded"
      })
      expect((yield* readKept(of, "n"))!.value).toBe(10)
      for (const [i] of keys.entries()) expect(sums[i]).toEqual(sums[i + keys.length])
      const set = stepKey()
      yield* carryOut(of, "compare_and_set", { key: "lock", value: "mine" }, set)
      yield* carryOut(of, "delete", { key: "lock" })
      expect(yield* carryOut(of, "compare_and_set", { key: "lock", value: "mine" }, set)).toMatchObject({
        output: { conflict: false },
        ports: ["out"]
      })
      expect(yield* readKept(of, "lock")).toBeNull()
    })
  )

  it.effect("A process that ends before the commit has changed nothing, and the repeated step makes the change", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const of = yield* values
      const key = stepKey()
      const operation = { name: "increment", key: "n", by: 1, seconds: null } as const
      const written = yield* Deferred.make<void>()
      const dying = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* storeByStep(of, operation, key)
            yield* Deferred.succeed(written, undefined)
            return yield* Effect.never
          })
        )
      )
      yield* Deferred.await(written)
      yield* Fiber.interrupt(dying)
      expect(yield* readKept(of, "n")).toBeNull()
      yield* storeByStep(of, operation, key)
      yield* storeByStep(of, operation, key)
      expect((yield* readKept(of, "n"))!.value).toBe(1)
    })
  )

  it.effect("Of concurrent steps that compare and set, one stores its value, and the others leave by conflict", () =>
    Effect.gen(function* () {
      const of = yield* values
      yield* setKept(of, "owner", { a: 1, b: 2 }, null)
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, i) => i),
        (i) => carryOut(of, "compare_and_set", { key: "owner", expected: { b: 2, a: 1 }, value: i }),
        { concurrency: "unbounded" }
      )
      const ports = outcomes.map((outcome) => (outcome.kind === "succeeded" ? outcome.ports[0] : "failed"))
      expect(ports.filter((port) => port === "out")).toHaveLength(1)
      expect(ports.filter((port) => port === "conflict")).toHaveLength(7)
      expect((yield* readKept(of, "owner"))!.value).toBe(ports.indexOf("out"))
    })
  )

  it.effect("Keys, values and their number are limited, and an expired value counts as none", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const of = yield* values
      for (const inputs of [
        {},
        { key: "" },
        { key: "x".repeat(101), value: 1 },
        { key: "a", value: "x".repeat(16_383) },
        { key: "a", value: "ä".repeat(9_000) },
        { key: "a", value: 1, expires_in_seconds: 0 },
        { key: "a", value: 1, expires_in_seconds: "soon" }
      ]) {
        expect(yield* carryOut(of, "set", inputs)).toMatchObject({ kind: "failed", error: { code: "INPUT_INVALID" } })
      }
      yield* carryOut(of, "set", { key: "a", value: 1, expires_in_seconds: 60 })
      expect((yield* readKept(of, "a"))!.expires_at).not.toBeNull()
      yield* sql`update workflow_values set expires_at = now() - interval '1 second' where workflow_id = ${of.workflow_id}`
      expect(yield* carryOut(of, "get", { key: "a" })).toMatchObject({ output: { found: false } })
      expect(yield* carryOut(of, "increment", { key: "a", by: 5 })).toMatchObject({ output: { value: 5 } })
      expect((yield* readKept(of, "a"))!.expires_at).toBeNull()
      yield* sql`insert into workflow_values (workflow_id, team_id, key, value, updated_at)
        select ${of.workflow_id}, ${team}, 'k' || n, '0', now() from generate_series(1, 999) n`
      expect(yield* carryOut(of, "set", { key: "new", value: 1 })).toMatchObject({ error: { code: "ACTION_FAILED" } })
      expect(yield* carryOut(of, "set", { key: "k1", value: 1 })).toMatchObject({ kind: "succeeded" })
    })
  )

  it.effect("Values are deleted with their workflow, and none is stored afterwards", () =>
    Effect.gen(function* () {
      const of = yield* values
      yield* carryOut(of, "set", { key: "a", value: 1 })
      expect(yield* deleteKept(of, "b")).toBe(false)
      yield* (yield* Workflows).delete(team, of.workflow_id)
      expect(yield* listKept(of)).toEqual([])
      expect(yield* carryOut(of, "set", { key: "a", value: 1 })).toMatchObject({ error: { code: "RESOURCE_DELETED" } })
    })
  )
})
