import { Effect, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConnectionEntity } from "@tidegate/entities/Connection/ConnectionProtocol"
import { prefixes } from "@tidegate/model/Ids"
import { maxConnectionBody } from "@tidegate/model/BodyLimits"
import * as RequestReads from "@tidegate/storage/reads/RequestReads"
import * as ResourceLists from "@tidegate/storage/reads/TypedLists"
import { Connections } from "@tidegate/storage/Connections"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { type ById, askOwner, ownersOf, read, reader, upsert, type WithBody } from "./Calls.ts"
import { readJsonObject, textOf } from "./JsonBody.ts"
import { resourceQueryOf, valuesOf } from "./ListInput.ts"

type Body = Schema.JsonObject
/** The id in `{ "id": … }`. */
const idIn = (value: Schema.Json | undefined): string | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? textOf(value as Body, "id") : null

/** Connections: commands go to their entities, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "connections",
  Effect.fnUntraced(function* (handlers) {
    const { fresh, owner } = ownersOf(prefixes.connection, "connection", yield* ConnectionEntity.client)
    const connections = yield* Connections
    const reading = yield* reader

    const create = Effect.fnUntraced(function* (team_id: string, input: Body) {
      return yield* askOwner((yield* fresh).Create({ team_id, input }))
    })
    const update = Effect.fnUntraced(function* (team_id: string, id: string, input: Body) {
      return yield* askOwner((yield* owner(id)).Update({ team_id, input }))
    })
    const updateOne = Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
      const { id: team_id } = yield* CurrentTeam
      return yield* update(team_id, params.id, yield* readJsonObject(request, maxConnectionBody))
    })
    const act = (message: "Disable" | "Enable" | "Pause" | "Unpause") =>
      Effect.fnUntraced(function* ({ params }: ById) {
        const { id: team_id } = yield* CurrentTeam
        return yield* askOwner((yield* owner(params.id))[message]({ team_id }))
      })

    /** The one that the body names: by its id, else by its source and name. */
    const findUpserted = (team_id: string, input: Body) => {
      const id = textOf(input, "id")
      if (id !== null) return Effect.as(connections.get(team_id, id), id)
      const source_id = textOf(input, "source_id") ?? idIn(input["source"])
      const name = textOf(input, "name")
      return source_id === null || name === null
        ? Effect.succeed(null)
        : connections.findByName(team_id, source_id, name)
    }

    return handlers
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          return yield* reading(
            ResourceLists.connections(team_id, {
              ...(yield* resourceQueryOf(query)),
              among: {
                source_id: yield* valuesOf("source_id", query.source_id),
                destination_id: yield* valuesOf("destination_id", query.destination_id)
              },
              paused: query.paused
            })
          )
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team_id }) => read(connections.get(team_id, params.id)))
      )
      .handleRaw("create", ({ request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          return yield* create(team_id, yield* readJsonObject(request, maxConnectionBody))
        })
      )
      .handleRaw("upsert", ({ request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const input = yield* readJsonObject(request, maxConnectionBody)
          return yield* upsert({
            find: read(findUpserted(team_id, input)),
            update: (id) => update(team_id, id, input),
            create: create(team_id, input)
          })
        })
      )
      .handleRaw("update", updateOne)
      .handleRaw("updateByPut", updateOne)
      .handle("disable", act("Disable"))
      .handle("disableByPost", act("Disable"))
      .handle("enable", act("Enable"))
      .handle("enableByPost", act("Enable"))
      .handle("pause", act("Pause"))
      .handle("pauseByPost", act("Pause"))
      .handle("unpause", act("Unpause"))
      .handle("unpauseByPost", act("Unpause"))
      .handle("latestInput", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const { id: connection_id, source_id } = yield* read(connections.get(team_id, params.id))
          return { connection_id, latest_input: yield* reading(RequestReads.latestInput(team_id, source_id)) }
        })
      )
      .handle("delete", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const { id } = yield* askOwner((yield* owner(params.id)).Delete({ team_id }))
          return { id, deleted: true as const }
        })
      )
  })
)
