import { Context, type Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { type ErrorCode, statusOf } from "@tidegate/model/GatewayError"
import type { Permission } from "@tidegate/model/Permission"
import { schemaNameOf, whenOf } from "./ApiError.ts"
import { AnyOrigin, CallableBy } from "./Authorization.ts"

/** What the document says of one operation beyond its schemas. */
export interface About {
  /** The name it has in generated clients. */
  readonly id: string
  readonly permission: Permission
  /** Whether pages of any origin may make the call; not unless told. */
  readonly anyOrigin?: boolean
  readonly summary: string
  readonly description: string
  /** A body that is answered with success, where there is a body. */
  readonly body?: Schema.Json
  /** What is answered to it. */
  readonly answer?: Schema.Json
  /** The codes it can fail with, beside those of every operation of its kind. */
  readonly errors?: ReadonlyArray<ErrorCode>
}

/** Any call that needs a credential; any that has a body. */
const always: ReadonlyArray<ErrorCode> = [
  "VALIDATION_ERROR",
  "UNAUTHENTICATED",
  "INVALID_API_KEY",
  "SESSION_EXPIRED",
  "TEAM_FORBIDDEN",
  "RATE_LIMITED",
  "INTERNAL_ERROR",
  "QUEUE_UNAVAILABLE"
]
/** Any call that says who may make it, beside those that any call has. */
const refusals = (permission: Permission): ReadonlyArray<ErrorCode> => {
  if (permission === "public") return []
  const { scope, teamKey, user } = permission
  const isOpenToKeys = teamKey && user !== "self"
  return [
    ...always,
    ...(user === "owner" || user === "admin" ? (["ROLE_REQUIRED"] as const) : []),
    // A project key, where a team's own may.
    ...(scope === null ? (["USER_SESSION_REQUIRED"] as const) : []),
    ...(isOpenToKeys ? (["INSUFFICIENT_SCOPE"] as const) : []),
    ...(scope === "control:execute" ? (["EXECUTE_GRANT_REQUIRED"] as const) : [])
  ]
}
const withBody: ReadonlyArray<ErrorCode> = ["INVALID_JSON", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_CONTENT_TYPE"]

const text = (description: string) => ({ description, schema: { type: "string" } })
const seconds = { description: "Seconds to wait", schema: { type: "integer", minimum: 0 } }

const headersOf: Readonly<Record<number, object>> = {
  401: { "WWW-Authenticate": text("`Bearer`") },
  426: { Upgrade: text("`websocket`") },
  405: { Allow: text("The methods that are taken") },
  429: { "Retry-After": seconds },
  503: { "Retry-After": seconds }
}

/** The answers of an operation that fails with one of `codes`, by status. */
export const failures = (codes: Iterable<ErrorCode>): Record<string, object> => {
  const byStatus = new Map<number, Array<ErrorCode>>()
  for (const code of new Set(codes)) byStatus.set(statusOf[code], [...(byStatus.get(statusOf[code]) ?? []), code])
  return Object.fromEntries(
    Array.from(byStatus, ([status, codes]) => {
      const schemas = codes.map((code) => ({ $ref: `#/components/schemas/${schemaNameOf(code)}` }))
      const answer = {
        description: codes.map(whenOf).join(" "),
        ...(headersOf[status] === undefined ? {} : { headers: headersOf[status] }),
        content: { "application/json": { schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas } } }
      }
      return [String(status), answer] as const
    })
  )
}

interface Content {
  readonly [type: string]: object
}

/** As much of a generated operation as is looked at. */
export interface OperationJson {
  readonly responses: { readonly [status: string]: { readonly content?: Content } }
  readonly requestBody?: { readonly content: Content }
}

const withExample = (content: Content | undefined, example: Schema.Json | undefined): { readonly content?: Content } =>
  content === undefined || example === undefined
    ? {}
    : { content: Object.fromEntries(Object.entries(content).map(([type, media]) => [type, { ...media, example }])) }

/** The credentials that a call can be made with, each with what it has to hold. */
const securityOf = (permission: Permission): ReadonlyArray<object> =>
  permission === "public"
    ? []
    : [
        ...(permission.teamKey ? [{ bearer: [] }] : []),
        ...(permission.scope === null ? [] : [{ project_key: [permission.scope] }]),
        { session: permission.user === "self" ? [] : [permission.user] }
      ]

/** A generated operation with its examples, its credentials and its own failures, of all that its group declares. */
export const describe =
  ({ answer, body, errors = [], permission }: Pick<About, "answer" | "body" | "errors" | "permission">) =>
  <Generated extends OperationJson>(operation: Generated) => {
    const { requestBody, responses } = operation
    const successes = Object.entries(responses).filter(([status]) => Number(status) < 400)
    return {
      ...operation,
      security: securityOf(permission),
      ...(requestBody === undefined
        ? {}
        : { requestBody: { ...requestBody, ...withExample(requestBody.content, body) } }),
      responses: {
        ...Object.fromEntries(
          successes.map(([status, response]) => [status, { ...response, ...withExample(response.content, answer) }])
        ),
        ...failures([...refusals(permission), ...(requestBody === undefined ? [] : withBody), ...errors])
      }
    }
  }

/** The annotations of an endpoint. */
export const operation = (about: About): Context.Context<never> =>
  OpenApi.annotations({
    identifier: about.id,
    summary: about.summary,
    description: about.description,
    transform: (generated) => describe(about)(generated as OperationJson)
  }).pipe(Context.add(CallableBy, about.permission), Context.add(AnyOrigin, about.anyOrigin === true))
