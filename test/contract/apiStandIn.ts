import type { Answered } from "../../packages/connectors/test/rows/Row.ts"
import { it as base } from "../support/it.ts"
import { standingIn } from "../support/Mocks.ts"
import { type Reply, Target } from "../support/Target.ts"

/** Every type requests its tokens here. */
const tokenPath = "/token"

/** The answer of the mock: a token for a token request, and this answer for any other request. */
export const answering =
  ({ body = "", headers = {}, status }: Answered): Reply =>
  (response, { url }) => {
    if (url.endsWith(tokenPath)) {
      response.writeHead(200, { "content-type": "application/json" })
      return void response.end('{"access_token":"t0ken-of-a-provider","token_type":"Bearer","expires_in":3600}')
    }
    response.writeHead(status, { "content-type": "application/json", ...headers })
    return void response.end(body)
  }

/** An API in the place of those that destinations call. */
export const it = base
  .extend("api", { scope: "file" }, async ({}, { onCleanup }) => {
    const api = await Target.start()
    onCleanup(() => api.close())
    return api
  })
  .extend("settings", { scope: "file" }, ({ api }) => standingIn(api.origin))
  /** Without the calls for tokens. */
  .extend(
    "calls",
    ({ api }) =>
      () =>
        api.received.filter(({ url }) => !url.endsWith(tokenPath))
  )
