import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import * as RunDetail from "@tidegate/storage/reads/RunDetail"
import { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { create, ended, executors, from, giveArrivals, receive, runOf, trim, wake, worldOf } from "./RunsWorld.ts"

/** The death of a process at a commit of a run. */
interface Death {
  readonly commit: number
  readonly isAfter: boolean
  readonly died: Deferred.Deferred<void>
}

const deaths = new Map<string, Death>()

const dying = Layer.effect(
  RunJournal,
  Effect.map(RunJournal, (journal) =>
    RunJournal.of({
      ...journal,
      move: (transition) =>
        Effect.gen(function* () {
          const death = deaths.get(transition.id)
          if (death === undefined || death.commit !== transition.part) return yield* journal.move(transition)
          deaths.delete(transition.id)
          if (death.isAfter) expect(yield* journal.move(transition)).toBe("stored")
          yield* Deferred.succeed(death.died, undefined)
          return yield* Effect.never
        })
    })
  )
).pipe(Layer.provide(RunJournal.layer))

const done: Outcome = { kind: "succeeded", output: { status: 200 }, ports: ["out"] }
const refused: Outcome = { kind: "failed", error: { code: "BAD_RESPONSE", message: "HTTP 500", status: 500 } }

interface Called {
  readonly run: string
  readonly step: string
  readonly key: string
}

/** The calls, and what comes of those of a step: the last one again and again. Others succeed. */
const world = Effect.sync(() => {
  const calls: Array<Called> = []
  const coming = new Map<string, Array<Effect.Effect<Outcome>>>()
  executors.set("destination", ({ step: { step } }, run, key) =>
    Effect.suspend(() => {
      calls.push({ run: run.id, step: step.id, key })
      const outcomes = coming.get(step.id) ?? []
      return (outcomes.length > 1 ? outcomes.shift() : outcomes[0]) ?? Effect.succeed(done)
    })
  )
  return { calls, coming, of: (run: string) => calls.filter((one) => one.run === run) }
})

/** charge → ship → tell. The first two are undone by refund and recall. */
const saga = Effect.fnUntraced(function* (on_failure: string | null = null) {
  const destination = yield* createDestination()
  const send = (id: string, config: object = {}) => ({ id, kind: "destination", resource_id: destination.id, config })
  return yield* create(
    [
      send("charge", { compensate: "refund" }),
      send("ship", { compensate: "recall" }),
      send("tell"),
      send("refund"),
      send("recall")
    ],
    [from(null, "charge"), from("charge", "ship"), from("ship", "tell")],
    team,
    on_failure === null ? null : { on_failure: { workflow_id: on_failure } }
  )
})

const retry = Effect.fnUntraced(function* (workflow: string, run_id: string, step_id: string) {
  const client = yield* WorkflowEntity.client
  return yield* client(workflow).RetryStep({
    team_id: team,
    run_id,
    step_id,
    retry_id: newId(prefixes.stepRetry, Date.now())
  })
})

const stepsOf = Effect.fnUntraced(function* (workflow: string, run: string) {
  const detail = yield* RunDetail.get(team, workflow, run, false)
  return new Map(detail.steps.map((step) => [step.step_id, step]))
})

/** Commits of a run of the saga that fails: at its begin, and at the end of each call. */
const commits = 6

layer(worldOf(dying), { excludeTestServices: true })("Undo of a failed run", (it) => {
  it.effect(
    "A run that succeeds has as many journal entries as without compensations, and one that fails is undone",
    () =>
      Effect.gen(function* () {
        const { coming, of } = yield* world
        const workflow = yield* saga()
        const good = yield* receive(workflow, {})
        expect(yield* ended(workflow.id, good)).toMatchObject({ outcome: "completed", parts: 4, skipped_steps: 2 })
        expect(of(good).map(({ step }) => step)).toEqual(["charge", "ship", "tell"])
        expect((yield* stepsOf(workflow.id, good)).get("refund")).toMatchObject({
          status: "skipped",
          skip_reason: "not_needed",
          compensates: "charge"
        })
        coming.set("tell", [Effect.succeed(refused)])
        const bad = yield* receive(workflow, {})
        expect(yield* ended(workflow.id, bad)).toMatchObject({
          status: "failed",
          outcome: "failed",
          parts: commits,
          succeeded_steps: 4,
          failed_steps: 1,
          error_code: "BAD_RESPONSE",
          error_step_id: "tell",
          queued: false
        })
        expect(of(bad).map(({ step }) => step)).toEqual(["charge", "ship", "tell", "recall", "refund"])
        expect((yield* stepsOf(workflow.id, bad)).get("recall")).toMatchObject({
          status: "succeeded",
          compensates: "ship"
        })
      })
  )

  it.effect("Wherever the process dies, each step is undone in order, and a repeated call has its key", () =>
    Effect.gen(function* () {
      const { coming, of } = yield* world
      const workflow = yield* saga()
      coming.set("tell", [Effect.succeed(refused)])
      for (let commit = 1; commit <= commits; commit++) {
        for (const isAfter of [false, true]) {
          const run = yield* receive(workflow, {})
          const died = yield* Deferred.make<void>()
          deaths.set(run, { commit, isAfter, died })
          const waking = yield* Effect.forkChild(ended(workflow.id, run))
          yield* Deferred.await(died)
          yield* Fiber.interrupt(waking)
          const where = `${isAfter ? "after" : "before"} commit ${commit}`
          const end = yield* ended(workflow.id, run)
          expect([where, end]).toEqual([
            where,
            expect.objectContaining({ outcome: "failed", parts: commits, error_code: "BAD_RESPONSE", queued: false })
          ])
          const calls = of(run)
          const order = [...new Set(calls.map(({ step }) => step))]
          expect([where, order]).toEqual([where, ["charge", "ship", "tell", "recall", "refund"]])
          // One key for each step, and at most the call at the death is repeated.
          expect([where, new Set(calls.map(({ key }) => key)).size]).toEqual([where, 5])
          expect([where, calls.length <= 6]).toEqual([where, true])
        }
      }
    })
  )

  it.effect("A compensation that fails for good is told by the run, and only it is retried, with its key", () =>
    Effect.gen(function* () {
      const { coming, of } = yield* world
      const workflow = yield* saga()
      coming.set("tell", [Effect.succeed(refused)])
      coming.set("recall", [Effect.succeed(refused), Effect.succeed(done)])
      const run = yield* receive(workflow, {})
      expect(yield* ended(workflow.id, run)).toMatchObject({
        outcome: "failed",
        error_code: "UNDO_INCOMPLETE",
        error_step_id: "recall"
      })
      expect(of(run).map(({ step }) => step)).toEqual(["charge", "ship", "tell", "recall", "refund"])
      for (const step of ["tell", "refund"]) {
        expect(yield* Effect.flip(retry(workflow.id, run, step))).toMatchObject({ code: "STEP_NOT_RETRYABLE" })
      }
      const detail = yield* RunDetail.get(team, workflow.id, run, false)
      expect(detail.retry.retryable_step_ids).toEqual(["recall"])
      yield* retry(workflow.id, run, "recall")
      expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "failed", error_code: "BAD_RESPONSE" })
      const recalls = of(run).filter(({ step }) => step === "recall")
      expect([of(run).length, recalls.length, new Set(recalls.map(({ key }) => key)).size]).toEqual([6, 2, 1])
    })
  )

  it.effect("The on-failure workflow begins after the undo", () =>
    Effect.gen(function* () {
      const { coming } = yield* world
      const sql = yield* SqlClient.SqlClient
      const told = yield* create([trim("only", "{{trigger.body.error.code}}")], [from(null, "only")])
      const workflow = yield* saga(told.id)
      const [begun, mayEnd] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      coming.set("tell", [Effect.succeed(refused)])
      coming.set("refund", [
        Effect.andThen(Deferred.succeed(begun, undefined), Effect.as(Deferred.await(mayEnd), done))
      ])
      const run = yield* receive(workflow, {})
      const waking = yield* Effect.forkChild(ended(workflow.id, run))
      yield* Deferred.await(begun)
      const arrivals = sql`select 1 from workflow_arrivals where workflow_id = ${workflow.id}`
      expect([(yield* runOf(run))["status"], yield* arrivals]).toEqual(["running", []])
      yield* Deferred.succeed(mayEnd, undefined)
      expect(yield* Fiber.join(waking)).toMatchObject({ outcome: "failed" })
      yield* giveArrivals(workflow.id)
      expect(yield* sql`select 1 from workflow_runs where workflow_id = ${told.id}`).toHaveLength(1)
    })
  )

  it.effect("A cancel ends a run, and also its undo", () =>
    Effect.gen(function* () {
      const { coming, of } = yield* world
      const workflow = yield* saga()
      const begun = yield* Deferred.make<void>()
      coming.set("tell", [Effect.succeed(refused)])
      coming.set("recall", [Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)])
      const run = yield* receive(workflow, {})
      const waking = yield* Effect.forkChild(wake(workflow.id))
      yield* Deferred.await(begun)
      const client = yield* WorkflowEntity.client
      yield* client(workflow.id).CancelRun({ team_id: team, run_id: run })
      yield* Fiber.join(waking)
      expect(yield* runOf(run)).toMatchObject({ outcome: "cancelled", queued: false })
      expect(of(run).map(({ step }) => step)).toEqual(["charge", "ship", "tell", "recall"])
    })
  )
})
