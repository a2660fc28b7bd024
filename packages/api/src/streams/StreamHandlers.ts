import type { IncomingMessage } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { client, Credentials, isRefusal, spend } from "../Credentials.ts"
import { Api } from "../contract/Api.ts"
import { perMinute } from "../RateLimit.ts"
import { admission } from "./Admission.ts"
import { credentialsOf, offeredProtocols } from "./StreamCredentials.ts"
import { Streams } from "./Streams.ts"
import { localUrlOf } from "../tunnels/LocalUrl.ts"
import { tunnelAdmission } from "../tunnels/TunnelAdmission.ts"
import { tunnels } from "../tunnels/Tunnels.ts"

/** How often a client address may request streams that it has no right to. */
const refusedStreams = perMinute("refused_streams", 120)

const noHandshake = fail("UPGRADE_REQUIRED", "this is a WebSocket: open it by a handshake of version 13")

const localOnly = "must be an http or https URL of localhost, without a query, a fragment, a user name or a password"

/** The fault of a handshake, so that it gets the standard error body. */
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
    const connect = yield* tunnels
    const admitTunnel = yield* tunnelAdmission
    const limiter = yield* RateLimiter
    const { changes } = yield* Credentials
    const changesOf = (credential: string | null) =>
      credential === null ? Effect.succeed(Effect.never) : changes(credential)

    /** A valid handshake and its credentials. */
    const handshake = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const message = NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage
      const fault = faultOf(message)
      if (fault !== null) return yield* fault
      const offered = offeredProtocols(request.headers)
      if (offered === null) {
        return yield* invalid([{ path: "sec-websocket-protocol", message: "must be a few subprotocols, each once" }])
      }
      return { message, credentials: credentialsOf(request.headers, offered) }
    })
    const refused = Effect.gen(function* () {
      yield* spend("address", yield* limiter.take(refusedStreams, yield* client))
    })
    const counted = <A, R>(admitted: Effect.Effect<A, GatewayError, R>) =>
      Effect.tapError(admitted, (error) => (isRefusal(error) ? refused : Effect.void))
    /** Never written: by then the connection has ended. */
    const over = HttpServerResponse.empty({ status: 101 })

    return handlers
      .handleRaw("watch", ({ params, request }) =>
        Effect.gen(function* () {
          const { credentials, message } = yield* handshake(request)
          const changed = yield* changesOf(credentials.caller)
          yield* streams.open(message, params.id, counted(admit(params.id, credentials)), changed)
          return over
        })
      )
      .handleRaw("connect", ({ query, request }) =>
        Effect.gen(function* () {
          const { credentials, message } = yield* handshake(request)
          const localUrl = localUrlOf(query.local_url)
          if (localUrl === undefined) return yield* invalid([{ path: "local_url", message: localOnly }])
          const caller = credentials.caller ?? request.headers["x-api-key"] ?? null
          const admitted = counted(admitTunnel(query.destination_id, { ...credentials, caller }))
          yield* connect(message, localUrl, admitted, yield* changesOf(caller))
          return over
        })
      )
  })
)
