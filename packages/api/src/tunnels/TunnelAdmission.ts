import { Effect } from "effect"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { tunneling } from "@tidegate/model/Permission"
import type { Database } from "@tidegate/storage/Database"
import { teamOfTunnel } from "@tidegate/storage/teams/Teams"
import { read } from "../handlers/Calls.ts"
import { actingTeams } from "../streams/ActingTeam.ts"
import type { StreamCredentials } from "../streams/StreamCredentials.ts"

const asked = { route: "GET:/v1/connect", permission: tunneling }

/** What a handshake was admitted to. */
export interface AdmittedTunnel {
  readonly team: string
  readonly destination: string
  readonly isStranger: false
}

/**
 * Determines who may hold a tunnel open: callers with that right in the destination's team. This is checked again while the
 * tunnel is open.
 */
export const tunnelAdmission = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const actingTeamOf = yield* actingTeams

  const admitted = Effect.fnUntraced(function* <R>(
    destination: string,
    allowed: Effect.Effect<string, GatewayError, R>
  ): Effect.fn.Return<AdmittedTunnel, GatewayError, R> {
    const acting = yield* allowed
    const owner = isId(prefixes.destination, destination)
      ? yield* Effect.provideContext(read(teamOfTunnel(destination)), database)
      : null
    if (owner !== acting) return yield* notFound("destination", destination)
    return { team: acting, destination, isStranger: false }
  })

  return (destination: string, credentials: Omit<StreamCredentials, "bin">) =>
    admitted(destination, actingTeamOf(asked, credentials))
})
