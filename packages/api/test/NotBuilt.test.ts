import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Api } from "../src/contract/Api.ts"
import { isNotBuilt } from "../src/NotBuilt.ts"
import { call, layer as server } from "./ControlServer.ts"

layer(server, { excludeTestServices: true })("Routes that are not built yet", (it) => {
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
