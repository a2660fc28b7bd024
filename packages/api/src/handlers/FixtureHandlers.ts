import { Effect } from "effect"
import type { Sharding } from "effect/cluster/Sharding"
import { HttpApiBuilder } from "effect/http-api"
import { replay } from "@tidegate/entities/Replay"
import { prefixes } from "@tidegate/model/Ids"
import { fixtureBody, fixturePatch, fixtureReplay as replayBody } from "@tidegate/resources/FixtureInput"
import * as Fixtures from "@tidegate/storage/Fixtures"
import { hashToken } from "@tidegate/storage/Secrets"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, type ById, reader, type Stores, type WithBody } from "./Calls.ts"
import { chained } from "./Chained.ts"
import { readJsonObject } from "./JsonBody.ts"
import { limitOf, refuseCursors, searchOf, valuesOf } from "./ListInput.ts"

const listed = <Model>(models: ReadonlyArray<Model>) => ({ count: models.length, models })

export const layer = HttpApiBuilder.group(
  Api,
  "request-fixtures",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const context = yield* Effect.context<Sharding | Stores>()

    const update = Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
      const { id: team } = yield* CurrentTeam
      const input = yield* Effect.fromResult(fixturePatch.judge(yield* readJsonObject(request)))
      return yield* reading(Fixtures.updateFixture(team, params.id, input))
    })

    const replayOne = Effect.fnUntraced(function* ({ params: { id }, request }: ById & WithBody) {
      const { id: team_id } = yield* CurrentTeam
      const { connection_id } = yield* Effect.fromResult(replayBody.judge(yield* readJsonObject(request)))
      // Made here, so that what is carried out again makes no second request.
      const request_id = yield* idOfCall(prefixes.request)
      const prepared = yield* reading(Fixtures.fixtureReplay({ team_id, id, connection_id, request_id }))
      const { created_at } = yield* askOwner(
        Effect.provideContext(
          replay({ ...prepared.replay, message: chained(prepared.replay.message, request) }),
          context
        )
      )
      return {
        queued: true as const,
        fixture_id: id,
        connection_id,
        destination_id: prepared.target.destination_id,
        message_id: `fxr_${hashToken(request_id).slice(0, 20)}`,
        replay_request_id: request_id,
        replayed_at: created_at.toISOString()
      }
    })

    return handlers
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          yield* refuseCursors
          const sources = yield* valuesOf("source_id", query.source_id)
          const limit = limitOf(query.limit, 255)
          return listed(yield* reading(Fixtures.listFixtures(team, { sources, search: yield* searchOf(query), limit })))
        })
      )
      .handleRaw("create", ({ request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const input = yield* Effect.fromResult(fixtureBody.judge(yield* readJsonObject(request)))
          const id = yield* idOfCall(prefixes.fixture)
          return yield* reading(
            Fixtures.createFixture({ ...input, id, team_id, description: input.description ?? null })
          )
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(Fixtures.fixtureOf(team, params.id)))
      )
      .handleRaw("update", update)
      .handleRaw("updateByPut", update)
      .handle("delete", ({ params }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          yield* reading(Fixtures.deleteFixture(team, params.id))
          return { id: params.id, deleted: true as const }
        })
      )
      .handle("targets", ({ params }) =>
        Effect.gen(function* () {
          yield* refuseCursors
          return listed(yield* reading(Fixtures.fixtureTargets((yield* CurrentTeam).id, params.id)))
        })
      )
      .handleRaw("replay", replayOne)
  })
)
