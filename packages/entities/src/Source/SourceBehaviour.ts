import { Effect, Redacted, Result } from "effect"
import { Entity } from "effect/cluster"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { source, type SourceChange, type SourceFields } from "@tidegate/resources/Source"
import { Sources } from "@tidegate/storage/Sources"
import { actorOf } from "../Actor.ts"
import { carryThrough } from "../CarryThrough.ts"
import { settling } from "../Settle.ts"
import { SourceEntity } from "./SourceProtocol.ts"

/**
 * Makes an announced secret the source's, once: a source that has one keeps it, because whoever can reach the source
 * could otherwise announce another.
 */
const rememberSecret =
  (secret: string) =>
  (stored: SourceFields): Result.Result<SourceChange, GatewayError> => {
    const known = stored.auth["webhook_secret_key"]
    if (known === secret) return Result.succeed({ ...stored, auth: "unchanged" })
    return known === undefined
      ? Result.succeed({ ...stored, auth: Object.assign({}, stored.auth, { webhook_secret_key: secret }) })
      : Result.fail(fail("SOURCE_AUTH_FAILED", "the source has another secret already"))
  }

/** The source's actor: it holds nothing, what it knows is in SQL. */
export const layer = SourceEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sources = yield* Sources
    const settle = yield* settling

    return SourceEntity.of({
      ...(yield* actorOf(source, sources, { settle })),
      RememberSecret: ({ payload: { secret, team_id } }) =>
        carryThrough(sources.update(team_id, id, rememberSecret(Redacted.value(secret)), { settle }))
    })
  })
)
