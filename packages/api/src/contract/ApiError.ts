import { Schema, SchemaTransformation } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { FormatterFault } from "@tidegate/model/Formatter"
import { type FormatterCode, formatterCodes } from "@tidegate/model/FormatterCode"
import { type ErrorCode, GatewayError, statusOf, toResponse } from "@tidegate/model/GatewayError"
import { describedAs } from "@tidegate/resources/DescribedAs"

/** The body of an error, the same for every route. `data` has what a program needs to react. */
export interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly status: number
  readonly message: string
  readonly data?: Schema.Json
}

const Fields = Schema.Struct({
  fields: Schema.Array(
    Schema.Struct({
      path: Schema.String.annotate({ description: "The invalid member or parameter" }),
      message: Schema.String.annotate({ description: "What is wrong with it" })
    })
  )
})

const RuleFault = Schema.Struct({
  rule_index: Schema.NullOr(Schema.Int).annotate({ description: "The index in the array, as written" }),
  path: Schema.String.annotate({ description: "The path in that rule" }),
  message: Schema.String
})

const textOrNull = Schema.NullOr(Schema.String)

const Issues = Schema.Struct({
  issues: Schema.Array(
    Schema.Struct({
      code: Schema.String,
      step_id: textOrNull,
      edge_id: textOrNull,
      field: textOrNull.annotate({ description: "The path in the step or edge" }),
      message: Schema.String,
      data: Schema.optionalKey(
        Schema.Struct({
          step_ids: Schema.Array(Schema.String).annotate({
            description: "The steps of a cycle, each followed by the step that it leads to"
          })
        })
      ).annotate({ description: "For `GRAPH_CYCLE`" })
    })
  )
})

const ConditionFault = Schema.Struct({
  path: Schema.String.annotate({ description: "The member, or the path in the conditions" }),
  operator: Schema.NullOr(Schema.String).annotate({ description: "The operator at that place, if there is one" }),
  message: Schema.String
})

const Resource = Schema.Struct({ resource_type: Schema.String, id: Schema.String })

interface About {
  readonly when: string
  /** The schema of `data`; absent when a program needs nothing. */
  readonly data?: Schema.Top
}

const ofFormatter = Object.fromEntries(
  Object.entries(formatterCodes).map(([code, { when }]): [string, About] => [code, { when, data: FormatterFault }])
) as Record<FormatterCode, About>

