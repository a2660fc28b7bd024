import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { attemptFilters } from "@tidegate/model/RecordFilter"
import * as AttemptReads from "@tidegate/storage/reads/AttemptReads"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { reader, reporter } from "../handlers/Calls.ts"
import { listing } from "../handlers/Listing.ts"
import { dirOf, given, narrowingOf, pageOf, searchOf, valuesOf } from "../handlers/ListInput.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "attempts",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const reporting = yield* reporter

    return handlers
      .handle(
        "list",
        listing(({ query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const dir = dirOf(query.dir)
            const { error_code, response_status } = yield* narrowingOf(attemptFilters, query)
            const filter = {
              events: yield* valuesOf("event_id", query.event_id),
              request: given(query.request_id),
              connections: yield* valuesOf("connection_id", query.connection_id, query.webhook_id),
              destinations: yield* valuesOf("destination_id", query.destination_id),
              status: query.status,
              errorCodes: error_code,
              answers: response_status,
              search: yield* searchOf(query)
            }
            const page = yield* pageOf(Lists.attempts, query, { team, dir, ...filter })
            // Neither has an index: where few attempts match, many are examined.
            const isSearch = filter.search !== undefined || filter.connections.length > 0
            const reads = isSearch ? reporting : reading
            return yield* reads(AttemptReads.list(team, filter, dir, { ...page, prev: given(query.prev) }))
          })
        )
      )
      .handle("retrieve", ({ params, query }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) =>
          reading(AttemptReads.get(team, params.id, given(query.request_id)))
        )
      )
  })
)
