import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import type { Role } from "../faults/GatewayProcess.ts"
import { sleep } from "../faults/Waiting.ts"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Gateways } from "./Gateways.ts"
import { mostInWindow, RateRun } from "./RateRun.ts"

/** Processes on a database of their own, ended with the test. */
const gateways = <Name extends string>(
  roles: Readonly<Record<Name, Role>>
): Effect.Effect<Gateways<Name>, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const url = Redacted.value(yield* freshDatabase)
    return yield* Effect.acquireRelease(
      Effect.promise(() => Gateways.start(join(folder, "gateways"), url, roles)),
      (gateways) => Effect.promise(() => gateways.close())
    )
  })

const times = (starts: ReadonlyArray<{ readonly at: number }>): ReadonlyArray<number> => starts.map(({ at }) => at)

/** What reaches a target comes a little earlier or later than it was started, on a busy machine more so. */
const jitter = 3

describe("a rate limit", () => {
  it.live(
    "holds in every window, is used up, and is shared equally by connections with a backlog",
    () =>
      Effect.gen(function* () {
        const running = yield* gateways({ a: "all" })
        yield* Effect.promise(async () => {
          const run = await RateRun.make(running, "a", { name: "paced", limit: 20, period: "second", connections: 5 })
          await run.send("a", [1_500, 150, 150, 150, 150])
          const began = Date.now()
          await sleep(8_000)
          const starts = (await run.starts()).filter(({ at }) => at >= began && at < began + 8_000)
          assert.isAtMost(mostInWindow(times(await run.starts()), 1_000), 20)
          assert.isAtMost(
            mostInWindow(
              run.target.arrivals.map(({ at }) => at),
              1_000
            ),
            20 + jitter
          )
          assert.isAtLeast(starts.length, 0.95 * 20 * 8)
          for (const connection of run.connections) {
            assert.approximately(starts.filter((start) => start.connection === connection).length, starts.length / 5, 5)
          }
          await run.target.close()
        })
      }),
    60_000
  )

  it.live(
    "counts from the moment that a change of it has returned, up and down",
    () =>
      Effect.gen(function* () {
        const running = yield* gateways({ a: "all", b: "all" })
        yield* Effect.promise(async () => {
          const run = await RateRun.make(running, "a", {
            name: "changing",
            limit: 20,
            period: "second",
            connections: 2
          })
          await run.send("b", [300, 300])
          await sleep(1_500)
          const up = await run.setRate("b", 80)
          await sleep(2_000)
          const down = await run.setRate("a", 10)
          await sleep(3_000)
          const all = times(await run.starts())
          assert.isAtMost(
            mostInWindow(
              all.filter((at) => at <= up),
              1_000
            ),
            20
          )
          assert.isAtMost(mostInWindow(all, 1_000), 80)
          assert.isAtMost(
            mostInWindow(
              all.filter((at) => at > down),
              1_000
            ),
            10
          )
          assert.isAtLeast(all.filter((at) => at > up && at <= up + 2_000).length, 0.9 * 2 * 80 - 20)
          assert.isAtLeast(all.filter((at) => at > down + 1_000).length, 0.9 * 2 * 10 - 1)
          await run.target.close()
        })
      }),
    60_000
  )

  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    it.live(
      `holds across a take-over (${signal} of the owner)`,
      () =>
        Effect.gen(function* () {
          const running = yield* gateways({ a: "all", b: "all" })
          yield* Effect.promise(async () => {
            const perSecond = await RateRun.make(running, "a", {
              name: "second",
              limit: 20,
              period: "second",
              connections: 5
            })
            const perMinute = await RateRun.make(running, "a", {
              name: "minute",
              limit: 30,
              period: "minute",
              connections: 5
            })
            await perSecond.send("a", [200, 200, 200, 200, 200])
            await perMinute.send("b", [20, 20, 20, 20, 20])
            await perSecond.deliveries(20)
            await perMinute.deliveries(2)
            const owners = new Set([perSecond.owner(), perMinute.owner()])
            const survivor = owners.has("a") ? "b" : "a"
            for (const owner of owners) {
              const t0 = Date.now()
              await running.process(owner).end(signal)
              console.log(signal, "took", Date.now() - t0)
              await running.process(owner).start()
            }
            const before = perSecond.target.arrivals.length
            await perSecond.deliveries(60)
            assert.include(["a", "b"], survivor)
            for (const [run, limit, period] of [
              [perSecond, 20, 1_000],
              [perMinute, 30, 60_000]
            ] as const) {
              assert.isAtMost(mostInWindow(times(await run.starts()), period), limit)
              // Those that were on the wire as the process was killed are no attempts, but they did reach the target.
              assert.isAtMost(
                mostInWindow(
                  run.target.arrivals.map(({ at }) => at),
                  period
                ),
                limit + (period === 1_000 ? jitter : 0)
              )
              await run.target.close()
            }
            assert.isAbove(before, 0)
          })
        }),
      90_000
    )
  }
})
