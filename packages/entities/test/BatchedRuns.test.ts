import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { maxWindows } from "@tidegate/storage/workflows/RunWindows"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { arrive, create, ended, executors, from, runOf, wake, world } from "./RunsWorld.ts"
import { forget, work } from "./LaterRuns.ts"

const done: Outcome = { kind: "succeeded", output: { status: 200 }, ports: ["out"] }

type Batch = ReadonlyArray<{ readonly request_id: string; readonly body: unknown; readonly unavailable?: boolean }>

/** A workflow whose step leaves the process, and the batches that its runs have then; absent for a run without one. */
const flow = Effect.fnUntraced(function* (
  triggers: Partial<WorkflowTriggers>,
  {
    before = [],
    outcome = Effect.succeed(done)
  }: { before?: ReadonlyArray<object>; outcome?: Effect.Effect<Outcome> } = {}
) {
  const destination = yield* createDestination()
  const send = { id: "send", kind: "destination", resource_id: destination.id }
  const edges = before.length === 0 ? [from(null, "send")] : [from(null, "wait"), from("wait", "send")]
  const workflow = yield* create([...before, send], edges, team, triggers)
  const seen: Array<readonly [run: string, batch: Batch | undefined]> = []
  executors.set("destination", ({ context }, run) =>
    Effect.suspend(() => {
      seen.push([run.id, context.trigger["batch"] as Batch | undefined])
      return outcome
    })
  )
  const bodies = () => seen.map(([, batch]) => batch?.map(({ body }) => body))
  return { workflow, seen, bodies }
})

const hour = { max_count: 3, window_ms: 3_600_000 }

const outcomesOf = (runs: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(runs, runOf), (rows) => rows.map(({ outcome, status }) => outcome ?? status))

