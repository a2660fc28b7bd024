import { at, body, headers, ids, times } from "@tidegate/resources/ExampleIds"
import * as ConnectionExample from "@tidegate/resources/connection/Example"
import * as DestinationExample from "@tidegate/resources/destination/Example"
import * as SourceExample from "@tidegate/resources/source/Example"
import * as Transformation from "@tidegate/resources/Transformation"

export { ids }

/** The examples of the document that no resource declares. */

const later = "2026-01-01T00:00:00.180Z"

export const { body: sourceBody, record: source } = SourceExample.example

export const { body: destinationBody, record: destination } = DestinationExample.example
export const { body: connectionBody, record: connection } = ConnectionExample.example

export const latestInput = {
  connection_id: ids.connection,
  latest_input: {
    source_id: ids.source,
    request_id: ids.request,
    original_event_data_id: ids.eventData,
    created_at: at,
    payload_key: ids.eventData,
    input: { method: "POST", path: "/orders", query: {}, headers, body }
  }
} as const

export const { body: transformationBody, record: transformation } = Transformation.example

export const run = {
  transformation_id: null,
  runtime: "js-v1",
  stats: { duration_ms: 0.4, memory_bytes: 123_456 },
  log_level: "info",
  console: [],
  warnings: [],
  request: {
    method: "POST",
    path: "/orders",
    query: { page: "1" },
    parsed_query: { page: "1" },
    headers: { ...headers, tenant: "acme" },
    body
  },
  error: null,
  transformation_run_time: { started_at: at, finished_at: at, duration_ms: 0.4 }
} as const

export const validation = {
  valid: false,
  runtime: "js-v1",
  handlers: [],
  console: [],
  error: { code: "NO_HANDLER", name: "Error", message: 'the code does not call addHandler("transform", …)', line: null }
} as const

export const capabilities = {
  runtime: "js-v1",
  runtimes: ["js-v1"],
  handlers: ["transform"],
  isolations: ["sealed", "fresh"],
  globals: [
    "addHandler",
    "console",
    "process.env",
    "URL",
    "URLSearchParams",
    "TextEncoder",
    "TextDecoder",
    "atob",
    "btoa",
    "crypto.hash",
    "crypto.hmac",
    "crypto.timingSafeEqual",
    "crypto.randomUUID"
  ],
  limits: {
    time_ms: 1_000,
    memory_bytes: 67_108_864,
    code_bytes: 1_048_576,
    variables: 100,
    variables_bytes: 65_536,
    output_bytes: 10_485_760,
    body_values: 100_000,
    body_depth: 512,
    headers: 500,
    headers_bytes: 65_536,
    header_name_bytes: 256,
    header_value_bytes: 32_768,
    path_bytes: 2_048,
    query_bytes: 16_384,
    query_values: 1_000,
    log_lines: 100,
    log_line_bytes: 4_096
  }
} as const

export const data = {
  method: "POST",
  path: "/orders",
  query: "",
  parsed_query: {},
  headers,
  body,
  content_type: "application/json",
  size_bytes: 31,
  is_large_payload: false,
  encoding: "json"
} as const

export const capturedRequest = { id: ids.request, status: "accepted", created_at: at, data } as const

export const request = {
  id: ids.request,
  team_id: ids.team,
  source_id: ids.source,
  status: "accepted",
  verified: true,
  rejection_cause: null,
  original_event_data_id: ids.eventData,
  external_id: null,
  events_count: 1,
  ignored_count: 0,
  cli_events_count: 0,
  is_retry: false,
  retry_kind: null,
  retry_parent_request_id: null,
  retry_operation_id: null,
  retried_at: null,
  ingested_at: at,
  ...times
} as const

export const requestDetail = { ...request, data, proxy_exchange: null } as const

