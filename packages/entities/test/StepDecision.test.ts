import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { StepLinks } from "../src/Workflow/StepLinks.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { coming, create, from, receive, runOf, sent, trim, wake, world } from "./RunsWorld.ts"

const ports = ["out", "rejected", "timed_out"] as const

const wait = { id: "wait", kind: "wait", config: { for: "approval", amount: 1, unit: "hours" } }

/** A step that waits, with a step behind each port. `beside`: with a call that runs beside it. */
const workflowOf = Effect.fnUntraced(function* (beside = false) {
  const destination = yield* createDestination()
  return yield* create(
    [
      wait,
      ...ports.map((port) => trim(`by_${port}`, "{{steps.wait.output.comment}}")),
      ...(beside ? [{ id: "beside", kind: "destination", resource_id: destination.id }] : [])
    ],
    [
      from(null, "wait"),
      ...ports.map((port) => Object.assign(from("wait", `by_${port}`), { source_port: port })),
      ...(beside ? [from(null, "beside")] : [])
    ]
  )
})

const decide = Effect.fnUntraced(function* (workflow: string, run_id: string, approves = true, of: string = team) {
  const client = yield* WorkflowEntity.client
  return yield* client(workflow).Decide({
    team_id: of,
    run_id,
    step_id: "wait",
    approves,
    comment: " yes ",
    user_id: "usr_1"
  })
})

/** A call that sends the URL of the step behind it, which waits for a callback. */
const callbackWorkflow = Effect.gen(function* () {
  const destination = yield* createDestination()
  const body = { url: "{{run.waits.wait.callback_url}}" }
  return yield* create(
    [
      { id: "asking", kind: "destination", resource_id: destination.id, invocation_inputs: { body } },
      { id: "wait", kind: "wait", config: { for: "callback", amount: 1, unit: "hours" } },
      trim("answer", "{{steps.wait.output.body.answer}}")
    ],
    [from(null, "asking"), from("asking", "wait"), from("wait", "answer")]
  )
})

const callBack = Effect.fnUntraced(function* (workflow: string, run_id: string, answer: string) {
  const client = yield* WorkflowEntity.client
  return yield* client(workflow).Receive({
    team_id: team,
    run_id,
    step_id: "wait",
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer not-kept" },
    query: "a=1",
    body: Buffer.from(JSON.stringify({ answer })).toString("base64")
  })
})

/** The stored outputs and previews of a run. */
const writtenOf = (run: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ outputs: string | null; previews: string; steps: string }>`
      select outputs, previews, steps from workflow_steps where run_id = ${run} order by part`
  )

const refusal = (workflow: string, run: string, of?: string) =>
  Effect.map(Effect.flip(decide(workflow, run, true, of)), (error) => (error as { code: string }).code)

/** The statuses of the steps, by the run's journal entries. */
const ended = (workflow: string, run: string) =>
  Effect.repeat(Effect.andThen(wake(workflow), runOf(run)), {
    until: ({ status }) => status !== "queued" && status !== "running"
  })

const makeDue = (run: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`update workflow_queue set due_at = now() where run_id = ${run}`)

