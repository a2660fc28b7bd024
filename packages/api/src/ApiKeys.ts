import { Clock, Context, Effect, Layer, Option } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { clientOf } from "@tidegate/model/ClientAddress"
import { fail, type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import type { Database } from "@tidegate/storage/Database"
import { teamsByApiKey } from "@tidegate/storage/Teams"
import { read } from "./handlers/Calls.ts"
import { Allowances, RateLimits, type Verdict, windowMs } from "./RateLimit.ts"

/** Foreign addresses that are counted by themselves: some hundred bytes each. */
const mostAddresses = 10_000
/** Whole seconds, rounded up: who waits that long has waited long enough. */
const seconds = (ms: number): number => Math.ceil(ms / 1_000)

/** Lets the answer tell what is left; fails when nothing is. */
export const spend = Effect.fnUntraced(function* (
  scope: "key" | "address",
  { allowed, limit, remaining, resetMs, retryMs }: Verdict
): Effect.fn.Return<void, GatewayError, HttpServerRequest.HttpServerRequest> {
  const retry = Math.max(1, seconds(retryMs))
  const headers = {
    "ratelimit-policy": `"${scope}";q=${limit};w=${windowMs / 1_000}`,
    ratelimit: `"${scope}";r=${remaining};t=${seconds(resetMs)}`,
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(seconds(resetMs)),
    ...(allowed ? {} : { "retry-after": String(retry) })
  }
  yield* HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeaders(response, headers))
  )
  if (!allowed) {
    const what = scope === "key" ? "calls with this API key" : "calls without a valid API key from this address"
    yield* fail("RATE_LIMITED", `there are at most ${limit} ${what} a minute; repeat the call after ${retry} s`, {
      retry_after_seconds: retry,
      limit,
      scope: scope === "key" ? "api_key" : "address"
    })
  }
})

/**
 * Whose API key it is. Looks it up by its hash with every call, so that a rotated key is dead everywhere at once; it is a read of
 * a unique index, which calls at the same time share. Fails closed: a database that does not answer is a 503, never an unchecked call.
 *
 * Counts, of each client address, the calls that bring no valid one, wherever they were made. Beyond its limit an address is
 * answered 429, but a valid key is let in from there all the same: behind a proxy or a NAT one address is many callers, and
 * one of them with a wrong key must not shut out the others. What keeps a key from being guessed is its length.
 * Counted by this process for itself.
 */
export class ApiKeys extends Context.Service<
  ApiKeys,
  { readonly teamOf: (key: string) => Effect.Effect<string, GatewayError, HttpServerRequest.HttpServerRequest> }
>()("@tidegate/api/ApiKeys") {
  static readonly layer: Layer.Layer<ApiKeys, never, Database> = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const findTeam = yield* teamsByApiKey
      const { failedPerAddress } = yield* RateLimits
      const failures = new Allowances({ perMinute: failedPerAddress, mostKeys: mostAddresses })

      const find = Effect.fnUntraced(function* (key: string) {
        // No credential arrives as an empty one.
        if (key === "") {
          return yield* fail("UNAUTHENTICATED", "send a team's API key: Authorization: Bearer <key>")
        }
        const team = yield* read(findTeam(key))
        return team ?? (yield* fail("INVALID_API_KEY", "the API key is not valid"))
      })

      const countFailure = Effect.fnUntraced(function* (error: GatewayError) {
        const { remoteAddress } = yield* HttpServerRequest.HttpServerRequest
        const client = clientOf(Option.getOrElse(remoteAddress, () => ""))
        yield* spend("address", failures.take(client, yield* Clock.currentTimeMillis))
        return yield* error
      })

      return ApiKeys.of({
        teamOf: (key) => Effect.catchIf(find(key), ({ code }) => statusOf[code] === 401, countFailure)
      })
    })
  )
}