/** As if the windows of the workflow were over: the clocks of the database and of the process differ by parts of a second. */
const closed = Effect.fnUntraced(function* (workflow: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update workflow_windows set due_at = now() - interval '1 second' where workflow_id = ${workflow}`
  yield* sql`update workflow_queue set due_at = now() - interval '1 second' where workflow_id = ${workflow}`
})

const messageOf = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ error_message: string }>`select error_message from workflow_runs where id = ${run}`
  return row!.error_message
})

const rerun = Effect.fnUntraced(function* (workflow: string, run_id: string, input: object) {
  const client = yield* WorkflowEntity.client
  const { id } = yield* client(workflow).Rerun({
    team_id: team,
    run_id,
    new_id: newId(prefixes.workflowRun, Date.now()),
    input
  })
  return id
})

/** Wakes the workflow until its runs are so: another message may be at work. */
const become = Effect.fnUntraced(function* (
  workflow: string,
  runs: ReadonlyArray<string>,
  expected: ReadonlyArray<string>
) {
  const seen = yield* Effect.repeat(Effect.andThen(wake(workflow), outcomesOf(runs)), {
    until: (outcomes) => outcomes.join() === expected.join(),
    times: 5_000
  })
  expect(seen).toEqual(expected)
})

const membersOf = Effect.fnUntraced(function* (workflow: string, count: number) {
  const sql = yield* SqlClient.SqlClient
  const read = sql<{ members: number }>`select members from workflow_windows where workflow_id = ${workflow}`
  const rows = yield* Effect.repeat(Effect.andThen(wake(workflow), read), {
    until: ([row]) => row?.members === count,
    times: 5_000
  })
  expect(rows).toEqual([{ members: count }])
})

layer(world, { excludeTestServices: true })("Batched runs of a workflow", (it) => {
  it.effect("The first run of a key carries out what came within the window, in the order of arrival", () =>
    Effect.gen(function* () {
      const { bodies, seen, workflow } = yield* flow({ batch: { key: "body.id", ...hour } })
      const early = yield* arrive(workflow, [
        { id: 1, n: 1 },
        { id: 2, n: 2 }
      ])
      yield* wake(workflow.id)
      const late = yield* arrive(workflow, [{ id: 1, n: 3 }, { n: 4 }])
      yield* wake(workflow.id)
      const runs = [...early, ...late]
      expect(yield* outcomesOf(runs)).toEqual(["queued", "queued", "batched", "completed"])
      expect(yield* runOf(late[0]!)).toMatchObject({
        status: "succeeded",
        error_code: "BATCHED_RUN",
        skipped_steps: 1,
        queued: false
      })
      expect(yield* messageOf(late[0]!)).toBe(`${early[0]} carries it out`)
      expect(bodies()).toEqual([[{ n: 4 }]])
      yield* closed(workflow.id)
      yield* ended(workflow.id, early[1]!)
      yield* ended(workflow.id, early[0]!)
      expect(yield* outcomesOf(runs)).toEqual(["completed", "completed", "batched", "completed"])
      expect(bodies().slice(1)).toHaveLength(2)
      expect(bodies()).toContainEqual([
        { id: 1, n: 1 },
        { id: 1, n: 3 }
      ])
      expect(bodies()).toContainEqual([{ id: 2, n: 2 }])
      const [, batch] = seen.find(([run]) => run === early[0])!
      expect(batch![1]).toMatchObject({ method: "POST", headers: {}, query: {} })
    })
  )

  it.effect("A full batch begins at once, and the next run opens another one", () =>
    Effect.gen(function* () {
      const { bodies, workflow } = yield* flow({
        batch: { key: null, ...hour },
        concurrency: { limit: 1, key: null }
      })
      const early = yield* arrive(workflow, [1, 2])
      yield* become(workflow.id, early, ["queued", "batched"])
      const runs = [...early, ...(yield* arrive(workflow, [3, 4]))]
      yield* become(workflow.id, runs, ["completed", "batched", "batched", "queued"])
      expect(bodies()).toEqual([[1, 2, 3]])
    })
  )

  it.effect("Random deaths of the process lose no request, and carry none out twice", () =>
    Effect.gen(function* () {
      const { seen, workflow } = yield* flow({ batch: { key: "body.key", ...hour } })
      const bodies = Array.from({ length: 30 }, (_, n) => ({ key: n % 3, n }))
      const runs: Array<string> = []
      for (let from = 0, death = 0; from < bodies.length; from += 5, death++) {
        runs.push(...(yield* arrive(workflow, bodies.slice(from, from + 5))))
        const waking = yield* Effect.forkChild(wake(workflow.id))
        for (let step = 0; step < death * 60; step++) yield* Effect.yieldNow
        yield* Fiber.interrupt(waking)
      }
      // 10 of each key: three batches of three, and one that its time closes.
      const look = Effect.gen(function* () {
        yield* wake(workflow.id)
        yield* closed(workflow.id)
        return yield* outcomesOf(runs)
      })
      const outcomes = yield* Effect.repeat(look, {
        until: (all) => all.every((one) => one !== "queued" && one !== "running"),
        times: 5_000
      })
      const carriedOut = new Map(seen.map(([run, batch]) => [run, batch!.map(({ body }) => (body as { n: number }).n)]))
      const firsts = runs.filter((_, i) => outcomes[i] === "completed")
      expect([...carriedOut.keys()].toSorted()).toEqual(firsts.toSorted())
      expect([...carriedOut.values()].flat().toSorted((a, b) => a - b)).toEqual(bodies.map(({ n }) => n))
      for (const [run, batch] of carriedOut) {
        expect(batch.length).toBeLessThanOrEqual(hour.max_count)
        for (const n of batch) {
          if (runs[n] === run) continue
          expect(outcomes[n]).toBe("batched")
          expect(yield* messageOf(runs[n]!)).toBe(`${run} carries it out`)
        }
      }
    })
  )

  it.effect("A batch is the same after a death, in a rerun and after a long wait, whatever retention has removed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const wait = { id: "wait", kind: "delay", config: { mode: "for", amount: 20, unit: "days" } }
      const { seen, workflow } = yield* flow({ batch: { key: null, ...hour } }, { before: [wait] })
      const runs = yield* arrive(workflow, ["a", "b", "c"])
      yield* become(workflow.id, runs, ["running", "batched", "batched"])
      const again = yield* rerun(workflow.id, runs[0]!, {})
      yield* become(workflow.id, [again], ["running"])
      // The rerun has not stored its batch for the wait, as runs do that wait for less than a day.
      yield* sql`update workflow_queue set carried = null where run_id = ${again}`
      yield* forget(runs[1]!)
      yield* work(workflow.id, 21 * 86_400_000)
      expect(yield* outcomesOf([runs[0]!, again])).toEqual(["completed", "completed"])
      const batchOf = (run: string) =>
        seen.find(([id]) => id === run)![1]!.map(({ body, unavailable = false }) => [body, unavailable])
      expect(batchOf(runs[0]!)).toEqual([
        ["a", false],
        ["b", false],
        ["c", false]
      ])
      expect(batchOf(again)).toEqual([
        ["a", false],
        [undefined, true],
        ["c", false]
      ])
    })
  )

  it.effect(
    "A changed rerun has a batch of its own, and a batch that retention has removed ends its run with a reason",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { bodies, workflow } = yield* flow({ batch: { key: null, ...hour } })
        const runs = yield* arrive(workflow, ["a", "b", "c"])
        yield* wake(workflow.id)
        yield* ended(workflow.id, runs[0]!)
        const changed = yield* rerun(workflow.id, runs[0]!, { trigger: { body: "d" } })
        yield* membersOf(workflow.id, 1)
        yield* closed(workflow.id)
        yield* ended(workflow.id, changed)
        expect(bodies()).toEqual([["a", "b", "c"], ["d"]])
        yield* sql`delete from workflow_batched where run_id = ${runs[0]!}`
        const late = yield* rerun(workflow.id, runs[0]!, {})
        expect(yield* ended(workflow.id, late)).toMatchObject({
          outcome: "cancelled",
          error_code: "PAYLOAD_UNAVAILABLE"
        })
      })
  )

  it.effect("Nothing joins the batch of a cancelled run, and open batches begin when the setting is removed", () =>
    Effect.gen(function* () {
      const workflows = yield* Workflows
      const { bodies, workflow } = yield* flow({ batch: { key: null, ...hour } })
      const [first] = yield* arrive(workflow, [1])
      yield* wake(workflow.id)
      const client = yield* WorkflowEntity.client
      yield* client(workflow.id).CancelRun({ team_id: team, run_id: first! })
      const [second, third] = yield* arrive(workflow, [2, 3])
      yield* become(workflow.id, [first!, second!, third!], ["cancelled", "queued", "batched"])
      yield* workflows.update(team, workflow.id, (stored) =>
        Result.succeed({
          ...stored,
          triggers: { ...stored.triggers!, batch: null, debounce: { key: null, wait_ms: 60_000, max_wait_ms: 60_000 } }
        })
      )
      yield* wake(workflow.id)
      yield* ended(workflow.id, second!)
      expect(bodies()).toEqual([[2, 3]])
    })
  )

  it.effect("The runs of one key too many end with a reason, also those that another one would carry out", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { workflow } = yield* flow({ batch: { key: "body.id", ...hour } })
      yield* sql`insert into workflow_windows (workflow_id, key, team_id, run_id, run_at, opened_at, due_at, expires_at)
        select ${workflow.id}, 'other ' || i, ${team}, 'wfr_other', now(), now(), now(), now() + interval '1 day'
        from generate_series(1, ${maxWindows}) i`
      const runs = yield* arrive(workflow, [{ id: 1 }, { id: 1 }, { n: 1 }])
      yield* wake(workflow.id)
      yield* ended(workflow.id, runs[2]!)
      expect(yield* outcomesOf(runs)).toEqual(["cancelled", "cancelled", "completed"])
      expect(yield* runOf(runs[1]!)).toMatchObject({ error_code: "TOO_MANY_WAITING" })
      expect(yield* sql`select 1 from workflow_batched where member_id = any(array[${runs[0]!}, ${runs[1]!}])`).toEqual(
        []
      )
    })
  )
})
