import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { invalid } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { eventFilters, type EventNarrowing } from "@tidegate/model/RecordFilter"
import { retryDestination } from "@tidegate/storage/bulk/EventRetry"
import { filterKey } from "@tidegate/storage/reads/Cursor"
import * as EventReads from "@tidegate/storage/reads/EventReads"
import { eventFilterOf, isSearch } from "@tidegate/storage/reads/Narrowing"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { bulkCalls } from "../bulk-operations/BulkHandlers.ts"
import { askOwner, reader, reporter } from "../handlers/Calls.ts"
import { listing } from "../handlers/Listing.ts"
import { given, includesOf, limitOf, narrowingOf, pageOf, windowOf } from "../handlers/ListInput.ts"

/**
 * A feed has no end, and filters by values that were fixed when an event was stored: so it accepts no window, because a window
 * has an end, and no status, because a status changes.
 */
const judgeFeed = (query: object, narrowing: EventNarrowing) => {
  const windows = new Set(["from", "to", "start", "end", "cursor", "next"])
  const faults = [
    ...Object.keys(query)
      .filter((name) => windows.has(name))
      .map((path) => ({ path, message: "cannot be combined with after" })),
    ...Object.keys(narrowing)
      .filter((name) => !eventFilters[name as keyof typeof eventFilters].lasts)
      .map((path) => ({ path, message: "is not for a feed: it may change after the event was stored" }))
  ]
  return faults.length === 0 ? Effect.void : Effect.fail(invalid(faults))
}

export const layer = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fnUntraced(function* (handlers) {
    const destination = yield* DestinationEntity.client
    const reading = yield* reader
    const reporting = yield* reporter
    const bulk = yield* bulkCalls("events")

    return handlers
      .handle("bulkOperations", bulk.list)
      .handleRaw("createBulkOperation", bulk.create)
      .handle("bulkOperation", bulk.retrieve)
      .handle("runBulkOperation", bulk.run)
      .handle("cancelBulkOperation", bulk.cancel)
      .handle(
        "list",
        listing(({ query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const narrowing = yield* narrowingOf(eventFilters, query)
            const include = yield* includesOf(query.include, ["data"])
            const after = given(query.after)
            if (after !== undefined) {
              yield* judgeFeed(query, narrowing)
              const page = {
                key: filterKey("feed", { team, ...narrowing }),
                after,
                limit: limitOf(query.limit, Lists.events.maxRows)
              }
              return yield* reading(
                EventReads.feed(team, eventFilterOf(narrowing), page, { data: include.has("data") })
              )
            }
            const page = yield* pageOf(Lists.events, query, { team, ...narrowing })
            const filter = eventFilterOf(narrowing)
            const data = include.has("data")
            const reads = data || isSearch(filter) ? reporting : reading
            return yield* reads(EventReads.list(team, filter, page, { data }))
          })
        )
      )
      .handle("count", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          return yield* reporting(
            EventReads.count(team, eventFilterOf(yield* narrowingOf(eventFilters, query)), yield* windowOf(query))
          )
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(EventReads.get(team, params.id)))
      )
      .handle("retry", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const owner = destination(yield* reading(retryDestination(team_id, params.id)))
          // Made here, so that a message that is sent again after its answer was lost makes no second event.
          const id = yield* idOfCall(prefixes.event)
          const retry = yield* askOwner(owner.RetryEvent({ team_id, event_id: params.id, id }))
          return { ok: true as const, queued: true as const, transport: "queue" as const, ...retry }
        })
      )
  })
)
