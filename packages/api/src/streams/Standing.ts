import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Principals } from "@tidegate/model/Permission"
import type { Database } from "@tidegate/storage/Database"
import { Credentials } from "../Credentials.ts"
import { callCount, namedTeams, ownTeam, refusal, roleIn } from "../handlers/Authorization.ts"
import type { StreamCredentials } from "./StreamCredentials.ts"

/**
 * The team that a handshake's caller may act in, in the order in which a call is let in. A handshake is counted as a call of its key or user;
 * that it is asked again while the socket is open is not.
 */
export const standing = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const { callerOf } = yield* Credentials
  const count = yield* callCount

  /** Of one handshake. */
  return (
    permission: Principals,
    { caller: credential, team }: Pick<StreamCredentials, "caller" | "team">
  ): Effect.Effect<
    string,
    GatewayError,
    HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams
  > => {
    let isCounted = false
    return Effect.gen(function* () {
      const caller = yield* callerOf(credential ?? "")
      const named = team === null ? yield* namedTeams : [team]
      const acting = named[0] ?? ownTeam(caller)
      const role = named.length > 1 ? null : yield* Effect.provideContext(roleIn(caller, acting), database)
      if (role === null) return yield* fail("TEAM_FORBIDDEN", "the credential cannot act on this team")
      if (!isCounted) yield* count(caller)
      isCounted = true
      const refused = refusal(permission, caller, role)
      return refused === null ? acting : yield* refused
    })
  }
})
