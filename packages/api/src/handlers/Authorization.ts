import { Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { fail } from "@tidegate/model/GatewayError"
import { findTeamByApiKey } from "@tidegate/storage/Teams"
import { Authorization, CurrentTeam } from "../contract/Authorization.ts"
import { read } from "./Calls.ts"

/**
 * Looks the key up by its hash with every call, so that a rotated key is dead everywhere at once; it is one read of a
 * unique index. Fails closed: a database that does not answer is a 503, never an unchecked call.
 */
export const layer: Layer.Layer<Authorization, never, SqlClient.SqlClient> = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const teamOf = Effect.fnUntraced(function* (key: string) {
      // No credential arrives as an empty one.
      if (key === "") {
        return yield* fail("UNAUTHENTICATED", "send a team's API key: Authorization: Bearer <key>")
      }
      const team = yield* read(Effect.provideService(findTeamByApiKey(key), SqlClient.SqlClient, sql))
      return team ?? (yield* fail("INVALID_API_KEY", "the API key is not valid"))
    })

    return Authorization.of({
      bearer: (effect, { credential }) =>
        Effect.gen(function* () {
          const team = yield* teamOf(Redacted.value(credential))
          const request = yield* HttpServerRequest.HttpServerRequest
          const query = (yield* HttpServerRequest.ParsedSearchParams).team_id ?? []
          const header = request.headers["x-team-id"]
          const asked = header !== undefined && header !== "" ? [header] : typeof query === "string" ? [query] : query
          if (asked.some((id) => id !== team && id !== "")) {
            return yield* fail("TEAM_FORBIDDEN", "the API key cannot act on this team")
          }
          return yield* Effect.provideService(effect, CurrentTeam, { id: team })
        })
    })
  })
)
