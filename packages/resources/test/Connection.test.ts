import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { connection } from "../src/Connection.ts"
import * as Written from "./written.ts"

const createConnection = (input: Schema.Json, now: Date) => Written.created(connection, input, { now })

const now = new Date("2026-01-01T12:00:00.000Z")
const ends = { source_id: "src_1", destination_id: "des_1" }

const created = (input: Schema.Json) => Result.getOrThrow(createConnection(input, now))
const failure = <A>(result: Result.Result<A, GatewayError>) =>
  Result.isFailure(result) ? result.failure : expect.fail("it was accepted")
const refused = (input: Schema.Json) => {
  const { code, message } = failure(createConnection(input, now))
  return `${code} ${message}`
}

describe("Input of a connection", () => {
  it("A new connection gets default values for what is omitted", () => {
    expect(created({ name: "a", ...ends })).toStrictEqual({
      name: "a",
      description: null,
      ...ends,
      disabled_at: null,
      paused_at: null,
      rules: [],
      ordering: null
    })
    const nothing = { description: null, disabled_at: null, paused_at: null, rules: null }
    expect(created({ name: "a", ...ends, ...nothing })).toStrictEqual(created({ name: "a", ...ends }))
  })

  it("A connection accepts its source and destination by id or as objects, and the id has priority", () => {
    const objects = { source: { id: "src_2", name: "more" }, destination: { id: "des_2" } }
    expect(created({ name: "a", ...objects })).toStrictEqual(
      created({ name: "a", source_id: "src_2", destination_id: "des_2" })
    )
    expect(created({ name: "a", ...objects, ...ends })).toStrictEqual(created({ name: "a", ...ends }))
    expect(refused({ name: "a", source: {}, destination_id: "des_1" })).toBe("VALIDATION_ERROR source.id is required")
  })

  it("An ordering key is the path of one request value, and a failure blocks by default", () => {
    const ordering = (ordering: Schema.Json) => created({ name: "a", ...ends, ordering }).ordering
    expect(ordering({ key: "body.customer.id" })).toStrictEqual({ key: "body.customer.id", on_failure: "block" })
    expect(ordering({ key: "query.of", on_failure: "skip" })).toStrictEqual({ key: "query.of", on_failure: "skip" })
    expect(ordering(null)).toBeNull()
    for (const key of [
      "",
      "body",
      "path",
      "method.x",
      "body.items[*].id",
      "body.a[$index]",
      "body..",
      1,
      null,
      ["body.a"]
    ]) {
      expect(refused({ name: "a", ...ends, ordering: { key } }), String(key)).toContain("VALIDATION_ERROR ordering.key")
    }
    expect(refused({ name: "a", ...ends, ordering: { key: "body.a", on_failure: "wait" } })).toContain(
      "ordering.on_failure must be one of block, skip"
    )
    expect(refused({ name: "a", ...ends, ordering: {} })).toContain("ordering.key is required")
    expect(refused({ name: "a", ...ends, ordering: "body.a" })).toContain("ordering must be an object")
  })

  it("All missing fields of a connection are reported", () => {
    expect(failure(createConnection({}, now)).data).toStrictEqual({
      fields: ["name", "source_id", "destination_id"].map((path) => ({ path, message: "is required" }))
    })
    expect(refused([])).toBe("VALIDATION_ERROR body must be a JSON object")
    expect(refused({ name: "a", source_id: "src 1", destination_id: "des_1" })).toBe(
      "VALIDATION_ERROR source_id must be an id"
    )
  })

  it("Times of a connection must be in the past, in ISO 8601", () => {
    const at = (text: Schema.Json) => created({ name: "a", ...ends, disabled_at: text }).disabled_at?.toISOString()
    expect(at("2025-12-31T23:00:00Z")).toBe("2025-12-31T23:00:00.000Z")
    expect(at("2025-12-31T23:00:00.123456+02:00")).toBe("2025-12-31T21:00:00.123Z")
    // A caller's clock may be a little ahead.
    expect(at("2026-01-01T12:00:59Z")).toBe(now.toISOString())
    for (const path of ["disabled_at", "paused_at"]) {
      expect(refused({ name: "a", ...ends, [path]: "2026-01-01T12:02:00Z" })).toBe(
        `VALIDATION_ERROR ${path} must not be in the future`
      )
      for (const text of [
        "2025-12-31",
        "2025-12-31T23:00:00",
        "yesterday",
        "",
        "2025-13-01T00:00:00Z",
        true,
        5,
        "1890-01-01T00:00:00Z"
      ]) {
        expect(refused({ name: "a", ...ends, [path]: text })).toMatch(
          /^VALIDATION_ERROR (disabled|paused)_at must be an ISO 8601/
        )
      }
    }
  })

  it("Rules of a connection are normalized", () => {
    const rules = [{ type: "retry" }, { type: "delay", delay: 5 }, { type: "filter", body: { a: { $gt: 1 } } }]
    expect(created({ name: "a", ...ends, rules }).rules).toStrictEqual([
      { type: "filter", body: { a: { $gt: 1 } } },
      { type: "delay", delay: 5 },
      { type: "retry", strategy: "exponential", count: 5, interval: 60_000 }
    ])
  })

  it("An invalid rule is reported with its position as written", () => {
    const good = { type: "retry" }
    const bad = { type: "delay", delay: -1 }
    const { code, data, message } = failure(createConnection({ name: "a", ...ends, rules: [good, bad] }, now))
    expect(code).toBe("RULE_INVALID")
    expect(message).toMatch(/^rules\[1\]\.delay: /)
    expect(data).toMatchObject({ rule_index: 1, path: "delay" })
    expect(refused({ name: "a", ...ends, rules: {} })).toMatch(/^RULE_INVALID rules: must be an array/)
    expect(refused({ name: "a", ...ends, rules: [{ type: "filter", body: "\u0000" }] })).toMatch(
      /^RULE_INVALID rules\[0\]: must be valid Unicode/
    )
    expect(refused({ name: "a", ...ends, rules: [{ type: "filter", body: { "\ud800": 1 } }] })).toMatch(
      /^RULE_INVALID rules\[0\]: must be valid/
    )
  })

  it("Connections accept deduplicate, transform and filter rules, linked or inline", () => {
    const write = (rule: Schema.Json) => ({ name: "a", ...ends, rules: [{ type: "delay", delay: 1 }, rule] })
    const deduplicate = { type: "deduplicate", window: 1_000 } as const
    expect(created(write(deduplicate)).rules).toStrictEqual([deduplicate, { type: "delay", delay: 1 }])
    const linked = { type: "transformation", transformation_id: "trs_1" }
    expect(created(write(linked)).rules[0]).toStrictEqual({ type: "transform", transformation_id: "trs_1" })
    const inline = { type: "transform", transformation: { name: "t", code: "x" } } as const
    expect(created(write(inline)).rules[0]).toStrictEqual(inline)
    const filter = { type: "filter", filter_id: "flt_1" } as const
    expect(created(write(filter)).rules[0]).toStrictEqual(filter)
    expect(refused(write({ ...filter, body: { a: 1 } }))).toMatch(/^RULE_INVALID rules\[1\]\.filter_id: /)
  })

  it("A partial change of a connection keeps the rest and replaces the rules as a whole", () => {
    const stored = { ...created({ name: "a", ...ends, rules: [{ type: "delay", delay: 5 }] }), disabled_at: now }
    const update = (input: Schema.Json) => Result.getOrThrow(Written.changed(connection, stored, input, { now }))
    expect(update({})).toStrictEqual(stored)
    expect(update({ disabled_at: now.toISOString() })).toStrictEqual(stored)
    expect(update({ name: "b", disabled_at: null, destination: { id: "des_2" } })).toStrictEqual({
      ...stored,
      name: "b",
      disabled_at: null,
      destination_id: "des_2"
    })
    expect(update({ rules: [] }).rules).toStrictEqual([])
    expect(update({ rules: [{ type: "retry", count: 1 }] }).rules).toStrictEqual([
      { type: "retry", strategy: "exponential", count: 1, interval: 60_000 }
    ])
  })
})
