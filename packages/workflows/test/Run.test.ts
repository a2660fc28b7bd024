import type { Json } from "@tidegate/model/Rule"
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { branch, call, catalog, compiled, delay, echo, edge, facts, filter, send } from "./Graphs.ts"
import { allOf, dice, done, fails, Play, occurs } from "./Play.ts"
import { advance } from "../src/Advance.ts"
import { type Effect, perform } from "../src/Inputs.ts"
import { decide, deciding } from "../src/Run.ts"
import { type Occurrence, queuedRun } from "../src/RunState.ts"
import { SecretTexts } from "../src/SecretTexts.ts"
import type { Outcome } from "../src/StepKind.ts"
import { compileWorkflow } from "../src/Workflow.ts"

const idOf = (effect: Effect): string => effect.step.step.id

it.each([
  [{ $or: [{ body: { n: 2 } }, { headers: { "X-Kind": "paid" } }] }, true],
  [{ $or: [{ body: { n: 2 } }, { trigger: { body: { n: 3 } } }] }, false],
  [{ $and: [{ body: { n: 1 } }, { $not: { path: "/orders" } }] }, true],
  [{ $not: { body: { n: 1 } } }, false],
  // As at the top, names in any case, a name with a dot, and alternatives of one part.
  [{ $or: [{ headers: { $or: [{ "X-Kind": "paid" }] } }] }, true],
  [{ $and: [{ trigger: { path: "/orders/1" } }, { path: { $startsWith: "/orders" } }] }, false],
  [{ $or: [{ trigger: { path: "/orders" } }, { body: { $or: [{ n: 2 }, { n: 1 }] }, query: {} }] }, true]
])("A short condition is also allowed as an alternative: %j", (conditions, matched) => {
  const workflow = compiled([filter("only", conditions)], [edge("", "only")])
  expect(new Play(workflow, facts({ n: 1 })).run().at("only").output).toEqual({ matched })
})

const detached_from_filter = { id: "flt_1", name: "paid", detached_at: "2026-01-01T00:00:00.000Z" }

/* It means the same when the filter is deleted, and has left its conditions to the step. */
describe.each(["names", "has lost"])("Filter step that %s a stored filter", (names) => {
  const stored = {
    headers: { "x-kind": "paid" },
    query: { a: ["1", "2"] },
    path: "/orders",
    body: { total: { $gte: 10 } }
  }
  const matches = (invocation_inputs: object | null, mapping: object = {}) => {
    const of = names === "names" ? { resource_id: "flt_1" } : { config: { conditions: stored, detached_from_filter } }
    const steps = [{ id: "only", kind: "filter", invocation_inputs, ...of }]
    const conditions = { ...catalog, filter: () => stored }
    const workflow = Result.getOrThrow(compileWorkflow(steps, [edge("", "only", { mapping })], conditions))
    const { error, output } = new Play(workflow, facts({ total: 12, sum: 3 })).run().at("only")
    return error?.code ?? output
  }

  it("A stored filter is applied to the given request, or to the trigger's request by default", () => {
    const given = { query: "a=1&a=2", path: "/orders" }
    expect(matches(null)).toEqual({ matched: false })
    expect(matches(given)).toEqual({ matched: true })
    expect(matches({ ...given, query: { a: [1, 2] } })).toEqual({ matched: true })
    expect(matches({ ...given, headers: { "X-Kind": "paid" }, body: { total: "{{trigger.body.total}}" } })).toEqual({
      matched: true
    })
    expect(matches({ ...given, headers: {} })).toEqual({ matched: false })
    expect(matches(given, { body: { total: "{{trigger.body.sum}}" } })).toEqual({ matched: false })
  })

  it("A filter step fails when its request has too many headers or query parameters", () => {
    const headers = Object.fromEntries(Array.from({ length: 5_001 }, (_, i) => [`x-${i}`, "1"]))
    expect(matches({ headers })).toBe("INPUT_INVALID")
    expect(matches({ query: "a&".repeat(5_001) })).toBe("INPUT_INVALID")
  })
})

it("An error in a short condition among alternatives is reported at its own path", () => {
  const issuesOf = (conditions: unknown) =>
    Result.match(compileWorkflow([filter("only", conditions)], [edge("", "only")], catalog), {
      onSuccess: () => [],
      onFailure: (issues) => issues.map(({ code, field }) => [code, field])
    })
  expect(issuesOf({ $or: [{ body: { n: { $gtx: 2 } } }] })).toEqual([
    ["CONDITION_INVALID", "config.conditions.$or[0].body.n.$gtx"]
  ])
  expect(issuesOf({ $not: { headers: "x" } })).toEqual([["CONDITION_INVALID", "config.conditions.$not.headers"]])
  // What is at its bounds is as it was written.
  const most = Array.from({ length: 99 }, (_, i) => ({ path: `/${i}` }))
  expect(issuesOf({ $or: most })).toEqual([])
  expect(issuesOf({ $or: [...most, { path: "/" }] })).toHaveLength(1)
})

