import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import {
  ConnectionMetrics,
  DestinationMetrics,
  EventSeries,
  MetricsList,
  RateList,
  RequestSeries,
  SourceMetrics,
  TransformationMetrics,
  WorkflowMetrics
} from "@tidegate/model/Metrics"
import { notByProjectKeys, reading } from "@tidegate/model/Permission"
import { Authorization } from "../contract/Authorization.ts"
import * as Examples from "./MetricsExamples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const series =
  "Returns buckets from date_range.start to date_range.end in UTC, also those without records. The range is extended to whole buckets. By default the granularity is the shortest one that gives at most 300 buckets."
const summary =
  "Returns a row for each id, in the given order, about the last 24 hours. An unknown id has zeros. Bins are six counts of four hours each, the oldest first."

/** Numbers of records, over time and by resource. */
export class MetricsApi extends HttpApiGroup.make("metrics")
  .add(
    HttpApiEndpoint.get("requests", "/metrics/requests", {
      query: Parameters.requestSeries,
      success: RequestSeries
    }).annotateMerge(
      operation({
        id: "getRequestMetrics",
        permission: reading,
        summary: "Count requests over time",
        description: series,
        answer: Examples.requestSeries,
        errors: ["INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("events", "/metrics/events", {
      query: Parameters.eventSeries,
      success: EventSeries
    }).annotateMerge(
      operation({
        id: "getEventMetrics",
        permission: reading,
        summary: "Count events over time, by their current status",
        description: `${series} processing_count counts the deliveries under way: all of them for destinations with a rate limit, and those that take longer than a second or two for others. Ignored events have no destination, status or bulk operation. If partial is true, more events wait than are read: the real values of queued_count, processing_count and hold_count may be higher.`,
        answer: Examples.eventSeries,
        errors: ["INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("sources", "/metrics/sources", {
      query: Parameters.summaryOf("source"),
      success: MetricsList(SourceMetrics)
    }).annotateMerge(
      operation({
        id: "getSourceMetrics",
        permission: reading,
        summary: "Summarize sources",
        description: summary,
        answer: Examples.sources
      })
    ),
    HttpApiEndpoint.get("destinations", "/metrics/destinations", {
      query: Parameters.summaryOf("destination"),
      success: MetricsList(DestinationMetrics)
    }).annotateMerge(
      operation({
        id: "getDestinationMetrics",
        permission: reading,
        summary: "Summarize destinations",
        description: summary,
        answer: Examples.destinations
      })
    ),
    HttpApiEndpoint.get("transformations", "/metrics/transformations", {
      query: Parameters.summaryOf("transformation"),
      success: MetricsList(TransformationMetrics)
    }).annotateMerge(
      operation({
        id: "getTransformationMetrics",
        permission: reading,
        summary: "Summarize transformations",
        description: summary,
        answer: Examples.transformations
      })
    ),
    HttpApiEndpoint.get("connections", "/metrics/connections", {
      query: Parameters.summaryOf("connection"),
      success: MetricsList(ConnectionMetrics)
    }).annotateMerge(
      operation({
        id: "getConnectionMetrics",
        permission: reading,
        summary: "Summarize connections",
        description: summary,
        answer: Examples.connections
      })
    ),
    HttpApiEndpoint.get("rates", "/metrics/rates", {
      query: Parameters.rates,
      success: RateList
    }).annotateMerge(
      operation({
        id: "getRates",
        permission: reading,
        summary: "Count what went through resources in the last minutes",
        description:
          "Returns a row for each id of a source, a connection or a destination, in the given order, about the current minute and the four before it: divide a count by the seconds between date_range.start and date_range.end. An unknown id, and a measure that a kind of resource does not have, has zeros.",
        answer: Examples.rates
      })
    ),
    HttpApiEndpoint.get("workflows", "/metrics/workflows", {
      query: Parameters.summaryOf("workflow"),
      success: MetricsList(WorkflowMetrics)
    }).annotateMerge(
      operation({
        id: "getWorkflowMetrics",
        permission: notByProjectKeys(reading),
        summary: "Summarize workflows",
        description:
          "Returns a row for each id, in the given order, about the runs of the last 24 hours. An unknown id has zeros.",
        answer: Examples.workflows
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Metrics",
      description: "Numbers of requests, events and runs, over time and for each resource."
    })
  ) {}
