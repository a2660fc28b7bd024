import type { Json, Rule } from "@tidegate/model/Rule"
import { Rule as RuleSchema } from "@tidegate/model/Rule"
import type { FilterInput } from "@tidegate/rules/Filter"
import {
  compileRules,
  compilingRules,
  judgeRules,
  judgingRules,
  normalizeRules,
  type RuleInvalid
} from "@tidegate/rules/RuleSet"
import { conditionsHash, linkedRule } from "@tidegate/rules/StoredFilter"
import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"

const normalized = (input: unknown): ReadonlyArray<Rule> => Result.getOrThrow(normalizeRules(input))

const refusal = (input: unknown): RuleInvalid => {
  const result = normalizeRules(input)
  return Result.isFailure(result) ? result.failure : expect.fail("accepted")
}

const example = [
  { type: "deduplicate", window: 60_000, include_fields: ["body.id", "headers.x-event-id"] },
  { type: "transform", transformation_id: "trs_1" },
  {
    type: "filter",
    body: { type: { $in: ["order.created"] } },
    headers: { "x-env": "prod" },
    query: {},
    path: { $startsWith: "/orders" }
  },
  { type: "delay", delay: 60_000 },
  {
    type: "retry",
    strategy: "exponential",
    count: 5,
    interval: 60_000,
    response_status_codes: ["429", "500-599", "!501"]
  }
]

