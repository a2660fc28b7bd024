import { Effect, Predicate, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConnectionEntity } from "@tidegate/entities/Connection/ConnectionProtocol"
import { fail, invalid } from "@tidegate/model/GatewayError"
import { connection } from "@tidegate/resources/Connection"
import { Connections } from "@tidegate/storage/control/Connections"
import * as RequestReads from "@tidegate/storage/reads/RequestReads"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { read, reader } from "../handlers/Calls.ts"
import { textOf } from "../handlers/JsonBody.ts"
import { valuesOf } from "../handlers/ListInput.ts"
import { handle } from "../handlers/Resource.ts"

/** The id in `{ "id": … }`. */
const idIn = (value: Schema.Json | undefined): string | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? textOf(value as Schema.JsonObject, "id") : null

/** Whether a rule contains code, which is saved as a transformation. */
const bringsCode = (rule: unknown): boolean =>
  Predicate.isReadonlyObject(rule) && (rule["transformation"] ?? null) !== null

/** Only users who may write transformations may write code, wherever it is. */
const mayWrite = ({ rules }: Schema.JsonObject) =>
  Effect.gen(function* () {
    const { caller, role } = yield* CurrentTeam
    if (role === "owner" || !Array.isArray(rules) || !rules.some(bringsCode)) return
    const instead = "write the code of a rule: name a transformation that is there, by transformation_id"
    yield* caller.kind === "key"
      ? fail("USER_SESSION_REQUIRED", `no project key may ${instead}`)
      : fail("ROLE_REQUIRED", `only owners of the team may ${instead}`, { required: "owner" })
  })

interface Listed {
  readonly source_id?: ReadonlyArray<string>
  readonly destination_id?: ReadonlyArray<string>
  readonly paused?: boolean
}

export const layer = HttpApiBuilder.group(
  Api,
  "connections",
  Effect.fnUntraced(function* (handlers) {
    const connections = yield* Connections
    const reading = yield* reader

    const handled = yield* handle(
      handlers,
      connection,
      Lists.connections,
      connections,
      yield* ConnectionEntity.client,
      {
        /** The one that the body names: by its id, else by its source and name. */
        find: (team_id, body) => {
          if (!["string", "undefined"].includes(typeof (body["id"] ?? undefined))) {
            return Effect.fail(invalid([{ path: "id", message: "must be an id" }]))
          }
          const id = textOf(body, "id")
          if (id !== null) return Effect.as(connections.get(team_id, id), id)
          const source_id = textOf(body, "source_id") ?? idIn(body["source"])
          const name = textOf(body, "name")
          return source_id === null || name === null
            ? Effect.succeed(null)
            : connections.findByName(team_id, name, { source_id })
        },
        allowed: mayWrite,
        // Code that is written inside a rule has to compile.
        needsActor: ({ rules = [] }) => rules.some((rule) => rule.type === "transform" && "transformation" in rule),
        narrowed: Effect.fnUntraced(function* ({ destination_id, paused, source_id }: Listed) {
          const among = {
            source_id: yield* valuesOf("source_id", source_id),
            destination_id: yield* valuesOf("destination_id", destination_id)
          }
          return { among, paused }
        })
      }
    )
    return handled.handle("latestInput", ({ params }) =>
      Effect.gen(function* () {
        const { id: team_id } = yield* CurrentTeam
        const { id: connection_id, source_id } = yield* read(connections.get(team_id, params.id))
        return { connection_id, latest_input: yield* reading(RequestReads.latestInput(team_id, source_id)) }
      })
    )
  })
)
