import { statusOf } from "@tidegate/model/GatewayError"
import { Counter, Family, Gauge, Histogram, type Instrument, type Labels, type Unit } from "./Instruments.ts"

/** Every metric of the gateway, each declared once. `docs/metrics.md` describes them, and a test compares it with this file. */
const all: Array<Instrument> = []

const declared = <I extends Instrument>(instrument: I): I => {
  all.push(instrument)
  return instrument
}

const counters = <const L extends Labels>(name: string, help: string, labels: L, unit: Unit = "1") =>
  declared(new Family({ name, kind: "counter", help, unit, labels, make: () => new Counter() }))

const counter = (name: string, help: string, unit: Unit = "1"): Counter => counters(name, help, [], unit).at()

const gauges = <const L extends Labels>(name: string, help: string, labels: L, unit: Unit = "1") =>
  declared(new Family({ name, kind: "gauge", help, unit, labels, make: () => new Gauge() }))

const gauge = (name: string, help: string, unit: Unit = "1"): Gauge => gauges(name, help, [], unit).at()

const histograms = <const L extends Labels>(
  name: string,
  help: string,
  labels: L,
  bounds: ReadonlyArray<number>,
  unit: Unit = "s"
) => declared(new Family({ name, kind: "histogram", help, unit, labels, make: () => new Histogram(bounds) }))

const histogram = (name: string, help: string, bounds: ReadonlyArray<number>, unit: Unit = "s"): Histogram =>
  histograms(name, help, [], bounds, unit).at()

/** Buckets for work that a caller waits for (s). */
const quick = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Buckets for work that may wait for a retry, a pause or a rate limit (s). */
const slow = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200]
const sizes = [1, 2, 5, 10, 20, 50, 100, 200, 400]

const statuses = [...new Set([101, 200, 201, 202, 204, 304, ...Object.values(statusOf)])]
  .sort((a, b) => a - b)
  .map(String)

/** Destinations whose backlog has its own series; the others are summed. */
export const worstDestinations = 20

/** Kinds of group commits. */
const commitKinds = ["accept", "settle", "attempt", "mark", "proxy_exchange", "run", "channel"] as const
export type Commit = (typeof commitKinds)[number]

