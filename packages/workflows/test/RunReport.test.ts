import { newId, prefixes } from "@tidegate/model/Ids"
import { describe, expect, it } from "vitest"
import { partOf } from "../src/Progress.ts"
import { type Occurrence, queuedRun } from "../src/RunState.ts"
import { StepReports } from "../src/RunReport.ts"
import type { Workflow } from "../src/Workflow.ts"
import { call, compiled, edge, facts, filter } from "./Graphs.ts"
import { done, fails, Play } from "./Play.ts"

/** A play whose changes are all stored and reported. */
class Reported extends Play {
  part = 0
  readonly reports = new StepReports("wfr_01kak203r6v1f7q0p5n3k2j4rs", this.workflow)

  override tell(occurrence: Occurrence): this {
    const before = this.state ?? queuedRun(this.workflow)
    super.tell(occurrence)
    if (this.state !== before) {
      const { progress } = partOf(before, this.state)
      this.reports.take({ part: ++this.part, at: this.now, steps: JSON.stringify(progress) })
    }
    return this
  }

  report(id: string) {
    return this.reports.executions().find(({ step_id }) => step_id === id)!
  }
}

const listed = (): Workflow =>
  compiled(
    [
      filter("begin", { body: { yes: true } }),
      call("each", { for_each: "{{trigger.body.all}}", on_error: "continue" })
    ],
    [edge("", "begin"), edge("begin", "each")]
  )

