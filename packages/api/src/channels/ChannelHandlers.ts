import { randomUUID } from "node:crypto"
import { Effect, type Schema } from "effect"
import { HttpApiBuilder, type HttpApiEndpoint } from "effect/http-api"
import { wakeUps } from "@tidegate/entities/dispatch/WakeUps"
import { SourceEntity } from "@tidegate/entities/Source/SourceProtocol"
import { ChannelStatus } from "@tidegate/model/Channel"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { bulkDelivery } from "@tidegate/resources/Delivery"
import * as Changes from "@tidegate/storage/channels/ChannelChanges"
import * as Reads from "@tidegate/storage/channels/ChannelReads"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import {
  asked,
  askOwner,
  type ById,
  carriedThrough,
  ownersOf,
  reader,
  reporter,
  type Stores,
  type WithBody
} from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { listing } from "../handlers/Listing.ts"
import { pageOf, statesOf } from "../handlers/ListInput.ts"

/** Sources that one bulk call changes at the same time. */
const atOnce = 4

interface RunsCall extends ById {
  readonly query: Schema.Struct.Type<typeof Lists.sourceRuns.query>
  readonly endpoint: HttpApiEndpoint.Constraint
}

export const layer = HttpApiBuilder.group(
  Api,
  "channels",
  Effect.fnUntraced(function* (handlers) {
    const client = yield* SourceEntity.client
    const { owner } = ownersOf(prefixes.source, "source", client)
    const { wakeChannel } = yield* wakeUps
    const reading = yield* reader
    const reporting = yield* reporter
    const stores = yield* Effect.context<Stores>()

    /** Commits a change of the channel's row. Its actor is woken then: the poller would find it later. */
    const changed = <A>(change: Effect.Effect<A, GatewayError, Stores>, id: string) =>
      carriedThrough(Effect.tap(Effect.provideContext(change, stores), () => wakeChannel(id)))
    const retry = Effect.fnUntraced(function* (id: string) {
      const { id: team_id } = yield* CurrentTeam
      yield* owner(id)
      return yield* changed(Changes.requestRetry(team_id, id), id)
    })
    const deliver = Effect.fnUntraced(function* (id: string, input: Schema.JsonObject) {
      const to = yield* owner(id)
      return yield* askOwner(to.ChangeDelivery({ ...(yield* asked), command: randomUUID(), input }))
    })
    const deliverOne = ({ params, request }: ById & WithBody) =>
      Effect.flatMap(readJsonObject(request), (written) => deliver(params.id, written))
    const runs = (list: typeof Lists.sourceRuns | typeof Lists.sourceActivity, which: "all" | "eventful") =>
      listing(({ params, query }: RunsCall) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const page = yield* pageOf(list, query, { team, source: params.id })
          return yield* reading(Reads.sourceRuns(team, params.id, which, page))
        })
      )

    return handlers
      .handle(
        "list",
        listing(({ query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const statuses = yield* statesOf(query.status, ChannelStatus.literals)
            return yield* reporting(Reads.listChannels(team, statuses))
          })
        )
      )
      .handle("metrics", ({ query }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reporting(Reads.channelMetrics(team, query.days ?? 14)))
      )
      .handleRaw("bulk", ({ request }) =>
        Effect.gen(function* () {
          const { delivery, sources } = yield* Effect.fromResult(bulkDelivery(yield* readJsonObject(request)))
          const results = yield* Effect.forEach(
            sources,
            (id) =>
              Effect.result<unknown, GatewayError, CurrentTeam>(delivery === null ? retry(id) : deliver(id, delivery)),
            { concurrency: atOnce }
          )
          return {
            updated: sources.filter((_, index) => results[index]!._tag === "Success"),
            errors: results.flatMap((result, index) =>
              result._tag === "Success"
                ? []
                : [{ id: sources[index]!, code: result.failure.code, error: result.failure.message }]
            )
          }
        })
      )
      .handle("retry", ({ params }) => retry(params.id))
      .handle("events", ({ params, query }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) =>
          reading(Reads.channelHistory(team, params.id, query.limit ?? 100))
        )
      )
      .handleRaw("deliver", deliverOne)
      .handleRaw("deliverByPut", deliverOne)
      .handle("run", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          yield* owner(params.id)
          return yield* changed(Changes.requestRun(team_id, params.id), params.id)
        })
      )
      .handle("runs", runs(Lists.sourceRuns, "all"))
      .handle("activity", runs(Lists.sourceActivity, "eventful"))
  })
)
