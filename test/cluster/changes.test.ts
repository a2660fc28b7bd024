import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { runChanges } from "./ChangeRun.ts"
import { running } from "./running.ts"

it.live(
  "a change that has returned holds for every request sent after it, on both processes",
  () =>
    Effect.gen(function* () {
      const gateways = yield* running({ a: "all", b: "all" })
      const report = yield* Effect.promise(() => runChanges(gateways, 60))
      assert.deepStrictEqual(report.violations, [])
      assert.isAbove(report.decided, 100)
      assert.isAbove(report.attempts, 50)
    }),
  60_000
)
