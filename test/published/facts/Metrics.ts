import { of, row, type Section, tests } from "./Facts.ts"

const reads = tests("packages/storage/test/reads/Metrics.test.ts")
const contract = tests("test/contract/Metrics.test.ts")

const series = contract("Metrics count requests, events and attempts by every dimension in every granularity")
const summaries = contract("Metrics summarize 24 hours and accept every name of the id parameter")
const ofRuns = tests("packages/api/test/WorkflowRuns.test.ts")(
  "Workflow metrics count started and failed runs and their duration like the stored rows"
)
const rates = reads("Rates count the current minute and the four before it, for ids of several kinds in one answer")
const counted = reads("Counts and series equal a count of the rows, before and after compaction")

export const metrics: Section = {
  title: "Metrics",
  endpoints: [
    row("GET /metrics/requests; GET /metrics/events", series),
    row(
      "GET /metrics/sources; GET /metrics/destinations; GET /metrics/transformations; GET /metrics/connections",
      summaries
    ),
    row("GET /metrics/workflows", ofRuns),
    row("GET /metrics/rates", rates)
  ],
  fields: {
    RequestSeries: [of("series series[].* partial granularity date_range date_range.*", counted)],
    EventSeries: [of("series series[].* partial granularity date_range date_range.*", counted)],
    SourceMetrics: [of("*", reads("Summaries show the last 24 hours of each resource, and zeros for unknown ones"))],
    DestinationMetrics: [
      of("*", reads("Summaries show the last 24 hours of each resource, and zeros for unknown ones"))
    ],
    TransformationMetrics: [
      of("*", reads("Summaries show the last 24 hours of each resource, and zeros for unknown ones"))
    ],
    RateList: [of("*", rates)],
    WorkflowMetrics: [of("*", ofRuns)],
    ConnectionMetrics: [of("*", reads("Summaries show the last 24 hours of each resource, and zeros for unknown ones"))]
  },
  states: [
    row("buckets are filled with zeros", counted),
    row(
      "bins are six, oldest to newest",
      reads("Summaries show the last 24 hours of each resource, and zeros for unknown ones")
    ),
    row("id repeated, with commas, and under its other names", summaries)
  ],
  limits: [row("granularities 1s, 5s, 10s, 30s, 1m, 5m, 15m, 1h", series)]
}