describe("Run", () => {
  it("A run follows its edges, and each step reads the outputs before it", () => {
    const workflow = compiled(
      [
        echo("one1", { name: "{{trigger.body.name}}" }),
        echo("two2", { greeting: "Hello {{steps.one1.output.name}}", at: "{{run.id}} {{source.name}}" })
      ],
      [edge("", "one1"), edge("one1", "two2", { mapping: { extra: "{{steps.one1.status}}" } })]
    )
    const play = new Play(workflow, facts({ name: "Ada" })).run()
    expect(play.ends).toEqual(["one1: succeeded", "two2: succeeded"])
    expect(play.at("two2").output).toEqual({ greeting: "Hello Ada", at: "wfr_1 shop", extra: "succeeded" })
    expect(play.state).toMatchObject({ status: "succeeded", outcome: "completed" })
  })

  it("A run without steps succeeds at once", () => {
    expect(new Play(compiled([], []), facts()).run().state).toMatchObject({ status: "succeeded", outcome: "completed" })
  })

  it("A run warns about values that templates lack", () => {
    const play = new Play(compiled([echo("step", { a: "{{trigger.body.none}}" })], [edge("", "step")]), facts()).run()
    expect(play.at("step")).toMatchObject({
      output: { a: null },
      warnings: [
        {
          code: "TEMPLATE_VALUE_MISSING",
          field: "invocation_inputs.a",
          line_item_index: null,
          message: "a template stands for nothing"
        }
      ]
    })
  })

  it("A join runs once after all its edges are decided, and merges their mappings in order", () => {
    const workflow = compiled(
      [call("left"), call("right"), echo("join", { by: "nobody", own: 1 })],
      [
        edge("", "left"),
        edge("", "right"),
        edge("right", "join", { mapping: { by: "right", right: true }, position: 1 }),
        edge("left", "join", { mapping: { by: "left", left: true }, position: 0 })
      ]
    )
    for (const seed of [1, 2, 3, 4]) {
      const play = new Play(workflow, facts(), () => done(), dice(seed)).run()
      expect(play.at("join").output).toEqual({ by: "right", own: 1, left: true, right: true })
      expect(play.begun.filter((one) => one.startsWith("join"))).toEqual(["join/1"])
    }
  })

  it("A run that a filter stops has the outcome filtered and did not fail", () => {
    const workflow = compiled(
      [filter("only", { body: { status: "paid" } }), echo("next"), echo("last")],
      [edge("", "only"), edge("only", "next"), edge("next", "last")]
    )
    const play = new Play(workflow, facts({ status: "open" })).run()
    expect(play.ends).toEqual(["only: succeeded", "next: filtered", "last: filtered"])
    expect(play.state).toMatchObject({ status: "succeeded", outcome: "filtered" })
    expect(new Play(workflow, facts({ status: "paid" })).run().state.outcome).toBe("completed")
  })

  it("A branch takes all matching paths, those with the rule always, and the fallback if none matches", () => {
    const of = (evaluation?: string) =>
      compiled(
        [
          branch(
            "fork",
            [
              { key: "eu", rule: "conditions", conditions: { body: { country: { $in: ["DE", "FR"] } } } },
              { key: "big", rule: "conditions", conditions: { trigger: { body: { total: { $gte: 100 } } } } },
              ...(evaluation === "first" ? [] : [{ key: "audit", rule: "always" }]),
              { key: "rest", rule: "fallback" }
            ],
            evaluation
          ),
          ...["eu__", "big_", "audit", "rest"].map((id) => echo(id))
        ],
        [
          edge("", "fork"),
          edge("fork", "eu__", { source_port: "path_eu" }),
          edge("fork", "big_", { source_port: "path_big" }),
          ...(evaluation === "first" ? [edge("", "audit")] : [edge("fork", "audit", { source_port: "path_audit" })]),
          edge("fork", "rest", { source_port: "path_rest" })
        ]
      )
    const taken = (body: object, evaluation?: string) =>
      new Play(of(evaluation), facts(body as never)).run().at("fork").output
    expect(taken({ country: "DE", total: 120 })).toEqual({ matched: ["eu", "big", "audit"], fallback: false })
    expect(taken({ country: "DE", total: 120 }, "first")).toEqual({ matched: ["eu"], fallback: false })
    expect(taken({ country: "US", total: 1 })).toEqual({ matched: ["audit", "rest"], fallback: true })
    expect(taken({ country: "US", total: 1 }, "first")).toEqual({ matched: ["rest"], fallback: true })
    const play = new Play(of(), facts({ country: "US", total: 120 })).run()
    expect(play.at("eu__").skipReason).toBe("path_not_taken")
  })

  it("A run takes an edge only if its condition holds", () => {
    const workflow = compiled(
      [call("one1"), echo("yes1"), echo("no11")],
      [
        edge("", "one1"),
        edge("one1", "yes1", { condition: { steps: { one1: { output: { n: { $gt: 1 } } } } } }),
        edge("one1", "no11", { condition: { headers: { "X-Kind": "open" } } })
      ]
    )
    const play = new Play(workflow, facts(), () => done({ n: 2 })).run()
    expect(play.ends).toEqual(["one1: succeeded", "yes1: succeeded", "no11: condition_false"])
  })

  it("A run executes at most five steps at once", () => {
    const ids = Array.from({ length: 12 }, (_, i) => `step_${i}`)
    const play = new Play(
      compiled(
        ids.map((id) => call(id)),
        ids.map((id) => edge("", id))
      ),
      facts()
    )
    play.tell({ type: "begun" })
    expect(play.begun).toHaveLength(5)
    play.step()
    expect(play.begun).toHaveLength(6)
    expect(play.finish().begun).toHaveLength(12)
  })
})