layer(world, { excludeTestServices: true })("Decision of a step that waits", (it) => {
  it.effect("A waiting run is a row; a decision is stored with it, and the run continues by the decision", () =>
    Effect.gen(function* () {
      for (const approves of [true, false]) {
        const workflow = yield* workflowOf()
        const run = yield* receive(workflow, {})
        yield* wake(workflow.id)
        expect(yield* runOf(run)).toMatchObject({ status: "running", parts: 1, queued: true })
        // Found again before anybody has decided, it waits on.
        yield* makeDue(run)
        yield* wake(workflow.id)
        expect(yield* decide(workflow.id, run, approves)).toMatchObject({
          run_id: run,
          step_id: "wait",
          decision: approves ? "approved" : "rejected",
          comment: " yes ",
          decided_by_user_id: "usr_1"
        })
        expect(yield* ended(workflow.id, run)).toMatchObject({
          status: "succeeded",
          outcome: "completed",
          succeeded_steps: 2,
          skipped_steps: 2,
          queued: false
        })
        expect(yield* refusal(workflow.id, run)).toBe("STEP_NOT_WAITING")
      }
    })
  )

  it.effect("Of concurrent decisions exactly one is stored, and the others learn that", () =>
    Effect.gen(function* () {
      const workflow = yield* workflowOf()
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, (_, i) => Effect.result(decide(workflow.id, run, i % 2 === 0))),
        { concurrency: "unbounded" }
      )
      expect(answers.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
      expect(yield* ended(workflow.id, run)).toMatchObject({ status: "succeeded", succeeded_steps: 2 })
    })
  )

  it.effect("A decision about a run with a call under way is stored at once, and the call is made once", () =>
    Effect.gen(function* () {
      const workflow = yield* workflowOf(true)
      const run = yield* receive(workflow, {})
      const calls = sent.length
      const begun = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<Outcome>()
      coming.push(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(answer)))
      const working = yield* Effect.forkChild(wake(workflow.id))
      yield* Deferred.await(begun)
      expect(yield* decide(workflow.id, run)).toMatchObject({ decision: "approved" })
      expect(yield* refusal(workflow.id, run)).toBe("STEP_NOT_WAITING")
      yield* Deferred.succeed(answer, { kind: "succeeded", output: { status: 200 }, ports: ["out"] })
      yield* Fiber.join(working)
      expect(yield* ended(workflow.id, run)).toMatchObject({ status: "succeeded", succeeded_steps: 3 })
      expect(sent.slice(calls).map(([step]) => step)).toEqual(["beside"])
    })
  )

  it.effect("A step that has not begun, other teams and unknown runs get no decision", () =>
    Effect.gen(function* () {
      const workflow = yield* workflowOf()
      const run = yield* receive(workflow, {})
      expect(yield* refusal(workflow.id, run)).toBe("STEP_NOT_WAITING")
      yield* wake(workflow.id)
      expect(yield* refusal(workflow.id, run, "team_other")).toBe("NOT_FOUND")
      expect(yield* refusal(workflow.id, "wfr_none")).toBe("NOT_FOUND")
    })
  )

  it.effect(
    "Of concurrent callbacks exactly one is stored, with the outputs of the run, and the run continues by it",
    () =>
      Effect.gen(function* () {
        const workflow = yield* callbackWorkflow
        const run = yield* receive(workflow, {})
        yield* wake(workflow.id)
        expect(yield* runOf(run)).toMatchObject({ status: "running", queued: true })
        const answers = yield* Effect.all(
          Array.from({ length: 8 }, (_, i) => Effect.result(callBack(workflow.id, run, ` answer ${i} `))),
          { concurrency: "unbounded" }
        )
        expect(answers.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
        expect(yield* ended(workflow.id, run)).toMatchObject({ status: "succeeded", succeeded_steps: 3 })
        expect(yield* Effect.flip(callBack(workflow.id, run, "late"))).toMatchObject({ code: "STEP_NOT_WAITING" })
        const written = yield* writtenOf(run)
        const first = answers.findIndex(({ _tag }) => _tag === "Success")
        expect(written.map(({ outputs }) => outputs).join("")).toContain(`"answer ${first}"`)
        // What is kept as long as the run's record has nothing of the callback.
        expect(written.map(({ steps }) => steps).join("")).not.toContain(`answer ${first}`)
        expect(written.map(({ outputs }) => outputs).join("")).not.toContain("not-kept")
      })
  )

  it.effect(
    "A callback that comes while the call that asks for it is under way is kept when the process ends then",
    () =>
      Effect.gen(function* () {
        const workflow = yield* callbackWorkflow
        const run = yield* receive(workflow, {})
        const begun = yield* Deferred.make<void>()
        coming.push(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
        const working = yield* Effect.forkChild(wake(workflow.id))
        yield* Deferred.await(begun)
        yield* callBack(workflow.id, run, " early ")
        expect(yield* Effect.flip(callBack(workflow.id, run, "second"))).toMatchObject({ code: "STEP_NOT_WAITING" })
        yield* Fiber.interrupt(working)
        expect(yield* ended(workflow.id, run)).toMatchObject({ status: "succeeded", succeeded_steps: 3, queued: false })
        const written = yield* writtenOf(run)
        expect(written.at(-1)!.outputs).toContain('"early"')
      })
  )

  it.effect("The URL of a step that waits is in no preview", () =>
    Effect.gen(function* () {
      const workflow = yield* callbackWorkflow
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      const [first] = yield* writtenOf(run)
      expect(first!.previews).toContain("http://localhost/callbacks/")
      const links = (yield* StepLinks).of(
        { urls: new Map([["wait", ["callback_url"]]]) },
        {
          team_id: team,
          workflow_id: workflow.id,
          run_id: run
        }
      )
      const [token] = links!.tokens
      expect((yield* StepLinks).read(token!)).toEqual({
        team_id: team,
        workflow_id: workflow.id,
        run_id: run,
        step_id: "wait"
      })
      expect(first!.previews).not.toContain(token!.slice(-43))
      const other = token!.at(-2) === "a" ? "b" : "a"
      expect((yield* StepLinks).read(`${token!.slice(0, -2)}${other}${token!.slice(-1)}`)).toBeNull()
    })
  )

  it.effect(
    "A step that waits for a callback takes no decision, and a step that waits for a decision no callback",
    () =>
      Effect.gen(function* () {
        const calls = yield* callbackWorkflow
        const called = yield* receive(calls, {})
        yield* wake(calls.id)
        expect(yield* refusal(calls.id, called)).toBe("STEP_NOT_WAITING")
        const decides = yield* workflowOf()
        const run = yield* receive(decides, {})
        yield* wake(decides.id)
        expect(yield* Effect.flip(callBack(decides.id, run, "x"))).toMatchObject({ code: "STEP_NOT_WAITING" })
      })
  )
})
