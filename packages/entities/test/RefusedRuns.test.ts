import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import { newId, prefixes } from "@tidegate/model/Ids"
import * as RunDetail from "@tidegate/storage/reads/RunDetail"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { coming, create, from, receive, runOf, sent, trim, wake, worldOf } from "./RunsWorld.ts"

/** From which part on the database refuses a run's transitions, and what was handed in of it. */
const spoiled = new Map<string, { readonly from: number; readonly until: number; handedIn: number }>()
const spoil = (run: string, from: number, until = Number.POSITIVE_INFINITY) => {
  const of = { from, until, handedIn: 0 }
  spoiled.set(run, of)
  return of
}

const spoiling = Layer.effect(
  RunJournal,
  Effect.map(RunJournal, (journal) =>
    RunJournal.of({
      ...journal,
      move: (transition) => {
        const of = spoiled.get(transition.id)
        if (of === undefined) return journal.move(transition)
        of.handedIn++
        const isRefused = transition.part >= of.from && of.handedIn < of.until
        // No column of text holds a NUL.
        return journal.move(isRefused ? { ...transition, steps: `${transition.steps}\u0000` } : transition)
      }
    })
  )
).pipe(Layer.provide(RunJournal.layer))

const sending = Effect.fnUntraced(function* () {
  const destination = yield* createDestination()
  return yield* create(
    [trim("before", "a"), { id: "send", kind: "destination", resource_id: destination.id }],
    [from(null, "before"), from("before", "send")]
  )
})

/** Two steps beside each other, and one behind both. */
const parallel = Effect.fnUntraced(function* () {
  const destination = yield* createDestination()
  const send = (id: string) => ({ id, kind: "destination", resource_id: destination.id })
  return yield* create(
    [trim("before", "a"), send("one1"), send("two2"), trim("join", "b")],
    [from(null, "before"), from("before", "one1"), from("before", "two2"), from("one1", "join"), from("two2", "join")]
  )
})

const done: Outcome = { kind: "succeeded", output: { status: 200 }, ports: ["out"] }

const dueIn = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ minutes: number }>`
    select (extract(epoch from due_at - now()) / 60)::float8 as minutes from workflow_queue where run_id = ${run}`
  return row!.minutes
})

layer(worldOf(spoiling), { excludeTestServices: true })("Run that the database rejects", (it) => {
  it.effect("A run that the database rejects ends with the cause", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* sending()
      const run = yield* receive(workflow, {})
      const of = spoil(run, 2, 3)
      const before = sent.length
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({
        status: "failed",
        outcome: "cancelled",
        parts: 2,
        succeeded_steps: 1,
        error_code: "INTERNAL_ERROR",
        queued: false
      })
      const [row] = yield* sql`select error_message from workflow_runs where id = ${run}`
      expect(row).toEqual({ error_message: "what the run has come to cannot be stored" })
      yield* wake(workflow.id)
      expect(sent.length - before).toBe(1)
      expect(of.handedIn).toBe(3)
    })
  )

  it.effect("All steps of a rejected run end as its record says, and a step can be retried", () =>
    Effect.gen(function* () {
      const workflow = yield* parallel()
      const run = yield* receive(workflow, {})
      // The one beside it is under way.
      coming.push(Effect.succeed(done), Effect.never)
      spoil(run, 2, 3)
      yield* wake(workflow.id)
      const detail = yield* RunDetail.get(team, workflow.id, run, false)
      expect(
        Object.fromEntries(detail.steps.map(({ skip_reason, status, step_id }) => [step_id, skip_reason ?? status]))
      ).toEqual({
        before: "succeeded",
        one1: "failed",
        two2: "failed",
        join: "run_stopped"
      })
      const ended = detail.steps.filter(({ status }) => status === "failed")
      expect(ended).toMatchObject([
        { error_code: "INTERNAL_ERROR", wait: null, attempts: [{ status: "failed" }] },
        { error_code: "INTERNAL_ERROR", wait: null, attempts: [{ status: "failed" }] }
      ])
      for (const { finished_at } of detail.steps) expect(finished_at).not.toBeNull()
      expect(detail).toMatchObject({
        succeeded_steps: 1,
        failed_steps: 2,
        skipped_steps: 1,
        pending_steps: 0,
        running_steps: 0
      })
      expect(detail.retry.retryable_step_ids).toEqual(["one1", "two2"])

      const client = yield* WorkflowEntity.client
      for (const step_id of ["one1", "two2"]) {
        const retry_id = newId(prefixes.stepRetry, Date.now())
        yield* client(workflow.id).RetryStep({ team_id: team, run_id: run, step_id, retry_id })
        // The actor goes on by itself.
        const isOver = Effect.map(runOf(run), ({ queued }) => queued === false)
        yield* Effect.repeat(Effect.delay(isOver, "5 millis"), { until: (over) => over })
      }
      expect(yield* runOf(run)).toMatchObject({
        status: "succeeded",
        outcome: "completed",
        succeeded_steps: 4,
        queued: false
      })
    })
  )

  it.effect("A run whose end is rejected as well is left alone for an hour", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* sending()
      const run = yield* receive(workflow, {})
      const of = spoil(run, 2)
      const before = sent.length
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "running", parts: 1, queued: true })
      expect(yield* dueIn(run)).toBeGreaterThan(59)
      yield* wake(workflow.id)
      expect(sent.length - before).toBe(1)
      expect(of.handedIn).toBe(3)
      // What is mended goes on, when its time has come.
      spoiled.delete(run)
      yield* sql`update workflow_queue set due_at = now() - interval '1 second' where run_id = ${run}`
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded", queued: false })
    })
  )

  it.effect("A rejected run of a disabled workflow is tried once for each wake-up", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* sending()
      const runs = [yield* receive(workflow, {}), yield* receive(workflow, {})]
      const of = spoil(runs[0]!, 1)
      yield* sql`update workflows set status = 'disabled' where id = ${workflow.id}`
      yield* Effect.timeout(wake(workflow.id), "60 seconds")
      expect(of.handedIn).toBe(2)
      expect(yield* runOf(runs[0]!)).toMatchObject({ status: "queued", queued: true })
      expect(yield* runOf(runs[1]!)).toMatchObject({ status: "failed", error_code: "WORKFLOW_DISABLED" })
      yield* Effect.timeout(wake(workflow.id), "60 seconds")
      expect(of.handedIn).toBe(4)
    })
  )
})