describe("Failing step", () => {
  const two = (config: object) =>
    compiled(
      [send("first", config as never), echo("next", { error: "{{steps.first.error.code}}" }), echo("side")],
      [
        edge("", "first"),
        edge("first", "next", (config as { on_error?: string }).on_error === "branch" ? { source_port: "error" } : {}),
        edge("", "side")
      ]
    )

  it("A failed step ends the run, and no other step starts", () => {
    const play = new Play(two({}), facts(), () => fails()).run()
    expect(play.ends).toEqual(["first: failed", "next: upstream_failed", "side: succeeded"])
    expect(play.state).toMatchObject({
      status: "failed",
      outcome: "failed",
      stopped: { error: { code: "BAD_RESPONSE" } }
    })
  })

  it("Steps that are running when another fails complete, and nothing starts after them", () => {
    const workflow = compiled(
      [send("bad1"), call("slow"), echo("after")],
      [edge("", "bad1"), edge("", "slow"), edge("slow", "after")]
    )
    const play = new Play(workflow, facts(), (effect) => (idOf(effect) === "bad1" ? fails() : done())).run()
    expect(play.ends).toEqual(["bad1: failed", "slow: succeeded", "after: run_stopped"])
  })

  it.each(["continue", "branch"])("A run continues after a failed step with on_error %s", (on_error) => {
    const play = new Play(two({ on_error }), facts(), () => fails()).run()
    expect(play.ends).toEqual(["first: failed", "next: succeeded", "side: succeeded"])
    expect(play.at("next").output).toEqual({ error: "BAD_RESPONSE" })
    expect(play.state).toMatchObject({ status: "succeeded", outcome: "completed_with_errors" })
  })

  it("A failed step is retried by its rule after the target's wait, and not if a retry cannot help", () => {
    const retry = { strategy: "exponential", interval: 1_000, count: 3, max_interval: 3_000 }
    const waits = (config: object, outcome: (attempt: number) => ReturnType<typeof fails>) => {
      const times: Array<number> = []
      const play: Play = new Play(
        compiled([send("step", { retry: { ...retry, ...config } })], [edge("", "step")]),
        facts(),
        (effect) => {
          times.push(play.now)
          return outcome(effect.start.attempt)
        }
      )
      play.run()
      return times.map((time) => time - times[0]!)
    }
    expect(waits({}, () => fails())).toEqual([0, 1_000, 3_000, 6_000])
    expect(waits({ strategy: "linear" }, () => fails())).toEqual([0, 1_000, 2_000, 3_000])
    expect(waits({ jitter: "full" }, () => fails())).toEqual([0, 500, 1_500, 3_000])
    expect(waits({}, (attempt) => (attempt < 3 ? fails() : done()))).toEqual([0, 1_000, 3_000])
    const asked = {
      kind: "failed",
      error: { code: "BAD_RESPONSE", message: "", status: 500, retry_after_ms: 2_500 }
    } as const
    expect(waits({}, () => asked)).toEqual([0, 2_500, 5_000, 7_500])
    expect(waits({ max_interval: 2_000 }, () => asked)).toEqual([0, 2_000, 4_000, 6_000])
    expect(waits({}, () => fails("BAD_RESPONSE", 404))).toEqual([0])
    expect(waits({ count: 1, response_status_codes: ["404"] }, () => fails("BAD_RESPONSE", 404))).toEqual([0, 1_000])
    expect(waits({ response_status_codes: ["404"] }, () => fails())).toEqual([0])
    expect(waits({}, () => ({ kind: "failed", error: { code: "INPUT_INVALID", message: "" } }))).toEqual([0])
    expect(waits({ count: 1 }, () => ({ kind: "failed", error: { code: "TIMEOUT", message: "" } }))).toEqual([0, 1_000])
  })

  it("A step that the target refuses for now is retried beyond its count, up to fifty attempts", () => {
    const attempts = (config: object | null, error: object): number => {
      const retry = config === null ? {} : { retry: { strategy: "linear", interval: 1_000, ...config } }
      const play: Play = new Play(compiled([send("step", retry)], [edge("", "step")]), facts(), () => ({
        kind: "failed",
        error: { code: "BAD_RESPONSE", message: "", ...error }
      }))
      return play.run().begun.length
    }
    const refused = { status: 429, retry_after_ms: 2_500 }
    expect(attempts({ count: 1 }, refused)).toBe(50)
    expect(attempts({ count: 1 }, { ...refused, status: 503 })).toBe(50)
    expect(attempts({ count: 1, max_interval: 1_000 }, refused)).toBe(50)
    // By a rule that is for something else, or without one, and where nobody says for how long, it is over as ever.
    expect(attempts({ count: 1, response_status_codes: ["500-599"] }, refused)).toBe(1)
    expect(attempts({ count: 0 }, refused)).toBe(1)
    expect(attempts(null, refused)).toBe(1)
    expect(attempts({ count: 1 }, { status: 429 })).toBe(2)
    expect(attempts({ count: 1 }, { ...refused, final: true })).toBe(1)
    expect(attempts({ count: 1 }, { code: "RATE_LIMITED", retry_after_ms: 2_500 })).toBe(2)
  })

  it("A failed step is retried five times at intervals of a minute by default", () => {
    const workflow = compiled([send("step", { retry: { strategy: "linear" } })], [edge("", "step")])
    const play = new Play(workflow, facts(), () => fails())
    const begun = play.now
    play.run()
    expect(play.begun).toHaveLength(6)
    expect(play.now - begun).toBe(5 * 60_000)
  })

  it("A step that waits for a retry fails with its last error when the run is stopped", () => {
    const workflow = compiled(
      [send("again", { retry: { interval: 60_000, count: 3 } }), send("bad1")],
      [edge("", "again"), edge("", "bad1")]
    )
    const play = new Play(workflow, facts(), (effect) =>
      fails(idOf(effect) === "bad1" ? "TIMEOUT" : "BAD_RESPONSE")
    ).run()
    expect(play.ends).toEqual(["again: failed", "bad1: failed"])
    expect(play.at("again").error?.code).toBe("BAD_RESPONSE")
    expect(play.begun).toEqual(["again/1", "bad1/1"])
  })

  it("A step fails when its output is too long or a required input has no value", () => {
    const long = new Play(compiled([call("step")], [edge("", "step")]), facts(), () =>
      done("x".repeat(1_100_000))
    ).run()
    expect(long.at("step").error?.code).toBe("OUTPUT_TOO_LARGE")
    const named = { id: "step", kind: "action", action: { provider_key: "test", action_key: "named" } }
    const without = new Play(compiled([named], [edge("", "step")]), facts()).run()
    expect(without.at("step").error?.code).toBe("INPUT_REQUIRED")
    const large = compiled([echo("step", { a: "{{trigger.body}}", b: "{{trigger.body}}" })], [edge("", "step")])
    expect(new Play(large, facts("x".repeat(600_000))).run().at("step").error?.code).toBe("INPUT_TOO_LARGE")
  })
})

