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
      path: Schema.String.annotate({ description: "The member or parameter that is wrong" }),
      message: Schema.String.annotate({ description: "What is wrong with it" })
    })
  )
})

const RuleFault = Schema.Struct({
  rule_index: Schema.NullOr(Schema.Int).annotate({ description: "Its place in the array as written" }),
  path: Schema.String.annotate({ description: "The place in that rule" }),
  message: Schema.String
})

const textOrNull = Schema.NullOr(Schema.String)

const Issues = Schema.Struct({
  issues: Schema.Array(
    Schema.Struct({
      code: Schema.String,
      step_id: textOrNull,
      edge_id: textOrNull,
      field: textOrNull.annotate({ description: "The place in the step or edge" }),
      message: Schema.String,
      data: Schema.optionalKey(
        Schema.Struct({
          step_ids: Schema.Array(Schema.String).annotate({
            description: "The steps of a circle, each before the one that it leads to"
          })
        })
      ).annotate({ description: "Of `GRAPH_CYCLE`" })
    })
  )
})

const ConditionFault = Schema.Struct({
  path: Schema.String.annotate({ description: "The member, or the place in the conditions" }),
  operator: Schema.NullOr(Schema.String).annotate({ description: "The operator there, if it is one" }),
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
  INVALID_JSON: { when: "The body is no JSON." },
  VALIDATION_ERROR: { when: "A member of the body, or a parameter, is wrong.", data: Fields },
  INVALID_CURSOR: { when: "The cursor is none of this list, or of other filters." },
  INVALID_TIME_RANGE: { when: "`from` is later than `to`." },
  RULE_INVALID: { when: "One of the rules is wrong.", data: RuleFault },
  EMPTY_FILTER: { when: "The filter asks for nothing.", data: ConditionFault },
  INVALID_FILTER_NAME: { when: "The name is none that a filter can have.", data: ConditionFault },
  OAUTH2_STATE_INVALID: {
    when: "The consent was not begun here, has ended already, or was begun with other settings."
  },
  OAUTH2_HANDSHAKE_FAILED: { when: "Whoever was asked to consent, or the provider, has said no." },
  TRANSFORMATION_INVALID: { when: "The code does not compile." },
  WORKFLOW_GRAPH_INVALID: {
    when: "The workflow's steps and edges are no graph that can run; `data` has all that is wrong.",
    data: Issues
  },
  workflow_conflict: {
    when: "Somebody else has changed the workflow since that version.",
    data: Schema.Struct({ current_version: Schema.Int, supplied_version: Schema.Int })
  },
  SAMPLE_UNAVAILABLE: {
    when: "There is no request to try the workflow on: neither one in the body, nor one that is stored."
  },
  TEMPLATE_BINDING_INVALID: { when: "What the template has to be given is missing, or of another kind.", data: Fields },
  WORKFLOW_NOT_EXECUTABLE: {
    when: "The workflow names something that is disabled, has no source, or is itself disabled.",
    data: Issues
  },
  LOOP_DETECTED: {
    when: "The request has come of one that the gateway itself has sent on, more than ten times over, or with more than 1,000 others in a minute (`gateway-loop`). It is stored, rejected."
  },
  RUN_ACTIVE: { when: "The run is not at its end." },
  STEP_NOT_RETRYABLE: {
    when: "The step has not failed, or its run was begun 100 times.",
    data: Schema.Struct({ step_status: Schema.String })
  },
  RUN_PAYLOAD_EXPIRED: {
    when: "Retention took what the run began with.",
    data: Schema.Struct({ expired_at: Schema.String })
  },
  PROVIDER_ACCOUNT_NOT_CONNECTED: { when: "The provider's account is not connected." },
  ACTION_OPTIONS_INVALID: {
    when: "There is nothing of that name to choose from.",
    data: Schema.Struct({
      provider_key: Schema.String,
      resource: Schema.String,
      resources: Schema.Array(Schema.String)
    })
  },
  INVALID_KEY_POLICY: { when: "The key cannot be what the body says.", data: Fields },
  FORMATTER_ENVELOPE_INVALID: { when: "The body says no trial of the formatter.", data: Fields },
  FORMATTER_ANCHOR_INVALID: { when: "`anchor_at` is no time with its offset.", data: Fields },
  FORMATTER_BODY_TOO_LARGE: {
    when: "The body is larger than the formatter takes.",
    data: Schema.Struct({ limit_bytes: Schema.Int.annotate({ description: "Bytes that a body may have" }) })
  },
  ...ofFormatter,
  UNAUTHENTICATED: { when: "No API key and no session token was sent." },
  INVALID_API_KEY: { when: "The API key is not, or no longer, valid." },
  SESSION_EXPIRED: { when: "The session is over: its time is, or its user has signed out." },
  INVALID_ID_TOKEN: { when: "The ID token is not the configured issuer's, not for this gateway, or not valid now." },
  SOURCE_AUTH_FAILED: { when: "The sender could not be verified. The request is stored, rejected." },
  TEAM_FORBIDDEN: { when: "The caller cannot act on that team." },
  ROLE_REQUIRED: {
    when: "The user may act on that team, but not do this.",
    data: Schema.Struct({ required: Schema.String })
  },
  USER_SESSION_REQUIRED: { when: "Only a signed-in user may do this, no key." },
  INSUFFICIENT_SCOPE: {
    when: "The key has not the scope that this needs.",
    data: Schema.Struct({ required: Schema.String })
  },
  EXECUTE_GRANT_REQUIRED: {
    when: "The key has no grant for this route.",
    data: Schema.Struct({ route_key: Schema.String })
  },
  LOGIN_DISABLED: { when: "This way of signing in is not configured here." },
  SOURCE_DISABLED_INGRESS: { when: "The source is disabled. The request is stored, rejected." },
  SERVICE_WORKER_REFUSED: {
    when: "A browser asks for the script of a service worker (`Service-Worker: script`): no source is one. The request is stored, rejected."
  },
  NOT_FOUND: { when: "The team has no such resource.", data: Resource },
  ROUTE_NOT_FOUND: { when: "There is no such route." },
  SHARE_NOT_FOUND: { when: "There is no such share (any more)." },
  FIXTURE_TARGET_INVALID: { when: "The connection is none of the fixture's targets." },
  SHARE_EXPIRED: { when: "The share has expired." },
  SHARE_REVOKED: { when: "The share was revoked." },
  INVALID_BIN_TOKEN: { when: "The bin's token is missing or wrong, or has ended because the bin was claimed." },
  BIN_ALREADY_CLAIMED: { when: "The bin was claimed already." },
  BIN_EXPIRED: { when: "The bin has expired." },
  METHOD_NOT_ALLOWED: { when: "The path is known, the method is not one of those in `Allow`." },
  SOURCE_METHOD_NOT_ALLOWED: {
    when: "The source does not take this method; `Allow` has those it does. The request is stored, rejected."
  },
  RESOURCE_ALREADY_EXISTS: { when: "Another resource has this name; `data` names it.", data: Resource },
  SOURCE_DISABLED: { when: "The source is disabled or deleted." },
  CONNECTION_DISABLED: { when: "The connection is disabled." },
  CONNECTION_PAUSED: { when: "The connection is paused." },
  DESTINATION_DISABLED: { when: "The destination is disabled." },
  EVENT_NOT_RETRYABLE: { when: "The event is still to be delivered." },
  PAYLOAD_UNAVAILABLE: { when: "Retention took the payload." },
  IDEMPOTENCY_KEY_IN_USE: {
    when: "The call with that `Idempotency-Key` is under way; or it is done, and its answer could not be kept."
  },
  IDEMPOTENCY_KEY_REUSED: { when: "The `Idempotency-Key` was sent with another call, or with another body." },
  RESOURCE_IN_USE: { when: "Other resources use it." },
  LIMIT_EXCEEDED: {
    when: "The team has as many of the resource as the operator lets it have: delete one first.",
    data: Schema.Struct({ limit: Schema.Int, resource: Schema.String })
  },
  TEAM_LIMIT_REACHED: {
    when: "The team has as many of them as it may; no time is known at which it has fewer.",
    data: Schema.Struct({ limit: Schema.Int })
  },
  PROJECT_KEY_LIMIT_REACHED: {
    when: "The team has as many keys as it may that are not revoked.",
    data: Schema.Struct({ limit: Schema.Int })
  },
  PROJECT_KEY_REVOKED: { when: "The key is revoked, which is for ever." },
  LEGACY_POLICY_CUTOVER_INCOMPLETE: {
    when: "The team's API key is still let in whatever its scopes say; the operator ends that."
  },
  FILTER_LIMIT_REACHED: {
    when: "The team has as many filters as it may.",
    data: Schema.Struct({ limit: Schema.Int, resource: Schema.String })
  },
  BULK_OPERATION_NOT_CANCELABLE: { when: "The operation has come to its end." },
  BULK_OPERATION_NOT_RUNNABLE: { when: "The operation was cancelled." },
  PAYLOAD_TOO_LARGE: { when: "The body is larger than is taken here." },
  UNSUPPORTED_CONTENT_TYPE: { when: "The body is not said to be JSON, or is compressed." },
  REQUEST_TIMEOUT: { when: "The request comes too slowly, or not to its end." },
  UPGRADE_REQUIRED: { when: "The call is no handshake of a WebSocket." },
  EXPECTATION_FAILED: { when: "`Expect` names something else than 100-continue." },
  HEADERS_TOO_LARGE: { when: "The headers are too many or too large." },
  RATE_LIMITED: { when: "Too many calls; `Retry-After` says when to go on." },
  INTERNAL_ERROR: { when: "A fault of the gateway; it is in its log." },
  UPSTREAM_ERROR: { when: "Proxy mode: the upstream could not be reached." },
  QUEUE_UNAVAILABLE: { when: "Storage, or the owner of the resource, did not answer in time; see `Retry-After`." },
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
    error: Schema.String.annotate({ description: "A label of the status" }),
    code: Schema.Literal(shown.code),
    status: Schema.Literal(shown.status),
    message: Schema.String.annotate({ description: "For people; it may change" }),
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
