import type { Json } from "@tidegate/model/Rule"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { describe, expect, it } from "vitest"
import { advance } from "../src/Advance.ts"
import { linesOf, outputsIn, type Part, partOf, progressText, stateOf } from "../src/Progress.ts"
import { isRetryable, type Occurrence, queuedRun, type RunState } from "../src/RunState.ts"
import { SecretTexts } from "../src/SecretTexts.ts"
import type { Outcome } from "../src/StepKind.ts"
import type { Workflow } from "../src/Workflow.ts"
import { branch, call, compiled, delay, echo, edge, facts, filter } from "./Graphs.ts"
import { allOf, dice, done, fails, Play, refuses } from "./Play.ts"

/** A journal entry as it is read again. Its texts are those that `JSON.stringify` makes. */
const stored = ({ outputs, progress }: Part): Part => {
  const text = progressText(progress)
  expect(text).toBe(JSON.stringify(progress))
  const lines = runToEnd(linesOf(outputs))
  expect(lines).toBe(
    outputs === null
      ? null
      : Object.entries(outputs)
          .map((one) => JSON.stringify(one))
          .join("\n")
  )
  return { progress: JSON.parse(text) as Part["progress"], outputs: runToEnd(outputsIn(lines)) }
}

/** A world that stores a part for each change, and knows its run from its parts alone. */
class Stored extends Play {
  readonly parts: Array<Part> = []

  override tell(occurrence: Occurrence): this {
    const before = this.state
    super.tell(occurrence)
    if (this.state !== before) this.parts.push(stored(partOf(before, this.state)))
    expect(stateOf(this.workflow, this.parts)).toEqual(this.state)
    this.state = stateOf(this.workflow, this.parts)
    return this
  }
}

const everything = (): Workflow =>
  compiled(
    [
      echo("begin", { all: "{{trigger.body.all}}" }),
      filter("maybe", { body: { yes: true } }),
      branch("paths", [
        { key: "a", rule: "conditions", conditions: { body: { yes: true } } },
        { key: "b", rule: "fallback" }
      ]),
      call("each", { for_each: "{{trigger.body.all}}", on_error: "continue" }, { one: "{{item}}" }),
      call("tried", { retry: { interval: 1_000, count: 2 }, on_error: "branch" }),
      delay("wait", { mode: "for", amount: 1, unit: "hours" }),
      echo("join", { of: "{{steps.each.output.count}}" }),
      call("last")
    ],
    [
      edge("", "begin"),
      edge("begin", "maybe"),
      edge("begin", "paths"),
      edge("maybe", "each"),
      edge("paths", "tried", { source_port: "path_a" }),
      edge("paths", "wait", { source_port: "path_b" }),
      edge("tried", "join"),
      edge("tried", "wait", { source_port: "error" }),
      edge("each", "join"),
      edge("wait", "last"),
      edge("join", "last")
    ]
  )

