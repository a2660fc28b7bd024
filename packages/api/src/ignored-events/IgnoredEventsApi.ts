import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import { EventCount } from "@tidegate/model/Lists"
import { reading } from "@tidegate/model/Permission"
import { ignoredEventBulkBody } from "@tidegate/resources/BulkOperation"
import { Authorization } from "../contract/Authorization.ts"
import { bulkOperations } from "../bulk-operations/BulkOperationsApi.ts"
import { count, ignoredEvent } from "../contract/Examples.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Requests that connections did not make events, across all requests. */
export class IgnoredEventsApi extends HttpApiGroup.make("ignoredEvents")
  .add(
    HttpApiEndpoint.get("list", "/ignored_events", {
      query: Lists.ignoredEvents.query,
      success: Lists.ignoredEvents.answer(IgnoredEvent)
    }).annotateMerge(
      operation({
        id: "listAllIgnoredEvents",
        permission: reading,
        summary: "List ignored events, newest first",
        description:
          "Returns the last 24 hours by default, in pages by cursor. A page may have fewer rows than its limit.",
        answer: Lists.ignoredEvents.example(ignoredEvent),
        errors: ["INVALID_CURSOR", "INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("count", "/ignored_events/count", {
      query: Parameters.ignoredEventCount,
      success: EventCount
    }).annotateMerge(
      operation({
        id: "countIgnoredEvents",
        permission: reading,
        summary: "Count ignored events",
        description: "By default the last 24 hours.",
        answer: count,
        errors: ["INVALID_TIME_RANGE"]
      })
    ),
    ...bulkOperations("ignored_events", ignoredEventBulkBody)
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Ignored events",
      description: "Requests that connections did not route because of their rules."
    })
  ) {}
