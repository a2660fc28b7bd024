import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { endedAs, waitingForRun } from "../src/kinds/WorkflowStep.ts"
import type { Outcome } from "../src/StepKind.ts"
import { undoFault } from "../src/Undo.ts"
import { compileWorkflow } from "../src/Workflow.ts"
import { call, catalog, compiled, edge, facts, filter } from "./Graphs.ts"
import { done, fails, Play } from "./Play.ts"

type Written = Readonly<Record<string, unknown>>

const issuesOf = (steps: ReadonlyArray<Written>, edges: ReadonlyArray<Written>): ReadonlyArray<string> => {
  const issues = Result.getFailure(compileWorkflow(steps, edges, catalog))
  if (issues._tag === "None") return []
  return issues.value.map(
    ({ code, edge_id, field, message, step_id }) => `${code} ${step_id ?? edge_id} ${field}: ${message}`
  )
}

const undone = (id: string, compensate: string, config: Written = {}) => call(id, { ...config, compensate })

/** charge → ship → tell; the last one fails. */
const order = (config: Written = {}) =>
  compiled(
    [
      undone("charge", "refund"),
      call("refund", config, { payment: "{{steps.charge.output.id}}" }),
      undone("ship", "recall"),
      call("recall"),
      call("tell")
    ],
    [edge("", "charge"), edge("charge", "ship"), edge("ship", "tell")]
  )

const played = (outcomes: Readonly<Record<string, ReadonlyArray<Outcome>>>, workflow = order()): Play => {
  const left = new Map(Object.entries(outcomes).map(([id, all]) => [id, [...all]]))
  return new Play(workflow, facts(), ({ step: { step } }) => left.get(step.id)?.shift() ?? done({ id: `${step.id} 1` }))
}

const tellFails = { tell: [fails()] }

describe("A compensation in a definition", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Written>, ReadonlyArray<Written>, string]> = [
    [
      "an unknown step",
      [undone("charge", "refnd"), undone("ship", "refund"), call("refund")],
      [edge("", "charge"), edge("", "ship")],
      "STEP_CONFIG_INVALID charge config.compensate: names no step of this workflow; did you mean refund?"
    ],
    [
      "itself",
      [undone("charge", "charge")],
      [edge("", "charge")],
      "STEP_CONFIG_INVALID charge config.compensate: a step cannot undo itself"
    ],
    [
      "a filter",
      [undone("charge", "paid"), filter("paid", { body: {} })],
      [edge("", "charge")],
      "STEP_CONFIG_INVALID charge config.compensate: a filter step cannot undo another one"
    ],
    [
      "a step that undoes another one already",
      [undone("charge", "refund"), undone("ship", "refund"), call("refund")],
      [edge("", "charge"), edge("", "ship")],
      "STEP_CONFIG_INVALID ship config.compensate: refund undoes charge already: each step needs one of its own"
    ],
    [
      "a step that is undone itself",
      [undone("charge", "refund"), undone("refund", "other"), call("other")],
      [edge("", "charge")],
      "STEP_CONFIG_INVALID charge config.compensate: refund has a compensate itself: a step that undoes another is not undone"
    ],
    [
      "for_each",
      [undone("charge", "refund", { for_each: "{{trigger.body}}" }), call("refund")],
      [edge("", "charge")],
      "STEP_CONFIG_INVALID charge config.compensate: is not possible with for_each: put the call and its undo into a workflow, and call that"
    ],
    [
      "a step with on_error",
      [undone("charge", "refund"), call("refund", { on_error: "continue" })],
      [edge("", "charge")],
      "STEP_CONFIG_INVALID refund config.on_error: has no effect: this step undoes charge"
    ],
    [
      "a step that an edge enters",
      [undone("charge", "refund"), call("refund")],
      [edge("", "charge"), edge("charge", "refund", { id: "edge_1" })],
      "EDGE_INVALID edge_1 target_step_id: refund undoes charge: it runs when the run has failed, and has no edges"
    ],
    [
      "a step that an edge leaves",
      [undone("charge", "refund"), call("refund"), call("then")],
      [edge("", "charge"), edge("refund", "then", { id: "edge_1" })],
      "EDGE_INVALID edge_1 source_step_id: refund undoes charge: it runs when the run has failed, and has no edges"
    ]
  ]
  it.each(cases)("is refused when it names %s", (_, steps, edges, expected) => {
    expect(issuesOf(steps, edges)).toContain(expected)
  })

  it("is refused in a circle, which is named", () => {
    const issues = issuesOf([undone("first", "second"), undone("second", "first"), call("other")], [edge("", "other")])
    expect(issues).toContainEqual(expect.stringMatching(/^GRAPH_CYCLE/))
  })

  it("is refused on a step that stays within the process", () => {
    const within = { id: "name", kind: "action", action: { provider_key: "test", action_key: "echo" } }
    const issues = issuesOf([{ ...within, config: { compensate: "undo" } }, call("undo")], [edge("", "name")])
    expect(issues).toContainEqual(expect.stringMatching(/^STEP_CONFIG_INVALID name config.compensate/))
  })

  it("reads what it undoes and the steps before that, but no later one", () => {
    const steps = (path: string) => [
      undone("charge", "refund"),
      call("refund", {}, { of: `{{steps.${path}.output.id}}` }),
      call("tell")
    ]
    const edges = [edge("", "charge"), edge("charge", "tell")]
    expect(issuesOf(steps("charge"), edges)).toEqual([])
    expect(issuesOf(steps("tell"), edges)).toEqual([expect.stringMatching(/^TEMPLATE_REFERENCE_NOT_UPSTREAM refund/)])
  })
})

