import { execFileSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import { outcomeOf } from "./Run.ts"

const iso = { to_format: "YYYY-MM-DDTHH:mm" }

describe("Date in words", () => {
  it.each([
    ["2026-01-15T13:30:00Z", "tomorrow", "2026-01-16T00:00", true],
    ["2026-01-15T12:30:00Z", "tomorrow", "2026-01-16T00:00", true],
    ["2026-01-15T13:30:00Z", "tomorrow at 5pm", "2026-01-16T17:00", false],
    ["2026-01-15T13:30:00Z", "tonight", "2026-01-15T22:00", false],
    ["2026-01-15T13:30:00Z", "tomorrow at noon", "2026-01-16T12:00", false],
    ["2026-01-15T13:30:00Z", "in 2 hours", "2026-01-15T15:30", false]
  ])("Date in words read at %s: %s means %s", (anchor, input, result, isAssumed) => {
    const outcome = outcomeOf("date.format", { input }, iso, { anchor: Date.parse(anchor) })
    expect(outcome.output).toEqual({ result })
    expect(outcome.warnings?.includes("DATE_TIME_ASSUMED")).toBe(isAssumed)
  })

  const said = (input: string, anchor = "2026-01-15T12:30:00Z") =>
    outcomeOf("date.format", { input }, { to_format: "YYYY-MM-DDTHH:mm[Z]" }, { anchor: Date.parse(anchor) })

  it.each([
    ["3 business days from now", "2026-01-20T00:00Z"],
    ["in 3 weekdays", "2026-01-20T00:00Z"],
    ["two business days ago", "2026-01-13T00:00Z"],
    ["3 business days after Jan 5", "2026-01-08T00:00Z"],
    ["5 working days before tomorrow", "2026-01-09T00:00Z"],
    ["day after tomorrow", "2026-01-17T00:00Z"],
    ["the day after tomorrow at noon", "2026-01-17T12:00Z"],
    ["day before yesterday", "2026-01-13T00:00Z"],
    ["3rd of next month", "2026-02-03T00:00Z"],
    ["5pm on the 3rd of next month", "2026-02-03T17:00Z"],
    ["25th of this month", "2026-01-25T00:00Z"],
    ["last day of next month", "2026-02-28T00:00Z"],
    ["first monday of next month", "2026-02-02T00:00Z"],
    ["last monday of march", "2026-03-30T00:00Z"],
    ["tomorrow at 5pm Europe/Berlin", "2026-01-16T16:00Z"],
    ["tomorrow at 17:00 America/New_York", "2026-01-16T22:00Z"],
    ["tomorrow 5pm EST", "2026-01-16T22:00Z"],
    ["tomorrow 5pm GMT+2", "2026-01-16T15:00Z"],
    ["tomorrow at 17:00 Z", "2026-01-16T17:00Z"],
    ["Dec 25 at 5pm", "2026-12-25T17:00Z"],
    ["12/25", "2026-12-25T00:00Z"],
    ["2026-01-15T24:00:00Z", "2026-01-16T00:00Z"],
    ["meeting tomorrow about order 17", "2026-01-16T00:00Z"]
  ])("Date in words %s means %s, relative to the anchor", (input, result) => {
    expect(said(input).output).toEqual({ result })
  })

  it.each([
    "3 days before christmas",
    "half past 3 tomorrow",
    "tomorrow at 25:00",
    "tomorrow morning 9",
    "tomorrow at 5pm XYZ",
    "mid March",
    "from Jan 3 to Jan 5",
    "Jan 3, or rather Jan 5",
    "Sunday after next",
    "31st of february",
    "2/30",
    "T24:00:00Z",
    "2026-01-15T24:00:01Z",
    "tomorrow 5pm EST Europe/Berlin"
  ])("Date in words %s is refused and not read as another date", (input) => {
    expect(said(input)).toEqual({ failed: "FORMATTER_DATE_UNPARSEABLE" })
  })

  it("Dates in words in a list of a thousand are read within the time limit", () => {
    const input = Array.from({ length: 1000 }, (_, at) => ["tomorrow at 5pm", "3 business days from now"][at % 2])
    const { output } = outcomeOf("date.format", { input }, iso)
    expect(output!["result"]).toHaveLength(1000)
  })

  it.each(["UTC", "Europe/Berlin", "America/New_York"])(
    "Date in words has the same meaning on a machine in the time zone %s",
    (TZ) => {
      const script = `
      import { outcomeOf } from ${JSON.stringify(new URL("Run.ts", import.meta.url).href)}
      const anchor = Date.parse("2026-03-28T02:30:00Z")
      const of = (input) => outcomeOf("date.format", { input }, ${JSON.stringify(iso)}, { anchor }).output.result
      console.log(JSON.stringify([of("in 24 hours"), of("tomorrow"), new Date(anchor).getTimezoneOffset(), process.env.TZ]))`
      const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
        env: { ...process.env, NODE_OPTIONS: "", TZ },
        encoding: "utf8"
      })
      const offset = { UTC: 0, "Europe/Berlin": -60, "America/New_York": 240 }[TZ]
      expect(JSON.parse(said)).toEqual(["2026-03-29T02:30", "2026-03-29T00:00", offset, TZ])
    },
    30_000
  )
})