describe("Delay step", () => {
  const until = (config: object, body: unknown = {}) => {
    const play = new Play(
      compiled([delay("wait", config as never), echo("next")], [edge("", "wait"), edge("wait", "next")]),
      facts(body as never)
    )
    const from = play.now
    play.tell({ type: "begun" })
    while (play.step());
    const { error, status, wait } = play.at("wait")
    return error?.code ?? (status === "succeeded" ? 0 : wait!.until - from)
  }
  const day = 86_400_000

  it.each([
    [{ mode: "for", amount: 1, unit: "days" }, {}, day],
    [{ mode: "for", amount: 31, unit: "days" }, {}, 31 * day],
    [{ mode: "for", amount: 0, unit: "days" }, {}, 0],
    [{ mode: "for", amount: "{{trigger.body.n}}", unit: "minutes" }, { n: 2 }, 120_000],
    [{ mode: "for", amount: "{{trigger.body.n}}", unit: "minutes" }, { n: "1.5" }, 90_000],
    [{ mode: "for", amount: "{{trigger.body.n}}", unit: "minutes" }, { n: -1 }, 0],
    [{ mode: "for", amount: "{{trigger.body.n}}", unit: "weeks" }, { n: 5 }, "DELAY_TOO_LONG"],
    [{ mode: "for", amount: "{{trigger.body.n}}", unit: "weeks" }, { n: "soon" }, "INPUT_INVALID"],
    [{ mode: "for", amount: "{{trigger.body.n}}", unit: "weeks" }, {}, "INPUT_REQUIRED"],
    [{ mode: "until", until: "2026-01-02" }, {}, day],
    [{ mode: "until", until: "2026-01-02T00:00:00Z" }, {}, day],
    [{ mode: "until", until: "2026-01-02T02:00:00+02:00" }, {}, day],
    [{ mode: "until", until: "2026-01-02 01:00", timezone: "Europe/Berlin" }, {}, day],
    [{ mode: "until", until: "2025-12-31" }, {}, 0],
    [{ mode: "until", until: "2025-12-31", past: "fail" }, {}, "DELAY_IN_PAST"],
    [{ mode: "until", until: "2026-03-01" }, {}, "DELAY_TOO_LONG"],
    [{ mode: "until", until: "{{trigger.body.at}}" }, { at: "2026-01-01T00:00:05Z" }, 5_000],
    [{ mode: "until", until: "{{trigger.body.at}}" }, { at: "2026-13-01" }, "INPUT_INVALID"],
    [{ mode: "until", until: "{{trigger.body.at}}" }, { at: 7 }, "INPUT_INVALID"],
    [{ mode: "until", until: "{{trigger.body.at}}" }, {}, "INPUT_REQUIRED"]
  ])("A delay step with %j and the body %j waits as long as expected or fails", (config, body, expected) => {
    expect(until(config, body)).toBe(expected)
  })

  it("A delay step continues when it is due, and its output has both times", () => {
    const workflow = compiled(
      [delay("wait", { mode: "for", amount: 1, unit: "hours" }), echo("next")],
      [edge("", "wait"), edge("wait", "next")]
    )
    const play = new Play(workflow, facts()).run()
    expect(play.at("wait").output).toEqual({
      scheduled_for: "2026-01-01T01:00:00.000Z",
      released_at: "2026-01-01T01:00:00.000Z"
    })
    expect(play.ends).toEqual(["wait: succeeded", "next: succeeded"])
  })
})

