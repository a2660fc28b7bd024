import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { type MessageHead, parseQuery, type Values } from "@tidegate/model/Message"
import { parseTime } from "@tidegate/model/Timestamp"
import type { Env as EnvRecord } from "@tidegate/model/Transformation"
import { every, fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { Id as AnyId, optional, setting, text } from "./Members.ts"
import { isQueryTooLong, longestQuery, queryOf, RequestSample, ShownRequestSample } from "./RequestParts.ts"
import { body, headers, ids } from "./ExampleIds.ts"
import { Code, Env, example as transformation } from "./Transformation.ts"

const Id = Schema.NullOr(text.check(Characters.upTo(100)))

const Message = Schema.Struct({
  transformation_id: Schema.optionalKey(Id),
  code: Schema.optionalKey(Schema.NullOr(Code)),
  env: Schema.optionalKey(Env),
  request: Schema.optionalKey(RequestSample),
  timestamp: Schema.optionalKey(
    text.check(Schema.makeFilter((at: string) => parseTime(at, 0) !== null || "must be ISO 8601"))
  ),
  context: Schema.optionalKey(
    Schema.Struct({
      connection_id: Schema.optionalKey(Id),
      source_id: Schema.optionalKey(Id),
      destination_id: Schema.optionalKey(Id),
      request_id: Schema.optionalKey(Id)
    }).annotate({ message: "must be an object" })
  )
})

/** What to run, and on which sample. `code` is null for a stored transformation; `env` is null for the stored variables. */
export interface RunFields {
  readonly transformation_id: string | null
  readonly code: string | null
  readonly env: EnvRecord | null
  readonly request: MessageHead & { readonly body: Schema.Json; readonly parsed_query: Values }
  /** Whether the caller wrote the query as a text, and so expects it as a text. */
  readonly queryAsText: boolean
  readonly context: {
    readonly connection_id: string | null
    readonly source_id: string | null
    readonly destination_id: string | null
    readonly request_id: string | null
    readonly timestamp: string
  }
}

/** The body of a run; the default sample is an empty POST to `/`. `transformation_id` takes precedence over `code`. */
export type RunInput = typeof Message.Type

const judgeRun = (input: RunInput): Result.Result<RunInput, FieldErrors> =>
  Result.map(
    every({
      code:
        (input.transformation_id ?? null) === null && (input.code ?? null) === null
          ? fieldError("code", "is required, unless transformation_id names a stored transformation")
          : Result.void,
      query: isQueryTooLong(input.request ?? {})
        ? fieldError("request.query", `must be at most ${longestQuery} characters as a query string`)
        : Result.void
    }),
    () => input
  )

export const example = {
  code: transformation.body.code,
  env: { TENANT: "acme" },
  request: { method: "POST", path: "/orders", query: { page: "1" }, headers, body },
  context: { request_id: ids.request }
} as const

const id = setting(Schema.String.check(Characters.upTo(100)))

const TransformationRunInput = Schema.Struct({
  transformation_id: setting(AnyId.annotate({ description: "A stored transformation; it overrides code" })),
  code: setting(Code),
  env: optional(Env.annotate({ description: "Replaces the stored variables of the transformation" })),
  request: optional(ShownRequestSample),
  timestamp: optional(Schema.String.annotate({ description: "The current time for the code, ISO 8601" })),
  context: optional(Schema.Struct({ connection_id: id, source_id: id, destination_id: id, request_id: id }))
}).annotate({
  identifier: "TransformationRunInput",
  description: "The transformation to run, by id or as code, and its input.",
  examples: [example]
})

export const runBody = {
  message: Message,
  described: TransformationRunInput,
  judge: (written: Members) => orInvalid(judgeBody(Message, written, judgeRun))
}

/** The fields of a run. Header names become lower case, as in real requests. Default of `timestamp`: now. */
export const runOf = (input: RunInput, nowMs: number): RunFields => {
  const transformation_id = input.transformation_id ?? null
  const { body = null, headers = {}, method = "POST", path = "/", query } = input.request ?? {}
  const queryText = queryOf(input.request ?? {})
  const { connection_id, destination_id, request_id, source_id } = input.context ?? {}
  return {
    transformation_id,
    code: transformation_id === null ? (input.code ?? null) : null,
    env: input.env ?? null,
    request: {
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      body,
      query: queryText,
      parsed_query: { ...parseQuery(queryText) },
      path,
      method
    },
    queryAsText: typeof query === "string",
    context: {
      connection_id: connection_id ?? null,
      source_id: source_id ?? null,
      destination_id: destination_id ?? null,
      request_id: request_id ?? null,
      timestamp: new Date(parseTime(input.timestamp ?? "now", nowMs) ?? nowMs).toISOString()
    }
  }
}

const Validation = Schema.Struct({ code: Code, env: Schema.optionalKey(Env) })

/** The code to validate. */
export type ValidationInput = typeof Validation.Type

export const validationExample = { code: transformation.body.code } as const

export const validationBody = {
  message: Validation,
  described: Schema.Struct({
    code: Code,
    env: optional(Env.annotate({ description: "Variables of the code" }))
  }).annotate({
    identifier: "TransformationValidationInput",
    description: "Code to check.",
    examples: [validationExample]
  }),
  judge: (written: Members) => orInvalid(judgeBody(Validation, written, Result.succeed))
}
