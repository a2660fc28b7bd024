import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { FilterEntity } from "@tidegate/entities/Filter/FilterProtocol"
import { maxTestBody } from "@tidegate/model/BodyLimits"
import { fail } from "@tidegate/model/GatewayError"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { filter } from "@tidegate/resources/Filter"
import { filterTestBody, type FilterTestMessage, tried } from "@tidegate/resources/FilterTest"
import { Filters } from "@tidegate/storage/control/Filters"
import * as RequestReads from "@tidegate/storage/reads/RequestReads"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { read, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { handle } from "../handlers/Resource.ts"

/** Stored filters: commands go to their actors, reads to the table. A test runs the filter engine here. */
export const layer = HttpApiBuilder.group(
  Api,
  "filters",
  Effect.fnUntraced(function* (handlers) {
    const filters = yield* Filters
    const reading = yield* reader
    const handled = yield* handle(handlers, filter, Lists.filters, filters, yield* FilterEntity.client, {
      narrowed: () => Effect.succeed({ counts: false })
    })

    const conditionsOf = Effect.fnUntraced(function* (team_id: string, { filter }: FilterTestMessage) {
      return "id" in filter ? (yield* read(filters.get(team_id, filter.id))).conditions : filter.conditions
    })
    const requestOf = Effect.fnUntraced(function* (team_id: string, { request }: FilterTestMessage) {
      if (!("id" in request)) return request
      const { data } = yield* reading(RequestReads.detail(team_id, request.id))
      if (data === null || data === undefined) {
        return yield* fail("PAYLOAD_UNAVAILABLE", "the payload of the request is not stored")
      }
      return { headers: data.headers, query: data.parsed_query, path: data.path, body: () => data.body }
    })

    return handled.handleRaw("test", ({ request }: WithBody) =>
      Effect.gen(function* () {
        const { id: team_id } = yield* CurrentTeam
        const written = yield* Effect.fromResult(filterTestBody.judge(yield* readJsonObject(request, maxTestBody)))
        const conditions = yield* conditionsOf(team_id, written)
        const work = tried(conditions, yield* requestOf(team_id, written))
        return yield* Effect.flatMap(inSlices(work), Effect.fromResult)
      })
    )
  })
)
