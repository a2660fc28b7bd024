import { assert, describe, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { connection } from "../src/Connection.ts"
import * as Written from "./written.ts"

const createConnection = (input: Schema.Json, now: Date) => Written.created(connection, input, { now })

const now = new Date("2026-01-01T12:00:00.000Z")
const ends = { source_id: "src_1", destination_id: "des_1" }

const created = (input: Schema.Json) => Result.getOrThrow(createConnection(input, now))
const failure = <A>(result: Result.Result<A, GatewayError>) =>
  Result.isFailure(result) ? result.failure : assert.fail("it was accepted")
const refused = (input: Schema.Json) => {
  const { code, message } = failure(createConnection(input, now))
  return `${code} ${message}`
}

describe("ConnectionInput", () => {
  it("fills in what is not given", () => {
    assert.deepStrictEqual(created({ name: "a", ...ends }), {
      name: "a",
      description: null,
      ...ends,
      disabled_at: null,
      paused_at: null,
      rules: []
    })
    const nothing = { description: null, disabled_at: null, paused_at: null, rules: null }
    assert.deepStrictEqual(created({ name: "a", ...ends, ...nothing }), created({ name: "a", ...ends }))
  })

  it("takes its ends by id or as objects with an id; the id wins", () => {
    const objects = { source: { id: "src_2", name: "more" }, destination: { id: "des_2" } }
    assert.deepStrictEqual(
      created({ name: "a", ...objects }),
      created({ name: "a", source_id: "src_2", destination_id: "des_2" })
    )
    assert.deepStrictEqual(created({ name: "a", ...objects, ...ends }), created({ name: "a", ...ends }))
    assert.strictEqual(
      refused({ name: "a", source: {}, destination_id: "des_1" }),
      "VALIDATION_ERROR source.id is required"
    )
  })

  it("names all that is missing", () => {
    assert.deepStrictEqual(failure(createConnection({}, now)).data, {
      fields: ["name", "source_id", "destination_id"].map((path) => ({ path, message: "is required" }))
    })
    assert.strictEqual(refused([]), "VALIDATION_ERROR body must be a JSON object")
    assert.strictEqual(
      refused({ name: "a", source_id: "src 1", destination_id: "des_1" }),
      "VALIDATION_ERROR source_id must be an id"
    )
  })

  it("takes times that have come", () => {
    const at = (text: Schema.Json) => created({ name: "a", ...ends, disabled_at: text }).disabled_at?.toISOString()
    assert.strictEqual(at("2025-12-31T23:00:00Z"), "2025-12-31T23:00:00.000Z")
    assert.strictEqual(at("2025-12-31T23:00:00.123456+02:00"), "2025-12-31T21:00:00.123Z")
    // A caller's clock may be a little ahead.
    assert.strictEqual(at("2026-01-01T12:00:59Z"), now.toISOString())
    for (const path of ["disabled_at", "paused_at"]) {
      assert.strictEqual(
        refused({ name: "a", ...ends, [path]: "2026-01-01T12:02:00Z" }),
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
        assert.match(
          refused({ name: "a", ...ends, [path]: text }),
          /^VALIDATION_ERROR (disabled|paused)_at must be an ISO 8601/
        )
      }
    }
  })

  it("normalises rules", () => {
    const rules = [{ type: "retry" }, { type: "delay", delay: 5 }, { type: "filter", body: { a: { $gt: 1 } } }]
    assert.deepStrictEqual(created({ name: "a", ...ends, rules }).rules, [
      { type: "filter", body: { a: { $gt: 1 } } },
      { type: "delay", delay: 5 },
      { type: "retry", strategy: "exponential", count: 5, interval: 60_000 }
    ])
  })

  it("tells which rule is wrong, by its place as written", () => {
    const good = { type: "retry" }
    const bad = { type: "delay", delay: -1 }
    const { code, data, message } = failure(createConnection({ name: "a", ...ends, rules: [good, bad] }, now))
    assert.strictEqual(code, "RULE_INVALID")
    assert.match(message, /^rules\[1\]\.delay: /)
    assert.deepInclude(data, { rule_index: 1, path: "delay" })
    assert.match(refused({ name: "a", ...ends, rules: {} }), /^RULE_INVALID rules: must be an array/)
    assert.match(
      refused({ name: "a", ...ends, rules: [{ type: "filter", body: "\u0000" }] }),
      /^RULE_INVALID rules\[0\]: must be valid Unicode/
    )
    assert.match(
      refused({ name: "a", ...ends, rules: [{ type: "filter", body: { "\ud800": 1 } }] }),
      /^RULE_INVALID rules\[0\]: must be valid/
    )
  })

  it("takes deduplicate and transform rules, linked and inline, and not yet stored filters", () => {
    const write = (rule: Schema.Json) => ({ name: "a", ...ends, rules: [{ type: "delay", delay: 1 }, rule] })
    const deduplicate = { type: "deduplicate", window: 1_000 } as const
    assert.deepStrictEqual(created(write(deduplicate)).rules, [deduplicate, { type: "delay", delay: 1 }])
    const linked = { type: "transformation", transformation_id: "trs_1" }
    assert.deepStrictEqual(created(write(linked)).rules[0], { type: "transform", transformation_id: "trs_1" })
    const inline = { type: "transform", transformation: { name: "t", code: "x" } } as const
    assert.deepStrictEqual(created(write(inline)).rules[0], inline)
    assert.strictEqual(
      refused(write({ type: "filter", filter_id: "flt_1" })),
      "RULE_INVALID rules[1].type: stored filters are not available yet"
    )
  })

  it("a change in part leaves the rest, and replaces rules whole", () => {
    const stored = { ...created({ name: "a", ...ends, rules: [{ type: "delay", delay: 5 }] }), disabled_at: now }
    const update = (input: Schema.Json) => Result.getOrThrow(Written.changed(connection, stored, input, { now }))
    assert.deepStrictEqual(update({}), stored)
    assert.deepStrictEqual(update({ disabled_at: now.toISOString() }), stored)
    assert.deepStrictEqual(update({ name: "b", disabled_at: null, destination: { id: "des_2" } }), {
      ...stored,
      name: "b",
      disabled_at: null,
      destination_id: "des_2"
    })
    assert.deepStrictEqual(update({ rules: [] }).rules, [])
    assert.deepStrictEqual(update({ rules: [{ type: "retry", count: 1 }] }).rules, [
      { type: "retry", strategy: "exponential", count: 1, interval: 60_000 }
    ])
  })
})
