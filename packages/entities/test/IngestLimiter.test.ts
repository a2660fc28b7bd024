import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import type { SourceFields } from "@tidegate/resources/Source"
import { Sources } from "@tidegate/storage/control/Sources"
import { countLimited } from "@tidegate/storage/delivery/SourcePeriods"
import { readSourceCounts } from "@tidegate/storage/reads/SourceCounts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { makeIngestLimiter } from "../src/limits/IngestLimiter.ts"

const { createSource, sourceFields, team: team_id } = ControlPlane

const limited = (rate_limit: number | null, rate_limit_period: SourceFields["config"]["rate_limit_period"] = "hour") =>
  createSource({ config: { ...sourceFields().config, rate_limit, rate_limit_period } })

const report = { team_id, version: 1, door: "door", used: 0, told: 0, reach: null, wanted: 10 }

/** The limiter of a source, and its end: an owner that leaves in order, or none of it. */
const owner = Effect.fnUntraced(function* (id: string) {
  const scope = yield* Scope.make()
  const limiter = yield* Scope.provide(makeIngestLimiter(id), scope)
  return { ...limiter, leave: Scope.close(scope, Exit.void) }
})

const noted = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    leased: number
  }>`select leased::float8 as leased from source_periods where source_id = ${id}`
  return row?.leased ?? null
})

const world = Layer.provide(ControlPlane.layer, Layer.effectDiscard(TestClock.setTime(Date.now())))

layer(world)("Ingest limiter", (it) => {
  it.effect("The ingest limiter stores a leased budget before an ingress process gets it", () =>
    Effect.gen(function* () {
      const { id } = yield* limited(80)
      const { lease } = yield* owner(id)
      let used = 0
      let told = 0
      for (;;) {
        const given = yield* lease({ ...report, used, told, reach: 0 })
        if (given === null || given.budget === 0) break
        expect(given.budget).toBeLessThanOrEqual(10)
        told = used
        used += given.budget
        expect(yield* noted(id)).toBeGreaterThanOrEqual(used)
      }
      expect(used).toBe(80)
    })
  )

  it.effect("A new owner of an ingest limit continues after a killed one, which can store no more", () =>
    Effect.gen(function* () {
      const { id } = yield* limited(80)
      const first = yield* owner(id)
      for (let used = 5; used <= 40; used += 5) yield* first.lease({ ...report, used, told: used - 5, wanted: 5 })
      const before = (yield* noted(id)) ?? 0
      const second = yield* owner(id)
      yield* second.lease({ ...report, door: "other" })
      const { current } = yield* second.status
      expect(current?.leased).toBeGreaterThanOrEqual(before)
      // The one before goes on from what it had noted, and not beyond.
      let used = 40
      const failed = yield* Effect.flip(
        Effect.forever(Effect.suspend(() => first.lease({ ...report, used: (used += 5), told: used - 5, wanted: 5 })))
      )
      expect(failed).toMatchObject({ code: "QUEUE_UNAVAILABLE" })
      expect(used).toBeLessThanOrEqual(before + 10)
    })
  )

  it.effect("The unused budget of an ingest limit goes to the next owner", () =>
    Effect.gen(function* () {
      const { id } = yield* limited(3_200)
      const first = yield* owner(id)
      yield* first.lease({ ...report, wanted: 5 })
      expect(yield* noted(id)).toBe(100)
      yield* first.leave
      expect(yield* noted(id)).toBe(50)
    })
  )

  it.effect("The ingest limit starts again with a new or a changed period", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const { config, id } = yield* limited(8)
      const { changed, lease } = yield* owner(id)
      let given = yield* lease(report)
      for (let used = 1; given?.budget !== 0; used++) given = yield* lease({ ...report, used, told: used - 1 })
      yield* sql`update source_periods set started_at = started_at - interval '1 hour', ends_at = ends_at - interval '1 hour'
        where source_id = ${id}`
      yield* TestClock.adjust("1 hour")
      expect((yield* lease({ ...report, used: 8, told: 8 }))?.budget).toBe(1)
      const second = { ...config, rate_limit: 8, rate_limit_period: "second" as const }
      const { auth: _, ...stored } = second
      yield* sources.update(team_id, id, (fields) => Result.succeed({ ...fields, config: stored, auth: "unchanged" }))
      changed()
      expect((yield* lease({ ...report, used: 8, told: 8 }))?.remaining_ms).toBeLessThanOrEqual(1_000)
    })
  )

  it.effect("A source without a limit, or of another team, gets no budget", () =>
    Effect.gen(function* () {
      const open = yield* owner((yield* limited(null)).id)
      expect(yield* open.lease(report)).toBe(null)
      expect(yield* open.status).toMatchObject({ limit: null, current: null })
      const closed = yield* owner((yield* limited(5)).id)
      expect(yield* closed.lease({ ...report, team_id: ControlPlane.otherTeam })).toBe(null)
      expect(yield* (yield* owner("src_unknown")).lease(report)).toBe(null)
    })
  )

  it.effect("Requests over the ingest limit are counted", () =>
    Effect.gen(function* () {
      const { id } = yield* limited(5)
      const minute = Date.now() - (Date.now() % 60_000)
      const row = { source_id: id, team_id, minute, count: 3 }
      yield* countLimited([row, { ...row, minute: minute - 60_000 }])
      yield* countLimited([{ ...row, count: 4 }])
      const counts = yield* readSourceCounts(id, Date.now())
      expect(counts).toEqual({ accepted: 0, rejected: 0, limited: 10, lastRequestAt: null })
    })
  )
})