describe("Run report", () => {
  it("A run report shows the progress of a list", () => {
    let count = 0
    const play = new Reported(listed(), facts({ yes: true, all: [1, 2, 3] }), () =>
      ++count === 2 ? fails() : done({})
    )
    play.run()
    const each = play.report("each")
    expect(each).toMatchObject({
      status: "succeeded",
      iterations: { count: 3, completed: 3, failed: 1 },
      handled: true,
      attempt_count: 1,
      attempts: [{ number: 1, status: "succeeded" }],
      warnings: []
    })
    const well = { status: "succeeded", attempt_count: 1, response_status: null, error_code: null, error_message: null }
    const badly = { response_status: 500, error_code: "BAD_RESPONSE", error_message: "HTTP 500" }
    expect(each.iterations?.elements).toEqual([
      { index: 0, ...well },
      { index: 1, ...well, ...badly, status: "failed" },
      { index: 2, ...well }
    ])
    expect(play.reports.retryable()).toEqual(["each"])
  })

  it("A run report tells each element of a list while it runs, after it failed, and while it is retried", () => {
    const retry = { interval: 1_000, count: 1 }
    const workflow = compiled([call("each", { for_each: "{{trigger.body}}", retry })], [edge("", "each")])
    let fail = true
    const play = new Reported(workflow, facts([0, 1, 2]), ({ start }) =>
      start.iteration === 1 && fail ? fails() : done({})
    ).tell({ type: "begun" })
    const elements = () =>
      play
        .report("each")
        .iterations?.elements?.map((one) => `${one.status} ${one.attempt_count} ${one.error_code ?? ""}`.trim())
    play.step()
    expect(elements()).toEqual(["running 1", "pending 0", "pending 0"])
    play.step()
    expect(elements()).toEqual(["succeeded 1", "running 1", "pending 0"])
    play.step()
    expect(elements()).toEqual(["succeeded 1", "running 1 BAD_RESPONSE", "pending 0"])
    play.finish()
    expect(elements()).toEqual(["succeeded 1", "failed 2 BAD_RESPONSE", "skipped 0"])
    fail = false
    play.tell({ type: "retried", step: 0 })
    expect(elements()).toEqual(["succeeded 1", "pending 0", "pending 0"])
    play.tell({ type: "begun" })
    expect(elements()).toEqual(["succeeded 1", "running 1", "pending 0"])
    play.finish()
    expect(elements()).toEqual(["succeeded 1", "succeeded 1", "succeeded 1"])
  })

  it("A note of a failed element has no part of a secret, also where its message is cut", () => {
    const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
    const message = `${"x ".repeat(145)}${secret}${" y".repeat(100)}`
    const play = new Reported(listed(), facts({ yes: true, all: [1] }), () => ({
      kind: "failed",
      error: { code: "BAD_RESPONSE", message }
    })).run()
    const [note] = play.at("each").iterations!.notes
    expect(note!.error!.message).toHaveLength(300)
    expect(note!.error!.message).not.toContain("sk_")
    expect(play.report("each").iterations!.elements![0]!.error_message).toBe(note!.error!.message)
  })

  it("A run report of a journal entry of an earlier version does not say which elements failed", () => {
    const reports = new StepReports("wfr_1", listed())
    const each = { status: "succeeded", attempt: 1, handled: true, iterations: { count: 3, completed: 3 } }
    reports.take({ part: 1, at: 0, steps: JSON.stringify({ steps: { 1: each } }) })
    expect(reports.executions()[1]!.iterations).toEqual({ count: 3, completed: 3, failed: 0, elements: null })
  })

  it("A run report lists skipped steps with their reason after the executed ones", () => {
    const play = new Reported(listed(), facts({ yes: false, all: [] }), () => done({})).run()
    expect(play.reports.executions().map(({ skip_reason, status, step_id }) => [step_id, status, skip_reason])).toEqual(
      [
        ["begin", "succeeded", null],
        ["each", "skipped", "filtered"]
      ]
    )
    expect(play.report("begin")).toMatchObject({ output_port: null, output_ports: [] })
  })

  it("A run report starts a step's attempts anew when the step is retried", () => {
    let fail = true
    const workflow = compiled(
      [call("tried", { retry: { interval: 1_000, count: 1 } }), call("after")],
      [edge("", "tried"), edge("tried", "after")]
    )
    const play = new Reported(workflow, facts({}), () => (fail ? fails() : done({ status: 204 })))
    play.run()
    expect(play.report("tried").attempts.map(({ number, status }) => [number, status])).toEqual([
      [1, "failed"],
      [2, "failed"]
    ])
    expect(play.reports.retryable()).toEqual(["tried"])
    fail = false
    play.tell({ type: "retried", step: 0 }).run()
    expect(play.report("tried")).toMatchObject({ status: "succeeded", response_status: 204, error_code: null })
    expect(play.report("tried").attempts.map(({ number, status }) => [number, status])).toEqual([[1, "succeeded"]])
    expect(play.report("after").status).toBe("succeeded")
    expect(play.reports.retryable()).toEqual([])
  })

  it("A run report marks the steps that could start as held while the run is held", () => {
    const workflow = compiled(
      [call("begin"), call("next"), call("last"), filter("beside", { body: { yes: true } }), call("never")],
      [edge("", "begin"), edge("begin", "next"), edge("next", "last"), edge("", "beside"), edge("beside", "never")]
    )
    const play = new Reported(workflow, facts({ yes: false }), () => done({}))
    play.tell({ type: "begun" }).tell({ type: "held" })
    const { attempt } = play.state.steps[0]!
    const ended = { type: "succeeded", step: 0, attempt, iteration: null, output: {}, ports: ["out"] } as const
    play.now += 5_000
    play.tell(ended)
    const waits = (held: boolean) =>
      Object.fromEntries(play.reports.executions(undefined, held).map(({ step_id, wait }) => [step_id, wait]))
    const nothing = { begin: null, last: null, beside: null, never: null }
    expect(waits(true)).toEqual({ ...nothing, next: { kind: "hold", until: new Date(play.now).toISOString() } })
    expect(waits(false)).toEqual({ ...nothing, next: null })
  })

  it("A run that is held before its first step is reported as held since it was received", () => {
    const id = newId(prefixes.workflowRun, 1_700_000_000_000)
    const { edges, steps } = compiled(
      [call("begin"), filter("asked", { body: { yes: true } }), call("next")],
      [edge("", "begin"), { ...edge("", "asked"), condition: { body: { yes: true } } }, edge("begin", "next")]
    )
    const reports = new StepReports(id, { steps, edges })
    const waits = Object.fromEntries(reports.executions(undefined, true).map(({ step_id, wait }) => [step_id, wait]))
    const hold = { kind: "hold", until: new Date(1_700_000_000_000).toISOString() }
    // Whether a condition of the trigger's edge holds, nobody has looked.
    expect(waits).toEqual({ begin: hold, asked: null, next: null })
    expect(reports.executions(undefined, false).every(({ wait }) => wait === null)).toBe(true)
  })

  it("A run report contains warnings without secrets", () => {
    const reports = new StepReports("wfr_1", listed())
    const warnings = [
      { code: "TEMPLATE_VALUE_MISSING", field: "input" },
      { code: "INPUT_COERCED", field: "input", line_item_index: 2, message: "was sk_live_4eC39HqLyjWDarjtT1zdp7dc" }
    ]
    const begin = { status: "succeeded", attempt: 1, ports: ["matched"], warnings }
    reports.take({ part: 1, at: 0, steps: JSON.stringify({ steps: { 0: begin } }) })
    expect(reports.executions()[0]!.warnings).toEqual([warnings[0], { ...warnings[1], message: "was [REDACTED]" }])
  })

  it("A run report ignores unreadable entries, and its summary omits steps that no entry contains", () => {
    const reports = new StepReports("wfr_1", listed())
    reports.take({ part: 1, at: 0, steps: "{}" })
    reports.take({
      part: 2,
      at: 0,
      steps: JSON.stringify({ steps: { 0: { status: "running", attempt: 1, ports: [] }, 9: {} } })
    })
    expect(reports.summaries(false).map(({ step_id }) => step_id)).toEqual(["begin"])
    expect(reports.summaries(true).map(({ status }) => status)).toEqual(["running", "pending"])
  })
})
