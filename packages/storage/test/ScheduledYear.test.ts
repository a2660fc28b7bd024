import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import type { MissedRule } from "@tidegate/model/WorkflowTriggers"
import { localYear } from "../../workflows/test/triggers/LocalYear.ts"
import { dice } from "../../workflows/test/Play.ts"
import { beginScheduled } from "../src/workflows/Schedules.ts"
import * as ControlPlane from "./controlPlane.ts"

/**
 * A year of schedules in a real database. Two processes look, whose clocks jump by up to two hours; some looks die before their
 * commit, and some meet. The times that are due are worked out minute by minute (`LocalYear.ts`).
 */

const schedules: ReadonlyArray<{ readonly cron: string; readonly timezone: string; readonly missed: MissedRule }> = [
  { cron: "0 */6 * * *", timezone: "Europe/Berlin", missed: "all" },
  { cron: "30 2 * * *", timezone: "Europe/Berlin", missed: "all" },
  { cron: "15 1,2 * * *", timezone: "America/New_York", missed: "once" },
  { cron: "*/10 * * * *", timezone: "Australia/Lord_Howe", missed: "skip" }
]

const year = 2026
const [hour, jump] = [3_600_000, 7_200_000]
const brokenOff = new SqlError.SqlError({
  reason: new SqlError.UnknownError({ message: "the process has died", cause: undefined })
})

layer(ControlPlane.layer, { excludeTestServices: true })("Scheduled runs", (it) => {
  it.effect(
    "Over a year with restarts and jumping clocks, each due time begins one run, or what the rule for missed times says",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const id = "wfl_scheduled"
        const { from, until } = localYear("UTC", year)
        yield* sql`insert into workflows (id, team_id, name, status, version, steps, edges, definition_hash, created_at, updated_at)
        values (${id}, ${ControlPlane.team}, 'flow', 'active', 1, '[]', '[]', '', now(), now())`
        const world = schedules.map(({ cron, missed, timezone }) => ({
          cron,
          missed,
          due: localYear(timezone, year).due(cron),
          /** The first due time that no look has found. */
          next: 0,
          expected: [] as Array<number>
        }))
        for (const [n, { cron, missed, timezone }] of schedules.entries()) {
          yield* sql`insert into workflow_schedules (workflow_id, team_id, cron, timezone, missed, active, due_at)
          values (${id}, ${ControlPlane.team}, ${cron}, ${timezone}, ${missed}, true, ${new Date(world[n]!.due[0]!)})`
        }

        const roll = dice(2026)
        const look = (now: number) => beginScheduled(now, () => 1)
        /** What a look that is committed has to begin. */
        const found = (now: number): void => {
          for (const one of world) {
            const past: Array<number> = []
            for (; one.next < one.due.length && one.due[one.next]! <= now; one.next++) past.push(one.due[one.next]!)
            const latest = one.missed === "all" ? past : past.slice(-1)
            one.expected.push(...latest.filter((at) => one.missed !== "skip" || now - at <= 60_000))
          }
        }
        const ahead = [0, 0]
        let looks = 0
        // The last days are left out: their next times are in the next year.
        for (let at = from; at < until - 4 * 24 * hour; at += roll() < 0.5 ? roll() * 2 * hour : roll() * 30 * hour) {
          const process = roll() < 0.5 ? 0 : 1
          if (roll() < 0.2) ahead[process] = Math.floor((2 * roll() - 1) * jump)
          // Schedules are due at whole minutes, and a process looks soon after.
          const now = Math.floor((at + ahead[process]!) / 60_000) * 60_000 + 500
          if (roll() < 0.2) yield* Effect.flip(sql.withTransaction(Effect.andThen(look(now), Effect.fail(brokenOff))))
          if (roll() < 0.2) yield* Effect.all([look(now), look(now)], { concurrency: "unbounded", discard: true })
          else yield* look(now)
          found(now)
          looks++
        }

        const bodies = yield* sql<{
          body: Uint8Array
        }>`select body from workflow_inputs where team_id = ${ControlPlane.team}`
        const begun = bodies.map(
          ({ body }) => JSON.parse(Buffer.from(body).toString()) as { cron: string; scheduled_at: string }
        )
        for (const { cron, expected } of world) {
          const times = begun.flatMap((one) => (one.cron === cron ? [one.scheduled_at] : [])).toSorted()
          expect([cron, times]).toEqual([cron, expected.map((at) => new Date(at).toISOString())])
          expect(times.length).toBeGreaterThan(10)
        }
        expect(looks).toBeGreaterThan(500)
        expect(begun.length).toBeGreaterThan(1_800)
      })
  )
})
