import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { RateLimiter } from "@tidegate/coordination/RateLimiter"
import { Ingress, ingressPath } from "@tidegate/model/Ingress"
import { shareBody } from "@tidegate/resources/ShareInput"
import { openShare, revokeShare, share } from "@tidegate/storage/Shares"
import { client, spend } from "../Credentials.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { perMinute } from "../RateLimit.ts"
import { reader } from "./Calls.ts"
import { readJsonObjectIfAny } from "./JsonBody.ts"

/** How often a client address may open shares. */
const opened = perMinute("opened_shares", 120)

export const layer = HttpApiBuilder.group(
  Api,
  "shares",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const ingress = yield* Ingress
    // The API is where the senders' URLs are.
    const base = `${ingress.baseUrl}/`.slice(0, -ingressPath.length)
    const limiter = yield* RateLimiter

    return handlers
      .handleRaw("create", ({ params, request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const now = yield* Clock.currentTimeMillis
          const input = yield* Effect.fromResult(shareBody.judge(yield* readJsonObjectIfAny(request), now))
          return yield* reading(
            share({ ...input, team_id, request_id: params.id }, (token) => `${base}/v1/shares/request/${token}`)
          )
        })
      )
      .handle("revoke", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          yield* reading(revokeShare(team_id, params.id, params.share))
          return { id: params.share, deleted: true as const }
        })
      )
      .handle("open", ({ params }) =>
        Effect.gen(function* () {
          // Counted whatever is found: guessing costs like opening.
          yield* spend("address", yield* limiter.take(opened, yield* client))
          return yield* reading(openShare(params.token))
        })
      )
  })
)
