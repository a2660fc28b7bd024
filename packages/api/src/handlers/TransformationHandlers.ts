import { Effect, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { TransformationEntity } from "@tidegate/entities/Transformation/TransformationProtocol"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { maxCodeBody, maxRunBody } from "@tidegate/model/BodyLimits"
import type { Transformation } from "@tidegate/model/Transformation"
import { maskSecret } from "@tidegate/signatures/Masking"
import { filterKey } from "@tidegate/storage/reads/Cursor"
import * as ExecutionReads from "@tidegate/storage/reads/ExecutionReads"
import * as ResourceLists from "@tidegate/storage/reads/ResourceLists"
import { Transformations } from "@tidegate/storage/Transformations"
import { Api } from "../contract/Api.ts"
import { CurrentTeam, type Role } from "../contract/Authorization.ts"
import { type ById, command, ownersOf, read, reader, upsert, type WithBody } from "./Calls.ts"
import { readJsonObject, textOf } from "./JsonBody.ts"
import { given, limitOf, logLevelsOf, resourceQueryOf, windowOf } from "./ListInput.ts"

type Body = Schema.JsonObject

/** As the caller may see it: whoever does not own the team sees that there are variables, and not what they hold. */
export const shownTo = (role: Role, transformation: Transformation): Transformation => {
  if (role === "owner") return transformation
  const { env, ...shown } = transformation
  return { ...shown, env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, maskSecret(value)])) }
}

/** Every record of this group is answered through this. */
const shown = <R>(effect: Effect.Effect<Transformation, GatewayError, R>) =>
  Effect.flatMap(CurrentTeam, ({ role }) => Effect.map(effect, (transformation) => shownTo(role, transformation)))

/** Transformations: commands go to their entities, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "transformations",
  Effect.fnUntraced(function* (handlers) {
    const { fresh, owner } = ownersOf(prefixes.transformation, "transformation", yield* TransformationEntity.client)
    const transformations = yield* Transformations
    const reading = yield* reader

    const create = Effect.fnUntraced(function* (team_id: string, input: Body) {
      return yield* shown(command((yield* fresh).Create({ team_id, input })))
    })
    const updateOne = Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
      const { id: team_id } = yield* CurrentTeam
      const input = yield* readJsonObject(request, maxCodeBody)
      return yield* shown(command((yield* owner(params.id)).Update({ team_id, input })))
    })
    const run = Effect.fnUntraced(function* ({ request }: WithBody) {
      const { id: team_id } = yield* CurrentTeam
      const input = yield* readJsonObject(request, maxRunBody)
      const id = textOf(input, "transformation_id")
      const runner = id === null ? yield* fresh : yield* owner(id)
      return yield* command(runner.Run({ team_id, input }))
    })

    return handlers
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team_id, role } = yield* CurrentTeam
          const counts = query.include_counts === true || query.include_metrics === true
          const page = yield* reading(ResourceLists.transformations(team_id, yield* resourceQueryOf(query), { counts }))
          return { ...page, models: page.models.map((transformation) => shownTo(role, transformation)) }
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team_id }) => shown(read(transformations.get(team_id, params.id))))
      )
      .handleRaw("create", ({ request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          return yield* create(team_id, yield* readJsonObject(request, maxCodeBody))
        })
      )
      .handleRaw("upsert", ({ request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const input = yield* readJsonObject(request, maxCodeBody)
          const name = textOf(input, "name")
          return yield* upsert({
            find: name === null ? Effect.succeed(null) : read(transformations.findByName(team_id, name)),
            update: (id) => Effect.flatMap(owner(id), (found) => shown(command(found.Upsert({ team_id, input })))),
            create: create(team_id, input)
          })
        })
      )
      .handleRaw("run", run)
      .handleRaw("runByPut", run)
      .handleRaw("update", updateOne)
      .handleRaw("updateByPut", updateOne)
      .handle("delete", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const { id } = yield* command((yield* owner(params.id)).Delete({ team_id }))
          return { id, deleted: true as const }
        })
      )
      .handle("executions", ({ params, query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const logLevels = yield* logLevelsOf(query.log_level)
          const window = windowOf(query)
          return yield* reading(
            ExecutionReads.list(
              team,
              params.id,
              { logLevels },
              {
                key: filterKey("executions", { team, transformation: params.id, logLevels, ...window }),
                window,
                cursor: given(query.cursor, query.next),
                limit: limitOf(query.limit, 255)
              }
            )
          )
        })
      )
      .handle("execution", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(ExecutionReads.get(team, params.id, params.executionId)))
      )
  })
)
