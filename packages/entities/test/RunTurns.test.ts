import { hash } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Queue, Result, Schedule, Scheduler } from "effect"
import { SqlClient } from "effect/sql"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { maxWaitingRuns } from "@tidegate/storage/workflows/RunTurns"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { makeRunTurns } from "../src/Workflow/RunTurns.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { dice } from "../../workflows/test/Play.ts"
import { arrive, coming, create, executors, from, runOf, sent, trim, wake, world } from "./RunsWorld.ts"

const done: Outcome = { kind: "succeeded", output: { status: 200 }, ports: ["out"] }

/** A workflow whose only step leaves the process. */
const calling = Effect.fnUntraced(function* (triggers: Partial<WorkflowTriggers>) {
  const destination = yield* createDestination()
  return yield* create(
    [{ id: "send", kind: "destination", resource_id: destination.id }],
    [from(null, "send")],
    team,
    triggers
  )
})

interface Call {
  /** The idempotency key, which says whose call it is. */
  readonly key: string
  readonly end: Effect.Effect<unknown>
}

/** The next calls: each says that it has begun, and ends when it is told. */
const calls = Effect.fnUntraced(function* (count: number) {
  const begun = yield* Queue.unbounded<Call>()
  coming.splice(0)
  for (let i = 0; i < count; i++) {
    coming.push(
      Effect.gen(function* () {
        const ending = yield* Deferred.make<void>()
        yield* Queue.offer(begun, { key: sent.at(-1)![1], end: Deferred.succeed(ending, undefined) })
        yield* Deferred.await(ending)
        return done
      })
    )
  }
  return begun
})

/** The next so many calls that begin, in the order of their runs. */
const next = Effect.fnUntraced(function* (begun: Queue.Queue<Call>, runs: ReadonlyArray<string>, count = 1) {
  const keys = runs.map((run) => derivedId(prefixes.workflowStep, run, "send/"))
  const taken = yield* Effect.replicateEffect(Queue.take(begun), count)
  return taken.map(({ end, key }) => ({ run: keys.indexOf(key), end })).toSorted((a, b) => a.run - b.run)
})

const statusesOf = (runs: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(runs, runOf), (rows) => rows.map(({ status }) => status))

const turnsOf = Effect.fnUntraced(function* (workflow: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ run_id: string; key: string; taken: boolean; soon: boolean | null }>`
    select t.run_id, t.key, t.taken, q.due_at < now() + interval '31 seconds' as soon from workflow_turns t
      left join workflow_queue q on q.run_id = t.run_id
    where t.workflow_id = ${workflow} order by t.created_at, t.run_id`
})

/** Wakes the workflow until these runs have ended. */
const ended = (workflow: string, runs: ReadonlyArray<string>) =>
  Effect.repeat(Effect.andThen(wake(workflow), statusesOf(runs)), {
    until: (statuses) => statuses.every((status) => status === "succeeded" || status === "failed"),
    schedule: Schedule.spaced("5 millis")
  })

/** Wakes the workflow until no turn is left. One look is not enough: while another message is at work, a wake-up returns at once. */
const allGivenBack = (workflow: string) =>
  Effect.repeat(Effect.andThen(wake(workflow), turnsOf(workflow)), {
    until: ({ length }) => length === 0,
    schedule: Schedule.spaced("5 millis")
  })

