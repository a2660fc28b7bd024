import type { IncomingMessage } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { RateLimiter } from "@tidegate/coordination/RateLimiter"
import { fail, invalid } from "@tidegate/model/GatewayError"
import { client, spend } from "../Credentials.ts"
import { Api } from "../contract/Api.ts"
import { perMinute } from "../RateLimit.ts"
import { admission } from "../streams/Admission.ts"
import { credentialsOf, offeredProtocols } from "../streams/StreamCredentials.ts"
import { Streams } from "../streams/Streams.ts"

/** How often a client address may open streams. */
const opened = perMinute("opened_streams", 120)

const noHandshake = fail("UPGRADE_REQUIRED", "this is a WebSocket: open it by a handshake of version 13")

/** What is wrong with a handshake, so that nothing is answered in another shape than everywhere. */
const faultOf = ({ headers, method, upgrade }: IncomingMessage & { readonly upgrade?: boolean }) => {
  if (upgrade !== true || method !== "GET" || headers.upgrade?.toLowerCase() !== "websocket") return noHandshake
  if (headers["sec-websocket-version"] !== "13") return noHandshake
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "")) {
    return invalid([{ path: "sec-websocket-key", message: "must be 16 bytes in base64" }])
  }
  if (headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0") {
    return invalid([{ path: "content-length", message: "a handshake has no body" }])
  }
  return null
}

export const layer = HttpApiBuilder.group(
  Api,
  "streams",
  Effect.fnUntraced(function* (handlers) {
    const streams = yield* Streams
    const admit = yield* admission
    const limiter = yield* RateLimiter

    return handlers.handleRaw("watch", ({ params, request }) =>
      Effect.gen(function* () {
        const message = NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage
        const fault = faultOf(message)
        if (fault !== null) return yield* fault
        const offered = offeredProtocols(request.headers)
        if (offered === null) {
          return yield* invalid([{ path: "sec-websocket-protocol", message: "must be a few subprotocols, each once" }])
        }
        yield* spend("address", yield* limiter.take(opened, yield* client))
        yield* streams.open(message, params.id, admit(params.id, credentialsOf(request.headers, offered)))
        // Written by nobody: by then the connection is over.
        return HttpServerResponse.empty({ status: 101 })
      })
    )
  })
)
