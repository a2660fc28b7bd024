import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type EventState, eventStatus, eventStatusSql } from "../src/delivery/EventStatus.ts"
import * as Postgres from "../../../test/postgres.ts"

const now = new Date("2026-01-02T00:00:00.000Z")

interface Case {
  readonly state: EventState["state"]
  readonly created_at: Date
  readonly due_at: Date | null
  readonly paused_at: Date | null
  readonly c_disabled: Date | null
  readonly c_deleted: Date | null
  readonly c_before: Date | null
  readonly d_disabled: Date | null
  readonly d_deleted: Date | null
  readonly d_before: Date | null
  readonly status: string
}

layer(Postgres.layer)("Event status", (it) => {
  it.effect("The event status in SQL and in TypeScript is the same for every combination of inputs", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const cases = yield* sql<Case>`
        with moments (at) as (
          values (null), (${now}::timestamptz - interval '2 hours'), (${now}::timestamptz - interval '1 hour'),
            (${now}::timestamptz), (${now}::timestamptz + interval '1 ms')
        ), flags (at) as (values (null), (${now}::timestamptz))
        , rows as (
          select state, ${now}::timestamptz - interval '1 hour' as created_at, due.at as due_at, paused.at as paused_at,
            c_disabled.at as c_disabled, c_deleted.at as c_deleted, c_before.at as c_before,
            d_disabled.at as d_disabled, d_deleted.at as d_deleted, d_before.at as d_before
          from (values ('PENDING'), ('SUCCESSFUL'), ('FAILED'), ('CANCELLED')) as states (state), moments due, flags paused,
            flags c_disabled, flags c_deleted, moments c_before, flags d_disabled, flags d_deleted, moments d_before
        )
        select rows.*, status from rows,
          lateral (select state, created_at, due_at) e,
          lateral (select c_disabled as disabled_at, c_deleted as deleted_at, c_before as cancel_before, paused_at) c,
          lateral (select d_disabled as disabled_at, d_deleted as deleted_at, d_before as cancel_before) d,
          lateral (select ${eventStatusSql(sql, now)} as status) s`
      expect(cases.length).toBe(4 * 5 ** 3 * 2 ** 5)
      const seen = new Set<string>()
      for (const row of cases) {
        const connection = {
          disabled_at: row.c_disabled,
          deleted_at: row.c_deleted,
          cancel_before: row.c_before,
          paused_at: row.paused_at
        }
        const destination = { disabled_at: row.d_disabled, deleted_at: row.d_deleted, cancel_before: row.d_before }
        expect(eventStatus(row, connection, destination, now), JSON.stringify(row)).toBe(row.status)
        seen.add(row.status)
      }
      expect([...seen].sort()).toStrictEqual(["CANCELLED", "FAILED", "HOLD", "QUEUED", "SCHEDULED", "SUCCESSFUL"])
    })
  )

  it.effect("The status of a pending event depends on its connection, its destination and the time", () =>
    Effect.sync(() => {
      const hour = 3_600_000
      const event = { state: "PENDING" as const, created_at: new Date(now.getTime() - hour), due_at: now }
      const open = { disabled_at: null, deleted_at: null, cancel_before: null, paused_at: null }
      const status = (change: object, destination: object = {}, at = now) =>
        eventStatus(event, { ...open, ...change }, { ...open, ...destination }, at)
      expect(status({})).toBe("QUEUED")
      expect(status({}, {}, new Date(now.getTime() - 1))).toBe("SCHEDULED")
      expect(status({ paused_at: now }, {}, new Date(0))).toBe("HOLD")
      expect(status({ paused_at: now, disabled_at: now })).toBe("CANCELLED")
      expect(status({ cancel_before: event.created_at })).toBe("CANCELLED")
      expect(status({ cancel_before: new Date(event.created_at.getTime() - 1) })).toBe("QUEUED")
      expect(status({}, { disabled_at: now })).toBe("CANCELLED")
      expect(status({}, { deleted_at: now })).toBe("CANCELLED")
      expect(eventStatus({ ...event, state: "FAILED" }, { ...open, deleted_at: now }, open, now)).toBe("FAILED")
    })
  )
})
