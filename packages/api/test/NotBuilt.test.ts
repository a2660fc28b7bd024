import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Api } from "../src/contract/Api.ts"
import { isNotBuilt } from "../src/NotBuilt.ts"
import { call, layer as server } from "./ControlServer.ts"

layer(server, { excludeTestServices: true })("Routes that are not built yet", (it) => {
  for (const [method, path] of [
    ["GET", "/sources/channel-alerts"],
    ["GET", "/sources/channels"],
    ["POST", "/sources/src_1/channel-retry"],
    ["GET", "/Sources/Channel-Metrics/"],
    ["HEAD", "/sources/channels"]
  ] as const) {
    it.effect(`Route ${method} ${path} answers that it is not built yet`, () =>
      Effect.gen(function* () {
        for (const prefix of ["", "/v1"]) {
          const answer = yield* call(method, prefix + path)
          expect(answer.status).toBe(404)
          if (method === "HEAD") continue
          const message = `${method} ${path} is not built yet`
          expect(answer.body).toMatchObject({ code: "ROUTE_NOT_FOUND", message, data: { built: false } })
        }
      })
    )
  }

  it.effect("Built and unknown routes do not answer that they are not built yet", () =>
    Effect.gen(function* () {
      const endpoints = Object.values(Api.groups).flatMap((group) => Object.values(group.endpoints))
      for (const { method, path } of endpoints) {
        expect([method, path, isNotBuilt(method, path.replaceAll(/:[a-z]+/gi, "src_1"))]).toEqual([method, path, false])
      }
      const nowhere = yield* call("GET", "/nowhere")
      expect(nowhere.body).toMatchObject({ message: "there is no route GET /nowhere" })
      expect(nowhere.body.data).toBeUndefined()
    })
  )
})
