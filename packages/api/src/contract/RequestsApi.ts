import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { RequestCount, RequestList, SubList } from "@tidegate/model/Envelope"
import { Event } from "@tidegate/model/Event"
import { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import { Request } from "@tidegate/model/Request"
import { Trace } from "@tidegate/model/Trace"
import { Authorization } from "./Authorization.ts"
import * as Parameters from "./Parameters.ts"

const one = { params: Parameters.path, query: Parameters.onlyTeam }
const about = (summary: string) => OpenApi.annotations({ summary })

/** What was received, accepted or rejected. */
export class RequestsApi extends HttpApiGroup.make("requests")
  .add(
    HttpApiEndpoint.get("list", "/requests", {
      query: Parameters.requests,
      success: RequestList(Request)
    }).annotateMerge(about("List requests, newest first")),
    HttpApiEndpoint.get("count", "/requests/count", {
      query: Parameters.requestCount,
      success: RequestCount
    }).annotateMerge(about("Count requests")),
    HttpApiEndpoint.get("retrieve", "/requests/:id", { ...one, success: Request }).annotateMerge(
      about("Retrieve a request with what was received")
    ),
    HttpApiEndpoint.get("trace", "/requests/:id/trace", { ...one, success: Trace }).annotateMerge(
      about("Retrieve a request with everything that became of it")
    ),
    HttpApiEndpoint.get("body", "/requests/:id/body", {
      ...one,
      success: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array())
    }).annotateMerge(about("Download the body of a request, byte for byte")),
    HttpApiEndpoint.get("events", "/requests/:id/events", {
      params: Parameters.path,
      query: Parameters.requestEvents,
      success: SubList(Event)
    }).annotateMerge(about("List the events of a request")),
    HttpApiEndpoint.get("ignoredEvents", "/requests/:id/ignored_events", {
      params: Parameters.path,
      query: Parameters.requestIgnoredEvents,
      success: SubList(IgnoredEvent)
    }).annotateMerge(about("List what a request did not become, and why"))
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Requests", description: "What was received." })) {}
