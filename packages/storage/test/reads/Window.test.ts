import { expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { describe } from "vitest"
import { idTime, newId, prefixes } from "@tidegate/model/Ids"
import { parseTime } from "@tidegate/model/Timestamp"
import { idRange, parseWindow } from "../../src/reads/Window.ts"

const now = Date.UTC(2026, 0, 31, 12)
const hour = 3_600_000

describe("Times", () => {
  it.each<readonly [string, number | null]>([
    ["now", now],
    ["now-0s", now],
    ["now-90s", now - 90_000],
    ["now-15m", now - 900_000],
    ["now-1h", now - hour],
    ["now-7d", now - 7 * 24 * hour],
    ["now-999999999d", 0],
    ["2026-01-01", Date.UTC(2026, 0, 1)],
    ["2026-01-01T10:30", Date.UTC(2026, 0, 1, 10, 30)],
    ["2026-01-01T10:30:15.123456Z", Date.UTC(2026, 0, 1, 10, 30, 15, 123)],
    ["2026-01-01t10:30:15z", Date.UTC(2026, 0, 1, 10, 30, 15)],
    ["2026-01-01T10:30:15+02:00", Date.UTC(2026, 0, 1, 8, 30, 15)],
    ["2026-01-01T10:30:15-0130", Date.UTC(2026, 0, 1, 12, 0, 15)],
    ["2026-01-01T10:30:15 02:00", Date.UTC(2026, 0, 1, 8, 30, 15)],
    ["1950-01-01", 0],
    ["9999-12-31", Date.UTC(9999, 11, 31)],
    ["2026-02-30", null],
    ["2026-01-01T25:00", null],
    ["2026-13-01", null],
    ["+12026-01-01", null],
    ["now+1h", null],
    ["now-1w", null],
    ["NOW", null],
    ["1767225600000", null],
    ["", null],
    ["yesterday", null]
  ])("The time '%s' is parsed or rejected", (text, expected) => {
    expect(parseTime(text, now)).toBe(expected)
  })

  it.prop(
    "A written time is read back as the same moment",
    [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 253_402_300_799_999 }))],
    ([at]) => {
      expect(parseTime(new Date(at).toISOString(), now)).toBe(at)
    }
  )
})

describe("Time windows", () => {
  it("A window covers the last 24 hours, or those before its end, by default", () => {
    expect(parseWindow({}, now)).toEqual(Result.succeed({ from: now - 24 * hour, to: now }))
    expect(parseWindow({ to: "now-1h" }, now)).toEqual(Result.succeed({ from: now - 25 * hour, to: now - hour }))
    expect(parseWindow({ from: "now-2h" }, now)).toEqual(Result.succeed({ from: now - 2 * hour, to: now }))
  })

  it.prop(
    "A window contains the ids of its time, both ends included",
    [
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2e12 })),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1e6 }))
    ],
    ([from, length]) => {
      const { lower, upper } = idRange(prefixes.event, { from, to: from + length })
      for (const at of [from - 1, from, from + length, from + length + 1]) {
        const id = newId(prefixes.event, at)
        expect(idTime(id)).toBe(at)
        expect(id >= lower && id < upper).toBe(at >= from && at <= from + length)
      }
    }
  )
})