export const metrics = {
  // Ingress and the API.
  requests: counters("tidegate_requests_total", "Requests at ingress URLs, by result.", [
    [
      "outcome",
      [
        "accepted",
        "handshake",
        "SOURCE_DISABLED",
        "SOURCE_METHOD_NOT_ALLOWED",
        "PAYLOAD_TOO_LARGE",
        "SOURCE_AUTH_FAILED",
        "SERVICE_WORKER_REFUSED",
        "LOOP_DETECTED",
        "limited",
        "unknown_source",
        "shed",
        "failed"
      ]
    ]
  ]),
  requestBytes: counter("tidegate_request_body_bytes_total", "Bytes of request bodies that were stored.", "By"),
  requestSeconds: histogram(
    "tidegate_request_seconds",
    "Seconds from a request's last byte to its commit; stored requests only.",
    quick
  ),
  sheds: counters("tidegate_sheds_total", "Requests refused without being stored, by reason.", [
    [
      "reason",
      [
        "journal_full",
        "bodies_full",
        "sender_busy",
        "database",
        "source_unknown_yet",
        "source_keeps_changing",
        "certificate",
        "handshake",
        "callbacks_full"
      ]
    ]
  ]),
  subscriptionMessages: counters(
    "tidegate_subscription_messages_total",
    "Messages of brokers to which sources subscribe, by what became of them.",
    [["outcome", ["stored", "duplicate", "rejected"]]]
  ),
  callbacks: counters("tidegate_callbacks_total", "Messages of providers to the callbacks of channels, by result.", [
    [
      "outcome",
      [
        "items",
        "dirty",
        "handshake",
        "lifecycle",
        "ping",
        "rejected",
        "unknown",
        "ended",
        "method",
        "too_large",
        "busy",
        "shed",
        "failed"
      ]
    ]
  ]),
  staleRoutings: counter(
    "tidegate_stale_routings_total",
    "Requests routed again because their source had changed before the commit."
  ),
  leases: counters(
    "tidegate_ingest_leases_total",
    "Leases that ingress requested for sources with a rate limit, by result.",
    [["outcome", ["leased", "spent", "unanswered"]]]
  ),
  heldBodyBytes: gauge("tidegate_held_body_bytes", "Bytes of bodies that ingress holds in memory.", "By"),

  streams: gauge("tidegate_streams_open", "Open WebSocket streams of this process."),
  tunnelResults: counters(
    "tidegate_tunnel_results_total",
    "Frames from clients of tunnels: results that were accepted, results that came too late, and unexpected frames.",
    [["outcome", ["taken", "late", "unexpected"]]]
  ),
  pullsWaiting: gauge("tidegate_pulls_waiting", "Calls of consumers that wait for messages in this process."),
  leasedMessages: gauge(
    "tidegate_pulled_messages_leased",
    "Messages that consumers have fetched from this process and have not settled."
  ),
  pulledMessages: counters("tidegate_pulled_messages_total", "Messages that consumers have fetched, by their end.", [
    ["outcome", ["acknowledged", "refused", "expired"]]
  ]),
  destinationTests: counters("tidegate_destination_tests_total", "Test deliveries to destinations, by result.", [
    ["outcome", ["successful", "failed"]]
  ]),

  // What requests become.
  events: counters("tidegate_events_total", "Events, by result.", [
    ["outcome", ["created", "SUCCESSFUL", "FAILED", "CANCELLED"]]
  ]),
  ignoredEvents: counters("tidegate_ignored_events_total", "Ignored events, by cause.", [
    ["cause", ["FILTERED", "HANDSHAKE", "DEDUPLICATED", "TRANSFORMATION_FAILED", "PROCESS_ENDED"]]
  ]),
  routingJobs: counter("tidegate_pending_routes_total", "Routing jobs created for connections with slow rules."),

  // The journal.
  commits: counters("tidegate_journal_commits_total", "Commits of the journal, by what they write.", [
    ["kind", commitKinds]
  ]),
  commitSeconds: histograms(
    "tidegate_journal_commit_seconds",
    "Seconds that a commit of the journal takes, including repetitions.",
    [["kind", commitKinds]],
    quick
  ),
  commitRecords: histograms(
    "tidegate_journal_commit_records",
    "Records in one commit of the journal.",
    [["kind", commitKinds]],
    sizes,
    "1"
  ),
  journalBytes: counters(
    "tidegate_journal_bytes_total",
    "Bytes of records that the journal accepted.",
    [["kind", ["accept", "settle", "attempt", "proxy_exchange", "run", "channel"]]],
    "By"
  ),
  journalWaiting: gauges("tidegate_journal_waiting_records", "Records in the journal that are not committed yet.", [
    ["kind", ["accept", "attempt"]]
  ]),
  journalWaitingBytes: gauge(
    "tidegate_journal_waiting_bytes",
    "Bytes of the requests among the waiting records.",
    "By"
  ),

  // Deliveries.
  attempts: counters("tidegate_attempts_total", "Recorded attempts, by error code; `none`: successful.", [
    ["error", 64]
  ]),
  deliverySeconds: histogram(
    "tidegate_attempt_delivery_seconds",
    "Seconds that an attempt took until its request was sent.",
    quick
  ),
  responseSeconds: histogram(
    "tidegate_attempt_response_seconds",
    "Seconds from an attempt's request to its full response.",
    quick
  ),
  firstAttemptSeconds: histogram(
    "tidegate_first_attempt_seconds",
    "Seconds from an event's creation to its first attempt, including delays, pauses and rate limits.",
    slow
  ),
  deliveriesUnderWay: gauge("tidegate_deliveries_under_way", "Deliveries of this process that are under way."),
  concurrencyLimit: gauges(
    "tidegate_destination_concurrency_limit",
    "How many deliveries a destination may have under way: for the destinations with the most, and the highest limit of the others.",
    [["destination", worstDestinations]]
  ),
  pacerSeconds: histogram(
    "tidegate_pacer_wait_seconds",
    "Seconds that a due delivery waited for the rate limit of its destination.",
    slow
  ),
  backlog: gauges(
    "tidegate_destination_backlog",
    "Events that wait for a destination, for the shards that this process holds: the largest backlogs, and the sum of the others.",
    [["destination", worstDestinations]]
  ),
  oldestDue: gauges(
    "tidegate_destination_oldest_due_seconds",
    "Seconds for which the oldest waiting event has been due; 0: none is due yet.",
    [["destination", worstDestinations]],
    "s"
  ),

  // Runs of workflows.
  workflowRuns: counters("tidegate_workflow_runs_total", "Runs of workflows that ended, by outcome.", [
    [
      "outcome",
      ["completed", "filtered", "completed_with_errors", "failed", "cancelled", "duplicate", "superseded", "batched"]
    ]
  ]),
  workflowRunSeconds: histogram(
    "tidegate_workflow_run_seconds",
    "Seconds from the start of a run to its end, including delays and waits.",
    slow
  ),
  workflowStepsFailed: counters(
    "tidegate_workflow_steps_failed_total",
    "Steps of runs that failed after their last attempt, by kind and error code.",
    [
      ["kind", 12],
      ["code", 24]
    ]
  ),
  workflowFailureRuns: counters(
    "tidegate_workflow_failure_runs_total",
    "Failed runs whose on-failure workflow was to begin, by result.",
    [["result", ["begun", "refused"]]]
  ),
  workflowRunsWaiting: gauge(
    "tidegate_workflow_runs_waiting",
    "Unfinished runs of workflows, for the shards that this process holds."
  ),
  workflowOldestDue: gauge(
    "tidegate_workflow_oldest_due_seconds",
    "Seconds for which the oldest unfinished run of an active workflow has been due; 0: none is due.",
    "s"
  ),

  setAside: counters(
    "tidegate_set_aside_total",
    "Work that is not started again automatically because three processes ended during it, by kind.",
    [["kind", ["run", "route", "event", "bulk"]]]
  ),

  // The poller and the shards.
  pollerSeconds: histogram("tidegate_poller_seconds", "Seconds that one pass of the poller takes.", quick),
  pollerFound: counters("tidegate_poller_found_total", "Actors with due work that the poller found.", [
    ["kind", ["destination", "connection"]]
  ]),
  shardsHeld: gauge("tidegate_shards_held", "Shards whose lease this process holds."),
  leasesLost: counter("tidegate_leases_lost_total", "Leases of shards that could not be renewed."),
  forwardedRequests: counters(
    "tidegate_forwarded_requests_total",
    "Requests that this process has sent to an active process of its host, by the process that committed them.",
    [["committer", ["active", "standby"]]]
  ),
  runners: gauge("tidegate_cluster_runners", "Runners that are alive, as this process sees it."),
  remoteMessages: counters("tidegate_cluster_messages_total", "Messages to and from other processes.", [
    ["direction", ["sent", "received"]]
  ]),
  refusedPeers: counter(
    "tidegate_cluster_refused_peers_total",
    "Peers that were refused at the cluster's port because they proved no key."
  ),

  // Transformations.
  sandboxCalls: counters("tidegate_sandbox_calls_total", "Calls of transformation code, by result.", [
    ["outcome", ["ok", "error", "TIMEOUT", "MEMORY_LIMIT", "refused", "unavailable"]]
  ]),
  sandboxWorlds: counters("tidegate_sandbox_worlds_total", "Calls that a sandbox process ran, by kind of world.", [
    ["world", ["fresh", "sealed", "compared"]]
  ]),
  sandboxSeconds: histogram("tidegate_sandbox_call_seconds", "Seconds that a call runs in a sandbox process.", quick),
  sandboxWaitSeconds: histogram(
    "tidegate_sandbox_wait_seconds",
    "Seconds that a call waits for a sandbox process.",
    quick
  ),
  sandboxWaiting: gauge("tidegate_sandbox_waiting_calls", "Calls that wait for a sandbox process."),
  sandboxChildren: gauge("tidegate_sandbox_children", "Processes of the sandbox; 0 while no code is called."),
  sandboxStrikes: counters("tidegate_sandbox_strikes_total", "Strikes against code that had to be stopped by force.", [
    ["offence", ["TIMEOUT", "MEMORY_LIMIT"]]
  ]),
  sandboxDeaths: counters("tidegate_sandbox_deaths_total", "Sandbox processes that ended during a call, by cause.", [
    ["cause", ["time", "memory", "crash", "killed"]]
  ]),

  // The database.
  sqlWaitSeconds: histograms(
    "tidegate_sql_wait_seconds",
    "Seconds until a pool provided a connection, in periodic probes.",
    [["pool", ["ordinary", "hot", "journal", "reports"]]],
    quick
  ),
  retained: counters("tidegate_retention_total", "Table days and rows that retention processed, by kind of work.", [
    ["what", 16]
  ]),

  // The control API.
  apiCalls: counters("tidegate_api_calls_total", "Calls of the control API, by resource and status.", [
    ["group", 32],
    ["status", statuses]
  ]),
  apiSeconds: histograms(
    "tidegate_api_call_seconds",
    "Seconds that a call of the control API takes.",
    [["group", 32]],
    quick
  ),

  // What processes share.
  redisUp: gauge("tidegate_redis_up", "Whether Redis answers this process (1 or 0); 0 also when none is configured."),
  redisUnanswered: counters("tidegate_redis_unanswered_total", "Commands that Redis did not answer, by cause.", [
    ["reason", ["away", "deadline", "lost", "refused", "busy"]]
  ]),

  // Telemetry itself.
  spansExported: counter("tidegate_spans_exported_total", "Spans that the collector accepted."),
  spansDropped: counters("tidegate_spans_dropped_total", "Spans that were not exported, by cause.", [
    ["reason", ["rate", "queue_full", "collector"]]
  ]),
  linesExported: counter("tidegate_log_lines_exported_total", "Lines of the log that the collector accepted."),
  linesDropped: counters("tidegate_log_lines_dropped_total", "Lines of the log that were not exported, by cause.", [
    ["reason", ["queue_full", "collector"]]
  ]),
  linesSuppressed: counters("tidegate_log_lines_suppressed_total", "Wide log lines that were not written, by kind.", [
    ["kind", ["request", "callback", "attempt", "call", "run", "workflow_run", "workflow_step"]]
  ]),

  // The process.
  loopDelay: gauges(
    "tidegate_event_loop_delay_seconds",
    "Delay of the event loop in the last ten seconds.",
    [["statistic", ["p50", "p99", "max"]]],
    "s"
  ),
  cpuSeconds: counter("process_cpu_seconds_total", "CPU time that the process has used, in seconds.", "s"),
  residentBytes: gauge("process_resident_memory_bytes", "Resident memory of the process.", "By"),
  heapBytes: gauge("nodejs_heap_size_used_bytes", "JavaScript heap in use.", "By"),
  externalBytes: gauge("nodejs_external_memory_bytes", "Memory outside of the heap, including buffers.", "By"),
  startSeconds: gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", "s")
} as const

export const instruments: ReadonlyArray<Instrument> = all