describe("The undo of a run", () => {
  it("A failed run calls the compensations in reverse order, and says why it has failed", () => {
    const play = played(tellFails).run()
    expect(play.begun).toEqual(["charge/1", "ship/1", "tell/1", "recall/1", "refund/1"])
    expect(play.effects.at(-1)!.inputs.values).toEqual({ payment: "charge 1" })
    expect(play.state).toMatchObject({ status: "failed", outcome: "failed", stopped: { step: play.indexOf("tell") } })
    expect(undoFault(play.workflow, play.state, null)).toBeNull()
  })

  it("A run that succeeds calls none, and shows them as not needed", () => {
    const play = played({}).run()
    expect(play.begun).toEqual(["charge/1", "ship/1", "tell/1"])
    expect(play.state.outcome).toBe("completed")
    expect(play.ends).toContain("refund: not_needed")
  })

  it("A step that failed is not undone, and neither is one that was not reached", () => {
    const play = played({ ship: [fails()] }).run()
    expect(play.begun).toEqual(["charge/1", "ship/1", "refund/1"])
    expect(play.at("recall").skipReason).toBe("not_needed")
  })

  it("A compensation that fails for good is tried as its retry says, and the others go on", () => {
    const retry = { retry: { count: 1, interval: 1_000 } }
    const play = played({ ...tellFails, recall: [fails()], refund: [fails(), fails()] }, order(retry)).run()
    expect(play.begun.slice(3)).toEqual(["recall/1", "refund/1", "refund/2"])
    const fault = undoFault(play.workflow, play.state, { code: "BAD_RESPONSE", message: "HTTP 500" })!
    expect(fault.error).toEqual({
      code: "UNDO_INCOMPLETE",
      message:
        "2 of 2 steps are not undone: refund has not undone charge (HTTP 500); the run had failed with BAD_RESPONSE: HTTP 500"
    })
    expect(fault.step).toBe(play.indexOf("refund"))
  })

  it("A retry of a compensation repeats only that one, and steps of an undone run are not retried", () => {
    const play = played({ ...tellFails, recall: [fails()] }).run()
    const before = play.state
    play.tell({ type: "retried", step: play.indexOf("tell") })
    play.tell({ type: "retried", step: play.indexOf("refund") })
    expect(play.state).toBe(before)
    play.tell({ type: "retried", step: play.indexOf("recall") })
    expect(play.state.status).toBe("queued")
    play.run()
    expect(play.begun.slice(3)).toEqual(["recall/1", "refund/1", "recall/1"])
    expect(play.state).toMatchObject({ status: "failed", outcome: "failed" })
    expect(undoFault(play.workflow, play.state, null)).toBeNull()
  })

  it("A run in which nothing had to be undone is retried from its failed step, and is undone when it fails later", () => {
    const play = played({ charge: [fails()], tell: [fails()] }).run()
    expect(play.begun).toEqual(["charge/1"])
    play.tell({ type: "retried", step: play.indexOf("charge") }).run()
    expect(play.begun).toEqual(["charge/1", "charge/1", "ship/1", "tell/1", "recall/1", "refund/1"])
  })

  it("In a paused workflow no compensation begins until it is active again", () => {
    const play = played(tellFails).tell({ type: "begun" })
    play.step()
    play.step()
    play.tell({ type: "held" }).finish()
    expect(play.begun).toEqual(["charge/1", "ship/1", "tell/1"])
    expect(play.state.finishedAt).toBeNull()
    play.tell({ type: "released" }).finish()
    expect(play.begun.slice(3)).toEqual(["recall/1", "refund/1"])
  })

  it("A run that is stopped from outside is not undone", () => {
    const play = played({}).tell({ type: "begun" })
    play.step()
    play.tell({ type: "stopped", error: { code: "WORKFLOW_DISABLED", message: "disabled" } }).finish()
    expect(play.begun).toEqual(["charge/1", "ship/1"])
    expect(play.state.outcome).toBe("cancelled")
    expect(play.at("refund").skipReason).toBe("run_stopped")
    expect(undoFault(play.workflow, play.state, null)).toBeNull()
  })

  it("What a stop has left out of an undo is retried", () => {
    const play = played(tellFails).tell({ type: "begun" })
    while (!play.begun.includes("recall/1")) play.step()
    play.tell({ type: "stopped", error: { code: "WORKFLOW_DISABLED", message: "disabled" } }).finish()
    expect(play.ends).toContain("refund: run_stopped")
    expect(undoFault(play.workflow, play.state, null)).toMatchObject({ step: play.indexOf("refund") })
    play.tell({ type: "retried", step: play.indexOf("refund") }).run()
    expect(play.begun.slice(3)).toEqual(["recall/1", "refund/1"])
  })

  it("A called workflow is undone by another one, whose end continues the undo; a call that was late is not undone", () => {
    const workflow = (id: string, config: Written = {}) => ({ id, kind: "workflow", resource_id: "wfl_1", config })
    const graph = compiled(
      [workflow("ship", { compensate: "recall" }), workflow("recall"), call("tell")],
      [edge("", "ship"), edge("ship", "tell"), edge("ship", "tell", { source_port: "timed_out" })]
    )
    const begin = (): Play => {
      const play: Play = new Play(graph, facts(), ({ step: { kind } }) =>
        kind.kind === "workflow" ? waitingForRun(play.now + 1_000) : fails()
      )
      return play.tell({ type: "begun" })
    }
    const end = (play: Play, id: string): void => {
      const run = { run_id: `wfr_${id}`, workflow_id: "wfl_1", outcome: "completed", error: null, result: 1 }
      play.tell({ type: "signalled", step: play.indexOf(id), ...endedAs(run) })
      play.tell({ type: "due", step: play.indexOf(id) })
    }
    const play = begin()
    play.step()
    end(play, "ship")
    while (play.step());
    expect(play.at("recall")).toMatchObject({ status: "running", wait: { kind: "signal" } })
    end(play, "recall")
    expect(play.ends).toEqual(["ship: succeeded", "tell: failed", "recall: succeeded"])
    expect(play.state.finishedAt).not.toBeNull()
    const late = begin().finish()
    expect(late.ends).toEqual(["ship: succeeded", "tell: failed", "recall: not_needed"])
  })
})
