import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { tunneling } from "@tidegate/model/Permission"
import type { Database } from "@tidegate/storage/Database"
import { teamOfTunnel } from "@tidegate/storage/Teams"
import { type Asked, authorizing, namedTeams } from "../handlers/Authorization.ts"
import { read } from "../handlers/Calls.ts"
import type { StreamCredentials } from "../streams/StreamCredentials.ts"

const asked: Asked = { route: "GET:/v1/connect", permission: tunneling }

/** What a handshake was let in to. */
export interface AdmittedTunnel {
  readonly team: string
  readonly destination: string
}

/** Who may hold a tunnel open: whoever may act so in the destination's team. Asked again while it is open. */
export const tunnelAdmission = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const authorize = yield* authorizing

  return Effect.fnUntraced(function* (
    destination: string,
    { caller: credential, team }: Omit<StreamCredentials, "bin">
  ): Effect.fn.Return<
    AdmittedTunnel,
    GatewayError,
    HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams
  > {
    const named = team === null ? yield* namedTeams : [team]
    const { id: acting } = yield* authorize({ ...asked, credential: credential ?? "", named, isCall: false })
    const owner = isId(prefixes.destination, destination)
      ? yield* Effect.provideContext(read(teamOfTunnel(destination)), database)
      : null
    if (owner !== acting) return yield* notFound("destination", destination)
    return { team: acting, destination }
  })
})
