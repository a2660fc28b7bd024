import { Context, type Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { type ErrorCode, statusOf } from "@tidegate/model/GatewayError"
import { type Permission, scopesFor } from "@tidegate/model/Permission"
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
  /** Whether it can do without a body. */
  readonly bodyOptional?: boolean
  /** Whether what it answers may be written back by it, with the members that only reads have. PUT and PATCH take that in any case. */
  readonly readBack?: boolean
  /** Whether others add query parameters of their own to its URL, which are then not looked at. */
  readonly anyParameters?: boolean
}

/** The same in the document. */
export const readBackMark = "x-read-back"
export const anyParametersMark = "x-any-parameters"

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

interface Answers {
  readonly [status: string]: object
}

const schemasOf = (answer: object): ReadonlyArray<object> => {
  const { content } = answer as { readonly content?: Readonly<Record<string, { readonly schema: object }>> }
  const schema = content?.["application/json"]?.schema
  if (schema === undefined) return []
  return "anyOf" in schema ? (schema.anyOf as ReadonlyArray<object>) : [schema]
}

/** The answers of an operation, and those of `codes` too. */
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
        ...(permission.scope === null ? [] : [{ project_key: scopesFor(permission) }]),
        { session: permission.user === "self" ? [] : [permission.user] }
      ]

/** A generated operation with its examples, its credentials and its own failures, of all that its group declares. */
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