/** When each code is returned, and its data. */
const about: Record<ErrorCode, About> = {
  INVALID_JSON: { when: "The body is not JSON." },
  VALIDATION_ERROR: { when: "A member of the body, or a parameter, is invalid.", data: Fields },
  INVALID_CURSOR: { when: "The cursor belongs to another list or to other filters." },
  INVALID_TIME_RANGE: { when: "`from` is later than `to`." },
  RULE_INVALID: { when: "One of the rules is invalid.", data: RuleFault },
  EMPTY_FILTER: { when: "The filter has no condition.", data: ConditionFault },
  INVALID_FILTER_NAME: { when: "The name is not valid for a filter.", data: ConditionFault },
  OAUTH2_STATE_INVALID: {
    when: "The consent was not started here, has ended already, or was started with other settings."
  },
  OAUTH2_HANDSHAKE_FAILED: { when: "The person or the provider refused the consent." },
  TRANSFORMATION_INVALID: { when: "The code does not compile." },
  WORKFLOW_GRAPH_INVALID: {
    when: "The workflow's steps and edges are not a graph that can run. `data` lists all faults.",
    data: Issues
  },
  workflow_conflict: {
    when: "The workflow has been changed since that version.",
    data: Schema.Struct({ current_version: Schema.Int, supplied_version: Schema.Int })
  },
  SIGNATURE_UNAVAILABLE: {
    when: "The test request cannot be signed: only the provider can sign requests of this type, or the source has no readable secret."
  },
  SAMPLE_UNAVAILABLE: {
    when: "There is no sample request for the test, neither in the body nor stored."
  },
  TEMPLATE_BINDING_INVALID: { when: "A binding of the template is missing, or has the wrong type.", data: Fields },
  WORKFLOW_NOT_EXECUTABLE: {
    when: "The workflow is disabled, has no source, or uses something that is disabled.",
    data: Issues
  },
  LOOP_DETECTED: {
    when: "The request has passed through the gateway more than ten times, or it is one of more than 1,000 such requests in a minute (`gateway-loop`). It is stored as rejected."
  },
  RUN_ACTIVE: { when: "The run has not finished." },
  RUN_ENDED: {
    when: "The run has finished, so it cannot be cancelled.",
    data: Schema.Struct({ outcome: Schema.NullOr(Schema.String) })
  },
  STEP_NOT_RETRYABLE: {
    when: "The step has not failed, or its run has been started 100 times.",
    data: Schema.Struct({ step_status: Schema.String })
  },
  STEP_NOT_WAITING: {
    when: "The step does not wait for a decision: it has not begun, was decided, or its time is over.",
    data: Schema.Struct({ step_status: Schema.String })
  },
  RUN_PAYLOAD_EXPIRED: {
    when: "Retention has deleted the payload of the run's request.",
    data: Schema.Struct({ expired_at: Schema.String })
  },
  PROVIDER_REFUSED: { when: "The provider refuses the credentials." },
  PROVIDER_FAILED: { when: "The provider did not answer, or not as its protocol says." },
  PROVIDER_ACCOUNT_NOT_CONNECTED: { when: "The provider's account is not connected." },
  CHANNEL_SETTINGS_INVALID: { when: "A member of the alert settings is invalid.", data: Fields },
  DELIVERY_INVALID: { when: "A member of the delivery is invalid.", data: Fields },
  CHANNEL_POLLING_SOURCE: {
    when: "The source is not a provider source with instant delivery, so it has no channel.",
    data: Schema.Struct({ source_id: Schema.String })
  },
  DELIVERY_DEFINITION_UNAVAILABLE: {
    when: "The provider has no definition of the same trigger for this delivery mode.",
    data: Schema.Struct({ source_id: Schema.String })
  },
  ACTION_OPTIONS_INVALID: {
    when: "There are no choices with that name.",
    data: Schema.Struct({
      provider_key: Schema.String,
      resource: Schema.String,
      resources: Schema.Array(Schema.String)
    })
  },
  INVALID_KEY_POLICY: { when: "The key cannot have the policy in the body.", data: Fields },
  FORMATTER_ENVELOPE_INVALID: { when: "The body is not a valid test of the formatter.", data: Fields },
  FORMATTER_ANCHOR_INVALID: { when: "`anchor_at` is not a time with an offset.", data: Fields },
  FORMATTER_BODY_TOO_LARGE: {
    when: "The body is larger than the formatter's limit.",
    data: Schema.Struct({ limit_bytes: Schema.Int.annotate({ description: "Maximum bytes of a body" }) })
  },
  ...ofFormatter,
  UNAUTHENTICATED: { when: "Neither an API key nor a session token was sent." },
  INVALID_API_KEY: { when: "The API key is not valid, or no longer valid." },
  SESSION_EXPIRED: { when: "The session has expired, or its user has signed out." },
  INVALID_ID_TOKEN: {
    when: "The ID token is not from the configured issuer, is not for this gateway, or is not valid now."
  },
  SOURCE_AUTH_FAILED: { when: "The sender could not be verified. The request is stored as rejected." },
  TEAM_FORBIDDEN: { when: "The caller has no access to that team." },
  ROLE_REQUIRED: {
    when: "The user's role in that team does not allow this.",
    data: Schema.Struct({ required: Schema.String })
  },
  USER_SESSION_REQUIRED: { when: "This requires a signed-in user. A key is not allowed." },
  INSUFFICIENT_SCOPE: {
    when: "The key does not have the required scope.",
    data: Schema.Struct({ required: Schema.String })
  },
  EXECUTE_GRANT_REQUIRED: {
    when: "The key has no grant for this route.",
    data: Schema.Struct({ route_key: Schema.String })
  },
  LOGIN_DISABLED: { when: "This way of signing in is not configured here." },
  SOURCE_DISABLED_INGRESS: { when: "The source is disabled. The request is stored as rejected." },
  SERVICE_WORKER_REFUSED: {
    when: "A browser requests the script of a service worker (`Service-Worker: script`), which a source must not provide. The request is stored as rejected."
  },
  NOT_FOUND: { when: "The team has no such resource.", data: Resource },
  ROUTE_NOT_FOUND: { when: "There is no such route." },
  SHARE_NOT_FOUND: { when: "The share does not exist, or no longer exists." },
  FIXTURE_TARGET_INVALID: { when: "The connection is not a target of the fixture." },
  SHARE_EXPIRED: { when: "The share has expired." },
  SHARE_REVOKED: { when: "The share was revoked." },
  INVALID_BIN_TOKEN: {
    when: "The bin's token is missing or wrong, or is no longer valid because the bin was claimed."
  },
  BIN_ALREADY_CLAIMED: { when: "The bin was claimed already." },
  BIN_EXPIRED: { when: "The bin has expired." },
  METHOD_NOT_ALLOWED: { when: "The path does not support this method. `Allow` lists the supported methods." },
  SOURCE_METHOD_NOT_ALLOWED: {
    when: "The source does not accept this method. `Allow` lists the accepted methods. The request is stored as rejected."
  },
  RESOURCE_ALREADY_EXISTS: { when: "Another resource has this name. `data` identifies it.", data: Resource },
  SOURCE_DISABLED: { when: "The source is disabled or deleted." },
  SOURCE_WITHOUT_SENDERS: { when: "The gateway makes the requests of this source: nobody can send to it." },
  CONNECTION_DISABLED: { when: "The connection is disabled." },
  CONNECTION_PAUSED: { when: "The connection is paused." },
  DESTINATION_DISABLED: { when: "The destination is disabled." },
  EVENT_NOT_RETRYABLE: { when: "The event has not finished." },
  PAYLOAD_UNAVAILABLE: { when: "Retention has deleted the payload." },
  IDEMPOTENCY_KEY_IN_USE: {
    when: "The call with that `Idempotency-Key` is under way, or it is done and its answer could not be stored."
  },
  IDEMPOTENCY_KEY_REUSED: { when: "The `Idempotency-Key` was already used for another call or another body." },
  RESOURCE_IN_USE: { when: "Other resources use this resource." },
  LIMIT_EXCEEDED: {
    when: "The team has reached the operator's limit for this resource. Delete one first.",
    data: Schema.Struct({ limit: Schema.Int, resource: Schema.String })
  },
  TEAM_LIMIT_REACHED: {
    when: "The team has reached its limit. It is not known when it will be below it again.",
    data: Schema.Struct({ limit: Schema.Int })
  },
  PROJECT_KEY_LIMIT_REACHED: {
    when: "The team has reached its limit of keys that are not revoked.",
    data: Schema.Struct({ limit: Schema.Int })
  },
  PROJECT_KEY_REVOKED: { when: "The key is revoked. This cannot be undone." },
  LEGACY_POLICY_CUTOVER_INCOMPLETE: {
    when: "The team's API key is still accepted whatever its scopes are. Only the operator can end this."
  },
  FILTER_LIMIT_REACHED: {
    when: "The team has reached its limit of filters.",
    data: Schema.Struct({ limit: Schema.Int, resource: Schema.String })
  },
  BULK_OPERATION_NOT_CANCELABLE: { when: "The operation has finished." },
  BULK_OPERATION_NOT_RUNNABLE: { when: "The operation was cancelled." },
  PAYLOAD_TOO_LARGE: { when: "The body is larger than this call allows." },
  UNSUPPORTED_CONTENT_TYPE: { when: "The content type is not JSON, or the body is compressed." },
  REQUEST_TIMEOUT: { when: "The request arrived too slowly or incompletely." },
  UPGRADE_REQUIRED: { when: "The call is not a WebSocket handshake." },
  EXPECTATION_FAILED: { when: "`Expect` has a value other than 100-continue." },
  HEADERS_TOO_LARGE: { when: "There are too many headers, or they are too large." },
  RATE_LIMITED: { when: "There were too many calls. `Retry-After` says when to try again." },
  INTERNAL_ERROR: { when: "The gateway has a fault, which is in its log." },
  UPSTREAM_ERROR: { when: "Proxy mode: the upstream could not be reached." },
  QUEUE_UNAVAILABLE: {
    when: "The database, or the process that owns the resource, did not answer in time. See `Retry-After`."
  },
  UPSTREAM_TIMEOUT: { when: "Proxy mode: the upstream did not answer in time." }
}