/** As if the time had come at which somebody looks after the runs that wait. */
const lookNow = Effect.fnUntraced(function* (workflow: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    update workflow_queue set due_at = now() where workflow_id = ${workflow} and due_at < now() + interval '31 seconds' returning 1`
  return rows.length
})

layer(world, { excludeTestServices: true })("Turns of a workflow's runs", (it) => {
  it.effect("Runs beyond the limit wait as rows, and begin in the order of arrival as others end", () =>
    Effect.gen(function* () {
      const workflow = yield* calling({ concurrency: { limit: 2, key: null } })
      const begun = yield* calls(5)
      const runs = yield* arrive(workflow, [1, 2, 3, 4, 5])
      const waking = yield* Effect.forkChild(wake(workflow.id))
      const [first, second] = yield* next(begun, runs, 2)
      expect(yield* statusesOf(runs)).toEqual(["running", "running", "queued", "queued", "queued"])
      expect((yield* turnsOf(workflow.id)).map(({ soon, taken }) => [taken, soon])).toEqual([
        [true, true],
        [true, true],
        // The first of those that wait is looked at again soon, in case this process dies.
        [false, true],
        [false, false],
        [false, false]
      ])
      yield* second!.end
      const [third] = yield* next(begun, runs)
      expect([first!.run, second!.run, third!.run]).toEqual([0, 1, 2])
      expect(yield* statusesOf(runs)).toEqual(["running", "succeeded", "running", "queued", "queued"])
      yield* first!.end
      const [fourth] = yield* next(begun, runs)
      yield* third!.end
      const [fifth] = yield* next(begun, runs)
      expect([fourth!.run, fifth!.run]).toEqual([3, 4])
      yield* fourth!.end
      yield* fifth!.end
      yield* Fiber.join(waking)
      expect(yield* ended(workflow.id, runs)).toEqual(Array.from({ length: 5 }, () => "succeeded"))
      yield* allGivenBack(workflow.id)
    })
  )

  it.effect(
    "Runs of one key begin one after the other in the order of arrival, and those of other keys beside them",
    () =>
      Effect.gen(function* () {
        const workflow = yield* calling({ concurrency: { limit: 1, key: "body.customer" } })
        const begun = yield* calls(7)
        // Two customers, and requests without one.
        const bodies = ["a", "b", "a", null, "b", "a", null].map((customer) => ({ customer }))
        const runs = yield* arrive(workflow, bodies)
        const waking = yield* Effect.forkChild(wake(workflow.id))
        const open = yield* next(begun, runs, 3)
        expect(open.map(({ run }) => run)).toEqual([0, 1, 3])
        expect(new Set((yield* turnsOf(workflow.id)).map(({ key }) => key)).size).toBe(3)
        // Whichever ends lets the next one of its key begin, and no other.
        for (const [call, follows] of [
          [open[0]!, 2],
          [open[2]!, 6],
          [open[1]!, 4]
        ] as const) {
          yield* call.end
          const [following] = yield* next(begun, runs)
          expect(following!.run).toBe(follows)
          open.push(following!)
        }
        yield* open[3]!.end
        const [last] = yield* next(begun, runs)
        expect(last!.run).toBe(5)
        for (const call of [open[4]!, open[5]!, last!]) yield* call.end
        yield* Fiber.join(waking)
        expect(new Set(yield* ended(workflow.id, runs))).toEqual(new Set(["succeeded"]))
      })
  )

  it.effect("Of the runs that wait, those of the highest priority begin first, and of these the first that came", () =>
    Effect.gen(function* () {
      const workflow = yield* calling({
        concurrency: { limit: 1, key: null },
        priority: { key: "body.urgent", default: 1 }
      })
      // Numbers and their texts count, and those beyond the range as its end. All other values count as the default.
      const urgent = [0, 5, "5", -3, undefined, 100, 10_000, "soon", 2.5, 1, null]
      const begun = yield* calls(urgent.length + 1)
      const runs = yield* arrive(
        workflow,
        urgent.map((value) => ({ urgent: value }))
      )
      const order: Array<number> = []
      const waking = yield* Effect.forkChild(wake(workflow.id))
      const [first] = yield* next(begun, runs)
      // It comes last, and waits for the shortest time.
      const late = yield* arrive(workflow, [{ urgent: 6 }])
      yield* Effect.repeat(Effect.andThen(wake(workflow.id), turnsOf(workflow.id)), {
        until: ({ length }) => length === urgent.length + 1,
        schedule: Schedule.spaced("5 millis")
      })
      const all = [...runs, ...late]
      for (let call = first!; ; [call] = (yield* next(begun, all)) as [typeof call]) {
        order.push(call.run)
        yield* call.end
        if (order.length === all.length) break
      }
      yield* Fiber.join(waking)
      expect(order).toEqual([5, 6, 11, 1, 2, 4, 7, 8, 9, 10, 0, 3])
      yield* ended(workflow.id, all)
      yield* allGivenBack(workflow.id)
    })
  )

  it.effect("Of each key the run of the highest priority begins first, by a rate limit that of all keys", () =>
    Effect.gen(function* () {
      const workflow = yield* calling({
        concurrency: { limit: 1, key: "body.customer" },
        priority: { key: "headers.x-none", default: 7 }
      })
      const turns = makeRunTurns(workflow.id, { changed: () => {}, waits: () => {} })
      const bodies = [
        ["a", 1],
        ["b", 1],
        ["a", 2],
        ["b", 3],
        ["b", 2]
      ].map(([customer, urgent]) => ({ customer, urgent }))
      const runs = yield* arrive(workflow, bodies)
      const sql = yield* SqlClient.SqlClient
      const due = yield* sql<DueRun>`
        select r.id, r.team_id, r.status, r.created_at, q.path, q.query, q.headers, q.body from workflow_runs r
          join requests q on q.id = r.request_id where r.workflow_id = ${workflow.id}`
      const admitted = Effect.fnUntraced(function* (triggers: Partial<WorkflowTriggers>) {
        yield* sql`delete from workflow_turns where workflow_id = ${workflow.id}`
        yield* sql`update workflows set triggers = triggers || ${JSON.stringify(triggers)}::jsonb where id = ${workflow.id}`
        yield* turns.apply(team, { ...workflow.triggers!, ...triggers })
        const { begin } = yield* turns.admit(due)
        return begin.map(({ id }) => runs.indexOf(id)).toSorted((a, b) => a - b)
      })
      expect(yield* admitted({})).toEqual([0, 1])
      expect(yield* admitted({ priority: { key: "body.urgent", default: 0 } })).toEqual([2, 3])
      const rate_limit = { count: 1, period: "day" } as const
      const isStored = Effect.repeat(Effect.andThen(turns.give, turnsOf(workflow.id)), {
        until: (rows) => rows.some(({ taken }) => taken),
        schedule: Schedule.spaced("5 millis")
      })
      yield* admitted({ rate_limit, priority: { key: "body.urgent", default: 0 } })
      const rows = yield* isStored
      expect(rows.flatMap(({ run_id, taken }) => (taken ? [runs.indexOf(run_id)] : []))).toEqual([3])
    })
  )

  it.effect("A turn that a dead process has not given on is found by the run that is looked at soon", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* calling({ concurrency: { limit: 1, key: null } })
      const begun = yield* calls(1)
      const runs = yield* arrive(workflow, [1, 2, 3])
      const [first, second, third] = runs
      const waking = yield* Effect.forkChild(wake(workflow.id))
      yield* next(begun, runs)
      yield* Fiber.interrupt(waking)
      // The first run has ended, and its process has died before the next one had its turn.
      yield* sql`delete from workflow_queue where run_id = ${first!}`
      yield* sql`update workflow_runs set status = 'succeeded', finished_at = now() where id = ${first!}`
      expect(yield* lookNow(workflow.id)).toBe(1)
      expect(yield* ended(workflow.id, [second!, third!])).toEqual(["succeeded", "succeeded"])
      yield* allGivenBack(workflow.id)
    })
  )

  it.effect("A cancelled run gives its turn to the next one, whether it has begun or waits", () =>
    Effect.gen(function* () {
      const workflow = yield* calling({ concurrency: { limit: 1, key: null } })
      const begun = yield* calls(2)
      const runs = yield* arrive(workflow, [1, 2, 3])
      const [first, second, third] = runs
      const waking = yield* Effect.forkChild(wake(workflow.id))
      yield* next(begun, runs)
      const { CancelRun } = (yield* WorkflowEntity.client)(workflow.id)
      const cancel = (run_id: string) => CancelRun({ team_id: team, run_id })
      yield* cancel(second!)
      yield* cancel(first!)
      const [call] = yield* next(begun, runs)
      yield* call!.end
      yield* Fiber.join(waking)
      yield* ended(workflow.id, [third!])
      expect(yield* statusesOf([first!, second!, third!])).toEqual(["failed", "failed", "succeeded"])
      yield* allGivenBack(workflow.id)
    })
  )

  it.effect("A run that ends while turns are given is noted, and the next one has its turn at the next look", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* calling({ concurrency: { limit: 1, key: null } })
      const begun = yield* calls(1)
      const runs = yield* arrive(workflow, [1, 2])
      const [first, second] = runs
      const waking = yield* Effect.forkChild(wake(workflow.id))
      yield* next(begun, runs)
      yield* Fiber.interrupt(waking)
      const turns = makeRunTurns(workflow.id, { changed: () => {}, waits: () => {} })
      yield* turns.apply(team, workflow.triggers ?? null)
      yield* turns.give
      turns.left(first!)
      // Its transaction has to change the row of the run that waits, and somebody else has that row.
      yield* sql`update workflow_queue set due_at = '9999-01-01' where run_id = ${second!}`
      const isHeld = yield* Deferred.make<void>()
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.andThen(
            sql`select from workflow_queue where run_id = ${second!} for update`,
            Effect.andThen(Deferred.succeed(isHeld, undefined), Deferred.await(letGo))
          )
        )
      )
      yield* Deferred.await(isHeld)
      const giving = yield* Effect.forkChild(turns.give)
      yield* Effect.repeat(
        sql`select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
        { until: ({ length }) => length > 0, schedule: Schedule.spaced("5 millis") }
      )
      yield* sql`delete from workflow_queue where run_id = ${first!}`
      turns.left(first!)
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.join(holding)
      yield* Fiber.join(giving)
      yield* turns.give
      expect(yield* turnsOf(workflow.id)).toEqual([{ run_id: second, key: "", taken: true, soon: true }])
    })
  )

  it.effect("A run whose failed step is retried waits for a turn like a new one", () =>
    Effect.gen(function* () {
      const workflow = yield* calling({ concurrency: { limit: 1, key: null } })
      const begun = yield* calls(1)
      coming.unshift(Effect.succeed({ kind: "failed", error: { code: "BAD_RESPONSE", message: "HTTP 500" } }))
      const runs = yield* arrive(workflow, [1, 2])
      const waking = yield* Effect.forkChild(wake(workflow.id))
      const [call] = yield* next(begun, runs)
      const { RetryStep } = (yield* WorkflowEntity.client)(workflow.id)
      yield* RetryStep({ team_id: team, run_id: runs[0]!, step_id: "send", retry_id: `retry ${runs[0]}` })
      yield* wake(workflow.id)
      yield* Effect.repeat(turnsOf(workflow.id), { until: ({ length }) => length === 2 })
      expect(yield* statusesOf(runs)).toEqual(["queued", "running"])
      yield* call!.end
      yield* Fiber.join(waking)
      expect(yield* ended(workflow.id, runs)).toEqual(["succeeded", "succeeded"])
    })
  )

  it.effect("All runs begin when the limit is removed, and a disabled workflow ends them", () =>
    Effect.gen(function* () {
      const workflows = yield* Workflows
      for (const [change, status] of [
        [{ triggers: null }, "succeeded"],
        [{ status: "disabled" as const }, "failed"]
      ] as const) {
        const workflow = yield* calling({ concurrency: { limit: 1, key: null } })
        const begun = yield* calls(1)
        const runs = yield* arrive(workflow, [1, 2, 3])
        const waking = yield* Effect.forkChild(wake(workflow.id))
        const [call] = yield* next(begun, runs)
        yield* workflows.update(team, workflow.id, (stored) => Result.succeed({ ...stored, ...change }))
        expect(yield* turnsOf(workflow.id)).toEqual([])
        const last = yield* Effect.forkChild(ended(workflow.id, runs.slice(1)))
        expect(yield* Fiber.join(last)).toEqual([status, status])
        yield* call!.end
        yield* Fiber.join(waking)
      }
    })
  )

  it.effect("A run that finds too many waiting ends with a reason, and one that needs not wait begins", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create([trim("only", "a")], [from(null, "only")], team, {
        concurrency: { limit: 1, key: "body.key" }
      })
      yield* wake(workflow.id)
      const [full] = yield* arrive(workflow, [{ key: "full" }])
      yield* wake(workflow.id)
      expect(yield* statusesOf([full!])).toEqual(["succeeded"])
      // Other runs of this key wait, behind one that goes on for long.
      const [busy, more] = yield* arrive(workflow, [{ key: "x" }, { key: "x" }])
      const key = hash("sha1", "x", "base64url").slice(0, 11)
      yield* sql`insert into workflow_turns (run_id, team_id, workflow_id, key, taken, created_at)
        select 'wfr_held' || i || ${workflow.id}, ${team}, ${workflow.id}, ${key}, i = 0, now() - interval '1 hour'
        from generate_series(0, ${maxWaitingRuns}) i`
      yield* sql`insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
        select run_id, team_id, -1, workflow_id, '9999-01-01' from workflow_turns
        where workflow_id = ${workflow.id} and run_id like 'wfr_held%'`
      const [free] = yield* arrive(workflow, [{ key: "free" }])
      yield* wake(workflow.id)
      const rows = yield* Effect.forEach([busy!, more!, free!], runOf)
      expect(rows.map(({ error_code, outcome }) => [outcome, error_code])).toEqual([
        ["cancelled", "TOO_MANY_WAITING"],
        ["cancelled", "TOO_MANY_WAITING"],
        ["completed", null]
      ])
      yield* sql`delete from workflow_turns where workflow_id = ${workflow.id}`
      yield* sql`delete from workflow_queue where workflow_id = ${workflow.id}`
    })
  )

  it.effect("By a rate limit the first run begins, and the others wait for their time in order", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create([trim("only", "a")], [from(null, "only")], team, {
        rate_limit: { count: 2, period: "day" }
      })
      const runs = yield* arrive(workflow, [1, 2, 3])
      yield* ended(workflow.id, runs.slice(0, 1))
      yield* lookNow(workflow.id)
      yield* wake(workflow.id)
      expect(yield* statusesOf(runs)).toEqual(["succeeded", "queued", "queued"])
      // The permit is stored before the run begins, so the next owner of the workflow knows about it.
      const permits = yield* sql<{ result: string }>`select result from step_results where key = ${workflow.id}`
      expect(permits).toHaveLength(1)
      const fast = yield* create([trim("only", "a")], [from(null, "only")], team, {
        rate_limit: { count: 1, period: "second" }
      })
      const three = yield* arrive(fast, [1, 2, 3])
      // It is woken once; then it wakes itself when the next run may begin.
      yield* wake(fast.id)
      yield* Effect.repeat(statusesOf(three), {
        until: (statuses) => statuses.every((status) => status === "succeeded"),
        schedule: Schedule.spaced("20 millis")
      })
      const order = yield* sql<{ id: string }>`
        select id from workflow_runs where workflow_id = ${fast.id} order by started_at, id`
      expect(order.map(({ id }) => id)).toEqual(three)
    })
  )
})

