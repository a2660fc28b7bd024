import { execFileSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import { outcomeOf } from "./Run.ts"

const iso = { to_format: "YYYY-MM-DDTHH:mm" }

describe("a date in words", () => {
  it.each([
    ["2026-01-15T13:30:00Z", "tomorrow", "2026-01-16T00:00", true],
    ["2026-01-15T12:30:00Z", "tomorrow", "2026-01-16T00:00", true],
    ["2026-01-15T13:30:00Z", "tomorrow at 5pm", "2026-01-16T17:00", false],
    ["2026-01-15T13:30:00Z", "tonight", "2026-01-15T22:00", false],
    ["2026-01-15T13:30:00Z", "tomorrow at noon", "2026-01-16T12:00", false],
    ["2026-01-15T13:30:00Z", "in 2 hours", "2026-01-15T15:30", false]
  ])("at %s, %s is %s", (anchor, input, result, isAssumed) => {
    const outcome = outcomeOf("date.format", { input }, iso, { anchor: Date.parse(anchor) })
    expect(outcome.output).toEqual({ result })
    expect(outcome.warnings?.includes("DATE_TIME_ASSUMED")).toBe(isAssumed)
  })

  it.each(["UTC", "Europe/Berlin", "America/New_York"])(
    "is the same on a machine of %s",
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
