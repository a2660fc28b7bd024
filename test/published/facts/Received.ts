import { of, row, type Section, tests } from "./Facts.ts"

const lists = tests("packages/api/test/Lists.test.ts")
const replays = tests("test/contract/Replays.test.ts")
const bulk = tests("test/contract/BulkOperations.test.ts")
const bulkStored = tests("packages/storage/test/BulkOperations.test.ts")
const ingress = tests("test/contract/Ingress.test.ts")
const control = tests("test/contract/Control.test.ts")
const executions = tests("packages/storage/test/reads/Executions.test.ts")
const exchanges = tests("packages/storage/test/ProxyExchanges.test.ts")
const records = tests("test/contract/Records.test.ts")
const tunnel = tests("test/contract/Tunnel.test.ts")
const eventRetry = tests("packages/storage/test/EventRetry.test.ts")
const delivery = tests("test/contract/Delivery.test.ts")
const attempt = tests("packages/entities/test/Attempt.test.ts")
const status = tests("packages/storage/test/EventStatus.test.ts")
const payload = tests("packages/storage/test/reads/Payload.test.ts")

const filtered = lists(
  'List of ${table} returns exactly the rows where ${condition({ sources: ["s0", "s1", "s2", "s3"], destinations: [], connections: [] })}'
)
const shown = lists("Requests, events and attempts show their data, summaries, details and traces")
const planned = bulk("A bulk retry without confirmation is only a plan until it is started")
const resolved = bulk("A bulk retry marks the events that it resolved and does not send them again")
const everything = bulk("A bulk operation on all records must be requested explicitly")
const replayedIgnored = bulk(
  "A bulk retry of ignored events replays each request to its connection by the current rules"
)
const narrowed = tests("packages/storage/test/reads/Narrowings.test.ts")(
  "A filter selects the same rows in lists, counts, series and plans of bulk operations"
)
const traces = tests("test/contract/Trace.test.ts")
const switchedOff = traces("A trace states that one of the %s is disabled")
const runsOfRequest = traces("A trace with an event has no reason, and it lists the workflow runs of the request")
const followed = tests("test/cluster/feed.test.ts")(
  "Each reader of the event feed gets every event exactly once and in the same order"
)
const found = bulk("A bulk retry of events retries each event that its filter matches once")

const aliases = of(
  "start end search search_term webhook_id",
  records("A bulk operation's filter is shown with the names that lists use, whatever names were sent")
)

const requestAliases = of("start end search search_term", aliases[1])

const retryMembers = "is_retry retry_kind retry_operation_id"