export const event = {
  id: ids.event,
  team_id: ids.team,
  request_id: ids.request,
  connection_id: ids.connection,
  webhook_id: ids.connection,
  source_id: ids.source,
  destination_id: ids.destination,
  cli_id: null,
  event_data_id: ids.eventData,
  status: "SUCCESSFUL",
  rejection_cause: null,
  failure_message: null,
  ignored_reason: null,
  attempts: 1,
  response_status: 200,
  error_code: null,
  last_attempt_at: later,
  next_attempt_at: null,
  successful_at: later,
  is_retry: false,
  retry_kind: null,
  retry_parent_event_id: null,
  retry_operation_id: null,
  retried_at: null,
  resolved_at: null,
  resolved_by_event_id: null,
  ingested_at: at,
  created_at: at,
  stored_at: at,
  updated_at: later
} as const

export const eventDetail = {
  ...event,
  data: {
    request: {
      method: "POST",
      url: "https://api.example.com/hooks/orders",
      path: "/orders",
      query: "",
      headers,
      body,
      encoding: "json",
      is_large_payload: false
    },
    response: { status: 200, headers: { "content-type": "text/plain" }, body: "ok", encoding: "text" }
  }
} as const

export const attempt = {
  id: ids.attempt,
  team_id: ids.team,
  event_id: ids.event,
  request_id: ids.request,
  connection_id: ids.connection,
  webhook_id: ids.connection,
  source_id: ids.source,
  destination_id: ids.destination,
  attempt_number: 1,
  trigger: "INITIAL",
  status: "SUCCESSFUL",
  response_status: 200,
  error_code: null,
  body: "ok",
  body_encoding: "text",
  response_headers: { "content-type": "text/plain" },
  requested_url: "https://api.example.com/hooks/orders",
  http_method: "POST",
  bulk_retry_id: null,
  successful_at: later,
  delivered_at: at,
  responded_at: later,
  delivery_latency: 12,
  response_latency: 168,
  created_at: later,
  updated_at: later
} as const

export const ignoredEvent = {
  id: ids.ignoredEvent,
  team_id: ids.team,
  webhook_id: ids.connection,
  connection_id: ids.connection,
  source_id: ids.source,
  request_id: ids.request,
  cause: "FILTERED",
  meta: ["body"],
  ...times
} as const

export const trace = {
  request,
  proxy_exchange: null,
  events: [event],
  ignored_events: [],
  attempts: [attempt],
  attempts_by_event_id: { [ids.event]: [attempt] },
  skipped_connections: [],
  no_event_reason: null,
  workflow_runs: [],
  transformations: [],
  transformations_by_event_id: {},
  timeline: [
    { id: "tl_1", kind: "request", label: "Request accepted", at, status: "accepted", request_id: ids.request },
    {
      id: "tl_2",
      kind: "event",
      label: "Event created",
      at,
      status: "SUCCESSFUL",
      request_id: ids.request,
      event_id: ids.event,
      connection_id: ids.connection,
      destination_id: ids.destination
    }
  ],
  truncated: false,
  counts: {
    events: 1,
    ignored_events: 0,
    attempts: 1,
    skipped_connections: 0,
    workflow_runs: 0,
    transformations: 0,
    proxy_exchanges: 0
  }
} as const

export const execution = {
  id: ids.execution,
  team_id: ids.team,
  event_id: ids.event,
  webhook_id: ids.connection,
  connection_id: ids.connection,
  source_id: ids.source,
  request_id: ids.request,
  transformation_id: ids.transformation,
  original_event_data_id: ids.eventData,
  transformed_event_data_id: ids.eventData,
  runtime: "js-v1",
  code_hash: transformation.code_hash,
  error_code: null,
  error_message: null,
  stats: { duration_ms: 0.4, memory_bytes: 123_456 },
  log_level: "info",
  logs: [{ type: "log", message: "hello" }],
  logs_truncated: false,
  ...times
} as const

export const executionDetail = { ...execution, original_event_data: data, transformed_event_data: data } as const

const applied_range = { from: "2025-12-31T00:00:00.000Z", to: at }

export const count = { total: 42, count: 42, total_exact: true, applied_range }

export const retryAccepted = {
  ok: true,
  queued: true,
  transport: "queue",
  retried_at: later,
  event_id: ids.event,
  replay_event_id: ids.replay
} as const

