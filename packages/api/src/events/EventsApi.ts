import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { EventCount } from "@tidegate/model/Lists"
import { Event } from "@tidegate/model/Event"
import { executing, reading } from "@tidegate/model/Permission"
import { Timestamp } from "@tidegate/model/Timestamp"
import { eventBulkBody } from "@tidegate/resources/BulkOperation"
import { Authorization } from "../contract/Authorization.ts"
import { count, event, eventDetail, retryAccepted } from "../contract/Examples.ts"
import { bulkOperations } from "../bulk-operations/BulkOperationsApi.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const one = { params: Parameters.pathOf("event"), query: Parameters.onlyTeam }

/** `replay_event_id` is the new event, `event_id` the one that it repeats. */
export const RetryAccepted = Schema.Struct({
  ok: Schema.Literal(true),
  queued: Schema.Literal(true),
  transport: Schema.Literal("queue"),
  retried_at: Timestamp,
  event_id: Schema.String,
  replay_event_id: Schema.String
}).annotate({
  identifier: "RetryAccepted",
  description: "replay_event_id is the new event, and event_id is the repeated one."
})

/** Events: past, current and future deliveries. */
export class EventsApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("list", "/events", {
      query: Lists.events.query,
      success: Lists.events.answer(Event)
    }).annotateMerge(
      operation({
        id: "listEvents",
        permission: reading,
        summary: "List events, newest first",
        description:
          "Returns the last 24 hours by default, in pages by cursor. A page may have fewer rows than its limit. With `after`, the list is a feed: it returns each event that was stored later, once, in the order of storing. Start with `after=now`, and continue with `next_cursor`.",
        answer: Lists.events.example(event),
        errors: ["INVALID_CURSOR", "INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("count", "/events/count", {
      query: Parameters.eventCount,
      success: EventCount
    }).annotateMerge(
      operation({
        id: "countEvents",
        permission: reading,
        summary: "Count events",
        description: "By default the last 24 hours.",
        answer: count,
        errors: ["INVALID_TIME_RANGE"]
      })
    ),
    ...bulkOperations("events", eventBulkBody),
    HttpApiEndpoint.get("retrieve", "/events/:id", { ...one, success: Event }).annotateMerge(
      operation({
        id: "getEvent",
        permission: reading,
        summary: "Retrieve an event with its request and the last response",
        description: "`data` is null after retention has deleted it.",
        answer: eventDetail,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("retry", "/events/:id/retry", {
      ...one,
      success: RetryAccepted.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "retryEvent",
        permission: executing,
        summary: "Deliver a finished event again",
        description: "Creates a new event with the same payload. The event must be SUCCESSFUL, FAILED or CANCELLED.",
        answer: retryAccepted,
        errors: [
          "NOT_FOUND",
          "EVENT_NOT_RETRYABLE",
          "PAYLOAD_UNAVAILABLE",
          "SOURCE_DISABLED",
          "CONNECTION_DISABLED",
          "CONNECTION_PAUSED",
          "DESTINATION_DISABLED"
        ]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Events",
      description: "Deliveries of requests through connections: finished, under way and waiting."
    })
  ) {}
