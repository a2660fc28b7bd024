import { Schema } from "effect"

/** Parts of requests that callers write. */

export const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// oxlint-disable-next-line no-control-regex -- those are what a header's value cannot have
export const notInValue = /[\u0000-\u0008\u000a-\u001f\u007f]/

export const scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])

export const Query = Schema.Union([
  Schema.String,
  Schema.Record(Schema.String, Schema.Union([scalar, Schema.Array(scalar)]))
]).annotate({ message: "must be a query string, or an object of values" })

/** A query object as it would stand in a URL; a list repeats its name, null is an empty value. */
export const toQueryString = (query: Exclude<typeof Query.Type, string>): string => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) parameters.append(name, one === null ? "" : String(one))
  }
  return parameters.toString()
}