describe("List step", () => {
  const each = (config: object = {}) =>
    compiled(
      [
        call("each", { for_each: "{{trigger.body.lines[].n}}", ...config }, { n: "{{item}}", i: "{{item_index}}" }),
        echo("next", { all: "{{steps.each.output}}" })
      ],
      [edge("", "each"), edge("each", "next")]
    )
  const lines = (...ns: ReadonlyArray<number>) => facts({ lines: ns.map((n) => ({ n })) })

  it("A list step runs for each item in order, one after the other", () => {
    const play = new Play(each(), lines(5, 6, 7), ({ inputs }) => done(inputs.values)).run()
    expect(play.begun).toEqual(["each/1", "each[0]/1", "each[1]/1", "each[2]/1", "next/1"])
    expect(play.at("next").output).toEqual({
      all: {
        items: [
          { n: 5, i: 0 },
          { n: 6, i: 1 },
          { n: 7, i: 2 }
        ],
        count: 3
      }
    })
  })

  it("A list step succeeds with an empty list", () => {
    expect(new Play(each(), lines()).run().at("each").output).toEqual({ items: [], count: 0 })
  })

  it("A list step ends at the first failed item, or continues with on_error continue", () => {
    const second = ({ inputs }: Effect) => (inputs.values["i"] === 1 ? fails() : done(inputs.values["n"]))
    const stops = new Play(each(), lines(5, 6, 7), second).run()
    expect(stops.at("each")).toMatchObject({ status: "failed", iterations: { count: 3, items: [5] } })
    const goes = new Play(each({ on_error: "continue" }), lines(5, 6, 7), second).run()
    expect(goes.at("each")).toMatchObject({ status: "succeeded", output: { items: [5, null, 7], count: 3 } })
    expect(goes.state.outcome).toBe("completed_with_errors")
  })

  it("A retried list step sends only its failed items again, and those that never began", () => {
    for (const on_error of ["fail", "continue", "branch"]) {
      const failing = new Set([1, 3])
      const workflow = compiled(
        [
          call("each", { for_each: "{{trigger.body}}", on_error }, { n: "{{item}}" }),
          echo("next", { all: "{{steps.each.output.items}}" })
        ],
        [edge("", "each"), edge("each", "next", on_error === "branch" ? { source_port: "error" } : {})]
      )
      const play = new Play(workflow, facts([0, 1, 2, 3, 4]), ({ start }) =>
        failing.has(start.iteration!) ? fails() : done(`${start.iteration}`)
      ).run()
      const first = on_error === "continue" ? [0, 1, 2, 3, 4] : [0, 1]
      expect(play.begun.filter((one) => one.startsWith("each["))).toEqual(first.map((n) => `each[${n}]/1`))
      failing.clear()
      const before = play.begun.length
      play.tell({ type: "retried", step: 0 }).run()
      const again = on_error === "continue" ? [1, 3] : [1, 2, 3, 4]
      expect(play.begun.slice(before)).toEqual([
        ...again.map((n) => `each[${n}]/1`),
        ...(on_error === "branch" ? [] : ["next/1"])
      ])
      expect(play.at("each").output).toEqual({ items: ["0", "1", "2", "3", "4"], count: 5 })
      expect(play.state.outcome).toBe("completed")
    }
  })

  it("A list step whose items all succeeded cannot be retried, and one whose list was not known begins anew", () => {
    const whole = new Play(each({ on_error: "continue" }), lines(5, 6)).run()
    const ended = whole.state
    expect(whole.tell({ type: "retried", step: 0 }).state).toBe(ended)
    const unknown = new Play(
      compiled([call("each", { for_each: "{{trigger.body}}" })], [edge("", "each")]),
      facts("no list")
    ).run()
    expect(unknown.at("each").error?.code).toBe("FOR_EACH_NOT_ARRAY")
    expect(unknown.tell({ type: "retried", step: 0 }).at("each")).toMatchObject({ status: "pending", iterations: null })
  })

  it("A list step retries each item separately", () => {
    const workflow = each({ retry: { interval: 1_000, count: 1 } })
    const play = new Play(workflow, lines(5, 6), ({ start }) => (start.attempt === 1 ? fails() : done())).run()
    expect(play.begun).toEqual(["each/1", "each[0]/1", "each[0]/2", "each[1]/1", "each[1]/2", "next/1"])
  })

  it("A list step with several items at once starts no other while the run is held, or after its workflow is disabled", () => {
    const begun = () => {
      const play = new Play(each({ concurrency: 2 }), lines(5, 6, 7)).tell({ type: "begun" })
      play.step()
      expect(play.begun).toEqual(["each/1", "each[0]/1", "each[1]/1"])
      return play
    }
    const held = begun().tell({ type: "held" })
    while (held.step());
    expect(held.begun).toHaveLength(3)
    expect(held.at("each").wait?.kind).toBe("hold")
    held.tell({ type: "released" }).finish()
    expect(held.begun.slice(3)).toEqual(["each[2]/1", "next/1"])
    const disabled = begun().tell({ type: "stopped", error: { code: "WORKFLOW_DISABLED", message: "off" } })
    while (disabled.step());
    expect(disabled.begun).toHaveLength(3)
    expect(disabled.at("each")).toMatchObject({ status: "failed", error: { code: "WORKFLOW_DISABLED" } })
    expect(disabled.at("each").iterations?.items).toHaveLength(2)
    expect(disabled.state.outcome).toBe("cancelled")
  })

  it("When a list step with several items at once fails, an item that waits for another attempt ends with its error", () => {
    const workflow = each({ concurrency: 3, retry: { interval: 1_000, count: 1, response_status_codes: [">=500"] } })
    const play = new Play(workflow, lines(5, 6, 7), ({ start }) =>
      [() => fails("LATE", 503), () => fails("FINAL", 400), () => done("fine")][start.iteration!]!()
    ).run()
    expect(play.begun).toEqual(["each/1", "each[0]/1", "each[1]/1", "each[2]/1"])
    const { error, iterations, status } = play.at("each")
    expect([status, error?.code, play.state.outcome]).toEqual(["failed", "FINAL", "failed"])
    expect(iterations?.notes.map((note) => [note.index, note.error?.code])).toEqual([
      [1, "FINAL"],
      [0, "LATE"]
    ])
    expect(iterations?.items[2]).toBe("fine")
  })

  it("A list step accepts the result of each item once, and no result for another item", () => {
    const play = new Play(each(), lines(5, 6)).tell({ type: "begun" })
    play.step()
    const first = { type: "succeeded", step: 0, attempt: 1, iteration: 0, output: "A", ports: ["out"] } as const
    play
      .tell(first)
      .tell(first)
      .tell({ ...first, iteration: null })
    expect(play.at("each")).toMatchObject({ status: "running", iterations: { count: 2, items: ["A"] } })
  })

  it("A list step starts no item while the run is held or after its workflow is disabled", () => {
    const held = new Play(each(), lines(5, 6, 7)).tell({ type: "begun" })
    held.step()
    held.tell({ type: "held" })
    while (held.step());
    expect(held.begun).toEqual(["each/1", "each[0]/1"])
    expect(held.at("each").wait?.kind).toBe("hold")
    expect(held.tell({ type: "released" }).finish().begun).toEqual([
      "each/1",
      "each[0]/1",
      "each[1]/1",
      "each[2]/1",
      "next/1"
    ])
    const stopped = new Play(each(), lines(5, 6, 7)).tell({ type: "begun" })
    stopped.step()
    stopped.tell({ type: "stopped", error: { code: "WORKFLOW_DELETED", message: "" } }).finish()
    expect(stopped.begun).toEqual(["each/1", "each[0]/1"])
    expect(stopped.at("each")).toMatchObject({ status: "failed", error: { code: "WORKFLOW_DELETED" } })
  })

  it("A list step fails when its value is not a list or is too long", () => {
    expect(new Play(each(), facts({ lines: 7 })).run().at("each").error?.code).toBe("FOR_EACH_NOT_ARRAY")
    const many = facts({ lines: Array.from({ length: 501 }, () => ({ n: 1 })) })
    expect(new Play(each(), many).run().at("each").error?.code).toBe("FOR_EACH_TOO_LARGE")
  })
})

