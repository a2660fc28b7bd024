import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import type { StepTask } from "@tidegate/formatter/Task"
import { Workshop } from "../src/Formatting/Workshop.ts"

const markdown = (input: string): StepTask => ({
  kind: "step",
  config: { operation: "text.markdown_to_html", engine_version: "1.0.0", options: {} },
  inputs: { input },
  anchor: 0,
  timezone: "UTC",
  seed: "test"
})

/** As many tokens as a text may become. */
const dense = "*a* _b_ `c` [d](e) ".repeat(190).concat("\n\n").repeat(28)

describe("Formatter threads", () => {
  it.live("Expensive steps run in a thread with the same result as on the event loop", () =>
    Effect.gen(function* () {
      const workshop = new Workshop({ threads: 1 })
      const ran = yield* workshop.step("tm_1", markdown("# Hello *you*"))
      expect(Result.getOrThrow(ran)).toMatchObject({ output: { result: "<h1>Hello <em>you</em></h1>\n" } })
      const refused = yield* workshop.step("tm_1", markdown("> ".repeat(200)))
      expect(Result.isFailure(refused) && refused.failure.code).toBe("FORMATTER_LIMIT_EXCEEDED")
      expect(workshop.threads).toBe(1)
    })
  )

  it.live("An operation that exhausts its thread's memory fails alone, and the next gets another thread", () =>
    Effect.gen(function* () {
      const workshop = new Workshop({ threads: 1, heapMib: 28 })
      const greedy = yield* Effect.forkChild(workshop.step("tm_1", markdown(dense)))
      const modest = yield* Effect.forkChild(workshop.step("tm_2", markdown("*a*")))
      const ran = yield* Fiber.join(greedy)
      expect(Result.isFailure(ran) && ran.failure).toMatchObject({
        code: "FORMATTER_LIMIT_EXCEEDED",
        message: "the operation takes more memory than is allowed"
      })
      expect(Result.isSuccess(yield* Fiber.join(modest))).toBe(true)
    })
  )

  it.live("An endless operation is ended, and waiting ones continue", () =>
    Effect.gen(function* () {
      const workshop = new Workshop({ threads: 1, longestMs: 1 })
      const ran = yield* workshop.step("tm_1", markdown(dense))
      expect(Result.isFailure(ran) && ran.failure.code).toBe("FORMATTER_TIMEOUT")
    })
  )

  it.live("Teams take turns, so one request does not wait for fifty requests of another team", () =>
    Effect.gen(function* () {
      const workshop = new Workshop({ threads: 1 })
      const ended: Array<string> = []
      const ask = (team: string) =>
        Effect.forkChild(Effect.tap(workshop.step(team, markdown("*a*")), () => Effect.sync(() => ended.push(team))))
      const many = yield* Effect.forEach(Array.from({ length: 50 }), () => ask("tm_many"))
      const one = yield* ask("tm_one")
      yield* Fiber.join(one)
      expect(ended.length).toBeLessThan(5)
      yield* Effect.forEach(many, Fiber.join)
    })
  )

  it.live("The waiting dry runs of a team are limited to its share, and other teams keep theirs", () =>
    Effect.gen(function* () {
      const workshop = new Workshop({ threads: 1, tests: { team: 2, process: 3 } })
      const body = { config: { operation: "text.markdown_to_html" }, inputs: { input: "*a*" } }
      const task = { kind: "test", body, now: 0, versions: {} as never } as const
      const first = yield* Effect.forEach([1, 2], () => Effect.forkChild(workshop.testOperation("tm_1", task)))
      yield* Effect.yieldNow
      expect(yield* Effect.flip(workshop.testOperation("tm_1", task))).toMatchObject({ _tag: "WorkshopFull" })
      const other = yield* Effect.forkChild(workshop.testOperation("tm_2", task))
      yield* Effect.yieldNow
      expect(yield* Effect.flip(workshop.testOperation("tm_3", task))).toMatchObject({ _tag: "WorkshopFull" })
      for (const fiber of [...first, other]) expect(Result.isSuccess(yield* Fiber.join(fiber))).toBe(true)
      expect(Result.isSuccess(yield* workshop.testOperation("tm_1", task))).toBe(true)
    })
  )
})