// A fiber can be interrupted wherever the scheduler may turn to another one: here after every few operations.
const anywhere = Layer.provideMerge(world, Layer.succeed(Scheduler.MaxOpsBeforeYield, 7))

layer(anywhere, { excludeTestServices: true })("Turns of runs whose process dies anywhere", (it) => {
  it.effect("Deaths at random operations lose no run, begin none twice, and never exceed the limit", () =>
    Effect.gen(function* () {
      const roll = dice(24)
      for (let n = 0; n < 6; n++) {
        const workflow = yield* calling({
          concurrency: { limit: 2, key: "body.key" },
          priority: { key: "body.urgent", default: 0 }
        })
        const bodies = Array.from({ length: 24 }, (_, i) => ({ key: i % 3, urgent: i % 5 }))
        const runs = yield* arrive(workflow, bodies)
        const keys = runs.map((run) => derivedId(prefixes.workflowStep, run, "send/"))
        const called = new Set<string>()
        const atOnce = [0, 0, 0]
        let most = 0
        executors.set("destination", (_effect, _run, key) =>
          Effect.suspend(() => {
            called.add(key)
            const line = keys.indexOf(key) % 3
            most = Math.max(most, ++atOnce[line]!)
            return Effect.ensuring(
              Effect.as(Effect.sleep("2 millis"), done),
              Effect.sync(() => void atOnce[line]!--)
            )
          })
        )
        for (let i = 0; i < 12; i++) {
          const waking = yield* Effect.forkChild(wake(workflow.id))
          for (let step = Math.floor(roll() * 3_000); step > 0; step--) yield* Effect.yieldNow
          yield* Fiber.interrupt(waking)
          yield* lookNow(workflow.id)
        }
        const allSucceed = (of: ReadonlyArray<string>) =>
          Effect.repeat(Effect.andThen(Effect.andThen(lookNow(workflow.id), wake(workflow.id)), statusesOf(of)), {
            until: (statuses) => statuses.every((status) => status === "succeeded"),
            schedule: Schedule.spaced("5 millis")
          })
        yield* allSucceed(runs)
        expect(most).toBeLessThanOrEqual(2)
        // A call that was under way at a death is repeated with its key.
        expect(called).toEqual(new Set(keys))
        // A death while the last commit of a run is under way notes no end. The next run that waits finds it.
        yield* allSucceed(
          yield* arrive(
            workflow,
            Array.from({ length: 9 }, (_, i) => ({ key: i % 3 }))
          )
        )
        yield* allGivenBack(workflow.id)
        executors.delete("destination")
      }
    })
  )
})
