import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { RequestCount } from "@tidegate/model/Lists"
import { Event } from "@tidegate/model/Event"
import { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import { executing, reading } from "@tidegate/model/Permission"
import { Request } from "@tidegate/model/Request"
import { Timestamp } from "@tidegate/model/Timestamp"
import { Trace } from "@tidegate/model/Trace"
import { example, replayBody } from "@tidegate/resources/Replay"
import { requestBulkBody } from "@tidegate/resources/BulkOperation"
import { Authorization } from "../contract/Authorization.ts"
import { count, event, ignoredEvent, replayAccepted, request, requestDetail, trace } from "../contract/Examples.ts"
import { bulkOperations } from "../bulk-operations/BulkOperationsApi.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** `replay_request_id` is the new request, `request_id` the one that it repeats. */
export const ReplayAccepted = Schema.Struct({
  ok: Schema.Literal(true),
  queued: Schema.Literal(true),
  transport: Schema.Literal("queue"),
  replayed_at: Timestamp,
  request_id: Schema.String,
  replay_request_id: Schema.String,
  source_id: Schema.String,
  replay_message_id: Schema.String,
  replay_mode: Schema.Literals(["exact", "modified"]),
  original_rejection_cause: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "ReplayAccepted",
  description: "replay_request_id is the new request, and request_id is the repeated one."
})

const one = { params: Parameters.pathOf("request"), query: Parameters.onlyTeam }

/** Received requests, accepted or rejected. */
export class RequestsApi extends HttpApiGroup.make("requests")
  .add(
    HttpApiEndpoint.get("list", "/requests", {
      query: Lists.requests.query,
      success: Lists.requests.answer(Request)
    }).annotateMerge(
      operation({
        id: "listRequests",
        permission: reading,
        summary: "List requests, newest first",
        description:
          "Returns the last 24 hours by default, in pages by cursor. A page may have fewer rows than its limit.",
        answer: Lists.requests.example(request),
        errors: ["INVALID_CURSOR", "INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("count", "/requests/count", {
      query: Parameters.requestCount,
      success: RequestCount
    }).annotateMerge(
      operation({
        id: "countRequests",
        permission: reading,
        summary: "Count requests",
        description: "By default the last 24 hours.",
        answer: { ...count, partial: false, unavailable_shard_count: 0 },
        errors: ["INVALID_TIME_RANGE"]
      })
    ),
    ...bulkOperations("requests", requestBulkBody),
    HttpApiEndpoint.get("retrieve", "/requests/:id", { ...one, success: Request }).annotateMerge(
      operation({
        id: "getRequest",
        permission: reading,
        summary: "Retrieve a request with its payload",
        description:
          "`data` is null after retention has deleted it. A request of a source in proxy mode has `proxy_exchange`.",
        answer: requestDetail,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("body", "/requests/:id/body", {
      ...one,
      success: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array()).annotate({ description: "The bytes as received" })
    }).annotateMerge(
      operation({
        id: "downloadRequestBody",
        permission: reading,
        summary: "Download the body of a request",
        description:
          "Returns the received bytes as an attachment, which browsers do not show. 404 if none are stored, or none any more. The original type is `data.content_type` of the request.",
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("trace", "/requests/:id/trace", { ...one, success: Trace }).annotateMerge(
      operation({
        id: "getTrace",
        permission: reading,
        summary: "Retrieve the trace of a request",
        description:
          "Returns the request's events with their attempts, its ignored events with their causes, connections that were disabled, the runs of workflows that it started, and a timeline. If there is no event, the answer says why.",
        answer: trace,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("retry", "/requests/:id/retry", {
      ...one,
      payload: replayBody.described,
      success: ReplayAccepted.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "retryRequest",
        bodyOptional: true,
        permission: executing,
        summary: "Replay a request, unchanged or edited",
        description:
          "Creates a new request of the source. Rejected requests can be replayed too. The new request is not verified, is routed by the current rules of the source's connections, and is never a duplicate. Without a body, the replay is exact.",
        body: example,
        answer: replayAccepted,
        errors: ["NOT_FOUND", "PAYLOAD_UNAVAILABLE", "SOURCE_DISABLED", "CONNECTION_DISABLED"]
      })
    ),
    HttpApiEndpoint.get("events", "/requests/:id/events", {
      params: Parameters.pathOf("request"),
      query: Lists.requestEvents.query,
      success: Lists.requestEvents.answer(Event)
    }).annotateMerge(
      operation({
        id: "listRequestEvents",
        permission: reading,
        summary: "List the events of a request",
        description: "Oldest first.",
        answer: Lists.requestEvents.example(event),
        errors: ["NOT_FOUND", "INVALID_CURSOR"]
      })
    ),
    HttpApiEndpoint.get("ignoredEvents", "/requests/:id/ignored_events", {
      params: Parameters.pathOf("request"),
      query: Lists.requestIgnoredEvents.query,
      success: Lists.requestIgnoredEvents.answer(IgnoredEvent)
    }).annotateMerge(
      operation({
        id: "listIgnoredEvents",
        permission: reading,
        summary: "List the ignored events of a request",
        description: "Returns one ignored event for each connection whose rules did not route the request.",
        answer: Lists.requestIgnoredEvents.example(ignoredEvent),
        errors: ["NOT_FOUND", "INVALID_CURSOR"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Requests", description: "Received requests, accepted or rejected." })) {}
