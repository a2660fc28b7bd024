import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { decided, filterFault, matchedAs, portsDecided, receivedAs } from "../src/kinds/WaitStep.ts"
import { rehearsalOf } from "../src/Mocks.ts"
import { partOf, stateOf } from "../src/Progress.ts"
import { queuedRun } from "../src/RunState.ts"
import { compileWorkflow } from "../src/Workflow.ts"
import { call, catalog, compiled, echo, edge, facts } from "./Graphs.ts"
import { dice, Play } from "./Play.ts"

const wait = (id: string, config: object = { for: "approval", amount: 2, unit: "hours" }) => ({
  id,
  kind: "wait",
  config
})

const ports = ["out", "rejected", "timed_out"] as const

/** A step that waits, with a step behind each of its ports, and a call beside it. */
const graph = compiled(
  [wait("wait"), ...ports.map((port) => echo(`by_${port}`)), call("beside")],
  [...ports.map((port) => edge("wait", `by_${port}`, { source_port: port })), edge("", "wait"), edge("", "beside")]
)

const begun = (): Play => {
  const play = new Play(graph, facts()).tell({ type: "begun" })
  while (play.step());
  return play
}

const signal = (play: Play, approves: boolean, comment: string | null = null) =>
  play.tell({
    type: "signalled",
    step: play.indexOf("wait"),
    output: decided(approves, comment, { by: "user", userId: "usr_1", name: null }, play.now),
    ports: portsDecided(approves)
  })

const reached = (play: Play): ReadonlyArray<string> =>
  ports.filter((port) => play.at(`by_${port}`).status === "succeeded")

describe("Step that waits for an approval", () => {
  it("A decision continues the run by its port, with who decided and when", () => {
    for (const [approves, port, decision] of [
      [true, "out", "approved"],
      [false, "rejected", "rejected"]
    ] as const) {
      const play = begun()
      expect(play.at("wait").wait).toMatchObject({ kind: "signal", until: play.now + 7_200_000 })
      play.now += 60_000
      signal(play, approves, "as agreed").finish()
      expect(reached(play)).toEqual([port])
      expect(play.at("wait").output).toEqual({
        decision,
        comment: "as agreed",
        decided_by: "user",
        decided_by_user_id: "usr_1",
        decided_by_name: null,
        decided_at: "2026-01-01T00:01:00.000Z",
        released_at: "2026-01-01T00:01:00.000Z"
      })
    }
  })

  it("Without a decision in time the run continues by timed_out, and a late decision changes nothing", () => {
    const play = begun()
    play.now += 7_200_000
    const before = play.state
    expect(signal(play, true).state).toBe(before)
    expect(reached(play.finish())).toEqual(["timed_out"])
    expect(play.at("wait").output).toMatchObject({ decision: null, decided_at: null })
  })

  it("Of several decisions the first counts, at any moment, also in a held run and over restarts", () => {
    for (let seed = 0; seed < 300; seed++) {
      const roll = dice(seed)
      const play = begun()
      let first: string | null = null
      for (let moment = 0; moment < 6; moment++) {
        const before = play.state
        const approves = roll() < 0.5
        const what = roll()
        const isInTime = first === null && play.now < Date.UTC(2026, 0, 1, 2)
        if (what < 0.4) {
          signal(play, approves)
          expect(play.state !== before).toBe(isInTime)
          if (isInTime) first = approves ? "out" : "rejected"
        } else if (what < 0.6) play.tell({ type: "held" })
        else if (what < 0.8) play.tell({ type: "released" })
        // The state goes through its stored form.
        else play.state = stateOf(graph, [partOf(queuedRun(graph), play.state)])
        if (roll() < 0.3) play.now += 3_600_000
      }
      play.tell({ type: "released" }).finish()
      expect([seed, reached(play)]).toEqual([seed, [first ?? "timed_out"]])
    }
  })

  it("A stopped run skips the step that waits, and takes no decision", () => {
    const play = begun().tell({ type: "stopped", error: { code: "RUN_CANCELLED", message: "cancelled" } })
    const before = play.state
    expect(signal(play, true).state).toBe(before)
    expect(play.at("wait").status).toBe("failed")
  })

  it("A test of the workflow approves unless it has a mock", () => {
    for (const [mock, port] of [
      [null, "out"],
      [{ decision: "rejected" }, "rejected"],
      [{ decision: null }, "timed_out"]
    ] as const) {
      const mocks = new Map(mock === null ? [] : [["wait", { output: mock }]])
      const play = new Play(rehearsalOf(graph, mocks, false).workflow, facts()).run()
      expect(reached(play)).toEqual([port])
    }
  })

  it("A wait is limited, and only known settings are accepted", () => {
    for (const config of [
      { for: "approval", amount: 0, unit: "days" },
      { for: "approval", amount: 32, unit: "days" },
      { for: "approval", amount: 1 },
      { for: "approval", amount: 1, unit: "days", retry: null },
      { for: "luck", amount: 1, unit: "days" }
    ]) {
      const result = compileWorkflow([wait("wait", config)], [edge("", "wait")], catalog)
      expect([config, Result.isFailure(result)]).toEqual([config, true])
    }
  })
})

