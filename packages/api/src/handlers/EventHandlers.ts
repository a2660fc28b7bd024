import { Clock, Effect } from "effect"
import type { Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { newId, prefixes } from "@tidegate/model/Ids"
import { retryDestination } from "@tidegate/storage/EventRetry"
import * as EventReads from "@tidegate/storage/reads/EventReads"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import type * as Parameters from "../contract/Parameters.ts"
import { bulkCalls } from "./BulkHandlers.ts"
import { askOwner, reader } from "./Calls.ts"
import { includesOf, operationOf, pageOf, searchOf, statusesOf, valuesOf, windowOf } from "./ListInput.ts"

const filterOf = Effect.fnUntraced(function* (query: Schema.Struct.Type<typeof Parameters.eventCount>) {
  return {
    statuses: yield* statusesOf(query.status),
    requests: yield* valuesOf("request_id", query.request_id),
    sources: yield* valuesOf("source_id", query.source_id),
    connections: yield* valuesOf("connection_id", query.connection_id, query.webhook_id),
    destinations: yield* valuesOf("destination_id", query.destination_id),
    operation: yield* operationOf(query),
    operationScope: query.batch_operation_scope ?? "retries",
    search: yield* searchOf(query)
  }
})

export const layer = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fnUntraced(function* (handlers) {
    const destination = yield* DestinationEntity.client
    const reading = yield* reader
    const bulk = yield* bulkCalls("event_bulk_retry")

    return handlers
      .handle("bulkOperations", bulk.list)
      .handleRaw("createBulkOperation", bulk.create)
      .handle("bulkOperation", bulk.retrieve)
      .handle("cancelBulkOperation", bulk.cancel)
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const filter = yield* filterOf(query)
          const include = yield* includesOf(query.include, ["data"])
          const page = yield* pageOf("events", query, { team, ...filter }, 100)
          return yield* reading(EventReads.list(team, filter, page, { data: include.has("data") }))
        })
      )
      .handle("count", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          return yield* reading(EventReads.count(team, yield* filterOf(query), yield* windowOf(query)))
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(EventReads.get(team, params.id)))
      )
      .handle("retry", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const owner = destination(yield* reading(retryDestination(team_id, params.id)))
          // Made here, so that a message that is sent again, because its answer was lost, makes no second event.
          const id = newId(prefixes.event, yield* Clock.currentTimeMillis)
          const retry = yield* askOwner(owner.RetryEvent({ team_id, event_id: params.id, id }))
          return { ok: true as const, queued: true as const, transport: "queue" as const, ...retry }
        })
      )
  })
)
