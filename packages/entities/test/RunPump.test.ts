import { expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Scheduler } from "effect"
import { SqlClient } from "effect/sql"
import { HotSql } from "@tidegate/storage/Database"
import { RunJournal } from "@tidegate/storage/RunJournal"
import type { plansOf } from "../src/Workflow/Plans.ts"
import { runPump } from "../src/Workflow/RunPump.ts"

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

/** Wakes a pump, and once more so many steps later; answers in how many steps the first was over, and whether somebody has looked after the second. */
const wokenAfter = (steps: number) => {
  let looks = 0
  // The workflow is not there: there is nothing to do, once somebody has looked.
  const sql = () =>
    Effect.sync(() => {
      looks++
      return []
    })
  const scheduler = new ByTheStep()
  const world = Context.make(HotSql, sql as never).pipe(
    Context.add(SqlClient.SqlClient, sql as never),
    Context.add(RunJournal, {} as never),
    Context.add(Scheduler.Scheduler, scheduler)
  )
  const fork = Effect.runForkWith(world)
  const { work: pump } = Effect.runSync(runPump("wfl_a", 1, {} as ReturnType<typeof plansOf>, () => true))
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

it("a wake is never lost, whenever it comes: somebody looks after it", () => {
  const { steps } = wokenAfter(10_000)
  expect(steps).toBeGreaterThan(10)
  expect(steps).toBeLessThan(1_000)
  const lost = Array.from({ length: steps }, (_, i) => i).filter((after) => {
    const { looked, over } = wokenAfter(after)
    return !looked || !over
  })
  expect(lost).toEqual([])
})
