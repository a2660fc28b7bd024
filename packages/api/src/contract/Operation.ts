import { Context, type Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { type ErrorCode, statusOf } from "@tidegate/model/GatewayError"
import { type Permission, scopesFor } from "@tidegate/model/Permission"
import { schemaNameOf, whenOf } from "./ApiError.ts"
import { AnyOrigin, CallableBy } from "./Authorization.ts"

/** What the document has about an operation beside its schemas. */
export interface About {
  /** Its name in generated clients. */
  readonly id: string
  readonly permission: Permission
  /** Whether pages of any origin may make the call; default: no. */
  readonly anyOrigin?: boolean
  readonly summary: string
  readonly description: string
  /** An example of a body that succeeds, if there is a body. */
  readonly body?: Schema.Json
  /** The answer to the example. */
  readonly answer?: Schema.Json
  /** The error codes of the operation, beside those of every operation of its kind. */
  readonly errors?: ReadonlyArray<ErrorCode>
  /** Whether the body is optional. */
  readonly bodyOptional?: boolean
  /**
   * Whether the answer may be sent back as a body, with the members that only reads have. PUT and PATCH accept that in any case.
   */
  readonly readBack?: boolean
  /** Whether third parties add query parameters of their own to its URL, which are then ignored. */
  readonly anyParameters?: boolean
}

/** The same in the document. */
export const readBackMark = "x-read-back"
export const anyParametersMark = "x-any-parameters"

/** Codes of any call that needs a credential, and of any call with a body. */
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
/** Further codes of calls with a permission. */
const refusals = (permission: Permission): ReadonlyArray<ErrorCode> => {
  if (permission === "public") return []
  const { scope, teamKey, user } = permission
  const isOpenToKeys = teamKey && user !== "self"
  return [
    ...always,
    ...(user === "owner" || user === "admin" ? (["ROLE_REQUIRED"] as const) : []),
    // For a call that a team's key may make, but no project key.
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
  405: { Allow: text("The supported methods") },
  429: { "Retry-After": seconds },
  503: { "Retry-After": seconds }
}

/** The error answers of an operation that may fail with one of `codes`, by status. */
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

interface Answers {
  readonly [status: string]: object
}

const schemasOf = (answer: object): ReadonlyArray<object> => {
  const { content } = answer as { readonly content?: Readonly<Record<string, { readonly schema: object }>> }
  const schema = content?.["application/json"]?.schema
  if (schema === undefined) return []
  return "anyOf" in schema ? (schema.anyOf as ReadonlyArray<object>) : [schema]
}

/** The answers of an operation, together with those of `codes`. */
export const andFailures = (answers: Answers, codes: Iterable<ErrorCode>): Answers => {
  const added = Object.entries(failures(codes)).map(([status, answer]) => {
    const before = answers[status]
    if (before === undefined) return [status, answer] as const
    const description = [before, answer].map((one) => (one as { readonly description: string }).description).join(" ")
    const schemas = [...schemasOf(before), ...schemasOf(answer)]
    const anyOf = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()]
    return [status, { ...before, description, content: { "application/json": { schema: { anyOf } } } }] as const
  })
  return { ...answers, ...Object.fromEntries(added) }
}

interface Content {
  readonly [type: string]: object
}

/** The part of a generated operation that is used here. */
export interface OperationJson {
  readonly responses: { readonly [status: string]: { readonly content?: Content } }
  readonly requestBody?: { readonly content: Content }
}

const withExample = (content: Content | undefined, example: Schema.Json | undefined): { readonly content?: Content } =>
  content === undefined || example === undefined
    ? {}
    : { content: Object.fromEntries(Object.entries(content).map(([type, media]) => [type, { ...media, example }])) }

/** The credentials that a call accepts, with the scopes that each needs. */
const securityOf = (permission: Permission): ReadonlyArray<object> =>
  permission === "public"
    ? []
    : [
        ...(permission.teamKey ? [{ bearer: [] }] : []),
        ...(permission.scope === null ? [] : [{ project_key: scopesFor(permission) }]),
        { session: permission.user === "self" ? [] : [permission.user] }
      ]

/**
 * Completes a generated operation with its examples, its credentials, and only its own failures of those that its group declares.
 */
export const describe =
  ({
    answer,
    anyParameters,
    body,
    bodyOptional,
    errors = [],
    permission,
    readBack
  }: Omit<About, "description" | "id" | "summary">) =>
  <Generated extends OperationJson>(operation: Generated) => {
    const { requestBody, responses } = operation
    const successes = Object.entries(responses).filter(([status]) => Number(status) < 400)
    return {
      ...operation,
      security: securityOf(permission),
      ...(readBack === true ? { [readBackMark]: true } : {}),
      ...(anyParameters === true ? { [anyParametersMark]: true } : {}),
      ...(requestBody === undefined
        ? {}
        : {
            requestBody: {
              ...requestBody,
              ...withExample(requestBody.content, body),
              ...(bodyOptional === true ? { required: false } : {})
            }
          }),
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