it("A template with a URL that no step has is refused with the nearest name, and a stored one is not", () => {
  const faults = (text: string, isStored = false) => {
    const steps = [
      echo("asks", { text }),
      wait("wait"),
      wait("call-back", { for: "callback", amount: 1, unit: "hours" }),
      wait("request", { for: "event", amount: 1, unit: "hours" })
    ]
    const edges = [edge("", "asks"), edge("asks", "wait"), edge("wait", "call-back"), edge("", "request")]
    const result = compileWorkflow(steps, edges, { ...catalog, isStored })
    const found = Result.isFailure(result) ? result.failure : []
    return found.filter(({ step_id }) => step_id === "asks").map(({ code, message }) => `${code}: ${message}`)
  }
  const has = "TEMPLATE_INVALID: run.waits"
  const none = "TEMPLATE_REFERENCE_UNKNOWN: names no step that waits for an approval or a callback"
  for (const [name, fault] of [
    ["wait.approve_url", null],
    ["wait.reject_url", null],
    ["call-back.callback_url", null],
    ["wait", null],
    ["wait.aprove_url", `${has}.wait has only approve_url and reject_url; did you mean approve_url?`],
    ["wait.callback_url", `${has}.wait has only approve_url and reject_url`],
    ["call-back.approve_url", `${has}.call-back has only callback_url`],
    ["wiat.approve_url", `${none}; did you mean wait?`],
    ["asks.approve_url", none],
    ["request.callback_url", none],
    ["__proto__.approve_url", none],
    ["wait.toString", `${has}.wait has only approve_url and reject_url`]
  ] as const) {
    expect([name, faults(`{{run.waits.${name}}}`)]).toEqual([name, fault === null ? [] : [fault]])
    expect(faults(`{{run.waits.${name}}}`, true)).toEqual([])
  }
  // A step that cannot be read is reported itself, and not also by those that name it.
  const steps = [echo("asks", { text: "{{run.waits.wait.approve_url}}" }), { ...wait("wait"), name: 7 }]
  const result = compileWorkflow(steps, [edge("", "asks"), edge("asks", "wait")], catalog)
  expect(Result.isFailure(result) && result.failure.map(({ step_id }) => step_id)).toEqual(["wait"])
})

const calledBack = compiled(
  [
    call("before"),
    wait("wait", { for: "callback", amount: 2, unit: "hours" }),
    echo("by_out", { id: "{{steps.wait.output.body.id}}" }),
    echo("by_timed_out")
  ],
  [
    edge("", "before"),
    edge("before", "wait"),
    edge("wait", "by_out"),
    edge("wait", "by_timed_out", { source_port: "timed_out" })
  ]
)

const receive = (play: Play, id: string) =>
  play.tell({
    type: "signalled",
    step: play.indexOf("wait"),
    ...receivedAs({ method: "POST", headers: {}, query: {}, body: { id } }, play.now)
  })

const restarted = (play: Play): void => {
  play.state = stateOf(calledBack, [partOf(queuedRun(calledBack), play.state)])
}

describe("Step that waits for a callback", () => {
  it("The first callback counts, before the step waits and while it does, and over restarts at each moment", () => {
    for (let seed = 0; seed < 300; seed++) {
      const roll = dice(seed)
      const play = new Play(calledBack, facts()).tell({ type: "begun" })
      let first: string | null = null
      for (let moment = 0; moment < 8; moment++) {
        const before = play.state
        const what = roll()
        const isInTime = first === null && play.now < Date.UTC(2026, 0, 1, 2)
        if (what < 0.3) {
          receive(play, `c${moment}`)
          expect([seed, play.state !== before]).toEqual([seed, isInTime])
          if (isInTime) first = `c${moment}`
        } else if (what < 0.5) play.tell({ type: "held" })
        else if (what < 0.7) play.tell({ type: "released" })
        else if (what < 0.85) restarted(play)
        else while (play.step());
        // The time of the step begins with the step.
        if (play.at("wait").wait !== null && roll() < 0.3) play.now += 3_600_000
      }
      play.tell({ type: "released" }).finish()
      const port = first === null ? "by_timed_out" : "by_out"
      expect([seed, play.at(port).status]).toEqual([seed, "succeeded"])
      expect(play.at("wait").output).toMatchObject({
        body: first === null ? null : { id: first },
        released_at: expect.any(String)
      })
    }
  })

  it("A test of the workflow receives a callback unless its mock says that none came", () => {
    for (const [mock, step] of [
      [null, "by_out"],
      [{ body: { id: 1 } }, "by_out"],
      [{ received_at: null }, "by_timed_out"]
    ] as const) {
      const mocks = new Map(mock === null ? [] : [["wait", { output: mock }]])
      const play = new Play(rehearsalOf(calledBack, mocks, true).workflow, facts()).run()
      expect([mock, play.at(step).status]).toEqual([mock, "succeeded"])
    }
  })

  it("It has no port for a rejection", () => {
    const steps = [wait("wait", { for: "callback", amount: 1, unit: "days" }), echo("refused")]
    const edges = [edge("", "wait"), edge("wait", "refused", { source_port: "rejected" })]
    expect(Result.isFailure(compileWorkflow(steps, edges, catalog))).toBe(true)
  })
})

