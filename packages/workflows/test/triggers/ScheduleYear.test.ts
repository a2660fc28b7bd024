import { describe, expect, it } from "vitest"
import { Result } from "effect"
import { compileSchedule } from "../../src/triggers/Schedule.ts"
import { localYear } from "./LocalYear.ts"

/** Schedules over a year of local time, beside times that were worked out by rendering each minute of it (`LocalYear.ts`). */

const crons = [
  "0 9 * * 1-5",
  "30 2 * * *",
  "30 0 * * *",
  "15 1,2,3 * * *",
  "10-40/15 2-3 * * 0",
  "0 */2 * 3,4,9,10,11 0,5",
  "5 0 1 * *",
  "0 0 31 * *",
  "0 0 29 2 *",
  "0 12 13 * 5",
  "59 23 28-31 * *",
  "7 3 */10 * *",
  "20 4 * 3,10 0,6",
  "45 2 25-31 3,10 *",
  "*/20 1-3 * 3,4,9,10,11 0,5",
  "30 23 * * *"
]

const places = [
  ["UTC", 2028],
  ["Europe/Berlin", 2026],
  ["America/New_York", 2026],
  // The clock moves by half an hour.
  ["Australia/Lord_Howe", 2026],
  ["Asia/Kathmandu", 2026],
  // Summer time begins at midnight.
  ["America/Sao_Paulo", 2018],
  ["America/Santiago", 2026],
  // Summer time is suspended for a month.
  ["Africa/Casablanca", 2026],
  // Summer time was abolished in this year.
  ["Asia/Amman", 2022],
  // A day was left out.
  ["Pacific/Apia", 2011]
] as const

const shown = (times: ReadonlyArray<number>) => times.map((at) => new Date(at).toISOString().slice(0, 16))

describe("A year of schedules", () => {
  it.each(places)(
    "Every expression in %s is due in %i at the times that its minutes give, and at no others",
    (zone, year) => {
      const { due, from, until } = localYear(zone, year)
      for (const cron of crons) {
        const { after } = Result.getOrThrow(compileSchedule(cron, zone))
        const found: Array<number> = []
        for (let at = after(from - 1); at !== null && at < until; at = after(at)) found.push(at)
        expect([cron, shown(found)]).toEqual([cron, shown(due(cron))])
      }
    }
  )
})
