import { Effect } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient, HttpApiMiddleware } from "effect/http-api"
import { expect } from "vitest"
import { Api } from "../../packages/api/src/contract/Api.ts"
import { Authorization } from "../../packages/api/src/contract/Authorization.ts"
import { it } from "../../test/support/it.ts"

it("A TypeScript client derived from the contract calls the control API", async ({ gateway }) => {
  const withKey = HttpApiMiddleware.layerClient(Authorization, ({ next, request }) =>
    next(HttpClientRequest.bearerToken(request, gateway.key))
  )
  const program = Effect.gen(function* () {
    const client = yield* HttpApiClient.make(Api, { baseUrl: gateway.origin })
    const source = yield* client.sources.create({ query: {}, payload: { name: "typed" } })
    const missing = yield* Effect.flip(client.sources.retrieve({ params: { id: "src_none" }, query: {} }))
    return { source, missing }
  })
  const { missing, source } = await Effect.runPromise(Effect.provide(program, [withKey, FetchHttpClient.layer]))
  // Answers and errors have types: `source.config.mode` is known, and so is what can fail.
  expect(source).toMatchObject({ name: "typed", type: "WEBHOOK", status: "enabled" })
  expect(missing).toMatchObject({ code: "NOT_FOUND" })
})
