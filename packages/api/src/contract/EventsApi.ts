import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { EventCount, EventList } from "@tidegate/model/Envelope"
import { Event } from "@tidegate/model/Event"
import { Timestamp } from "@tidegate/model/Timestamp"
import { Authorization } from "./Authorization.ts"
import * as Parameters from "./Parameters.ts"

const one = { params: Parameters.path, query: Parameters.onlyTeam }
const about = (summary: string) => OpenApi.annotations({ summary })

/** `replay_event_id` is the new event, `event_id` the one it repeats. */
export const RetryAccepted = Schema.Struct({
  ok: Schema.Literal(true),
  queued: Schema.Literal(true),
  transport: Schema.Literal("queue"),
  retried_at: Timestamp,
  event_id: Schema.String,
  replay_event_id: Schema.String
}).annotate({ identifier: "RetryAccepted" })

/** What is, was or will be delivered. */
export class EventsApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("list", "/events", { query: Parameters.events, success: EventList(Event) }).annotateMerge(
      about("List events, newest first")
    ),
    HttpApiEndpoint.get("count", "/events/count", {
      query: Parameters.eventCount,
      success: EventCount
    }).annotateMerge(about("Count events")),
    HttpApiEndpoint.get("retrieve", "/events/:id", { ...one, success: Event }).annotateMerge(
      about("Retrieve an event with what is sent and the last answer")
    ),
    HttpApiEndpoint.post("retry", "/events/:id/retry", {
      ...one,
      success: RetryAccepted.pipe(HttpApiSchema.status(202))
    }).annotateMerge(about("Deliver a finished event again, as a new event"))
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Events", description: "What is delivered." })) {}