export const fixture = {
  id: ids.fixture,
  team_id: ids.team,
  name: "order without lines",
  description: "answers 422",
  source_id: ids.source,
  source_name: source.name,
  original_request_id: ids.request,
  replay_count: 0,
  last_replayed_at: null,
  ...times
} as const

export const fixtureDetail = { ...fixture, snapshot: data } as const

export const fixtureTarget = {
  connection_id: ids.connection,
  connection_name: connection.name,
  source_id: ids.source,
  source_name: source.name,
  destination_id: ids.destination,
  destination_name: destination.name,
  destination_type: destination.type
} as const

export const fixtureReplayed = {
  queued: true,
  fixture_id: ids.fixture,
  connection_id: ids.connection,
  destination_id: ids.destination,
  message_id: "fxr_0123456789abcdef0123",
  replay_request_id: ids.replayRequest,
  replayed_at: later
} as const

const sharedRequest = {
  id: ids.request,
  status: "accepted",
  verified: true,
  created_at: at,
  method: "POST",
  path: "/orders",
  url: "/orders?token=[redacted]",
  headers: { "content-type": "application/json", "x-shop-signature": "[redacted]" },
  query: { token: "[redacted]" },
  body,
  body_truncated: false
} as const

const bin = {
  id: ids.source,
  endpoint: `https://hooks.example.com/e/${ids.source}`,
  expires_at: "2026-01-01T01:00:00.000Z",
  ttl_seconds: 3600
} as const

export const newBin = { ...bin, token: ids.binToken } as const

export const publicBin = {
  ...bin,
  requests: [{ id: ids.request, status: "accepted", created_at: at, data }],
  next_cursor: null
} as const

export const claimedBin = {
  claimed: true,
  id: ids.source,
  team_id: ids.team,
  source: SourceExample.example.record
} as const

const shareUrl = `http://localhost:3000/v1/shares/request/${ids.shareToken}`

export const publicShare = {
  title: "Bug 12",
  expires_at: "2026-01-01T01:00:00.000Z",
  created_at: at,
  sanitized: true,
  request: sharedRequest
} as const

export const share = {
  id: ids.share,
  token: ids.shareToken,
  team_id: ids.team,
  request_id: ids.request,
  source_id: ids.source,
  title: "Bug 12",
  url: shareUrl,
  share_url: shareUrl,
  expires_at: "2026-01-01T01:00:00.000Z",
  revoked_at: null,
  access_count: 0,
  last_accessed_at: null,
  ...times,
  sanitized: true,
  request: sharedRequest
} as const

export const listedShare = {
  id: share.id,
  team_id: share.team_id,
  request_id: share.request_id,
  title: share.title,
  status: "active",
  expires_at: share.expires_at,
  revoked_at: null,
  access_count: 2,
  last_accessed_at: at,
  ...times
} as const

export const bulkOperation = {
  id: ids.bulkOperation,
  team_id: ids.team,
  type: "event_bulk_retry",
  status: "RUNNING",
  filter: { from: "2025-12-31T23:00:00.000Z", to: at, status: ["FAILED"], connection_id: [ids.connection] },
  rate: null,
  confirmed: true,
  requested_by: null,
  total_count: 120,
  queued_count: 50,
  done_count: 50,
  failed_count: 2,
  sample: [ids.event],
  error: null,
  cancelable: true,
  created_at: at,
  planned_at: at,
  started_at: at,
  finished_at: null
} as const

export const replayAccepted = {
  ok: true,
  queued: true,
  transport: "queue",
  replayed_at: later,
  request_id: ids.request,
  replay_request_id: ids.replayRequest,
  source_id: ids.source,
  replay_message_id: ids.replayMessage,
  replay_mode: "modified",
  original_rejection_cause: null
} as const

export const accepted = { ok: true, queued: true, transport: "queue", request_id: ids.request } as const

export const webhook = body

export const sourceHealth = {
  source_id: ids.source,
  accepted_24h_count: 1200,
  rejected_24h_count: 3,
  limited_24h_count: 40,
  last_request_at: at,
  rate_limit: 100,
  rate_limit_period: "minute",
  period: { leased: 100, remaining: 0, processes: 1, ends_at: "2026-01-01T00:00:20.000Z" }
} as const

