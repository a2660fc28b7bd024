import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { SourceEntity } from "@tidegate/entities/Source/SourceProtocol"
import { prefixes } from "@tidegate/model/Ids"
import { providerType } from "@tidegate/model/ProviderSource"
import { source } from "@tidegate/resources/Source"
import { Sources } from "@tidegate/storage/control/Sources"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, ownersOf } from "../handlers/Calls.ts"
import { handle } from "../handlers/Resource.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "sources",
  Effect.fnUntraced(function* (handlers) {
    const client = yield* SourceEntity.client
    const { owner } = ownersOf(prefixes.source, "source", client)
    const handled = yield* handle(handlers, source, Lists.sources, yield* Sources, client, {
      // The actor wakes the source's channel.
      needsActor: ({ type }) => type === providerType
    })

    return handled.handle("health", ({ params }) =>
      Effect.gen(function* () {
        const { id: team_id } = yield* CurrentTeam
        return yield* askOwner((yield* owner(params.id)).Health({ team_id }))
      })
    )
  })
)
