import { Effect, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { prefixes } from "@tidegate/model/Ids"
import * as ResourceLists from "@tidegate/storage/reads/TypedLists"
import { Destinations } from "@tidegate/storage/Destinations"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { type ById, askOwner, ownersOf, read, reader, upsert, type WithBody } from "./Calls.ts"
import { readJsonObject, textOf } from "./JsonBody.ts"
import { resourceQueryOf } from "./ListInput.ts"

type Body = Schema.JsonObject
/** Destinations: commands go to their entities, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "destinations",
  Effect.fnUntraced(function* (handlers) {
    const { fresh, owner } = ownersOf(prefixes.destination, "destination", yield* DestinationEntity.client)
    const destinations = yield* Destinations
    const reading = yield* reader

    const create = Effect.fnUntraced(function* (team_id: string, input: Body) {
      return yield* askOwner((yield* fresh).Create({ team_id, input }))
    })
    const write = (message: "Update" | "Replace" | "Upsert") =>
      Effect.fnUntraced(function* (team_id: string, id: string, input: Body) {
        return yield* askOwner((yield* owner(id))[message]({ team_id, input }))
      })
    const writeOne = (message: "Update" | "Replace") =>
      Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
        const { id: team_id } = yield* CurrentTeam
        return yield* write(message)(team_id, params.id, yield* readJsonObject(request))
      })
    const act = (message: "Disable" | "Enable") =>
      Effect.fnUntraced(function* ({ params }: ById) {
        const { id: team_id } = yield* CurrentTeam
        return yield* askOwner((yield* owner(params.id))[message]({ team_id }))
      })

    return handlers
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          return yield* reading(ResourceLists.destinations(team_id, yield* resourceQueryOf(query)))
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team_id }) => read(destinations.get(team_id, params.id)))
      )
      .handleRaw("create", ({ request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          return yield* create(team_id, yield* readJsonObject(request))
        })
      )
      .handleRaw("upsert", ({ request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const input = yield* readJsonObject(request)
          const name = textOf(input, "name")
          return yield* upsert({
            find: name === null ? Effect.succeed(null) : read(destinations.findByName(team_id, name)),
            update: (id) => write("Upsert")(team_id, id, input),
            create: create(team_id, input)
          })
        })
      )
      .handleRaw("update", writeOne("Update"))
      .handleRaw("replace", writeOne("Replace"))
      .handle("disable", act("Disable"))
      .handle("disableByPost", act("Disable"))
      .handle("enable", act("Enable"))
      .handle("enableByPost", act("Enable"))
      .handle("delete", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const { id } = yield* askOwner((yield* owner(params.id)).Delete({ team_id }))
          return { id, deleted: true as const }
        })
      )
  })
)
