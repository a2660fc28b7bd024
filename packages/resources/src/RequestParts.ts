import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { Values } from "@tidegate/model/Message"
import { OneOf, optional, text } from "./Members.ts"

/** Parts of requests that callers write. */

export const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// oxlint-disable-next-line no-control-regex -- those are what a header's value cannot have
export const notInValue = /[\u0000-\u0008\u000a-\u001f\u007f]/

export const scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])

export const Query = Schema.Union([
  Schema.String,
  Schema.Record(Schema.String, Schema.Union([scalar, Schema.Array(scalar)]))
]).annotate({ message: "must be a query string, or an object of values" })

/** A query object in the form of a URL; a list repeats its name, null is an empty value. */
export const toQueryString = (query: Exclude<typeof Query.Type, string>): string => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) parameters.append(name, one === null ? "" : String(one))
  }
  return parameters.toString()
}

const Headers = Values.annotate({ message: "must be an object of strings, or lists of strings" }).check(
  Schema.makeFilter((headers: Values) => {
    const wrong = Object.entries(headers).find(
      ([name, value]) => !headerName.test(name) || [value].flat().some((one) => notInValue.test(one))
    )
    return wrong === undefined || "must have header names, and values without control characters"
  })
)

const longestPath = 2048
/** More than any server accepts in a URL. */
export const longestQuery = 65_536

/** A sample request for tests, as it is written. */
export const RequestSample = Schema.Struct({
  headers: Schema.optionalKey(Headers),
  body: Schema.optionalKey(Schema.Json),
  query: Schema.optionalKey(Query),
  path: Schema.optionalKey(
    text.check(
      Schema.makeFilter(
        (path: string) =>
          (path.startsWith("/") && Characters.isUpTo(path, longestPath)) ||
          `must begin with a slash and have at most ${longestPath} characters`
      )
    )
  ),
  method: Schema.optionalKey(OneOf(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]))
}).annotate({ message: "must be an object" })
export type RequestSample = typeof RequestSample.Type

/** Its query in the form of a URL. */
export const queryOf = ({ query = {} }: RequestSample): string =>
  typeof query === "string" ? query.replace(/^\?/, "") : toQueryString(query)

export const isQueryTooLong = (sample: RequestSample): boolean => !Characters.isUpTo(queryOf(sample), longestQuery)

/** The same for the document. */
export const ShownRequestSample = Schema.Struct({
  headers: optional(Values),
  body: optional(Schema.Json),
  query: optional(
    Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Union([scalar, Schema.Array(scalar)]))]).annotate({
      description: "A query string or an object; the answer has it in the same form"
    })
  ),
  path: optional(
    Schema.String.check(Schema.isPattern(/^\//u), Characters.upTo(longestPath)).annotate({
      description: "Default: /"
    })
  ),
  method: optional(
    Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]).annotate({
      description: "Default: POST"
    })
  )
}).annotate({ identifier: "RequestSample" })
