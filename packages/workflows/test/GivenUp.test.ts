import { expect, it } from "@effect/vitest"
import { GivenUp } from "../src/GivenUp.ts"
import { type Part, partOf, stateOf } from "../src/Progress.ts"
import { queuedRun, type RunState } from "../src/RunState.ts"
import { call, compiled, echo, edge, facts, filter } from "./Graphs.ts"
import { dice, done, fails, Play } from "./Play.ts"

const error = { code: "INTERNAL_ERROR", message: "the run cannot be carried on" }

/** A filter, two calls beside each other of which one is tried again, a join, and something that nobody comes to. */
const workflow = compiled(
  [
    filter("passes", { body: { yes: true } }),
    call("one1", { retry: { strategy: "linear", interval: 1_000, count: 5 } }),
    call("two2", { on_error: "continue" }),
    echo("join"),
    filter("never", { body: { yes: false } }),
    echo("beyond")
  ],
  [
    edge("", "passes"),
    edge("passes", "one1"),
    edge("passes", "two2"),
    edge("one1", "join"),
    edge("two2", "join"),
    edge("", "never"),
    edge("never", "beyond")
  ]
)

/** A run up to where so many attempts have ended, in some order, with its parts. */
const until = (attempts: number, roll: () => number) => {
  const play = new Play(workflow, facts({ yes: true }), () => (roll() < 0.5 ? fails() : done()), roll)
  const parts: Array<Part> = []
  let before: RunState = queuedRun(workflow)
  const store = () => {
    if (play.state !== before) parts.push(partOf(before, play.state))
    before = play.state
  }
  play.tell({ type: "begun" })
  store()
  for (let i = 0; i < attempts && play.step(); i++) store()
  return { play, parts }
}

it("All steps of an abandoned run have ended, and retries can complete the run", () => {
  const roll = dice(17)
  for (let game = 0; game < 200; game++) {
    const { parts, play } = until(Math.floor(roll() * 8), roll)
    if (play.state.finishedAt !== null) continue
    const given = new GivenUp()
    for (const { progress } of parts) given.take(JSON.stringify(progress))
    const { count, progress } = given.end({ error, stepsCount: 6, startedAt: 1, now: 2 })
    const state = stateOf(workflow, [...parts, { progress, outputs: null }])
    const ends = state.steps.map(({ status }) => status)
    expect(ends.filter((status) => status === "running" || status === "pending")).toEqual([])
    for (const status of ["succeeded", "failed", "skipped"] as const) {
      expect(ends.filter((one) => one === status)).toHaveLength(count[status])
    }
    expect(state).toMatchObject({
      status: "failed",
      outcome: "cancelled",
      stopped: { error, step: null },
      finishedAt: 2
    })

    const again = new Play(workflow, facts({ yes: true }))
    again.state = state
    for (
      let step = ends.indexOf("failed");
      step >= 0;
      step = again.state.steps.findIndex((one) => one.status === "failed")
    ) {
      again.tell({ type: "retried", step }).run()
      expect(again.state.finishedAt).not.toBeNull()
    }
    if (ends.includes("failed")) expect(again.state).toMatchObject({ status: "succeeded", outcome: "completed" })
  }
})

it("A step that waits for a retry fails with its last error, and unreadable entries are ignored", () => {
  const given = new GivenUp()
  given.take("{")
  given.take('"text"')
  const last = { code: "BAD_RESPONSE", message: "HTTP 500", status: 500 }
  const waits = { status: "running", attempt: 1, error: last, wait: { kind: "retry", until: 5 } }
  given.take(JSON.stringify({ steps: { 0: waits, 1: { status: "running", attempt: 1 } } }))
  const { count, progress } = given.end({ error, stepsCount: 3, startedAt: null, now: 2 })
  expect(count).toEqual({ succeeded: 0, failed: 2, skipped: 1 })
  expect(progress.steps).toMatchObject({
    0: { status: "failed", error: last, wait: null },
    1: { status: "failed", error },
    2: { status: "skipped", skipReason: "run_stopped" }
  })
})