const user = { id: ids.user, email: "ada@example.com", name: "Ada", picture_url: null } as const

export const session = {
  user,
  active_team_id: ids.team,
  session: { expires_at: "2026-01-08T00:00:00.000Z" },
  memberships: [{ team_id: ids.team, role: "owner" }]
} as const

export const newSession = { token: `ses_${"0123456789abcdef".repeat(4)}`, ...session } as const

const secret = { has_secret: true, last_rotated_at: at } as const
const signingSecret = { ...secret, masked_value: "gws_****cdef" } as const

export const projectSecrets = {
  team_id: ids.team,
  api_key: { ...secret, masked_value: "gwk_****cdef" },
  signing_secret: signingSecret,
  ...times
} as const

export const rotatedSecrets = {
  ...projectSecrets,
  signing_secret: {
    ...signingSecret,
    value: "gws_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    whsec_value: "whsec_Z3dzXzAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
  }
} as const

export const consentStarted = {
  authorization_url: `https://id.example.com/authorize?response_type=code&client_id=gateway&state=${ids.destination}.…`,
  redirect_uri: "https://gateway.example.com/v1/oauth/callback",
  expires_at: later
} as const

export const consentEnded = { authorized: true, destination_id: ids.destination, renewable: true } as const

export const providerAccount = {
  id: ids.providerAccount,
  team_id: ids.team,
  provider_key: "git_host",
  name: "ada",
  email: "ada@example.com",
  external_account_id: "4711",
  status: "enabled",
  scopes: ["repo", "admin:repo_hook"],
  account_kind: "user",
  connection: "oauth2",
  base_url: "https://api.github.com",
  token_expires_at: later,
  revoked_at: null,
  last_error: null,
  lifecycle: { state: "active", reconnect_mode: "oauth2", can_revoke: true, can_reconnect: true },
  usage: { sources: 1, actions: 0, workflows: 0, lookups: 0, total: 1 },
  used_by: [{ type: "source", id: ids.source, name: "calendar" }],
  ...times
} as const

export const accountConsentStarted = {
  authorization_url: `https://github.com/login/oauth/authorize?response_type=code&client_id=gateway&state=${ids.providerAccount}.…`,
  state: `${ids.providerAccount}.…`,
  redirect_uri: "https://gateway.example.com/v1/oauth/callback",
  expires_at: later
} as const

export const accountRevoked = {
  id: ids.providerAccount,
  status: "disabled",
  revoked_at: at,
  provider_revoked: true,
  channels_stopped: 1,
  channels_failed: 0,
  used_by: [{ type: "source", id: ids.source, name: "calendar" }]
} as const

export const team = {
  id: ids.team,
  name: "Payments",
  members: 1,
  retention: { payload_days: 30, record_days: 90, most_payload_days: 30, most_record_days: 90 },
  on_failure_workflow_id: null,
  created_at: at
} as const

export const ownTeam = { id: ids.team, name: "Payments", role: "owner" } as const

export const teamDeletion = {
  // Not the demo team, which cannot be deleted.
  team_id: "tm_01kgqz5v8n3m7c2x9w4r6t0y1b",
  stage: "removing",
  requested_by: ids.user,
  requested_at: at,
  finished_at: null,
  current_table: "requests",
  deleted: { memberships: 1, deliveries: 3, events: 12 },
  deleted_total: 16
} as const

export const dataDeletion = {
  id: ids.dataDeletion,
  team_id: ids.team,
  stage: "planned",
  filter: {},
  text_hash: "scrypt:0123456789abcdef0123456789abcdef:4f2a…",
  requested_by: ids.user,
  requested_at: at,
  confirmed_by: null,
  confirmed_at: null,
  planned: { requests: 2, events: 3, attempts: 4 },
  planned_total: 9,
  deleted: {},
  deleted_total: 0,
  unreadable_count: 0,
  looked_at_count: 5_000,
  current_table: null,
  error: null,
  cancelable: true,
  finished_at: null
} as const

export const teamMember = {
  id: ids.user,
  email: user.email,
  name: user.name,
  role: "owner",
  expected: false,
  created_at: at
} as const
