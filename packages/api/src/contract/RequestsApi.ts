import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { RequestCount, RequestList, SubList } from "@tidegate/model/Lists"
import { Event } from "@tidegate/model/Event"
import { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import { reading } from "@tidegate/model/Permission"
import { Request } from "@tidegate/model/Request"
import { Trace } from "@tidegate/model/Trace"
import { Authorization } from "./Authorization.ts"
import { count, event, ignoredEvent, pageOf, request, requestDetail, subList, trace, whole } from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

const one = { params: Parameters.pathOf("request"), query: Parameters.onlyTeam }

/** What was received, accepted or rejected. */
export class RequestsApi extends HttpApiGroup.make("requests")
  .add(
    HttpApiEndpoint.get("list", "/requests", {
      query: Parameters.requests,
      success: RequestList(Request)
    }).annotateMerge(
      operation({
        id: "listRequests",
        permission: reading,
        summary: "List requests, newest first",
        description: "Of the last 24 hours unless told; pages by cursor. A page may be shorter than its limit.",
        answer: { ...pageOf(request), ...whole },
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
        description: "Of the last 24 hours unless told.",
        answer: { ...count, ...whole },
        errors: ["INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/requests/:id", { ...one, success: Request }).annotateMerge(
      operation({
        id: "getRequest",
        permission: reading,
        summary: "Retrieve a request with what was received",
        description: "`data` is null when retention took it. A proxy source's request has its `proxy_exchange`.",
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
          "The bytes as they were received, as an attachment that no browser shows; 404 when none are stored (any more). The type they came with is `data.content_type` of the request.",
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("trace", "/requests/:id/trace", { ...one, success: Trace }).annotateMerge(
      operation({
        id: "getTrace",
        permission: reading,
        summary: "Retrieve a request with everything that became of it",
        description: "Its events with their attempts, what was ignored and why, and a timeline of it all.",
        answer: trace,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("events", "/requests/:id/events", {
      params: Parameters.pathOf("request"),
      query: Parameters.requestEvents,
      success: SubList(Event)
    }).annotateMerge(
      operation({
        id: "listRequestEvents",
        permission: reading,
        summary: "List the events of a request",
        description: "Oldest first.",
        answer: subList(event),
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("ignoredEvents", "/requests/:id/ignored_events", {
      params: Parameters.pathOf("request"),
      query: Parameters.requestIgnoredEvents,
      success: SubList(IgnoredEvent)
    }).annotateMerge(
      operation({
        id: "listIgnoredEvents",
        permission: reading,
        summary: "List what a request did not become, and why",
        description: "One for each connection whose rules kept it from becoming an event.",
        answer: subList(ignoredEvent),
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Requests", description: "What was received, accepted or rejected." })) {}
