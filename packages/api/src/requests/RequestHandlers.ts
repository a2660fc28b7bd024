import { Effect } from "effect"
import type { Sharding } from "effect/cluster/Sharding"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { replay } from "@tidegate/entities/Replay"
import { maxReplayCall } from "@tidegate/model/BodyLimits"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { requestFilters } from "@tidegate/model/RecordFilter"
import { edited, isModified, replayBody } from "@tidegate/resources/Replay"
import * as EventReads from "@tidegate/storage/reads/EventReads"
import * as IgnoredEventReads from "@tidegate/storage/reads/IgnoredEventReads"
import { requestFilterOf } from "@tidegate/storage/reads/Narrowing"
import * as RequestReads from "@tidegate/storage/reads/RequestReads"
import { exactly, original } from "@tidegate/storage/bulk/Originals"
import * as TraceReads from "@tidegate/storage/reads/TraceReads"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { bulkCalls } from "../bulk-operations/BulkHandlers.ts"
import { askOwner, type ById, reader, reporter, type Stores, type WithBody } from "../handlers/Calls.ts"
import { chained } from "../handlers/Chained.ts"
import { readJsonObjectIfAny } from "../handlers/JsonBody.ts"
import { listing, answeringInParts } from "../handlers/Listing.ts"
import { includesOf, narrowingOf, pageOf, statusesOf, valuesOf, windowOf } from "../handlers/ListInput.ts"

/**
 * The body comes from a stranger and is served from the API's origin, so it is offered as a download and never displayed. Its
 * content type is not repeated (`data.content_type` has it), because a page or an image that a browser runs would be an attack.
 */
const download = (id: string): Record<string, string> => ({
  "content-type": "application/octet-stream",
  "content-disposition": `attachment; filename="${id}.bin"`,
  "content-security-policy": "default-src 'none'; sandbox",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store"
})

export const layer = HttpApiBuilder.group(
  Api,
  "requests",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const reporting = yield* reporter
    const bulk = yield* bulkCalls("requests")
    const context = yield* Effect.context<Sharding | Stores>()

    const retry = Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
      const { id: team } = yield* CurrentTeam
      const { connection_ids: only, ...edits } = yield* Effect.fromResult(
        replayBody.judge(yield* readJsonObjectIfAny(request, maxReplayCall))
      )
      const of = yield* reading(original(team, params.id))
      // Made here, so that a repeated call makes no second request.
      const id = yield* idOfCall(prefixes.request)
      const exact = exactly(of, id, { kind: "single", operation_id: null })
      const message = chained(yield* Effect.fromResult(edited(exact.message, edits)), request)
      const verified = exact.verified && !isModified(edits)
      const { created_at } = yield* askOwner(
        Effect.provideContext(replay({ ...exact, message, verified, ...(only === undefined ? {} : { only }) }), context)
      )
      return {
        ok: true as const,
        queued: true as const,
        transport: "queue" as const,
        replayed_at: created_at.toISOString(),
        request_id: of.id,
        replay_request_id: id,
        source_id: of.source_id,
        replay_message_id: sibling(prefixes.replayMessage, id),
        replay_mode: isModified(edits) ? ("modified" as const) : ("exact" as const),
        original_rejection_cause: of.rejection_cause
      }
    })

    return handlers
      .handle("bulkOperations", bulk.list)
      .handleRaw("createBulkOperation", bulk.create)
      .handle("bulkOperation", bulk.retrieve)
      .handle("runBulkOperation", bulk.run)
      .handle("cancelBulkOperation", bulk.cancel)
      .handleRaw("retry", retry)
      .handle(
        "list",
        listing(({ query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const narrowing = yield* narrowingOf(requestFilters, query)
            const include = yield* includesOf(query.include, ["data", "event_summary"])
            const page = yield* pageOf(Lists.requests, query, { team, ...narrowing })
            const shown = { data: include.has("data"), eventSummary: include.has("event_summary") }
            const filter = requestFilterOf(narrowing)
            const reads = shown.data || filter.search !== undefined ? reporting : reading
            return yield* reads(RequestReads.list(team, filter, page, shown))
          })
        )
      )
      .handle("count", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          return yield* reporting(
            RequestReads.count(team, requestFilterOf(yield* narrowingOf(requestFilters, query)), yield* windowOf(query))
          )
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(RequestReads.detail(team, params.id)))
      )
      .handle(
        "trace",
        answeringInParts(({ params }) =>
          Effect.flatMap(CurrentTeam, ({ id: team }) => reading(TraceReads.get(team, params.id)))
        )
      )
      .handle("body", ({ params, request }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          // HEAD arrives here too, and needs no body.
          if (request.method === "HEAD") {
            const size = yield* reading(RequestReads.requestBodySize(team, params.id))
            return HttpServerResponse.empty({
              status: 200,
              headers: { ...download(params.id), "content-length": String(size) }
            })
          }
          const bytes = yield* reading(RequestReads.requestBody(team, params.id))
          return HttpServerResponse.uint8Array(bytes, {
            headers: download(params.id),
            contentType: "application/octet-stream"
          })
        })
      )
      .handle(
        "events",
        listing(({ params, query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const filter = {
              ids: yield* valuesOf("id", query.id),
              statuses: yield* statusesOf(query.status),
              sources: yield* valuesOf("source_id", query.source_id),
              connections: yield* valuesOf("connection_id", query.connection_id, query.webhook_id),
              destinations: yield* valuesOf("destination_id", query.destination_id)
            }
            const page = yield* pageOf(Lists.requestEvents, query, { team, request: params.id, ...filter })
            return yield* reading(
              Effect.andThen(RequestReads.check(team, params.id), EventReads.ofRequest(team, params.id, filter, page))
            )
          })
        )
      )
      .handle(
        "ignoredEvents",
        listing(({ params, query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const filter = {
              ids: yield* valuesOf("id", query.id),
              connections: yield* valuesOf("connection_id", query.connection_id, query.webhook_id)
            }
            const page = yield* pageOf(Lists.requestIgnoredEvents, query, { team, request: params.id, ...filter })
            return yield* reading(
              Effect.andThen(
                RequestReads.check(team, params.id),
                IgnoredEventReads.ofRequest(team, params.id, filter, page)
              )
            )
          })
        )
      )
  })
)
