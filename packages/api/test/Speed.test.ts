import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { makeHistory } from "../../storage/test/reads/History.ts"
import { call, layer as server, teams } from "./ControlServer.ts"
layer(server, { timeout: "60 seconds", excludeTestServices: true })("speed", (it) => {
  it.effect(
    "x",
    () =>
      Effect.gen(function* () {
        const to = Date.now()
        const h = yield* makeHistory({ team: teams.a.id, requests: 100000, from: to - 72000000, to })
        for (const path of [
          "/openapi.json",
          `/sources/${h.sources[0]}`,
          "/sources",
          "/requests?limit=100",
          "/requests?limit=100&include=data,event_summary",
          "/events?limit=100",
          "/events?limit=100&status=FAILED",
          "/events?limit=10",
          "/attempts?limit=100",
          "/events/count",
          "/requests/count?status=rejected",
          "/destinations",
          "/connections"
        ]) {
          for (let i = 0; i < 20; i++) yield* call("GET", path)
          const times: number[] = []
          const t0 = performance.now()
          yield* Effect.all(
            Array.from({ length: 200 }, () =>
              Effect.suspend(() => {
                const t = performance.now()
                return Effect.tap(call("GET", path), () => Effect.sync(() => times.push(performance.now() - t)))
              })
            ),
            { concurrency: 4 }
          )
          const s = (performance.now() - t0) / 1000
          times.sort((a, b) => a - b)
          process.stdout.write(
            `SPEED ${path} ${(200 / s).toFixed(0)}/s p50 ${times[100]!.toFixed(1)} p99 ${times[198]!.toFixed(1)}\n`
          )
        }
      }),
    60000
  )
})
