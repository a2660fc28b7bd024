import { casual } from "chrono-node/en"
import { describe, expect, it } from "vitest"
import { phrases, refused } from "./cases/Phrases.ts"
import { outcomeOf } from "./Run.ts"

const anchor = "2026-01-15T12:30:00Z"

const saidOf = (input: string) =>
  outcomeOf("date.format", { input }, { to_format: "YYYY-MM-DDTHH:mm" }, { anchor: Date.parse(anchor) })

describe("Date phrase", () => {
  it.each(phrases)("Date phrase %j means %s", (input, result) => {
    expect(saidOf(input).output).toEqual({ result })
  })

  it.each(refused)("Date phrase %j is refused and not read as another date", (input) => {
    expect(saidOf(input)).toEqual({ failed: "FORMATTER_DATE_UNPARSEABLE" })
  })
})

describe("Date phrase at edges of the calendar and the clock", () => {
  const [berlin, newYork, lordHowe] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
  const spring = "2026-03-28T20:00:00Z"
  const autumn = "2026-10-24T12:00:00Z"
  it.each([
    [spring, berlin, "in 24 hours", "2026-03-29T22:00+0200"],
    [spring, berlin, "in 6 hours", "2026-03-29T04:00+0200"],
    [spring, berlin, "tomorrow at 2:30", "2026-03-29T03:30+0200"],
    [spring, berlin, "2 days and 1 hour from now", "2026-03-30T22:00+0200"],
    [spring, berlin, "12 hours before tomorrow at 10:00", "2026-03-28T21:00+0100"],
    [spring, berlin, "1 hour before tomorrow at 3:00", "2026-03-29T01:00+0100"],
    [spring, berlin, "tomorrow at 10:00 UTC", "2026-03-29T12:00+0200"],
    ["2026-03-28T23:30:00Z", berlin, "today", "2026-03-29T00:00+0100"],
    ["2026-03-28T23:30:00Z", newYork, "today", "2026-03-28T00:00-0400"],
    [autumn, berlin, "tomorrow at 2:30", "2026-10-25T02:30+0200"],
    [autumn, berlin, "tomorrow at 2:30 CET", "2026-10-25T02:30+0100"],
    [autumn, berlin, "in 24 hours", "2026-10-25T13:00+0100"],
    ["2026-11-01T05:30:00Z", newYork, "now", "2026-11-01T01:30-0400"],
    ["2026-11-01T05:30:00Z", newYork, "in 1 hour", "2026-11-01T01:30-0500"],
    ["2026-11-01T06:30:00Z", newYork, "1 hour ago", "2026-11-01T01:30-0400"],
    ["2026-03-08T06:30:00Z", newYork, "in an hour", "2026-03-08T03:30-0400"],
    ["2026-04-04T12:00:00Z", lordHowe, "in 24 hours", "2026-04-05T22:30+1030"],
    ["2026-01-31T12:00:00Z", "UTC", "in 1 month", "2026-02-28T00:00+0000"],
    ["2026-03-31T12:00:00Z", "UTC", "last month", "2026-02-28T00:00+0000"],
    ["2024-02-29T12:00:00Z", "UTC", "a year ago", "2023-02-28T00:00+0000"],
    ["2026-12-31T23:59:00Z", "UTC", "3rd of next month", "2027-01-03T00:00+0000"],
    ["2026-12-31T23:59:00Z", "UTC", "in 2 minutes", "2027-01-01T00:01+0000"],
    ["2026-01-17T12:00:00Z", "UTC", "next business day", "2026-01-19T00:00+0000"],
    ["2026-01-18T12:00:00Z", "UTC", "next monday", "2026-01-19T00:00+0000"],
    ["2026-01-18T12:00:00Z", "UTC", "last monday", "2026-01-12T00:00+0000"]
  ])("Date phrase read at %s in %s: %j means %s", (at, zone, input, result) => {
    const inputs = { input, from_timezone: zone, to_timezone: zone }
    const { output } = outcomeOf("date.format", inputs, { to_format: "YYYY-MM-DDTHH:mmZ" }, { anchor: Date.parse(at) })
    expect(output).toEqual({ result })
  })

  it.each([
    ["9999-12-31T12:00:00Z", "tomorrow", "FORMATTER_DATE_OUT_OF_RANGE"],
    ["2026-01-15T12:00:00Z", "3000 years ago", "FORMATTER_DATE_OUT_OF_RANGE"],
    ["2026-01-15T12:00:00Z", "in 99999 decades", "FORMATTER_DATE_UNPARSEABLE"],
    ["2026-01-31T12:00:00Z", "30th of next month", "FORMATTER_DATE_UNPARSEABLE"]
  ])("Date phrase read at %s is refused: %j", (at, input, failed) => {
    expect(outcomeOf("date.format", { input }, { to_format: "YYYY" }, { anchor: Date.parse(at) })).toEqual({ failed })
  })
})

/**
 * Beside chrono-node, which reads the same: days and times of all kinds in both orders. It is wrong about an offset behind a time that stands before its day, about
 * `midnight` behind a duration, and about times without a number before a day.
 */
it("Date phrase has the same meaning as in another library, in any order and inside a sentence", () => {
  const days =
    "today|tomorrow|yesterday|next friday|last monday|this saturday|friday|on sunday|20 Feb 2026|the 3rd of March|3 days ago|in 2 weeks|2 months from now|next month|12/25/2026|Sat, March 7 2026|mon 19 jan"
  const times = "at 5pm|5:30pm|at 17:00|17:45:30|at noon|at 12am|at 12:15 pm|at 8 in the morning"
  const reference = { instant: new Date(anchor), timezone: 0 }
  let compared = 0
  for (const day of days.split("|")) {
    for (const time of times.split("|")) {
      for (const zone of ["", " UTC", " EST", " PDT"]) {
        for (const input of [
          `${day} ${time}${zone}`,
          `${time}${zone} ${day}`,
          `Send it ${day} ${time}${zone}, please.`
        ]) {
          const [found, ...others] = casual.parse(input, reference)
          const { failed, output } = saidOf(input)
          if (failed !== undefined || found === undefined || others.length > 0) continue
          compared++
          expect(output?.["result"], input).toBe(found.date().toISOString().slice(0, 16))
        }
      }
    }
  }
  expect(compared).toBeGreaterThan(1400)
})

it("Date phrases inside a thousand sentences of one list are read within the time limit", () => {
  const input = Array.from(
    { length: 1000 },
    () => "Please call me back tomorrow at 5pm about the order that I have sent you"
  )
  expect(outcomeOf("date.format", { input }, { to_format: "YYYY" }).output!["result"]).toHaveLength(1000)
})
