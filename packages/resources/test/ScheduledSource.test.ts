import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { source, type SourceFields } from "../src/Source.ts"
import * as Written from "./written.ts"

const id = "src_01kaxg3j7qzfn8m4s2v6w9t5bc"
const created = (input: Schema.Json) => Result.getOrThrow(Written.created(source, input))
const changed = (stored: SourceFields, input: Schema.Json) => Written.changed(source, stored, input, { id })
const updated = (stored: SourceFields, input: Schema.Json) => Result.getOrThrow(changed(stored, input))
const refused = (input: Schema.Json) => Written.faults(Written.created(source, input))
const refusedChange = (stored: SourceFields, input: Schema.Json) => Written.faults(changed(stored, input))

const of = (schedule: Schema.Json, config: Schema.JsonObject = {}) => ({
  name: "nightly",
  type: "CRON",
  config: Object.assign({ schedule }, config)
})
const nightly = created(of({ cron: " 0  3 * * * ", timezone: "Europe/Berlin" }))

describe("Source of type CRON", () => {
  it("A source with a schedule is stored with the defaults of what is omitted", () => {
    expect(nightly).toStrictEqual({
      name: "nightly",
      description: null,
      type: "CRON",
      disabled: false,
      slug: null,
      config: {
        auth_type: null,
        allowed_http_methods: ["POST", "PUT", "PATCH", "DELETE"],
        custom_response: null,
        mode: "webhook",
        proxy: null,
        chat_defer_ephemeral: false,
        rate_limit: null,
        rate_limit_period: null,
        schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin", missed: "once", body: null, headers: {} }
      },
      auth: {}
    })
    expect(created(of({ cron: "0 3 * * *", timezone: null, missed: null, headers: null })).config.schedule).toEqual({
      cron: "0 3 * * *",
      timezone: "UTC",
      missed: "once",
      body: null,
      headers: {}
    })
  })

  it("All invalid settings of a schedule are reported at once", () => {
    const schedule = { cron: "0 3 * *", missed: "never", body: { a: "{{b}}" }, headers: { "x-a": 1 } }
    expect(refused(of(schedule, { rate_limit: 5 })).toSorted()).toEqual([
      "config.rate_limit: has no effect on a source of type CRON: nobody can send to it",
      "config.schedule.body.a: a path begins with one of scheduled_at, cron, timezone, source, not with b",
      "config.schedule.cron: must have five fields: minute, hour, day of month, month, day of week",
      "config.schedule.headers.x-a: must be a string",
      "config.schedule.missed: must be one of skip, once, all"
    ])
    expect(refused({ name: "x", type: "CRON" })).toEqual(["config.schedule: is required: the source is of type CRON"])
    expect(refused(of({}))).toEqual(["config.schedule.cron: is required, like 0 3 * * *"])
    expect(refused(of({ cron: "0 0 30 2 *" }))).toEqual(["config.schedule.cron: never occurs"])
    expect(refused(of({ cron: "* * * * * *" }))[0]).toMatch(/must have five fields/)
    expect(refused(of({ cron: "0 3 * * *", timezone: "Europe/Belin" }))).toEqual([
      "config.schedule.timezone: is in an unknown time zone"
    ])
    expect(refused(of({ cron: "0 3 * * *", body: "\u0000" }))).toEqual([
      "config.schedule.body: must be valid Unicode without NUL"
    ])
  })

  it("Headers of a schedule are stored in lower case, and those that others set or that hold credentials are refused", () => {
    const headers = (headers: Schema.Json) => of({ cron: "0 3 * * *", headers })
    expect(created(headers({ "X-Kind": "nightly" })).config.schedule?.headers).toEqual({ "x-kind": "nightly" })
    for (const [name, why] of [
      ["Authorization", "is a credential"],
      ["cookie", "is a credential"],
      ["Content-Type", "is set by the gateway"],
      ["x-gateway-scheduled-at", "is set by the gateway"],
      ["host", "is set by the gateway"],
      ["a b", "is no name of a header"]
    ] as const) {
      expect(refused(headers({ [name]: "x" }))[0]).toContain(`${name} ${why}`)
    }
    expect(refused(headers({ "x-a": "1", "X-A": "2" }))[0]).toContain("is there twice")
    expect(refused(headers({ "x-a": "line\nbreak" }))[0]).toContain("printable ASCII")
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`x-${n}`, ""]))
    expect(refused(headers(many))).toEqual(["config.schedule.headers: must be at most 20"])
  })

  it("A change merges the schedule by member, and replaces its body and its headers as a whole", () => {
    const stored = updated(nightly, {
      config: { schedule: { body: { a: 1, b: 2 }, headers: { "x-a": "1", "x-b": "2" }, missed: "all" } }
    })
    expect(stored).toMatchObject({
      config: { schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin", missed: "all" } }
    })
    const after = updated(Object.assign({}, nightly, stored, { auth: {} }), {
      config: { schedule: { body: { c: 3 }, headers: { "x-c": "3" } } }
    })
    expect(after.config).toMatchObject({ schedule: { body: { c: 3 }, headers: { "x-c": "3" }, missed: "all" } })
    expect(after.config.schedule?.headers).toEqual({ "x-c": "3" })
    expect(updated(nightly, { description: "x" }).config).toEqual(nightly.config)
    expect(refusedChange(nightly, { config: { schedule: { timezone: "Nowhere" } } })).toEqual([
      "config.schedule.timezone: is in an unknown time zone"
    ])
  })

  it("The type CRON is chosen once, and only its sources have a schedule", () => {
    const webhook = created({ name: "shop" })
    expect(refusedChange(nightly, { type: "WEBHOOK" })[0]).toContain("cannot change to or from CRON")
    expect(refusedChange(webhook, { type: "CRON" })[0]).toContain("cannot change to or from CRON")
    const schedule = { cron: "0 3 * * *" }
    const onlyOf = "config.schedule: is for sources of type CRON only"
    expect(refused({ name: "shop", config: { schedule } })).toEqual([onlyOf])
    expect(refusedChange(webhook, { config: { schedule } })).toEqual([onlyOf])
    expect(refused({ name: "gateway", type: "SYSTEM", config: { schedule } })).toEqual([onlyOf])
    expect(refused({ ...of(schedule), url: "https://in.test/e/nightly" })).toEqual([
      "url: has no effect on a source of type CRON: nobody can send to it"
    ])
    expect(refused({ name: "nightly", type: "CRON", schedule })).toContain("schedule: belongs into config.schedule")
    expect(refused(of(schedule, { provider: {} }))).toEqual(["config.provider: is for sources of type PROVIDER only"])
  })
})