describe("normalizeRules", () => {
  it("Normalized rules are kept as written", () => {
    expect(normalized(example)).toStrictEqual(example)
    expect(normalized([])).toStrictEqual([])
  })
  it("Rules are sorted by the order of evaluation, and filters keep their order", () => {
    const first = { type: "filter", body: { a: 1 } }
    const second = { type: "filter", path: "/x" }
    const [deduplicate, transform, filter, delay, retry] = example
    expect(normalized([retry, first, delay, transform, second, deduplicate, filter])).toStrictEqual([
      deduplicate,
      transform,
      first,
      second,
      filter,
      delay,
      retry
    ])
  })
  it("Normalized rules stay the same when they are normalized again", () => {
    expect(normalized(normalized(example))).toStrictEqual(normalized(example))
    expect(Schema.decodeUnknownSync(Schema.Array(RuleSchema))(example)).toStrictEqual(normalized(example))
  })
  it("A retry rule gets its default values", () => {
    expect(normalized([{ type: "retry" }])).toStrictEqual([
      { type: "retry", strategy: "exponential", count: 5, interval: 60_000 }
    ])
  })
  it("The rule type transformation means transform, linked or inline", () => {
    const transformation = { name: "add-tenant", code: "addHandler()", env: { A: "1" } }
    expect(normalized([{ type: "transformation", transformation_id: "trs_1" }])).toStrictEqual([
      { type: "transform", transformation_id: "trs_1" }
    ])
    expect(normalized([{ type: "transformation", transformation }])).toStrictEqual([
      { type: "transform", transformation }
    ])
  })
  it("Conditions keep their spelling, even with member names of prototypes", () => {
    const body: unknown = JSON.parse('{"a":{"starts_with":"x"},"$or":[{"b":{"$ne":1}},{"__proto__":{"gt":1}}]}')
    expect(normalized([{ type: "filter", body }])).toStrictEqual([{ type: "filter", body }])
    expect(JSON.stringify(normalized([{ type: "filter", body }])[0])).toBe(JSON.stringify({ type: "filter", body }))
  })
  it("A target of null is removed", () => {
    expect(normalized([{ type: "filter", body: { a: null }, query: null, path: null }])).toStrictEqual([
      { type: "filter", body: { a: null } }
    ])
  })
  it("An empty target is accepted and matches everything", () => {
    expect(normalized([{ type: "filter", body: {} }])).toStrictEqual([{ type: "filter", body: {} }])
  })
  it("Links to stored filters are accepted, and so is a filter detached from a deleted one", () => {
    const link = { type: "filter", filter_id: "flt_1" }
    expect(normalized([link])).toStrictEqual([link])
    const detached = {
      type: "filter",
      body: { a: 1 },
      detached_from_filter: { id: "flt_1", name: "paid", detached_at: "2026-01-01T00:00:00.000Z" }
    }
    expect(normalized([detached])).toStrictEqual([detached])
  })
  it("A link is accepted in the form in which it was read, but not with other conditions", () => {
    const version = { id: "flt_1", name: "paid", conditions: { body: { a: 1, b: [1.5, "x"] } }, hash: "" }
    const hash = conditionsHash(version.conditions)
    const read = linkedRule({ ...version, hash }, new Date(0))
    const link = { type: "filter", filter_id: "flt_1" }
    expect(normalized([read])).toStrictEqual([link])
    // As a database may give it back: with its names in another order.
    expect(normalized([{ ...read, body: { b: [1.5, "x"], a: 1 } }])).toStrictEqual([link])
    const refused: ReadonlyArray<unknown> = [
      { ...read, body: { a: 2 } },
      { ...read, path: "/" },
      { ...link, filter_snapshot: read.filter_snapshot },
      { ...link, body: { a: 1 } },
      { ...link, detached_from_filter: { id: "flt_2", name: "a", detached_at: "b" } }
    ]
    for (const rule of refused) expect(Result.isFailure(normalizeRules([rule])), JSON.stringify(rule)).toBe(true)
  })
  it("A mismatch of a linked filter reports the filter's version once", () => {
    const linked = linkedRule(
      { id: "flt_1", name: "paid", conditions: { body: { a: 1 }, path: "/x" }, hash: "sha256:aa" },
      new Date(0)
    )
    const own: Rule = { type: "filter", body: { b: 1 } }
    const { filter } = Result.getOrThrow(compileRules([linked, own]))
    const input = (body: Json) => ({ headers: {}, query: {}, path: "/", body: () => body })
    expect(filter?.failingTargets(input({ a: 2, b: 2 }))).toStrictEqual([
      "body",
      "path",
      { filter_id: "flt_1", hash: "sha256:aa" }
    ])
    const [, , by] = filter?.failingTargets(input({ a: 1 })) ?? []
    expect(by).toStrictEqual({ filter_id: "flt_1", hash: "sha256:aa" })
    expect(filter?.failingTargets({ ...input({ a: 1 }), path: "/x" })).toStrictEqual(["body"])
    expect(filter?.failingTargets({ ...input({ a: 1, b: 1 }), path: "/x" })).toStrictEqual([])
  })
  it("All forms of a deduplicate rule are accepted", () => {
    const rules = [
      { type: "deduplicate", window: 1_000 },
      { type: "deduplicate", window: 3_600_000, exclude_fields: ["body.items[*].seen_at", "headers", "body[0]"] },
      { type: "deduplicate", window: 5_000, include_fields: ["path", "method"], headers: { "x-env": "prod" }, body: {} }
    ]
    for (const rule of rules) expect(normalized([rule])).toStrictEqual([rule])
  })

  const delay = { type: "delay", delay: 1 }
  const refused: ReadonlyArray<readonly [input: unknown, index: number | null, path: string, message: RegExp]> = [
    ["x", null, "", /must be an array/],
    [null, null, "", /must be an array/],
    [Array.from({ length: 51 }, () => ({ type: "filter", path: "/" })), null, "", /at most 50/],
    [[delay, 1], 1, "", /must be an object/],
    [[{}], 0, "type", /must be one of/],
    [[{ type: "throttle" }], 0, "type", /must be one of/],
    [[delay, delay], 1, "type", /only one delay/],
    [[{ type: "retry" }, delay, { type: "retry" }], 2, "type", /only one retry/],
    [
      [
        { type: "transform", transformation_id: "trs_1" },
        { type: "transformation", transformation_id: "trs_2" }
      ],
      1,
      "type",
      /only one transform/
    ],
    [
      [
        { type: "deduplicate", window: 1_000 },
        { type: "deduplicate", window: 1_000 }
      ],
      1,
      "type",
      /only one/
    ],
    [[{ type: "delay" }], 0, "delay", /required/],
    [[{ type: "delay", delay: -1 }], 0, "delay", /0 and 86400000/],
    [[{ type: "delay", delay: 86_400_001 }], 0, "delay", /0 and 86400000/],
    [[{ type: "delay", delay: 1.5 }], 0, "delay", /integer/],
    [[{ type: "delay", delay: "5" }], 0, "delay", /number/],
    [[{ type: "delay", delay: 5, unit: "s" }], 0, "unit", /not a field/],
    [[{ type: "retry", count: 0 }], 0, "count", /1 and 50/],
    [[{ type: "retry", count: 51 }], 0, "count", /1 and 50/],
    [[{ type: "retry", interval: 999 }], 0, "interval", /1000 and 604800000/],
    [[{ type: "retry", interval: 604_800_001 }], 0, "interval", /1000 and/],
    [[{ type: "retry", strategy: "fibonacci" }], 0, "strategy", /linear/],
    [[{ type: "retry", response_status_codes: [] }], 0, "response_status_codes", /between 1 and 10/],
    [[{ type: "retry", response_status_codes: Array(11).fill(500) }], 0, "response_status_codes", /1 and 10/],
    [[{ type: "retry", response_status_codes: [500, "5xx"] }], 0, "response_status_codes[1]", /not a status/],
    [[{ type: "retry", response_status_codes: [true] }], 0, "response_status_codes[0]", /string/],
    [[{ type: "deduplicate" }], 0, "window", /required/],
    [[{ type: "deduplicate", window: 999 }], 0, "window", /1000 and 3600000/],
    [[{ type: "deduplicate", window: 3_600_001 }], 0, "window", /1000 and/],
    [
      [{ type: "deduplicate", window: 1_000, include_fields: ["body"], exclude_fields: ["body.a"] }],
      0,
      "exclude_fields",
      /together/
    ],
    [[{ type: "deduplicate", window: 1_000, include_fields: ["body.id", "id"] }], 0, "include_fields[1]", /not a path/],
    [[{ type: "deduplicate", window: 1_000, include_fields: ["path.a"] }], 0, "include_fields[0]", /not a path/],
    [[{ type: "deduplicate", window: 1_000, exclude_fields: [] }], 0, "exclude_fields", /between 1 and 50/],
    [[{ type: "deduplicate", window: 1_000, body: { a: { $x: 1 } } }], 0, "body.a.$x", /not an operator/],
    [[{ type: "deduplicate", window: 1_000, query: {} }], 0, "query", /not a field/],
    [[{ type: "transform" }], 0, "transformation_id", /required/],
    [[{ type: "transform", transformation_id: "1" }], 0, "transformation_id", /trs_/],
    [[{ type: "transform", transformation: { name: "a" } }], 0, "transformation.code", /required/],
    [
      [{ type: "transform", transformation: { name: "a", code: "b", env: { X: 1 } } }],
      0,
      "transformation.env.X",
      /string/
    ],
    [
      [{ type: "transform", transformation_id: "trs_1", transformation: { name: "a", code: "b" } }],
      0,
      "transformation",
      /together/
    ],
    [[{ type: "filter" }], 0, "", /needs one of/],
    [[{ type: "filter", body: null }], 0, "", /needs one of/],
    [[{ type: "filter", body: {}, method: "POST" }], 0, "method", /not a field/],
    [[delay, { type: "filter", body: { total: { $gt: {} } } }], 1, "body.total.$gt", /takes a number/],
    [[{ type: "filter", headers: { a: { $regex: "[" } } }], 0, "headers.a.$regex", /not valid/],
    [[{ type: "filter", filter_id: "flt_1", body: { a: 1 } }], 0, "filter_id", /linked filter/],
    [[{ type: "filter", filter_id: "1" }], 0, "filter_id", /flt_/],
    [
      [{ type: "filter", path: "/", filter_snapshot: { name: "a", hash: "b", captured_at: "c" } }],
      0,
      "filter_snapshot",
      /belongs to/
    ],
    [[JSON.parse('{"type":"delay","delay":1,"__proto__":{"delay":5}}')], 0, "__proto__", /not a field/]
  ]
  for (const [input, index, path, message] of refused) {
    it(`The rules ${JSON.stringify(input).slice(0, 100)} are rejected`, () => {
      const failure = refusal(input)
      expect(failure.rule_index).toBe(index)
      expect(failure.path).toBe(path)
      expect(failure.message).toMatch(message)
    })
  }
  it("A body nested deeper than any stack is rejected in every rule", () => {
    const deep: unknown = JSON.parse('{"a":'.repeat(100_000) + "1" + "}".repeat(100_000))
    expect(refusal([{ type: "filter", body: deep }]).message).toMatch(/deeper/)
    expect(refusal([{ type: "deduplicate", window: 1_000, body: deep }]).message).toMatch(/deeper/)
    expect(refusal([{ type: "delay", delay: 1, extra: deep }]).path).toBe("extra")
    expect(refusal([{ type: "delay", delay: deep }]).path).toBe("delay")
  })
})

