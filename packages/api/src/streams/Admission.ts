import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { fail, type GatewayError, notFound, statusOf } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { reading } from "@tidegate/model/Permission"
import type { Database } from "@tidegate/storage/Database"
import { openBin } from "@tidegate/storage/control/Bins"
import type { WatchedSource } from "@tidegate/storage/reads/CapturedReads"
import { teamOfSource } from "@tidegate/storage/teams/Teams"
import { Credentials } from "../Credentials.ts"
import { read } from "../handlers/Calls.ts"
import { actingTeams } from "./ActingTeam.ts"
import type { StreamCredentials } from "./StreamCredentials.ts"

const asked = { route: "GET:/v1/bins/:id/stream", permission: reading }

/** What a handshake was admitted to. */
export interface Admitted extends WatchedSource {
  /** When the permission ends (Unix ms); null: it does not. */
  readonly endsAt: number | null
  /** Whether only a bin's token was presented. */
  readonly isStranger: boolean
}

/**
 * Who may watch a source. A bin: anyone with its token, until it expires or is claimed. From then on, as for any other source:
 * anyone with the right to read in its team. Checked again while the stream is open.
 *
 * Another team's source is 403 and not 404: its ingress URL shows anyone whether it exists.
 */
export const admission = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const { stranger } = yield* Credentials
  const actingTeamOf = yield* actingTeams

  const admitted = Effect.fnUntraced(function* <R>(
    id: string,
    { bin, caller: credential }: StreamCredentials,
    allowed: Effect.Effect<string, GatewayError, R>
  ): Effect.fn.Return<Admitted, GatewayError, R | HttpServerRequest.HttpServerRequest> {
    if (bin !== null) {
      const opened = yield* Effect.result(Effect.provideContext(read(openBin(id, bin)), database))
      if (opened._tag === "Success") {
        const { expires_at, team_id } = opened.success
        return { source: id, team: team_id, endsAt: expires_at.getTime(), isStranger: true }
      }
      const isWrong = opened.failure.code === "INVALID_BIN_TOKEN"
      // A credential beside it is counted on its own, when it is wrong too.
      if (isWrong && credential === null) yield* stranger
      // The token of a claimed bin is invalid, but the credential beside it may be valid.
      if (credential === null || statusOf[opened.failure.code] >= 429) return yield* opened.failure
    }
    const acting = yield* allowed
    const owner = isId(prefixes.source, id) ? yield* Effect.provideContext(read(teamOfSource(id)), database) : null
    if (owner === null) return yield* notFound("bin", id)
    if (owner !== acting) return yield* fail("TEAM_FORBIDDEN", "the bin belongs to another team")
    return { source: id, team: acting, endsAt: null, isStranger: false }
  })

  return (id: string, credentials: StreamCredentials) => admitted(id, credentials, actingTeamOf(asked, credentials))
})
