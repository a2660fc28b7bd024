import { Predicate, Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { maxRequestBody } from "@tidegate/model/BodyLimits"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Message, Values } from "@tidegate/model/Message"
import { every, fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { OneOf, optional, text } from "./Members.ts"
import { headerName, notInValue, Query, scalar, toQueryString } from "./RequestParts.ts"
import { ids } from "./ExampleIds.ts"

/** The edits of a replay. Parts without an edit stay as in the original request. */

const methods = ["GET", "QUERY", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] as const
const longestPath = 2048
/** More than any server accepts in a URL. */
const longestQuery = 65_536
/** The largest number of named connections; for more, a replay can go to all. */
const maxConnections = 100

const EditedHeaders = Schema.Record(
  Schema.String,
  Schema.NullOr(Schema.Union([Schema.String, Schema.Array(Schema.String)]))
).annotate({ message: "must be an object of strings, lists of strings, or null for what is to go" })

const Headers = EditedHeaders.check(
  Schema.makeFilter((headers) => {
    const wrong = Object.entries(headers).find(
      ([name, value]) => !headerName.test(name) || [value ?? ""].flat().some((one) => notInValue.test(one))
    )
    return wrong === undefined || "must have header names, and values without control characters"
  })
)

/** As in a request line: non-ASCII characters are escaped there. */
const Path = text.check(
  Schema.makeFilter(
    (path: string) =>
      (/^\/[\x21\x22\x24-\x3e\x40-\x7e]*$/.test(path) && path.length <= longestPath) ||
      `must begin with a slash, have at most ${longestPath} characters, and none that a URL's path escapes`
  )
)

const edits = {
  method: Schema.optionalKey(OneOf(methods)),
  path: Schema.optionalKey(Path),
  query: Schema.optionalKey(Query),
  headers: Schema.optionalKey(Headers),
  body: Schema.optionalKey(Schema.Json)
}

const ConnectionIds = Schema.Array(text.check(Characters.upTo(100)))
  .check(
    Schema.makeFilter(
      (ids) => (ids.length > 0 && ids.length <= maxConnections) || `must name 1 to ${maxConnections} connections`
    )
  )
  .annotate({ message: "must be a list of connections" })

const Edits = Schema.Struct(edits).annotate({ message: "must be an object" })
const Input = Schema.Struct({ ...edits, connection_ids: Schema.optionalKey(ConnectionIds) })

export interface Edits extends Schema.Schema.Type<typeof Edits> {}
export type ReplayInput = typeof Input.Type

/** The members in which edits may stand, beside the body itself. */
const nestedIn = ["modifications", "request", "replay"]

const nested = (written: Members): Result.Result<Members, FieldErrors> => {
  const whole = Object.assign({}, written)
  for (const name of nestedIn) {
    const inner = Object.hasOwn(written, name) ? written[name] : undefined
    if (inner === undefined) continue
    if (!Predicate.isReadonlyObject(inner) || Array.isArray(inner)) return fieldError(name, "must be an object")
    Object.assign(whole, inner)
  }
  return Result.succeed(whole)
}

const queryOf = (query: NonNullable<Edits["query"]>): string =>
  typeof query === "string" ? query.replace(/^\?/, "") : toQueryString(query)

const check = (input: ReplayInput): Result.Result<ReplayInput, FieldErrors> => {
  const query = input.query === undefined ? "" : queryOf(input.query)
  return Result.map(
    every({
      length:
        query.length > longestQuery
          ? fieldError("query", `must be at most ${longestQuery} characters as a query string`)
          : Result.void,
      characters: /^[\x21\x22\x24-\x7e]*$/.test(query)
        ? Result.void
        : fieldError("query", "must have no character that a URL's query escapes")
    }),
    () => input
  )
}

export const example = { headers: { "x-replayed-by": "support" }, body: { type: "order.created", id: 2 } } as const

const ShownQuery = Schema.Union([
  Schema.String,
  Schema.Record(Schema.String, Schema.Union([scalar, Schema.Array(scalar)]))
])

const shownEdits = {
  method: optional(Schema.Literals(methods)),
  path: optional(
    Schema.String.check(Schema.isPattern(/^\//u), Characters.upTo(longestPath)).annotate({
      description: "What follows the source's URL"
    })
  ),
  query: optional(ShownQuery.annotate({ description: "A query string or an object; in place of the original one" })),
  headers: optional(EditedHeaders.annotate({ description: "Laid over the original ones; null takes one out" })),
  body: optional(Schema.Json.annotate({ description: "A text is sent as it is, anything else as JSON" }))
}

const ReplayRequest = Schema.Struct({
  ...shownEdits,
  ...Object.fromEntries(
    nestedIn.map((name) => [
      name,
      optional(Schema.Struct(shownEdits).annotate({ description: "Another place for what is different" }))
    ])
  ),
  connection_ids: optional(
    Schema.Array(Schema.String)
      .check(Schema.isMinLength(1), Schema.isMaxLength(maxConnections))
      .annotate({
        description: "The connections to which the request is routed. Default: all of the source",
        examples: [[ids.connection]]
      })
  )
}).annotate({
  identifier: "ReplayRequest",
  description: "What is different; nothing is an exact replay. May also stand in `modifications`.",
  examples: [example]
})

export const replayBody = {
  described: ReplayRequest,
  judge: (written: Members): Result.Result<ReplayInput, GatewayError> =>
    orInvalid(Result.flatMap(nested(written), (whole) => judgeBody(Input, whole, check)))
}

/** Whether a replay differs from its original. */
export const isModified = (edits: Edits): boolean => Object.keys(edits).length > 0

const saysJson = (headers: Values): boolean => {
  const type = headers["content-type"]
  return type === undefined || (typeof type === "string" && /[/+]json\b/i.test(type))
}

/**
 * A request with edits. Header names become lower case. Headers that a new body makes wrong are corrected, unless they are edited
 * themselves.
 */
export const edited = (message: Message, edits: Edits): Result.Result<Message, GatewayError> => {
  const headers = new Map(Object.entries(message.headers))
  const written = edits.body
  const body =
    written === undefined ? message.body : Buffer.from(typeof written === "string" ? written : JSON.stringify(written))
  if (body.length > maxRequestBody) {
    return Result.fail(fail("PAYLOAD_TOO_LARGE", `the body is larger than ${maxRequestBody} bytes`))
  }
  if (written !== undefined) {
    if (typeof written !== "string" && !saysJson(message.headers)) headers.set("content-type", "application/json")
    headers.delete("content-encoding")
    if (headers.has("content-length")) headers.set("content-length", String(body.length))
  }
  for (const [name, value] of Object.entries(edits.headers ?? {})) {
    if (value === null) headers.delete(name.toLowerCase())
    else headers.set(name.toLowerCase(), value)
  }
  return Result.succeed({
    method: edits.method ?? message.method,
    path: edits.path ?? message.path,
    query: edits.query === undefined ? message.query : queryOf(edits.query),
    headers: Object.fromEntries(headers),
    body
  })
}
