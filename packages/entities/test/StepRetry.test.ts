import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { coming, create, from, receive, runOf, sent, trim, wake, world } from "./RunsWorld.ts"

const refused: Outcome = { kind: "failed", error: { code: "BAD_RESPONSE", message: "HTTP 500", status: 500 } }
const newRetry = () => newId(prefixes.stepRetry, Date.now())

/** One step that succeeds, one that fails, one behind it, and one beside it that is never reached. */
const failedRun = Effect.gen(function* () {
  const destination = yield* createDestination()
  const send = (id: string) => ({ id, kind: "destination", resource_id: destination.id })
  const workflow = yield* create(
    [
      trim("before", "{{trigger.body.name}}"),
      send("sent"),
      send("fails"),
      trim("after", "{{steps.before.output.result}}")
    ],
    [from(null, "before"), from("before", "sent"), from("sent", "fails"), from("fails", "after")]
  )
  coming.push(
    Effect.succeed<Outcome>({ kind: "succeeded", output: { status: 200 }, ports: ["out"] }),
    Effect.succeed(refused)
  )
  const run = yield* receive(workflow, { name: " a " })
  yield* wake(workflow.id)
  expect(yield* runOf(run)).toMatchObject({ status: "failed", succeeded_steps: 2, attempts: 1 })
  return { workflow, run }
})

const retry = Effect.fnUntraced(function* (workflow: string, run_id: string, step_id: string, retry_id = newRetry()) {
  const client = yield* WorkflowEntity.client
  return yield* client(workflow).RetryStep({ team_id: team, run_id, step_id, retry_id })
})

const refusal = (workflow: string, run: string, step: string) =>
  Effect.map(Effect.flip(retry(workflow, run, step)), (error) => error as { code: string; data?: unknown })

layer(world, { excludeTestServices: true })("Retried step of a run", (it) => {
  it.effect("A retried step runs with all steps that follow, with the same version and no repetitions", () =>
    Effect.gen(function* () {
      const { run, workflow } = yield* failedRun
      const workflows = yield* Workflows
      yield* workflows.update(team, workflow.id, (stored) => Result.succeed({ ...stored, name: "other" }))
      const before = sent.length
      const id = newRetry()
      expect(yield* retry(workflow.id, run, "fails", id)).toEqual({
        id: run,
        workflow_id: workflow.id,
        workflow_version: 1,
        status: "queued",
        retry_outbox_id: id,
        retry_step: { step_id: "fails", name: "" }
      })
      const ended = yield* Effect.repeat(Effect.andThen(wake(workflow.id), runOf(run)), {
        until: ({ status }) => status !== "queued" && status !== "running"
      })
      expect(ended).toMatchObject({
        status: "succeeded",
        outcome: "completed",
        attempts: 2,
        succeeded_steps: 4,
        error_code: null,
        queued: false
      })
      expect(sent.slice(before).map(([step]) => step)).toEqual(["fails"])
      // Its key is as it was: whoever did it in spite of what they answered does it once.
      expect(
        new Set(
          sent
            .filter(([step]) => step === "fails")
            .slice(-2)
            .map(([, key]) => key)
        ).size
      ).toBe(1)
    })
  )

  it.effect.each([1, 4])(
    "A retried list step repeats only the calls of its failed elements, with their keys: %s at once",
    (concurrency) =>
      Effect.gen(function* () {
        const destination = yield* createDestination()
        const config = { for_each: "{{trigger.body.lines}}", on_error: "continue", concurrency }
        const workflow = yield* create(
          [{ id: "each", kind: "destination", resource_id: destination.id, config }],
          [from(null, "each")]
        )
        const answered = Effect.succeed<Outcome>({ kind: "succeeded", output: { status: 200 }, ports: ["out"] })
        coming.push(answered, Effect.succeed(refused), answered, Effect.succeed(refused))
        const before = sent.length
        const run = yield* receive(workflow, { lines: [1, 2, 3, 4] })
        yield* wake(workflow.id)
        expect(yield* runOf(run)).toMatchObject({ status: "succeeded", outcome: "completed_with_errors" })
        const keys = sent.slice(before).map(([, key]) => key)
        expect(new Set(keys).size).toBe(4)
        yield* retry(workflow.id, run, "each")
        const ended = yield* Effect.repeat(Effect.andThen(wake(workflow.id), runOf(run)), {
          until: ({ status }) => status !== "queued" && status !== "running"
        })
        expect(ended).toMatchObject({ status: "succeeded", outcome: "completed", attempts: 2, queued: false })
        expect(sent.slice(before + 4).map(([, key]) => key)).toEqual([keys[1], keys[3]])
        expect(yield* refusal(workflow.id, run, "each")).toMatchObject({ code: "STEP_NOT_RETRYABLE" })
      })
  )

  it.effect("Only one of several concurrent retries is queued, and a repeated one gets the same answer", () =>
    Effect.gen(function* () {
      const { run, workflow } = yield* failedRun
      coming.push(Effect.never)
      const ids = Array.from({ length: 5 }, newRetry)
      const answers = yield* Effect.all(
        ids.map((id) => Effect.exit(retry(workflow.id, run, "fails", id))),
        { concurrency: "unbounded" }
      )
      const made = ids.filter((_, i) => answers[i]!._tag === "Success")
      expect(made).toHaveLength(1)
      expect(yield* retry(workflow.id, run, "fails", made[0])).toMatchObject({ retry_outbox_id: made[0] })
      expect(yield* runOf(run)).toMatchObject({ attempts: 2 })
    })
  )

  it.effect("A retry that makes no sense or is impossible is rejected", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { run, workflow } = yield* failedRun
      expect(yield* refusal(workflow.id, run, "before")).toMatchObject({
        code: "STEP_NOT_RETRYABLE",
        data: { step_status: "succeeded" }
      })
      expect(yield* refusal(workflow.id, run, "after")).toMatchObject({ data: { step_status: "skipped" } })
      expect(yield* refusal(workflow.id, run, "nowhere")).toMatchObject({
        code: "NOT_FOUND",
        data: { resource_type: "workflow_step" }
      })
      expect(yield* refusal(workflow.id, newId(prefixes.workflowRun, Date.now()), "fails")).toMatchObject({
        code: "NOT_FOUND",
        data: { resource_type: "workflow_run" }
      })
      const waiting = yield* receive(workflow, {})
      expect(yield* refusal(workflow.id, waiting, "fails")).toMatchObject({ code: "RUN_ACTIVE" })
      yield* sql`update workflows set status = 'disabled' where id = ${workflow.id}`
      expect(yield* refusal(workflow.id, run, "fails")).toMatchObject({ code: "WORKFLOW_NOT_EXECUTABLE" })
      yield* sql`update workflows set status = 'active' where id = ${workflow.id}`
      yield* sql`update requests set headers = '', body = null from workflow_runs r where r.id = ${run} and requests.id = r.request_id`
      expect(yield* refusal(workflow.id, run, "fails")).toMatchObject({ code: "RUN_PAYLOAD_EXPIRED" })
      expect(yield* runOf(run)).toMatchObject({ status: "failed", attempts: 1, queued: false })
    })
  )
})
