import { expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Scheduler } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { HotSql, JournalSql, ReadSemaphores, ReportSql } from "@tidegate/storage/Database"
import { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import type { plansOf } from "../src/Workflow/Plans.ts"
import { runPump } from "../src/Workflow/RunPump.ts"
import { Room, RunRoom } from "../src/Workflow/RunRoom.ts"

/** Runs fibers by the step, one operation each, as far as it is told. */
class ByTheStep implements Scheduler.Scheduler {
  readonly executionMode = "async"
  readonly #tasks: Array<() => void> = []
  /** Steps in all. */
  taken = 0

  shouldYield({ currentOpCount }: Fiber.Fiber<unknown, unknown>): boolean {
    return currentOpCount >= 3
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return {
      scheduleTask: (task) => void this.#tasks.push(task),
      flush: () => {
        this.run()
      }
    }
  }

  run(steps = 10_000): void {
    for (let left = steps; left > 0 && this.#tasks.length > 0; left--) {
      this.taken++
      this.#tasks.shift()!()
    }
  }
}

/** A client whose statements have these rows. */
const fakeSql = (rows: () => ReadonlyArray<object>) =>
  Object.assign(() => Effect.sync(rows), { literal: (text: string) => text })

/** Wakes a pump, and once more so many steps later; answers in how many steps the first was over, and whether somebody has looked after the second. */
const wokenAfter = (steps: number) => {
  let looks = 0
  // The workflow is not there: there is nothing to do, once somebody has looked.
  const sql = fakeSql(() => {
    looks++
    return []
  })
  const scheduler = new ByTheStep()
  const world = Context.make(HotSql, sql as never).pipe(
    Context.add(JournalSql, sql as never),
    Context.add(ReportSql, sql as never),
    Context.add(ReadSemaphores, {} as never),
    Context.add(SqlClient.SqlClient, sql as never),
    Context.add(RunJournal, {} as never),
    Context.add(Scheduler.Scheduler, scheduler)
  )
  const fork = Effect.runForkWith(world)
  const made = runPump("wfl_a", 1, {} as ReturnType<typeof plansOf>, () => true)
  const { work: pump } = Effect.runSync(Effect.provideService(made, RunJournal, {} as never))
  const first = fork(pump)
  scheduler.run(steps)
  const before = looks
  const second = fork(pump)
  scheduler.run()
  return {
    steps: scheduler.taken,
    looked: looks > before,
    over: [first, second].every((fiber) => fiber.pollUnsafe() !== undefined)
  }
}

it("A wake-up notification is never lost, whenever it comes", () => {
  const { steps } = wokenAfter(10_000)
  expect(steps).toBeGreaterThan(10)
  expect(steps).toBeLessThan(1_000)
  const lost = Array.from({ length: steps }, (_, i) => i).filter((after) => {
    const { looked, over } = wokenAfter(after)
    return !looked || !over
  })
  expect(lost).toEqual([])
})

/** A pump of an active workflow that has nothing due, and how often somebody has looked. */
const idlePump = Effect.fnUntraced(function* (rooms: RunRoom, mayGoOn: () => boolean = () => true) {
  const looks = { count: 0 }
  const sql = fakeSql(() => {
    looks.count++
    return [{ running_team: "team_a", running_status: "active", running_deleted: false, id: null }]
  })
  const world = Context.make(HotSql, sql as never).pipe(
    Context.add(JournalSql, sql as never),
    Context.add(ReportSql, sql as never),
    Context.add(ReadSemaphores, {} as never),
    Context.add(SqlClient.SqlClient, sql as never),
    Context.add(RunJournal, {} as never),
    Context.add(Room, rooms)
  )
  const pump = yield* Effect.provideContext(runPump("wfl_a", 1, {} as ReturnType<typeof plansOf>, mayGoOn), world)
  const fiber = yield* Effect.forkChild(Effect.provideContext(pump.work, world))
  yield* settled
  return { looks, notify: pump.notify, isOver: () => fiber.pollUnsafe() !== undefined }
})

/** Nobody waits for anything but the time. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 50; i++) yield* Effect.yieldNow
})

it.effect("Due runs are read as soon as the first read has returned their team", () =>
  Effect.gen(function* () {
    const { isOver, looks } = yield* idlePump(new RunRoom())
    expect(isOver()).toBe(true)
    expect(looks.count).toBe(2)
  })
)

it.effect(
  "A workflow that waits for memory does not query the database, and continues soon after memory becomes free",
  () =>
    Effect.gen(function* () {
      const rooms = new RunRoom()
      const all = 128 * 1_048_576
      rooms.of("team_b").hold(all)
      const { isOver, looks } = yield* idlePump(rooms)
      yield* TestClock.adjust("10 seconds")
      yield* settled
      expect(looks.count).toBe(1)
      expect(isOver()).toBe(false)
      rooms.of("team_b").release(all)
      yield* TestClock.adjust("200 millis")
      yield* settled
      expect(looks.count).toBe(2)
      expect(isOver()).toBe(true)
    })
)

it.effect("A previous owner of a workflow does not accept wake-up notifications for the new owner", () =>
  Effect.gen(function* () {
    const rooms = new RunRoom()
    const all = 128 * 1_048_576
    rooms.of("team_b").hold(all)
    let isOwner = true
    const { looks, notify } = yield* idlePump(rooms, () => isOwner)
    // Without room it is heard, and nobody is asked.
    expect(notify()).toBe(true)
    yield* settled
    expect(looks.count).toBe(1)
    isOwner = false
    expect(notify()).toBe(false)
    rooms.of("team_b").release(all)
    yield* TestClock.adjust("200 millis")
    yield* settled
    expect(looks.count).toBe(2)
  })
)
