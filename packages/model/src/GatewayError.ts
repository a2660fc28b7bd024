import { Schema } from "effect"
import { type FormatterCode, formatterCodes } from "./FormatterCode.ts"

/** All codes of the formatter have one status: the call is valid, but the step is not. */
const ofFormatter = Object.fromEntries(Object.keys(formatterCodes).map((code) => [code, 422])) as Record<
  FormatterCode,
  422
>

/** Every machine-readable code that an answer of the control API or of an ingress URL may have, with its HTTP status. */
export const statusOf = {
  INVALID_JSON: 400,
  VALIDATION_ERROR: 400,
  INVALID_CURSOR: 400,
  INVALID_TIME_RANGE: 400,
  RULE_INVALID: 400,
  EMPTY_FILTER: 400,
  INVALID_FILTER_NAME: 400,
  TRANSFORMATION_INVALID: 400,
  WORKFLOW_GRAPH_INVALID: 400,
  OAUTH2_STATE_INVALID: 400,
  INVALID_KEY_POLICY: 400,
  CHANNEL_SETTINGS_INVALID: 400,
  DELIVERY_INVALID: 400,
  FORMATTER_ENVELOPE_INVALID: 400,
  FORMATTER_ANCHOR_INVALID: 400,
  UNAUTHENTICATED: 401,
  INVALID_API_KEY: 401,
  SESSION_EXPIRED: 401,
  INVALID_ID_TOKEN: 401,
  INVALID_BIN_TOKEN: 401,
  SOURCE_AUTH_FAILED: 401,
  TEAM_FORBIDDEN: 403,
  ROLE_REQUIRED: 403,
  USER_SESSION_REQUIRED: 403,
  INSUFFICIENT_SCOPE: 403,
  EXECUTE_GRANT_REQUIRED: 403,
  LOGIN_DISABLED: 403,
  SOURCE_DISABLED_INGRESS: 403,
  SERVICE_WORKER_REFUSED: 403,
  NOT_FOUND: 404,
  ROUTE_NOT_FOUND: 404,
  SHARE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  SOURCE_METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  RESOURCE_ALREADY_EXISTS: 409,
  workflow_conflict: 409,
  WORKFLOW_NOT_EXECUTABLE: 409,
  RUN_ACTIVE: 409,
  RUN_ENDED: 409,
  STEP_NOT_RETRYABLE: 409,
  STEP_NOT_WAITING: 409,
  PROVIDER_ACCOUNT_NOT_CONNECTED: 409,
  CHANNEL_POLLING_SOURCE: 409,
  DELIVERY_DEFINITION_UNAVAILABLE: 409,
  SOURCE_DISABLED: 409,
  SOURCE_WITHOUT_SENDERS: 409,
  CONNECTION_DISABLED: 409,
  CONNECTION_PAUSED: 409,
  DESTINATION_DISABLED: 409,
  EVENT_NOT_RETRYABLE: 409,
  PAYLOAD_UNAVAILABLE: 409,
  RESOURCE_IN_USE: 409,
  LIMIT_EXCEEDED: 409,
  TEAM_LIMIT_REACHED: 409,
  PROJECT_KEY_LIMIT_REACHED: 409,
  PROJECT_KEY_REVOKED: 409,
  LEGACY_POLICY_CUTOVER_INCOMPLETE: 409,
  FILTER_LIMIT_REACHED: 409,
  BULK_OPERATION_NOT_CANCELABLE: 409,
  BULK_OPERATION_NOT_RUNNABLE: 409,
  FIXTURE_TARGET_INVALID: 409,
  BIN_ALREADY_CLAIMED: 409,
  IDEMPOTENCY_KEY_IN_USE: 409,
  SHARE_EXPIRED: 410,
  SHARE_REVOKED: 410,
  BIN_EXPIRED: 410,
  RUN_PAYLOAD_EXPIRED: 410,
  PAYLOAD_TOO_LARGE: 413,
  FORMATTER_BODY_TOO_LARGE: 413,
  UNSUPPORTED_CONTENT_TYPE: 415,
  EXPECTATION_FAILED: 417,
  ...ofFormatter,
  IDEMPOTENCY_KEY_REUSED: 422,
  SAMPLE_UNAVAILABLE: 422,
  SIGNATURE_UNAVAILABLE: 422,
  TEMPLATE_BINDING_INVALID: 422,
  ACTION_OPTIONS_INVALID: 422,
  PROVIDER_REFUSED: 422,
  UPGRADE_REQUIRED: 426,
  RATE_LIMITED: 429,
  HEADERS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  UPSTREAM_ERROR: 502,
  OAUTH2_HANDSHAKE_FAILED: 502,
  PROVIDER_FAILED: 502,
  QUEUE_UNAVAILABLE: 503,
  UPSTREAM_TIMEOUT: 504,
  LOOP_DETECTED: 508
} as const

export type ErrorCode = keyof typeof statusOf

const labels: Record<number, string> = {
  400: "Validation failed",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not found",
  405: "Method not allowed",
  408: "Request timeout",
  409: "Conflict",
  410: "Gone",
  413: "Payload too large",
  415: "Unsupported media type",
  417: "Expectation failed",
  422: "Unprocessable content",
  426: "Upgrade required",
  429: "Too many requests",
  431: "Request headers too large",
  500: "Internal error",
  502: "Bad gateway",
  503: "Service unavailable",
  504: "Gateway timeout",
  508: "Loop detected"
}

/**
 * The only error of the gateway's interfaces: actors fail with it, and the control API and ingress answer with it. `data` has
 * what a program needs to react (the field errors, the id of the conflicting resource).
 */
export class GatewayError extends Schema.TaggedError<GatewayError>()("GatewayError", {
  code: Schema.Literals(Object.keys(statusOf) as ReadonlyArray<ErrorCode>),
  message: Schema.String,
  data: Schema.optionalKey(Schema.Json)
}) {}

/** One field of a body or query that is wrong. */
export interface FieldError {
  readonly path: string
  readonly message: string
}

export const fail = (code: ErrorCode, message: string, data?: Schema.Json): GatewayError =>
  new GatewayError(data === undefined ? { code, message } : { code, message, data })

/**
 * 400 VALIDATION_ERROR. The message has the first field's error and the number of further ones, so that it is useful without
 * `data`.
 */
export const invalid = (fields: ReadonlyArray<FieldError>): GatewayError => {
  const [first, ...others] = fields
  const more = others.length === 0 ? "" : ` (and ${others.length} more, see data.fields)`
  const message = first === undefined ? "invalid input" : `${`${first.path} ${first.message}`.trim()}${more}`
  return fail("VALIDATION_ERROR", message, {
    fields: fields.map(({ path, message }) => ({ path, message }))
  })
}

export const notFound = (resource_type: string, id: string): GatewayError =>
  fail("NOT_FOUND", `${resource_type} ${id} was not found`, { resource_type, id })

/** The HTTP answer of an error: its status and the body in the contract's shape. */
export const toResponse = (error: GatewayError): { readonly status: number; readonly body: Schema.Json } => {
  const code = statusOf[error.code]
  return {
    status: code,
    body: {
      error: error.code in ofFormatter ? "Formatter error" : (labels[code] ?? "Error"),
      // One code in the contract, two statuses: a sender gets 403, an operator 409.
      code: error.code === "SOURCE_DISABLED_INGRESS" ? "SOURCE_DISABLED" : error.code,
      status: code,
      message: error.message,
      ...(error.data === undefined ? {} : { data: error.data })
    }
  }
}
