import { Clock, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { fail } from "@tidegate/model/GatewayError"
import type { Database } from "@tidegate/storage/Database"
import { ApiKeys, spend } from "../ApiKeys.ts"
import { CallNotes } from "../CallTelemetry.ts"
import { Authorization, CurrentTeam, permissionOf } from "../contract/Authorization.ts"
import { Allowances, RateLimits } from "../RateLimit.ts"

/** Keys are counted only once they have proven to be one. */
const mostKeys = 100_000

/** Lets in whoever has a team's key, and counts the calls of each. Counted by this process for itself. */
export const layer: Layer.Layer<Authorization, never, Database> = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const { teamOf } = yield* ApiKeys
    const { perKey } = yield* RateLimits
    const keys = perKey === 0 ? null : new Allowances({ perMinute: perKey, mostKeys })

    return Authorization.of({
      bearer: (effect, { credential, endpoint }) =>
        Effect.gen(function* () {
          const permission = permissionOf(endpoint)
          const team = yield* teamOf(Redacted.value(credential))
          ;(yield* CallNotes).team = team
          const request = yield* HttpServerRequest.HttpServerRequest
          const query = (yield* HttpServerRequest.ParsedSearchParams).team_id ?? []
          const header = request.headers["x-team-id"]
          const asked = header !== undefined && header !== "" ? [header] : typeof query === "string" ? [query] : query
          if (asked.some((id) => id !== team && id !== "")) {
            return yield* fail("TEAM_FORBIDDEN", "the API key cannot act on this team")
          }
          if (permission === "public" || !permission.teamKey) {
            return yield* fail("USER_SESSION_REQUIRED", "this needs a signed-in user, not an API key")
          }
          if (keys !== null) yield* spend("key", keys.take(team, yield* Clock.currentTimeMillis))
          return yield* Effect.provideService(effect, CurrentTeam, { id: team, role: "owner" as const })
        })
    })
  })
).pipe(Layer.provide(ApiKeys.layer))
