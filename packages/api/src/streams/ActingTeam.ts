import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { type Asked, authorizing, namedTeams } from "../handlers/Authorization.ts"
import type { StreamCredentials } from "./StreamCredentials.ts"

/**
 * The team that a handshake's caller may act in. A handshake counts as a call of its key or user; the repeated checks while the
 * socket is open do not.
 */
export const actingTeams = Effect.gen(function* () {
  const authorize = yield* authorizing

  /** Made anew for each handshake, because its first check counts as a call and the later ones do not. */
  return (
    asked: Asked,
    { caller, team }: Pick<StreamCredentials, "caller" | "team">
  ): Effect.Effect<
    string,
    GatewayError,
    HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams
  > => {
    let isCounted = false
    return Effect.gen(function* () {
      const named = team === null ? yield* namedTeams : [team]
      const isCall = !isCounted
      isCounted = true
      const { id } = yield* authorize({ ...asked, credential: caller ?? "", named, isCall })
      return id
    })
  }
})