export const requests: Section = {
  title: "Requests",
  endpoints: [
    row("GET /requests; GET /requests/count", filtered),
    row("GET /requests/{id}; GET /requests/{id}/trace", shown),
    row(
      "GET /requests/{id}/body",
      tests("test/contract/RawBody.test.ts")("HEAD of a raw body has the same headers and no body")
    ),
    row("POST /requests/{id}/retry", replays("A replay is a new request of the source with the same content")),
    row(
      "GET /requests/{id}/events; GET /requests/{id}/ignored_events",
      control("The ${list} of a request continue where a page ends")
    ),
    row("GET /requests/bulk_operations", bulk("Bulk operations can be listed by their progress")),
    row(
      "POST /requests/bulk_operations; GET /requests/bulk_operations/{id}",
      bulk("A bulk retry of requests replays each request that its filter matches once")
    ),
    row("POST /requests/bulk_operations/{id}/run", planned),
    row("POST /requests/bulk_operations/{id}/cancel", bulk("A bulk operation can be cancelled until it ends"))
  ],
  fields: {
    Request: [
      of("data event_summary event_summary.total proxy_exchange", shown),
      of(
        "status rejection_cause verified",
        ingress("Ingress checks source, state, method, size and verification in this order")
      ),
      of("external_id", ingress("A stored request has the sender's id: ${name}")),
      of(
        "events_count ignored_count",
        tests("packages/storage/test/Settling.test.ts")(
          "Routing results of several connections are one commit, and each learns what it created"
        )
      ),
      of("cli_events_count", tunnel("Tunnel deliveries are counted by their request, however they were routed")),
      of(
        `${retryMembers} retry_parent_request_id retried_at`,
        replays("A replay is a new request of the source with the same content")
      )
    ],
    RequestData: [
      of(
        "method path query headers size_bytes",
        ingress("A stored request has its method, path, query, headers and client address")
      ),
      of("parsed_query", payload("A query lists repeated names, and no name is special")),
      of("body content_type is_large_payload encoding", shown),
      of(
        "reason",
        tests("test/contract/CostlyBodies.test.ts")(
          "A body that is not parsed is text to rules, is delivered unchanged, and states the reason"
        )
      )
    ],
    ProxyExchange: [of("*", exchanges("A proxy exchange is stored under its request's id, with or without an answer"))],
    RequestCount: [],
    IgnoredEvent: [of("cause meta", lists("Ignored event shows its cause"))],
    Trace: [
      of(
        "transformations transformations_by_event_id proxy_exchange",
        executions("The trace of a request shows its executions and its proxy exchange")
      ),
      of("skipped_connections", switchedOff),
      of("workflow_runs no_event_reason", runsOfRequest)
    ],
    TracedRun: [of("workflow_name steps", runsOfRequest)],
    SkippedConnection: [of("connection_id connection_name destination_id cause since", switchedOff)],
    NoEventReason: [of("code message", traces("A trace without an event states that the source has no connection"))],
    TimelineItem: [
      of("status event_id attempt_id connection_id destination_id", shown),
      of("ignored_event_id", lists("Ignored event shows its cause")),
      of("workflow_id workflow_run_id", runsOfRequest),
      of(
        "transformation_execution_id proxy_exchange_id",
        executions("The trace of a request shows its executions and its proxy exchange")
      )
    ],
    ReplayRequest: [
      of(
        "method path query headers body modifications modifications.* request request.* replay replay.*",
        replays("A replay changes exactly what is edited: ${what}")
      ),
      of("connection_ids", replays("A replay goes only to the given connections"))
    ],
    ReplayAccepted: [
      of("replay_mode", replays("A replay is a new request of the source with the same content")),
      of(
        "original_rejection_cause",
        replays("A replay accepts a rejected request and forwards the credential of the original")
      )
    ],
    RequestBulkRetry: [
      requestAliases,
      of(
        "from to q source_id status",
        bulk("A bulk retry of requests replays each request that its filter matches once")
      ),
      of("all", everything),
      of("confirm rate", planned),
      of("*", narrowed)
    ],
    Receipt: [],
    BulkOperation: [
      of(
        "total_count queued_count done_count failed_count",
        bulk("A bulk retry counts events that it cannot retry as failed")
      ),
      of("cancelable finished_at", bulk("A bulk operation can be cancelled until it ends")),
      of("confirmed planned_at sample rate", planned),
      of(
        "error",
        tests("packages/entities/test/BulkOperation.test.ts")(
          "A bulk operation that ended three processes fails, and its targets stay unchanged"
        )
      ),
      of("requested_by", bulkStored("A bulk operation is planned and then handles each target once"))
    ],
    BulkFilter: [
      of("status source_id", found),
      of("verified rejection_cause cause request_id batch_operation_id batch_operation_scope", narrowed),
      of("*", records("A bulk operation's record contains the whole filter with which it was made"))
    ]
  },
  states: [
    row("status accepted", ingress("An accepted request is answered with its id and can be read")),
    row("status rejected", ingress("Ingress checks source, state, method, size and verification in this order")),
    row(
      "retry: a replay with is_retry true, retry_kind single and its parent",
      replays("A replay is a new request of the source with the same content")
    ),
    row("retry_kind bulk", bulk("A bulk retry of requests replays each request that its filter matches once")),
    row("bulk operation views all, ongoing, history", bulk("Bulk operations can be listed by their progress")),
    row("bulk operation PLANNED, RUNNING, COMPLETED", found),
    row("bulk operation FAILED", bulk("A bulk retry counts events that it cannot retry as failed")),
    row(
      "bulk operation cancel: while it is planned or running, it becomes CANCELLED",
      bulk("A bulk operation can be cancelled until it ends")
    ),
    row(
      "next_cursor null: total is exact; next_cursor present: total is a lower bound",
      lists("Pages of requests have no gap and no repeat while rows are inserted")
    ),
    row(
      "windows take ISO times and relative ones",
      tests("packages/storage/test/reads/Window.test.ts")(
        "A window covers the last 24 hours, or those before its end, by default"
      )
    )
  ],
  limits: [
    row("list limit: 100 by default and at most", lists("Limit above the maximum of a list is lowered to the maximum"))
  ]
}

