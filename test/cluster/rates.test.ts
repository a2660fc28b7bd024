import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sleep } from "../faults/Waiting.ts"
import { mostInWindow, RateRun } from "./RateRun.ts"
import { running } from "./running.ts"

const times = (starts: ReadonlyArray<{ readonly at: number }>): ReadonlyArray<number> => starts.map(({ at }) => at)

/**
 * The limit is on starts, which is what the gateway has in hand and what attempts record. What was started evenly may
 * reach the target in bunches when the machine is busy: there it is only checked that it is not another order of things.
 */
const atTarget = (limit: number): number => limit + 10

describe("a rate limit", () => {
  it.live(
    "holds in every window, is used up, and is shared equally by connections with a backlog",
    () =>
      Effect.gen(function* () {
        const gateways = yield* running({ a: "all" })
        yield* Effect.promise(async () => {
          const run = await RateRun.make(gateways, "a", { name: "paced", limit: 20, period: "second", connections: 5 })
          // The first backlog is there before the others, ten times as long, and longer than a window.
          await run.send("a", [1_500, 150, 150, 150, 150])
          const began = Date.now()
          await sleep(8_000)
          const all = await run.starts()
          const starts = all.filter(({ at }) => at >= began && at < began + 8_000)
          assert.isAtMost(mostInWindow(times(all), 1_000), 20)
          assert.isAtMost(mostInWindow(times(run.target.arrivals), 1_000), atTarget(20))
          // On a quiet machine 95 % and more; a busy one comes late to its slots, which says nothing about the limit.
          assert.isAtLeast(starts.length, 0.8 * 20 * 8)
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
        const gateways = yield* running({ a: "all", b: "all" })
        yield* Effect.promise(async () => {
          const run = await RateRun.make(gateways, "a", {
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
              all.filter((at) => at <= up.askedAt),
              1_000
            ),
            20
          )
          assert.isAtMost(mostInWindow(all, 1_000), 80)
          assert.isAtMost(
            mostInWindow(
              all.filter((at) => at > down.returnedAt),
              1_000
            ),
            10
          )
          // The twenty of the second before count as well.
          assert.isAtLeast(
            all.filter((at) => at > up.returnedAt && at <= up.returnedAt + 2_000).length,
            0.9 * 2 * 80 - 20
          )
          assert.isAtLeast(all.filter((at) => at > down.returnedAt + 1_000).length, 0.9 * 2 * 10 - 1)
          await run.target.close()
        })
      }),
    60_000
  )

  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    it.live(
      `holds across a take-over and after a restart (${signal})`,
      () =>
        Effect.gen(function* () {
          const gateways = yield* running({ a: "all", b: "all" })
          yield* Effect.promise(async () => {
            const connections = 5
            const second = await RateRun.make(gateways, "a", {
              name: "second",
              limit: 20,
              period: "second",
              connections
            })
            const minute = await RateRun.make(gateways, "a", {
              name: "minute",
              limit: 30,
              period: "minute",
              connections
            })
            await second.send("a", Array(connections).fill(150))
            await minute.send("b", Array(connections).fill(20))
            await second.deliveries(20)
            await minute.deliveries(1)
            for (const owner of new Set([second.owner(), minute.owner()])) {
              await gateways.process(owner).end(signal)
              await gateways.process(owner).start()
            }
            await second.deliveries(60)
            await minute.deliveries(2)
            for (const [run, limit, period] of [
              [second, 20, 1_000],
              [minute, 30, 60_000]
            ] as const) {
              assert.isAtMost(mostInWindow(times(await run.starts()), period), limit)
              assert.isAtMost(mostInWindow(times(run.target.arrivals), period), atTarget(limit))
              await run.target.close()
            }
          })
        }),
      90_000
    )
  }
})