describe("Control of a run", () => {
  const chain = compiled(
    [call("one1"), delay("wait", { mode: "for", amount: 1, unit: "hours" }), call("two2")],
    [edge("", "one1"), edge("one1", "wait"), edge("wait", "two2")]
  )

  it("A held run starts nothing, and continues where it was when it is released", () => {
    const play = new Play(chain, facts()).tell({ type: "begun" }).tell({ type: "held" })
    while (play.step());
    expect(play.ends).toEqual(["one1: succeeded", "wait: pending", "two2: pending"])
    play.tell({ type: "released" })
    while (play.step());
    play.tell({ type: "held" })
    play.tell({ type: "due", step: 1 })
    expect(play.at("wait").status).toBe("running")
    expect(play.tell({ type: "released" }).finish().state.status).toBe("succeeded")
  })

  it("In a stopped run, running steps complete, waiting steps fail, and nothing starts", () => {
    const stop = {
      type: "stopped",
      error: { code: "WORKFLOW_DISABLED", message: "The workflow was disabled" }
    } as const
    const early = new Play(chain, facts()).tell(stop)
    expect(early.state).toMatchObject({ status: "failed", outcome: "cancelled", startedAt: null })
    const amid = new Play(chain, facts()).tell({ type: "begun" }).tell(stop)
    expect(amid.state.finishedAt).toBeNull()
    expect(amid.finish().ends).toEqual(["one1: succeeded", "wait: run_stopped", "two2: run_stopped"])
    const waiting = new Play(chain, facts()).tell({ type: "begun" })
    while (waiting.step());
    expect(waiting.tell(stop).ends).toEqual(["one1: succeeded", "wait: failed", "two2: upstream_failed"])
    expect(waiting.at("wait").error?.code).toBe("WORKFLOW_DISABLED")
  })

  it("A recovered run starts again what was running", () => {
    const play = new Play(chain, facts()).tell({ type: "begun" }).tell({ type: "recovered" })
    expect(play.begun).toEqual(["one1/1", "one1/1"])
    expect(play.finish().state.status).toBe("succeeded")
  })

  it("A retried run executes the failed step and what follows, and keeps what succeeded", () => {
    const workflow = compiled(
      [call("one1"), call("bad1"), call("after"), call("side"), call("late")],
      [edge("", "one1"), edge("one1", "bad1"), edge("bad1", "after"), edge("", "side"), edge("side", "late")]
    )
    let broken = true
    const play = new Play(workflow, facts(), (effect) => (broken && idOf(effect) === "bad1" ? fails() : done())).run()
    expect(play.state.status).toBe("failed")
    const before = play.begun.length
    broken = false
    play.tell({ type: "retried", step: play.indexOf("one1") })
    expect(play.begun).toHaveLength(before)
    play.tell({ type: "retried", step: play.indexOf("bad1") })
    expect(play.state).toMatchObject({ status: "queued", outcome: null, finishedAt: null })
    expect(play.begun).toHaveLength(before)
    play.run()
    expect(play.state).toMatchObject({ status: "succeeded", outcome: "completed", stopped: null })
    expect(play.begun.slice(before).every((one) => ["bad1/1", "after/1", "late/1"].includes(one))).toBe(true)
  })

  it("A run stores at most one megabyte of a step with all its items, and ten megabytes in total", () => {
    const half = "x".repeat(600_000)
    const listed = new Play(
      compiled([send("each", { for_each: "{{trigger.body.list}}" })], [edge("", "each")]),
      facts({ list: [1, 2, 3] }),
      () => done(half)
    ).run()
    expect(listed.at("each")).toMatchObject({ status: "failed", error: { code: "OUTPUT_TOO_LARGE" } })
    const ids = Array.from({ length: 20 }, (_, i) => `step_${i}`)
    const many = new Play(
      compiled(
        ids.map((id) => send(id, { on_error: "continue" })),
        ids.map((id) => edge("", id))
      ),
      facts(),
      () => done(half)
    ).run()
    expect(many.ends.filter((end) => end.endsWith("succeeded"))).toHaveLength(17)
    expect(many.state).toMatchObject({ status: "succeeded", outcome: "completed_with_errors" })
  })

  it("A released run wakes all steps that became due while it was held", () => {
    const play = new Play(chain, facts()).tell({ type: "begun" })
    while (play.step());
    play.tell({ type: "due", step: 1 })
    expect(play.at("wait").status).toBe("running")
    play.tell({ type: "held" })
    play.now += 3_600_000
    play.tell({ type: "due", step: 1 })
    expect(play.at("wait").status).toBe("running")
    play.tell({ type: "released" })
    expect(play.at("wait").status).toBe("succeeded")
  })

  it("A run retries at most five steps at once", () => {
    const ids = Array.from({ length: 12 }, (_, i) => `step_${i}`)
    const retry = { interval: 1_000, count: 1 }
    const play = new Play(
      compiled(
        ids.map((id) => send(id, { retry, on_error: "continue" })),
        ids.map((id) => edge("", id))
      ),
      facts(),
      () => fails()
    ).tell({ type: "begun" })
    while (play.step());
    play.now += 1_000
    const before = play.begun.length
    for (const step of ids.keys()) play.tell({ type: "due", step })
    expect(play.begun.length - before).toBe(5)
    expect(play.finish().begun).toHaveLength(24)
  })

  it("A run ignores repeated and late results", () => {
    const play = new Play(chain, facts()).tell({ type: "begun" })
    const succeeded = { type: "succeeded", step: 0, attempt: 1, iteration: null, output: 1, ports: ["out"] } as const
    play.tell(succeeded)
    const { state } = play
    play.tell({ ...succeeded, output: 2 })
    play.tell({ type: "failed", step: 0, attempt: 1, iteration: null, error: { code: "X", message: "" }, random: 0 })
    play.tell({ type: "begun" })
    play.tell({ type: "succeeded", step: 2, attempt: 1, iteration: null, output: null, ports: ["out"] })
    play.tell({ type: "succeeded", step: 9, attempt: 1, iteration: null, output: null, ports: ["out"] })
    play.tell({ type: "due", step: 2 })
    play.tell({ type: "retried", step: 0 })
    expect(play.state).toBe(state)
  })
})

