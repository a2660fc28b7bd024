import { Effect, Redacted } from "effect"
import { Entity } from "effect/cluster"
import { source } from "@tidegate/resources/Source"
import { Sources } from "@tidegate/storage/Sources"
import { actorOf } from "../Actor.ts"
import { carryThrough } from "../CarryThrough.ts"
import { settling } from "../Settle.ts"
import { rememberSecret } from "./RememberSecret.ts"
import { SourceEntity } from "./SourceProtocol.ts"

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
