import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { tunneling } from "@tidegate/model/Permission"
import type { Database } from "@tidegate/storage/Database"
import { teamOfTunnel } from "@tidegate/storage/Teams"
import { Credentials } from "../Credentials.ts"
import { namedTeams, refusal, roleIn } from "../handlers/Authorization.ts"
import { read } from "../handlers/Calls.ts"
import type { StreamCredentials } from "../streams/StreamCredentials.ts"

/** What a handshake was let in to. */
export interface AdmittedTunnel {
  readonly team: string
  readonly destination: string
  readonly isStranger: false
}

/** Who may hold a tunnel open: whoever may act so in the destination's team. Asked again while it is open. */
export const tunnelAdmission = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const { callerOf } = yield* Credentials

  return Effect.fnUntraced(function* (
    destination: string,
    { caller: credential, team }: Omit<StreamCredentials, "bin">
  ): Effect.fn.Return<
    AdmittedTunnel,
    GatewayError,
    HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams
  > {
    const caller = yield* callerOf(credential ?? "")
    const named = team === null ? yield* namedTeams : [team]
    const acting = named[0] ?? (caller.kind === "team_key" ? caller.team : caller.signedIn.team)
    const role = named.length > 1 ? null : yield* Effect.provideContext(roleIn(caller, acting), database)
    if (role === null) return yield* fail("TEAM_FORBIDDEN", "the credential cannot act on this team")
    const refused = refusal(tunneling, caller, role)
    if (refused !== null) return yield* refused
    const owner = isId(prefixes.destination, destination)
      ? yield* Effect.provideContext(read(teamOfTunnel(destination)), database)
      : null
    if (owner !== acting) return yield* notFound("destination", destination)
    return { team: acting, destination, isStranger: false }
  })
})