const failedWith = (
  outcome: Outcome,
  inputs: { readonly [input: string]: Json } = {},
  before: Json = {}
): Extract<Occurrence, { readonly type: "failed" }> => {
  const texts = new SecretTexts()
  allOf(texts.learn(before))
  const start = { step: 0, attempt: 1, iteration: null }
  return occurs(start, outcome, { values: inputs, warnings: [] }, texts) as never
}

describe("Step error messages", () => {
  const thrown = (message: string): Outcome => ({ kind: "failed", error: { code: "RUNTIME_ERROR", message } })
  const messageOf = (message: string, before: Json, inputs = {}): string =>
    failedWith(thrown(message), inputs, before).error.message

  it("An error message masks values that had a secret name in the run or in the step's inputs", () => {
    const before = { password: "open sesame", headers: { authorization: "Bearer plain-words-here" } }
    expect(messageOf("no open sesame", before)).toBe("no [REDACTED]")
    expect(messageOf("wrong: plain-words-here!", before), "without its scheme").toBe("wrong: [REDACTED]!")
    expect(messageOf("no open sesame", {}, { password: "open sesame" })).toBe("no [REDACTED]")
    expect(messageOf("no open sesame", {}, { greeting: "open sesame" })).toBe("no open sesame")
  })

  it("An error message contains no part of a secret that was cut off", () => {
    const secret = "correct horse battery staple"
    expect(messageOf("it was correct horse bat", { secret })).toBe("it was [REDACTED]")
    expect(messageOf(`${"x".repeat(1_990)}${secret}`, { secret })).toBe(`${"x".repeat(1_990)}[REDACTED]`)
    expect(messageOf(`${"x".repeat(7_990)}${secret}`, { secret })).not.toContain("correct")
  })

  it("An error message is masked completely when a run has too many secrets", () => {
    const many = Array.from({ length: 101 }, (_, n) => ({ token: `token-${n}` }))
    expect(messageOf("no token-100", many)).toBe("[REDACTED]")
  })

  it("Warnings of a step mask secrets, even when it succeeds", () => {
    const warnings = [{ code: "INPUT_COERCED", field: "a", message: "open sesame is no number" }]
    const succeeded: Outcome = { kind: "succeeded", output: null, ports: ["out"], warnings }
    expect(failedWith(succeeded, {}, { password: "open sesame" }).warnings).toMatchObject([
      { message: "[REDACTED] is no number" }
    ])
  })
})