describe("judgeRules", () => {
  it("Every invalid rule is reported, and the patterns of all rules count together", () => {
    const rule = { type: "filter", body: { $or: Array.from({ length: 18 }, () => ({ $regex: "x".repeat(512) })) } }
    const rules = [...Array.from({ length: 20 }, () => rule), { type: "delay", delay: -1 }, { type: "filter" }]
    const result = judgeRules(rules)
    const faults = Result.isFailure(result) ? result.failure : expect.fail("accepted")
    expect(faults.map(({ rule_index }) => rule_index)).toEqual(Array.from({ length: 21 }, (_, i) => i + 1))
    for (const { message } of faults.slice(0, 19)) expect(message).toMatch(/too long to compile, all together/)
  })
  it("Rules are checked in parts, one for each rule", () => {
    const paths = Object.fromEntries(Array.from({ length: 190 }, (_, i) => ["a.".repeat(120) + i, 1]))
    const work = judgingRules(Array.from({ length: 50 }, () => ({ type: "filter", body: paths })))
    let count = 1
    let part = work.next()
    for (; part.done !== true; part = work.next()) count++
    expect(Result.isSuccess(part.value)).toBe(true)
    expect(count).toBe(50)
  })
  it("Patterns that match nothing count for the limit as well", () => {
    const flags = { type: "filter", body: { $or: Array.from({ length: 95 }, () => ({ $regex: "(?s)".repeat(128) })) } }
    expect(Result.isSuccess(judgeRules([flags]))).toBe(true)
    expect(Result.isFailure(judgeRules(Array.from({ length: 5 }, () => flags)))).toBe(true)
  })
})