describe("Step that waits for a request", () => {
  const request = { request_id: "req_1", method: "POST", path: "/", headers: {}, query: {}, receivedAt: 0 }

  it("Names the source at which the request arrives, and takes a filter about it", () => {
    const config = { for: "event", amount: 1, unit: "days" }
    const issuesOf = (members: object): ReadonlyArray<string> => {
      const step = { id: "wait", kind: "wait", config, ...members }
      const result = compileWorkflow([step], [edge("", "wait")], catalog)
      return Result.isSuccess(result) ? [] : result.failure.map(({ code, field }) => `${code} ${field}`)
    }
    const filter = { body: { order: "{{trigger.body.order}}", total: { $gt: 5 } } }
    expect(issuesOf({ resource_id: "src_1" })).toEqual([])
    expect(issuesOf({ resource_id: "src_1", invocation_inputs: { filter } })).toEqual([])
    for (const [members, issue] of [
      [{}, "RESOURCE_REQUIRED resource_id"],
      [{ resource_id: "des_1" }, "RESOURCE_KIND_MISMATCH resource_id"],
      [{ resource_id: "src_1", config: { ...config, for: "callback" } }, "STEP_CONFIG_INVALID resource_id"],
      [{ resource_id: "src_1", invocation_inputs: { filters: {} } }, "STEP_CONFIG_INVALID invocation_inputs.filters"],
      [
        { resource_id: "src_1", invocation_inputs: { filter: { order: 1 } } },
        "CONDITION_INVALID invocation_inputs.filter"
      ],
      [
        { resource_id: "src_1", invocation_inputs: { filter: { body: { order: { $gt: {} } } } } },
        "CONDITION_INVALID invocation_inputs.filter.body.order.$gt"
      ],
      [
        { resource_id: "src_1", invocation_inputs: { filter: { body: "{{steps.other.output}}" } } },
        "TEMPLATE_REFERENCE_UNKNOWN invocation_inputs.filter.body"
      ]
    ] as const) {
      expect(issuesOf(members)).toContain(issue)
    }
  })

  it("A template in its filter stands for a text, a number or a truth value", () => {
    const written = { body: { order: "{{trigger.body.order}}", kind: { $in: ["a", 1] } } }
    const resolved = (order: unknown, more: object = {}) => ({ body: { order, kind: { $in: ["a", 1] } }, ...more })
    for (const order of ["7", 7, true, ""]) expect(filterFault(written, resolved(order))).toBeNull()
    for (const order of [null, undefined, {}, { $exist: true }, [7]]) {
      expect(filterFault(written, resolved(order))).toContain("filter.body.order")
    }
    expect(filterFault(written, resolved(7, { path: "/" }))).not.toBeNull()
    expect(filterFault(written, { body: { order: 7, kind: { $in: ["a", 2] } } })).not.toBeNull()
    const listed = { body: { kind: { $in: ["{{trigger.body.kind}}"] } } }
    expect(filterFault(listed, { body: { kind: { $in: ["a"] } } })).toBeNull()
    expect(filterFault(listed, { body: { kind: { $in: [{ $exist: true }] } } })).toContain("filter.body.kind.$in.0")
    expect(filterFault(undefined, resolved(7))).not.toBeNull()
  })

  it("Of a large request the output has no body, and says so", () => {
    expect(matchedAs({ ...request, body: "x".repeat(1_000) }).output).toMatchObject({ body_omitted: false })
    const large = matchedAs({ ...request, body: "x".repeat(300_000) })
    expect(large.output).toMatchObject({ request_id: "req_1", body: null, body_omitted: true })
    expect(large.size).toBeLessThan(1_000)
    const query = { all: "x".repeat(300_000) }
    expect(matchedAs({ ...request, query, body: "x" }).output).toMatchObject({ query: {}, body: null })
  })
})