export const events: Section = {
  title: "Events",
  endpoints: [
    row("GET /events; GET /events/count", filtered),
    row("GET /events/{id}", shown),
    row(
      "POST /events/{id}/retry",
      eventRetry("A retry creates a queued and counted event with the same payload and marks the old one")
    ),
    row("GET /events/bulk_operations", bulk("Bulk operations can be listed by their progress")),
    row("POST /events/bulk_operations; GET /events/bulk_operations/{id}", found),
    row("POST /events/bulk_operations/{id}/run", planned),
    row("POST /events/bulk_operations/{id}/cancel", bulk("A bulk operation can be cancelled until it ends"))
  ],
  fields: {
    Event: [
      of("data", shown),
      of(
        "webhook_id cli_id ignored_reason attempts response_status last_attempt_at successful_at next_attempt_at failure_message error_code ingested_at",
        records("The records of an event and its attempts show what happened and when")
      ),
      of(`${retryMembers} retry_parent_event_id`, found),
      of("resolved_at resolved_by_event_id", resolved),
      of(
        "stored_at",
        tests("packages/storage/test/reads/Feed.test.ts")(
          "The feed shows the time that lists and counts use, and the time of storage"
        )
      ),
      of(
        "retried_at",
        eventRetry("A retry creates a queued and counted event with the same payload and marks the old one")
      )
    ],
    EventData: [
      of(
        "request request.* response response.*",
        records("The record of an event contains what was sent and what was answered")
      ),
      of(
        "request.reason",
        tests("test/contract/CostlyBodies.test.ts")(
          "A body that is not parsed is text to rules, is delivered unchanged, and states the reason"
        )
      )
    ],
    EventCount: [],
    RetryAccepted: [],
    EventBulkRetry: [
      aliases,
      of(
        "from to status source_id connection_id destination_id q",
        records("A bulk operation's record contains the whole filter with which it was made")
      ),
      of("all", everything),
      of("confirm rate", planned),
      of("resolved", resolved),
      of("action", bulk("A bulk cancellation removes only waiting events from their queue, also in memory")),
      of("*", narrowed)
    ]
  },
  states: [
    row(
      "status SCHEDULED, QUEUED, HOLD, SUCCESSFUL, FAILED, CANCELLED",
      status("The status of a pending event depends on its connection, its destination and the time")
    ),
    row(
      "status is the same wherever it is told",
      status("The event status in SQL and in TypeScript is the same for every combination of inputs")
    ),
    row(
      "retry: the new event has is_retry true, retry_kind single and its parent",
      eventRetry("A retry creates a queued and counted event with the same payload and marks the old one")
    ),
    row(
      "retry needs an enabled source and connection, and one that is not paused",
      eventRetry("A retry is rejected while its source, connection or destination is disabled or paused")
    ),
    row("a feed shows every event once, in the order in which they were stored", followed),
    row(
      "a bulk operation retries each event once, through a crash too",
      tests("test/cluster/bulk.test.ts")("Bulk operations omit and repeat nothing when a runner is killed")
    )
  ],
  limits: [
    row("list limit: 100 by default and at most", lists("Limit above the maximum of a list is lowered to the maximum"))
  ]
}

export const ignoredEvents: Section = {
  title: "Ignored events",
  endpoints: [
    row("GET /ignored_events; GET /ignored_events/count", replayedIgnored),
    row("GET /ignored_events/bulk_operations", bulk("Bulk operations can be listed by their progress")),
    row("POST /ignored_events/bulk_operations; GET /ignored_events/bulk_operations/{id}", replayedIgnored),
    row("POST /ignored_events/bulk_operations/{id}/run", planned),
    row("POST /ignored_events/bulk_operations/{id}/cancel", everything)
  ],
  fields: {
    IgnoredEventBulkRetry: [
      of("cause connection_id", replayedIgnored),
      of("all", everything),
      of("confirm rate", planned),
      of("*", narrowed)
    ]
  },
  states: [],
  limits: []
}