describe("compileRules", () => {
  const request: FilterInput = { headers: {}, query: {}, path: "/orders", body: () => ({ type: "a" }) }
  const compiled = (rules: unknown) => Result.getOrThrow(compileRules(normalized(rules)))

  it("Rules are compiled in parts, one for each pattern", () => {
    const patterns = Array.from({ length: 90 }, () => ({ $regex: "x".repeat(700) }))
    // As it was stored when there was no bound of them together.
    const work = compilingRules([{ type: "filter", body: { $or: patterns } }])
    let count = 0
    for (let part = work.next(); part.done !== true; part = work.next()) count++
    expect(count).toBe(90)
  })
  it("An empty list of rules compiles to nothing", () => {
    expect(compiled([])).toStrictEqual({ filter: null, slow: null, delay: 0, retry: null })
  })
  it("Ingress evaluates filters alone, all of them together", () => {
    const { filter, slow } = compiled([
      { type: "filter", body: { type: "b" } },
      { type: "filter", path: "/x" },
      { type: "filter", path: "/orders" }
    ])
    expect(slow).toBeNull()
    expect(filter?.failingTargets(request)).toStrictEqual(["body", "path"])
  })
  it("A filter behind a transformation or deduplication is not evaluated by ingress", () => {
    const filter = { type: "filter", path: "/x" }
    const transform = { type: "transform", transformation_id: "trs_1" }
    const deduplicate = { type: "deduplicate", window: 1_000 }
    for (const before of [transform, deduplicate]) {
      const rules = compiled([filter, before])
      expect(rules.filter).toBeNull()
      expect(rules.slow?.filter?.failingTargets(request)).toStrictEqual(["path"])
    }
    const both = compiled([transform, deduplicate])
    expect(both.slow).toStrictEqual({ deduplicate, transform, filter: null })
  })
  it("Delay and retry rules are compiled", () => {
    const { delay, retry } = compiled([
      { type: "delay", delay: 5 },
      { type: "retry", response_status_codes: ["!501"] }
    ])
    expect(delay).toBe(5)
    expect(retry?.count).toBe(5)
    expect([500, 501].map((status) => retry?.covers(status))).toStrictEqual([true, false])
  })
  it("An unresolved link and invalid stored conditions fail to compile (fails closed)", () => {
    const failure = (rules: ReadonlyArray<Rule>) => {
      const result = compileRules(rules)
      return Result.isFailure(result) ? result.failure : expect.fail("compiled")
    }
    expect(
      failure([
        { type: "delay", delay: 1 },
        { type: "filter", filter_id: "flt_1" }
      ]).rule_index
    ).toBe(1)
    expect(failure([{ type: "filter", body: { a: { $x: 1 } } }]).path).toBe("body.a.$x")
    expect(
      failure([{ type: "retry", strategy: "linear", count: 1, interval: 1_000, response_status_codes: ["x"] }]).path
    ).toBe("response_status_codes[0]")
  })
})