export const whenOf = (code: ErrorCode): string => about[code].when

/** The name of a code's schema in the document: `NotFoundError`. */
export const schemaNameOf = (code: ErrorCode): string => {
  const name = code
    .toLowerCase()
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")
  return name.endsWith("Error") ? name : `${name}Error`
}

/** `GatewayError` in the form of one code; a union of these determines the status by the code. */
export const errorOf = (code: ErrorCode) => {
  const { data, when } = about[code]
  const shown = toResponse(new GatewayError({ code, message: when })).body as unknown as ErrorBody
  const body = Schema.Struct({
    error: Schema.String.annotate({ description: "The name of the status" }),
    code: Schema.Literal(shown.code),
    status: Schema.Literal(shown.status),
    message: Schema.String.annotate({ description: "A text for people. It may change" }),
    data: Schema.optionalKey(data === undefined ? Schema.Json : Schema.Json.pipe(describedAs(data)))
  }).annotate({ identifier: schemaNameOf(code), description: when })
  return body.pipe(
    Schema.decodeTo(
      Schema.toType(GatewayError).check(Schema.makeFilter((error) => error.code === code)),
      SchemaTransformation.transform<GatewayError, typeof body.Type>({
        decode: ({ message, data }) =>
          new GatewayError(data === undefined ? { code, message } : { code, message, data }),
        encode: (error) => toResponse(error).body as unknown as typeof body.Type
      })
    ),
    HttpApiSchema.status(statusOf[code])
  )
}

/** Codes that no operation of the control API returns: those of its server and router, of ingress, and unused ones. */
const others: ReadonlySet<ErrorCode> = new Set([
  "REQUEST_TIMEOUT",
  "EXPECTATION_FAILED",
  "HEADERS_TOO_LARGE",
  "ROUTE_NOT_FOUND",
  "METHOD_NOT_ALLOWED",
  "SOURCE_AUTH_FAILED",
  "LOOP_DETECTED",
  "SOURCE_DISABLED_INGRESS",
  "SERVICE_WORKER_REFUSED",
  "SOURCE_METHOD_NOT_ALLOWED",
  "UPSTREAM_ERROR",
  "UPSTREAM_TIMEOUT"
])

/** The codes that calls of the control API may return. The description of an operation names its own. */
export const ApiErrors = (Object.keys(statusOf) as Array<ErrorCode>).filter((code) => !others.has(code)).map(errorOf)
