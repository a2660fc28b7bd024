import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { Ingress } from "@tidegate/model/Ingress"
import { ShareStatus } from "@tidegate/model/Share"
import { shareBody } from "@tidegate/resources/ShareInput"
import { listShares, openShare, revokeShare, revokeShares, share } from "@tidegate/storage/control/Shares"
import { client, isRefusal, spend } from "../Credentials.ts"
import { hexIdOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { perMinute } from "../RateLimit.ts"
import { reader } from "../handlers/Calls.ts"
import { readJsonObjectIfAny } from "../handlers/JsonBody.ts"
import { pageOf, statesOf, valuesOf } from "../handlers/ListInput.ts"

/** How often a client address may request unknown shares. */
const unopened = perMinute("unopened_shares", 120)

export const layer = HttpApiBuilder.group(
  Api,
  "shares",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const { publicUrl } = yield* Ingress
    const limiter = yield* RateLimiter
    const refused = Effect.gen(function* () {
      yield* spend("address", yield* limiter.take(unopened, yield* client))
    })

    return handlers
      .handleRaw("create", ({ params, request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const now = yield* Clock.currentTimeMillis
          const input = yield* Effect.fromResult(shareBody.judge(yield* readJsonObjectIfAny(request), now))
          return yield* reading(
            share(
              { ...input, team_id, request_id: params.id },
              (token) => `${publicUrl}/v1/shares/request/${token}`,
              yield* hexIdOfCall("shr_", 24)
            )
          )
        })
      )
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const filter = {
            requests: yield* valuesOf("request_id", query.request_id),
            statuses: yield* statesOf(query.status, ShareStatus.literals)
          }
          return yield* reading(listShares(team, filter, yield* pageOf(Lists.shares, query, { team, ...filter })))
        })
      )
      .handle("revokeAll", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          return { request_id: params.id, revoked: yield* reading(revokeShares(team_id, params.id)) }
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
          return yield* Effect.tapError(reading(openShare(params.token)), (error) =>
            isRefusal(error) ? refused : Effect.void
          )
        })
      )
  })
)
