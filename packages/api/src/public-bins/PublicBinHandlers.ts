import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { Ingress, sourceUrl } from "@tidegate/model/Ingress"
import { binLife } from "@tidegate/model/PublicBin"
import { claimBin } from "@tidegate/storage/control/BinClaim"
import { createBin, openBin } from "@tidegate/storage/control/Bins"
import { binRequests } from "@tidegate/storage/reads/BinReads"
import { filterKey } from "@tidegate/storage/reads/Cursor"
import { Sources } from "@tidegate/storage/control/Sources"
import { bearerOf, client, Credentials, refuse, retryIn, spend } from "../Credentials.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { PublicBins } from "../PublicBins.ts"
import { perMinute } from "../RateLimit.ts"
import { reader } from "../handlers/Calls.ts"
import { limitOf } from "../handlers/ListInput.ts"

/**
 * How often a client address may create bins, and how often one bin may be read; calls with a wrong token are counted by
 * `stranger`. Both fail open without Redis: each process counts on its own.
 */
const made = { name: "public_bins", calls: 10, windowMs: 3_600_000, maxKeys: 10_000 }
const opened = perMinute("opened_bins", 120)

const pageSize = 100

export const layer = HttpApiBuilder.group(
  Api,
  "public-bins",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const ingress = yield* Ingress
    const limiter = yield* RateLimiter
    const sources = yield* Sources
    const { stranger } = yield* Credentials
    const { max } = yield* PublicBins

    /**
     * A wrong token, or an unknown bin, counts like any wrong credential, and only after the look-up: the right token always
     * works.
     */
    const guarded = <A, R>(effect: Effect.Effect<A, GatewayError, R>) =>
      Effect.catchIf(
        effect,
        ({ code }) => code === "INVALID_BIN_TOKEN" || code === "NOT_FOUND",
        (error) => Effect.andThen(stranger, error)
      )

    const noRoom = Effect.fnUntraced(function* (until: Date) {
      const retry = retryIn(until.getTime() - (yield* Clock.currentTimeMillis))
      return yield* refuse(retry, `there are as many public bins as there may be; try again after ${retry} s`)
    })

    return handlers
      .handle("create", () =>
        Effect.gen(function* () {
          if (max === 0) return yield* fail("NOT_FOUND", "public bins are disabled here")
          yield* spend("maker", yield* limiter.take(made, yield* client))
          const bin = yield* reading(createBin(max))
          if (bin instanceof Date) return yield* noRoom(bin)
          const { expiresAt, id, token } = bin
          return {
            id,
            endpoint: sourceUrl(ingress, id),
            token,
            expires_at: expiresAt.toISOString(),
            ttl_seconds: binLife.seconds
          }
        })
      )
      .handle("retrieve", ({ headers, params: { id }, query, request }) =>
        Effect.gen(function* () {
          const token = headers["x-bin-token"] ?? bearerOf(request.headers) ?? ""
          const bin = yield* guarded(reading(openBin(id, token)))
          yield* spend("bin", yield* limiter.take(opened, id))
          const page = {
            key: filterKey("bin", { id }),
            cursor: query.cursor,
            limit: limitOf(query.limit, pageSize)
          }
          return {
            id,
            endpoint: sourceUrl(ingress, id),
            expires_at: bin.expires_at.toISOString(),
            ttl_seconds: binLife.seconds,
            ...(yield* reading(binRequests({ id, ...bin }, page)))
          }
        })
      )
      .handle("claim", ({ headers, params: { id } }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          yield* guarded(reading(claimBin({ id, token: headers["x-bin-token"] ?? "", team_id })))
          return { claimed: true as const, id, team_id, source: yield* reading(sources.get(team_id, id)) }
        })
      )
  })
)
