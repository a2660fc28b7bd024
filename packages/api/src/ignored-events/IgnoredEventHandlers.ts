import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ignoredEventFilters } from "@tidegate/model/RecordFilter"
import * as IgnoredEventReads from "@tidegate/storage/reads/IgnoredEventReads"
import { ignoredFilterOf } from "@tidegate/storage/reads/Narrowing"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { bulkCalls } from "../bulk-operations/BulkHandlers.ts"
import { reader, reporter } from "../handlers/Calls.ts"
import { listing } from "../handlers/Listing.ts"
import { narrowingOf, pageOf, windowOf } from "../handlers/ListInput.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "ignoredEvents",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const reporting = yield* reporter
    const bulk = yield* bulkCalls("ignored_events")

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
            const narrowing = yield* narrowingOf(ignoredEventFilters, query)
            const page = yield* pageOf(Lists.ignoredEvents, query, { team, ...narrowing })
            return yield* reading(IgnoredEventReads.list(team, ignoredFilterOf(narrowing), page))
          })
        )
      )
      .handle("count", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const filter = ignoredFilterOf(yield* narrowingOf(ignoredEventFilters, query))
          return yield* reporting(IgnoredEventReads.count(team, filter, yield* windowOf(query)))
        })
      )
  })
)
