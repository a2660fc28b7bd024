import { expect, layer } from "@effect/vitest"
import { Effect, Result, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { maxWindows } from "@tidegate/storage/workflows/RunWindows"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { team } from "../../storage/test/controlPlane.ts"
import { arrive, create, from, runOf, trim, wake, world } from "./RunsWorld.ts"

const flow = (triggers: Partial<WorkflowTriggers>) => create([trim("only", "a")], [from(null, "only")], team, triggers)

const minute = { wait_ms: 60_000, max_wait_ms: 600_000 }

const outcomesOf = (runs: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(runs, runOf), (rows) => rows.map(({ outcome, status }) => outcome ?? status))

/** As if the windows of the workflow had been over for a second: the clocks of the database and of the process differ by parts of one. */
const later = Effect.fnUntraced(function* (workflow: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update workflow_windows set due_at = now() - interval '1 second' where workflow_id = ${workflow}`
  yield* sql`update workflow_queue set due_at = now() - interval '1 second' where workflow_id = ${workflow}`
})

const windowsOf = Effect.fnUntraced(function* (workflow: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ run_id: string }>`select run_id from workflow_windows where workflow_id = ${workflow}`
  return rows.map(({ run_id }) => run_id).toSorted()
})

layer(world, { excludeTestServices: true })("Debounced runs of a workflow", (it) => {
  it.effect("The last of the runs that come soon after each other is carried out when its window is over", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({ debounce: { key: "body.id", ...minute } })
      // Two of one read, a later one, another key, and a request without one.
      const early = yield* arrive(workflow, [{ id: 1 }, { id: 1 }])
      yield* wake(workflow.id)
      const late = yield* arrive(workflow, [{ id: 1 }, { id: 2 }, { n: 5 }])
      yield* wake(workflow.id)
      const runs = [...early, ...late]
      expect(yield* outcomesOf(runs)).toEqual(["superseded", "superseded", "queued", "queued", "completed"])
      expect(yield* runOf(early[0]!)).toMatchObject({
        status: "succeeded",
        error_code: "SUPERSEDED_RUN",
        skipped_steps: 1,
        queued: false
      })
      expect(yield* windowsOf(workflow.id)).toEqual(late.slice(0, 2).toSorted())
      yield* wake(workflow.id)
      expect(yield* outcomesOf(late)).toEqual(["queued", "queued", "completed"])
      yield* later(workflow.id)
      yield* wake(workflow.id)
      expect(yield* outcomesOf(late)).toEqual(["completed", "completed", "completed"])
      expect(yield* windowsOf(workflow.id)).toEqual([])
      const [anew] = yield* arrive(workflow, [{ id: 1 }])
      yield* wake(workflow.id)
      expect(yield* outcomesOf([anew!])).toEqual(["queued"])
    })
  )

  it.effect("A workflow wakes itself when a window is over, and its run then waits for a turn", () =>
    Effect.gen(function* () {
      const workflow = yield* flow({
        debounce: { key: null, wait_ms: 50, max_wait_ms: 500 },
        concurrency: { limit: 1, key: null }
      })
      const runs = yield* arrive(workflow, [1, 2, 3])
      yield* wake(workflow.id)
      const outcomes = yield* Effect.repeat(outcomesOf(runs), {
        until: (all) => all.at(-1) === "completed",
        schedule: Schedule.spaced("10 millis")
      })
      // A busy machine may be so slow that a window is over between two requests.
      for (const one of outcomes.slice(0, 2)) expect(["superseded", "completed"]).toContain(one)
    })
  )

  it.effect("A death after a run was superseded ends it later, and one before a run begins lets it begin", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* flow({ debounce: { key: "body.id", ...minute } })
      const [first] = yield* arrive(workflow, [{ id: 1 }])
      yield* wake(workflow.id)
      const [second] = yield* arrive(workflow, [{ id: 1 }])
      // The window belongs to the second run, and the process has died before the first one was ended.
      yield* sql`update workflow_windows set run_id = r.id, run_at = r.created_at from workflow_runs r
        where r.id = ${second!} and workflow_windows.workflow_id = ${workflow.id}`
      yield* later(workflow.id)
      yield* wake(workflow.id)
      expect(yield* outcomesOf([first!, second!])).toEqual(["superseded", "completed"])
      // The window is removed, and the process has died before its run began.
      const [third] = yield* arrive(workflow, [{ id: 2 }])
      yield* wake(workflow.id)
      yield* sql`update workflow_runs set created_at = now() - interval '1 hour' where id = ${third!}`
      yield* sql`delete from workflow_windows where workflow_id = ${workflow.id}`
      yield* later(workflow.id)
      yield* wake(workflow.id)
      expect(yield* outcomesOf([third!])).toEqual(["completed"])
    })
  )

  it.effect("Waiting runs begin when the setting is removed, and a run of one key too many ends with a reason", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflows = yield* Workflows
      const workflow = yield* flow({ debounce: { key: "body.id", ...minute } })
      const [waiting] = yield* arrive(workflow, [{ id: 1 }])
      yield* wake(workflow.id)
      yield* sql`insert into workflow_windows (workflow_id, key, team_id, run_id, run_at, opened_at, due_at, expires_at)
        select ${workflow.id}, 'other ' || i, ${team}, 'wfr_other', now(), now(), now(), now() + interval '1 day'
        from generate_series(2, ${maxWindows}) i`
      const [more, known] = yield* arrive(workflow, [{ id: 2 }, { id: 1 }])
      yield* wake(workflow.id)
      expect(yield* outcomesOf([waiting!, more!, known!])).toEqual(["superseded", "cancelled", "queued"])
      expect(yield* runOf(more!)).toMatchObject({ error_code: "TOO_MANY_WAITING" })
      yield* workflows.update(team, workflow.id, (stored) => Result.succeed({ ...stored, triggers: null }))
      expect(yield* windowsOf(workflow.id)).toEqual([])
      yield* wake(workflow.id)
      expect(yield* outcomesOf([known!])).toEqual(["completed"])
    })
  )
})
