import { describe, expect, it } from "vitest"
import { Result } from "effect"
import { compileSchedule, type Schedule, ticksOf } from "../../src/triggers/Schedule.ts"

const scheduleOf = (cron: string, timezone: string): Schedule => Result.getOrThrow(compileSchedule(cron, timezone))

const occurrences = (schedule: Schedule, from: number, until: number): Array<number> => {
  const found: Array<number> = []
  for (let at = schedule.after(from); at !== null && at < until; at = schedule.after(at)) found.push(at)
  return found
}

const shown = (found: ReadonlyArray<number>) => found.map((at) => new Date(at).toISOString().slice(0, 16))
const at = (text: string) => Date.parse(text)

describe("Schedule of a workflow", () => {
  it("A local time that summer time leaves out occurs an hour later on that day", () => {
    const schedule = scheduleOf("30 2 * * *", "Europe/Berlin")
    expect(shown(occurrences(schedule, at("2026-03-28T00:00Z"), at("2026-03-31T00:00Z")))).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:30",
      "2026-03-30T00:30"
    ])
  })

  it("A local time that occurs twice is one occurrence, the first", () => {
    const schedule = scheduleOf("30 2 * * *", "Europe/Berlin")
    expect(shown(occurrences(schedule, at("2026-10-24T12:00Z"), at("2026-10-27T00:00Z")))).toEqual([
      "2026-10-25T00:30",
      "2026-10-26T01:30"
    ])
  })

  it.each([
    ["0 * * * *", "Europe/Berlin", 60, "2026-01-01T00:00Z", "2027-01-01T00:00Z"],
    ["*/15 * * * *", "Europe/Berlin", 15, "2026-10-20T00:00Z", "2026-10-30T00:00Z"],
    ["*/15 * * * *", "Europe/Berlin", 15, "2026-03-25T00:00Z", "2026-04-02T00:00Z"],
    ["*/30 * * * *", "Australia/Lord_Howe", 30, "2026-03-25T00:00Z", "2026-10-30T00:00Z"],
    ["0 * * * *", "America/Santiago", 60, "2026-01-01T00:00Z", "2027-01-01T00:00Z"]
  ] as const)("%s in %s keeps its distance of %i minutes from %s to %s", (cron, timezone, minutes, from, until) => {
    const schedule = scheduleOf(cron, timezone)
    const found = occurrences(schedule, at(from), at(until))
    const distances = new Set(found.slice(1).map((next, i) => (next - found[i]!) / 60_000))
    // In Lord Howe the clock moves by half an hour.
    expect([...distances]).toEqual([minutes])
  })

  it.each(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])(
    "A daily schedule in %s occurs once on each of the year's local days",
    (timezone) => {
      const local = new Intl.DateTimeFormat("en-CA", { timeZone: timezone })
      for (const cron of ["0 0 * * *", "30 2 * * *", "15 1 * * *"]) {
        const schedule = scheduleOf(cron, timezone)
        const days = occurrences(schedule, at("2026-01-02T00:00Z"), at("2026-12-31T00:00Z")).map((one) =>
          local.format(one)
        )
        expect(new Set(days).size).toBe(days.length)
        expect(days.length).toBeGreaterThanOrEqual(362)
      }
    }
  )

  it.each([
    ["0 9 * *", "UTC"],
    ["0 9 * * * *", "UTC"],
    ["61 * * * *", "UTC"],
    ["0 9 * * 1", "Mars/Olympus"],
    [`0 9 * * ${"1,".repeat(60)}1`, "UTC"]
  ])("%s in %s is refused", (cron, timezone) => {
    expect(Result.isFailure(compileSchedule(cron, timezone))).toBe(true)
  })

  it("A date that no year has never occurs", () => {
    expect(scheduleOf("0 0 30 2 *", "UTC").after(at("2026-01-01T00:00Z"))).toBe(null)
  })

  it("Each rule for missed occurrences begins the runs that it states", () => {
    const hourly = scheduleOf("0 * * * *", "UTC")
    const due = at("2026-05-01T00:00Z")
    const now = at("2026-05-01T05:30Z")
    const next = at("2026-05-01T06:00Z")
    expect(ticksOf(hourly, "skip", due, now)).toEqual({ begin: [], next })
    expect(ticksOf(hourly, "once", due, now)).toEqual({ begin: [at("2026-05-01T05:00Z")], next })
    expect(ticksOf(hourly, "all", due, now).begin).toHaveLength(6)
    expect(ticksOf(hourly, "skip", due, due + 5_000)).toEqual({ begin: [due], next: due + 3_600_000 })
    expect(ticksOf(hourly, "once", due, due - 1)).toEqual({ begin: [], next: due })
  })

  it("At most the latest hundred missed occurrences begin runs, however long nobody looked", () => {
    const everyMinute = scheduleOf("* * * * *", "UTC")
    const due = at("2026-05-01T00:00Z")
    const now = at("2026-08-01T00:00:30Z")
    const { begin, next } = ticksOf(everyMinute, "all", due, now)
    expect(begin).toHaveLength(100)
    expect(begin.at(-1)).toBe(at("2026-08-01T00:00Z"))
    expect(next).toBe(at("2026-08-01T00:01Z"))
  })
})
