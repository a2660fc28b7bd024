import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { compileScheduledBody, longestScheduledBody } from "../src/ScheduledBody.ts"

const facts = {
  scheduled_at: "2026-05-01T02:30:00.000Z",
  cron: "30 2 * * *",
  timezone: "Europe/Berlin",
  source: { id: "src_1", name: 'The "nightly" one' }
}
const body = (written: Schema.Json) => Result.getOrThrow(compileScheduledBody(written))(facts)
const fault = (written: Schema.Json) =>
  Result.match(compileScheduledBody(written), { onSuccess: () => null, onFailure: (one) => one })

describe("Body of a scheduled request", () => {
  it("Without a body of its own, a scheduled request has the time, the schedule and the source", () => {
    expect(body(null)).toStrictEqual(facts)
  })

  it("Tokens in the body of a scheduled request are replaced by values, in any place of it", () => {
    expect(
      body({ at: "{{scheduled_at}}", list: ["{{cron}} in {{ timezone }}", 1, null], of: "{{source}}" })
    ).toStrictEqual({
      at: facts.scheduled_at,
      list: ["30 2 * * * in Europe/Berlin", 1, null],
      of: facts.source
    })
    expect(body("{{source.name}}")).toBe(facts.source.name)
  })

  it("A body of a scheduled request that reads what is not there is refused with the place", () => {
    expect(fault({ a: ["{{source.nmae}}"] })).toMatchObject({
      path: "a[0]",
      message: "has a token that finds nothing: there are scheduled_at, cron, timezone, source.id and source.name"
    })
    expect(fault({ a: ["{{trigger.body}}"] })).toMatchObject({ path: "a[0]" })
    expect(fault({ a: "{{scheduled_at" })).toMatchObject({ path: "a" })
  })

  it("The body of a scheduled request is limited in length, in tokens and in depth", () => {
    expect(body("x".repeat(longestScheduledBody - 2))).toHaveLength(longestScheduledBody - 2)
    expect(fault("x".repeat(longestScheduledBody - 1))?.message).toContain("at most 32768 characters")
    expect(fault(Array.from({ length: 100 }, () => "{{cron}}"))).toBeNull()
    expect(fault(Array.from({ length: 101 }, () => "{{cron}}"))?.message).toBe("must have at most 100 tokens")
    let deep: Schema.Json = "x"
    for (let level = 0; level < 21; level++) deep = [deep]
    expect(fault(deep)?.message).toContain("nested deeper")
  })
})
