import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { SourceEntity } from "@tidegate/entities/Source/SourceProtocol"
import { prefixes } from "@tidegate/model/Ids"
import { providerType } from "@tidegate/model/ProviderSource"
import { deduplicationTestBody } from "@tidegate/resources/DeduplicationTest"
import { source } from "@tidegate/resources/Source"
import { Sources } from "@tidegate/storage/control/Sources"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, type ById, ownersOf, read, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { handle } from "../handlers/Resource.ts"
import { tryDeduplication } from "./DeduplicationTrial.ts"
import { testRequests } from "./TestRequests.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "sources",
  Effect.fnUntraced(function* (handlers) {
    const client = yield* SourceEntity.client
    const sources = yield* Sources
    const reading = yield* reader
    const { owner } = ownersOf(prefixes.source, "source", client)
    const handled = yield* handle(handlers, source, Lists.sources, sources, client, {
      // The actor wakes the source's channel.
      needsActor: ({ type }) => type === providerType
    })

    return handled
      .handleRaw("testRequest", yield* testRequests)
      .handle("health", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          return yield* askOwner((yield* owner(params.id)).Health({ team_id }))
        })
      )
      .handleRaw("testDeduplication", ({ params, request }: ById & WithBody) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const written = yield* Effect.fromResult(deduplicationTestBody.judge(yield* readJsonObject(request)))
          const { id } = yield* read(sources.get(team_id, params.id))
          return yield* tryDeduplication(reading, team_id, id, written)
        })
      )
  })
)