export const attempts: Section = {
  title: "Attempts",
  endpoints: [
    row("GET /attempts", lists("Attempts can be paged in both directions")),
    row("GET /attempts/{id}", shown)
  ],
  fields: {
    Attempt: [
      of(
        "status attempt_number successful_at delivered_at responded_at delivery_latency response_latency requested_url http_method response_status error_code",
        records("The records of an event and its attempts show what happened and when")
      ),
      of("trigger", attempt("The trigger of an attempt follows from its history (%s)")),
      of(
        "body body_encoding response_headers",
        records("The records of an event and its attempts show what happened and when")
      ),
      of("bulk_retry_id", found)
    ]
  },
  states: [
    row("status SUCCESSFUL, FAILED", delivery("An attempt answered with ${status} makes the event ${expected}")),
    row(
      "trigger INITIAL, AUTOMATIC, MANUAL, BULK_RETRY, UNPAUSE",
      attempt("The trigger of an attempt follows from its history (%s)")
    ),
    row("filters by event, request, destination, status, window and search", filtered),
    row("one of next and prev", lists("Attempts can be paged in both directions"))
  ],
  limits: [
    row("list limit: 100 by default, 255 at most", lists("Limit above the maximum of a list is lowered to the maximum"))
  ]
}

export const fixtures: Section = {
  title: "Request fixtures",
  endpoints: [
    row(
      "GET /request-fixtures",
      tests("test/contract/Fixtures.test.ts")("Fixtures are listed by source and by name, newest first")
    ),
    row(
      "POST /request-fixtures; GET,PATCH,PUT /request-fixtures/{id}",
      tests("test/contract/Fixtures.test.ts")("A fixture is a copy of a request, and its name can be changed")
    ),
    row(
      "DELETE /request-fixtures/{id}",
      tests("test/contract/Fixtures.test.ts")("An invalid fixture is refused, and a deleted one is not found")
    ),
    row(
      "GET /request-fixtures/{id}/targets; POST /request-fixtures/{id}/replay",
      tests("test/contract/Fixtures.test.ts")("A replayed fixture goes unchanged to the chosen connection")
    )
  ],
  fields: {
    Fixture: [
      of(
        "snapshot",
        tests("test/contract/Fixtures.test.ts")("A fixture is a copy of a request, and its name can be changed")
      ),
      of(
        "replay_count last_replayed_at",
        tests("test/contract/Fixtures.test.ts")("A replayed fixture goes unchanged to the chosen connection")
      )
    ],
    "FixtureWrite FixturePatch": [
      of(
        "request_id name description",
        tests("test/contract/Fixtures.test.ts")("A fixture is a copy of a request, and its name can be changed")
      )
    ],
    FixtureTarget: [],
    FixtureReplay: [
      of(
        "connection_id",
        tests("test/contract/Fixtures.test.ts")(
          "A fixture is not replayed to a connection that is not one of its targets"
        )
      )
    ],
    FixtureReplayed: []
  },
  states: [
    row(
      "replay: only to a target, replay_count grows, last_replayed_at is set, 202",
      tests("test/contract/Fixtures.test.ts")("A replayed fixture goes unchanged to the chosen connection")
    ),
    row(
      "the snapshot outlives the request",
      tests("packages/storage/test/Fixtures.test.ts")(
        "A fixture outlives its original request and can still be replayed"
      )
    ),
    row(
      "the original request is kept when a fixture is deleted",
      tests("test/contract/Fixtures.test.ts")("An invalid fixture is refused, and a deleted one is not found")
    )
  ],
  limits: [
    row(
      "name 120 characters at most; description 500 characters at most",
      tests("test/contract/Fixtures.test.ts")("An invalid fixture is refused, and a deleted one is not found")
    )
  ]
}
