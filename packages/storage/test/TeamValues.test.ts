import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { readNumber } from "@tidegate/json/ExactNumber"
import { writeJson } from "@tidegate/json/NumberMarks"
import { deleteValue, increment, readValue, rememberedResult, setValue } from "../src/workflows/TeamValues.ts"
import * as ControlPlane from "./controlPlane.ts"

const { otherTeam, team, unique } = ControlPlane

layer(ControlPlane.layer, { excludeTestServices: true })("Values of a team", (it) => {
  it.effect("Values are stored by key and belong to one team", () =>
    Effect.gen(function* () {
      const key = unique("key")
      expect(yield* readValue(team, key)).toBe(null)
      expect(yield* setValue(team, key, { a: [1, "\u0000"] })).toBe("set")
      expect(yield* setValue(otherTeam, key, 7)).toBe("set")
      expect(yield* readValue(team, key)).toEqual({ value: { a: [1, "\u0000"] } })
      expect([yield* deleteValue(team, key), yield* deleteValue(team, key)]).toEqual([true, false])
      expect(yield* readValue(otherTeam, key)).toEqual({ value: 7 })
    })
  )

  it.effect("Concurrent increments count exactly once for each step", () =>
    Effect.gen(function* () {
      const key = unique("count")
      const steps = Array.from({ length: 20 }, () => unique("wse"))
      const sums = yield* Effect.forEach([...steps, ...steps], (step) => increment(team, key, 0.5, step), {
        concurrency: "unbounded"
      })
      expect(yield* readValue(team, key)).toEqual({ value: 10 })
      for (const [i] of steps.entries()) expect(sums[i]).toBe(sums[i + steps.length])
      expect(new Set(sums).size).toBe(20)
    })
  )

  it.effect("Writers that wait for each other leave database connections for others", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const key = unique("busy")
      const [isHeld, isEnough] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const lock = sql`select pg_advisory_xact_lock(hashtextextended(${`team_values/${team}`}, 0))`
      const holding = Effect.andThen(lock, Deferred.succeed(isHeld, undefined))
      const holder = yield* Effect.forkChild(sql.withTransaction(Effect.andThen(holding, Deferred.await(isEnough))), {
        startImmediately: true
      })
      yield* Deferred.await(isHeld)
      const values = Array.from({ length: 100 }, (_, i) => i)
      const writing = Effect.forEach(values, (value) => setValue(team, key, value), { concurrency: "unbounded" })
      const writers = yield* Effect.forkChild(writing, { startImmediately: true })
      // It asks for a connection behind all of them.
      yield* sql`select 1`
      yield* Deferred.succeed(isEnough, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.join(writers)
      expect(yield* readValue(team, key)).not.toBe(null)
    })
  )

  it.effect("Numbers beyond JavaScript's precision are incremented digit by digit", () =>
    Effect.gen(function* () {
      const key = unique("exact")
      const by = (text: string) => readNumber(text)
      expect(yield* setValue(team, key, by("9007199254740991") as never)).toBe("set")
      const steps = [unique("wse"), unique("wse"), unique("wse")]
      const sums: Array<string> = []
      for (const [i, text] of ["1", "1", "12345678901234567891.5"].entries()) {
        sums.push(String(yield* increment(team, key, by(text), steps[i]!)))
        // The same step again, as after a crash.
        expect(String(yield* increment(team, key, by(text), steps[i]!))).toBe(sums[i])
      }
      expect(sums).toEqual(["9007199254740992", "9007199254740993", "12354686100489308884.5"])
      expect(writeJson(yield* readValue(team, key))).toBe('{"value":12354686100489308884.5}')
      expect(yield* increment(team, key, by("1e9999"), unique("wse"))).toBe("not_a_number")
      expect(writeJson(yield* readValue(team, key))).toBe('{"value":12354686100489308884.5}')
    })
  )

  it.effect("A value that is not a number is not incremented and stays", () =>
    Effect.gen(function* () {
      const key = unique("text")
      yield* setValue(team, key, "one")
      expect(yield* increment(team, key, 1, unique("wse"))).toBe("not_a_number")
      expect(yield* readValue(team, key)).toEqual({ value: "one" })
    })
  )

  it.effect("The number of a team's values is limited, and existing ones can still be changed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into team_values (team_id, key, value, updated_at)
        select ${otherTeam}, 'filled/' || n, '0', now() from generate_series(1, 10000) as n on conflict do nothing`
      expect(yield* setValue(otherTeam, unique("new"), 1)).toBe("full")
      expect(yield* increment(otherTeam, unique("new"), 1, unique("wse"))).toBe("full")
      expect(yield* setValue(otherTeam, "filled/1", 1)).toBe("set")
      yield* sql`delete from team_values where team_id = ${otherTeam} and key like 'filled/%'`
    })
  )

  it.effect("The result of a step is that of its first attempt", () =>
    Effect.gen(function* () {
      const step = unique("wse")
      expect(yield* rememberedResult(team, step, "req_1")).toEqual({ result: "req_1", isNew: true })
      expect(yield* rememberedResult(team, step, "req_2")).toEqual({ result: "req_1", isNew: false })
    })
  )
})