describe("Journal entries of a run", () => {
  it.each(Array.from({ length: 60 }, (_, seed) => seed))("Journal entries restore a run anywhere (seed %i)", (seed) => {
    const roll = dice(seed)
    const body = { yes: roll() < 0.7, all: Array.from({ length: Math.floor(roll() * 5) }, (_, i) => ({ i })) }
    const outcomes = (): Outcome => {
      if (roll() < 0.6) return done({ drawn: Math.floor(roll() * 3) })
      return roll() < 0.5 ? fails() : refuses({ drawn: Math.floor(roll() * 3) }, 503)
    }
    const play = new Stored(everything(), facts(body), outcomes, roll).run()
    expect(play.state.finishedAt).not.toBeNull()
    const failed = play.state.steps.findIndex(({ status }) => status === "failed")
    if (failed >= 0) play.tell({ type: "retried", step: failed }).run()
    expect(play.state.finishedAt).not.toBeNull()
    // A list that passed over failed elements is retried as well.
    for (let beginnings = 0; beginnings < 3; beginnings++) {
      const step = play.state.steps.findIndex(isRetryable)
      if (step >= 0) play.tell({ type: "retried", step }).run()
      expect(play.state.finishedAt).not.toBeNull()
      const whole = JSON.parse(JSON.stringify(partOf(queuedRun(play.workflow), play.state))) as Part
      expect(stateOf(play.workflow, [whole])).toEqual(play.state)
    }
  })

  it("A journal entry carries a list whose failed items are being called again", () => {
    const workflow = compiled(
      [call("each", { for_each: "{{trigger.body}}", on_error: "continue" })],
      [edge("", "each")]
    )
    const failing = new Set([0, 2, 3])
    const play = new Stored(workflow, facts([0, 1, 2, 3]), ({ start }) =>
      failing.has(start.iteration!) ? fails() : done({ n: start.iteration })
    ).run()
    failing.clear()
    play.tell({ type: "retried", step: 0 }).tell({ type: "begun" })
    expect(play.at("each").iterations?.items).toEqual([undefined, { n: 1 }, undefined, undefined])
    play.step()
    const whole = JSON.parse(JSON.stringify(partOf(queuedRun(workflow), play.state))) as Part
    expect(stateOf(workflow, [whole])).toEqual(play.state)
    play.finish()
    expect(play.at("each").output).toEqual({ items: [0, 1, 2, 3].map((n) => ({ n })), count: 4 })
  })

  it("Journal entries store each failed item of a list, and each item that is called again, once", () => {
    const workflow = compiled(
      [call("each", { for_each: "{{trigger.body}}", on_error: "continue" })],
      [edge("", "each")]
    )
    let fail = true
    const body = Array.from({ length: 500 }, (_, i) => i)
    const play = new Play(workflow, facts(body), () => (fail ? fails() : done("x".repeat(100))))
    let written = 0
    let before = play.state
    const noting = (occurrence: Occurrence): void => {
      play.tell(occurrence)
      written += JSON.stringify(partOf(before, play.state)).length
      before = play.state
    }
    const all = (): void => {
      noting({ type: "begun" })
      while (play.step()) {
        written += JSON.stringify(partOf(before, play.state)).length
        before = play.state
      }
    }
    all()
    fail = false
    noting({ type: "retried", step: 0 })
    all()
    expect(play.at("each").iterations?.items).toHaveLength(500)
    expect(play.state.outcome).toBe("completed")
    // About 500 bytes for each of the 1,000 calls, and the list of the opened elements once.
    expect(written).toBeLessThan(1_000 * 800)
  })

  it("A list whose items succeed at once is stored as by earlier versions", () => {
    const workflow = compiled([call("each", { for_each: "{{trigger.body}}" })], [edge("", "each")])
    const play = new Stored(workflow, facts([1, 2]), () => done("a")).run()
    expect(play.parts.map(({ progress }) => progress.steps[0]?.iterations)).toEqual([
      undefined,
      { count: 2, completed: 0 },
      { count: 2, completed: 1 },
      { count: 2, completed: 2 }
    ])
  })

  it("The answer of a refused call is kept as long as outputs, not as long as the record", () => {
    const workflow = compiled([call("call", { retry: { count: 1, interval: 1_000 } })], [edge("", "call")])
    const play = new Stored(workflow, facts(), () => refuses({ hint: "no such customer" }, 503)).run()
    expect(play.parts.map(({ progress }) => JSON.stringify(progress)).join("")).not.toContain("customer")
    const withoutOutputs = play.parts.map(({ progress }) => ({ progress, outputs: null }))
    expect(stateOf(workflow, withoutOutputs).steps[0]!.error).toEqual({
      code: "BAD_RESPONSE",
      message: "HTTP 503",
      status: 503
    })
  })

  it("Journal entries store each item of a list once", () => {
    const workflow = compiled([call("each", { for_each: "{{trigger.body}}" })], [edge("", "each")])
    const play = new Stored(workflow, facts(Array.from({ length: 50 }, (_, i) => i)), () => done("x".repeat(100))).run()
    expect(play.parts.length).toBeGreaterThan(50)
    expect(JSON.stringify(play.parts).length).toBeLessThan(50 * 1_000)
  })
})

describe("Advance of a run", () => {
  const time = { now: Date.UTC(2026, 0, 1), clock: () => 0 }

  const advanced = (workflow: Workflow, state: RunState, occurrence: Occurrence, body: Json = {}) =>
    allOf(advance(workflow, facts(body), state, occurrence, time, new SecretTexts()))

  it("An advance executes a chain of in-process steps to its end and returns their inputs", () => {
    const ids = Array.from({ length: 7 }, (_, i) => `step_${i}`)
    const workflow = compiled(
      ids.map((id, i) => echo(id, { from: i === 0 ? "{{trigger.body.a}}" : `{{steps.${ids[i - 1]}.output.from}}` })),
      ids.map((id, i) => edge(i === 0 ? "" : ids[i - 1]!, id))
    )
    const { effects, inputs, state } = advanced(workflow, queuedRun(workflow), { type: "begun" }, { a: 7 })
    expect(state).toMatchObject({ status: "succeeded", outcome: "completed" })
    expect(effects).toEqual([])
    expect([...inputs.values()]).toEqual(ids.map(() => ({ from: 7 })))
  })

  it("An advance stops at a step that leaves the process, and continues with its result", () => {
    const workflow = compiled(
      [echo("before"), call("call", {}, { a: 1 }), echo("after", { got: "{{steps.call.output}}" })],
      [edge("", "before"), edge("before", "call"), edge("call", "after")]
    )
    const begun = advanced(workflow, queuedRun(workflow), { type: "begun" })
    expect(begun.effects.map(({ inputs, step }) => [step.step.id, inputs.values])).toEqual([["call", { a: 1 }]])
    expect(begun.state.steps.map(({ status }) => status)).toEqual(["succeeded", "running", "pending"])
    const ended = advanced(workflow, begun.state, {
      type: "succeeded",
      step: 1,
      attempt: 1,
      iteration: null,
      output: "answer",
      ports: ["out"]
    })
    expect(ended.state.status).toBe("succeeded")
    expect(ended.state.steps[2]!.output).toEqual({ got: "answer" })
  })

  it("An advance starts unfinished steps again after a recovery", () => {
    const workflow = compiled([call("call", {}, { a: 1 })], [edge("", "call")])
    const begun = advanced(workflow, queuedRun(workflow), { type: "begun" })
    const again = advanced(workflow, begun.state, { type: "recovered" })
    expect(again.effects.map(({ start }) => start)).toEqual(begun.effects.map(({ start }) => start))
  })
})