it("A step's error and warnings are limited, because each journal entry of the run stores them", () => {
  const warnings = Array.from({ length: 101 }, () => ({ code: "TEMPLATE_VALUE_MISSING", field: "x" }))
  const error = { code: "RUNTIME_ERROR", message: "x".repeat(2_001) }
  const occurrence = failedWith({ kind: "failed", error, warnings })
  expect(occurrence).toMatchObject({ error: { code: "RUNTIME_ERROR", message: "x".repeat(2_000) } })
  expect((occurrence as { readonly warnings: ReadonlyArray<unknown> }).warnings).toHaveLength(100)
})

describe("Resumable work of a run", () => {
  const condition = { trigger: { body: { a: 1 } } }
  const countOf = (parts: Generator<void, unknown, void>): number => {
    let count = 0
    while (parts.next().done !== true) count++
    return count
  }
  const time = { now: 0, clock: () => 0 }

  it("The conditions of edges are evaluated in parts", () => {
    const ids = Array.from({ length: 40 }, (_, i) => `step${i}`)
    const workflow = compiled(
      ids.map((id) => send(id)),
      ids.map((id) => edge("", id, { condition }))
    )
    const begun = { type: "begun" } as const
    const parts = deciding(workflow, facts({ a: 1 }), queuedRun(workflow), begun, 0)
    expect("starts" in parts ? 0 : countOf(parts)).toBeGreaterThanOrEqual(40)
    const { state } = decide(workflow, facts({ a: 1 }), queuedRun(workflow), begun, 0)
    expect(new Set(state.edges)).toEqual(new Set(["taken"]))
  })

  it("The paths of a branch are evaluated in parts", () => {
    const paths = Array.from({ length: 10 }, (_, i) => ({ key: `p${i}`, rule: "conditions", conditions: condition }))
    const workflow = compiled([branch("fork", paths)], [edge("", "fork")])
    const { starts, state } = decide(workflow, facts({ a: 1 }), queuedRun(workflow), { type: "begun" }, 0)
    expect(
      countOf(perform(workflow, facts({ a: 1 }), state, starts[0]!, time, new SecretTexts()))
    ).toBeGreaterThanOrEqual(10)
  })

  it("The items of a list are processed in parts", () => {
    const workflow = compiled([echo("each", { a: "{{item}}" }, { for_each: "{{trigger.body}}" })], [edge("", "each")])
    const body = Array.from({ length: 300 }, (_, i) => i)
    const begun = { type: "begun" } as const
    expect(
      countOf(advance(workflow, facts(body), queuedRun(workflow), begun, time, new SecretTexts()))
    ).toBeGreaterThanOrEqual(300)
  })

  it("A warning is short, whatever names it contains", () => {
    const long = "x".repeat(100_000)
    const workflow = compiled([echo("only", { [long]: "{{trigger.body.none}}" })], [edge("", "only")])
    const { steps } = new Play(workflow, facts()).run().state
    expect(steps[0]!.warnings).toHaveLength(1)
    expect(steps[0]!.warnings[0]!.field).toHaveLength(300)
  })
})
