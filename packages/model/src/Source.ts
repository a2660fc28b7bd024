import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** The HTTP methods a source can accept. */
export const SourceMethod = Schema.Literals(["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"])
export type SourceMethod = typeof SourceMethod.Type

/** How a source verifies what it receives; null: it does not. */
export const SourceAuthType = Schema.Literals(["BASIC_AUTH", "API_KEY", "HMAC"])
export type SourceAuthType = typeof SourceAuthType.Type

/** A source as the API shows it: secrets in `config.auth` are masked, `status` repeats `disabled_at`. */
export const Source = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  description: Schema.NullOr(Schema.String),
  type: Schema.String,
  input_type: Schema.Literal("webhook"),
  status: Schema.Literals(["enabled", "disabled"]),
  url: Schema.String,
  config: Schema.Struct({
    auth_type: Schema.NullOr(SourceAuthType),
    auth: Schema.JsonObject,
    allowed_http_methods: Schema.Array(SourceMethod),
    custom_response: Schema.NullOr(Schema.JsonObject),
    mode: Schema.Literals(["webhook", "proxy"]),
    proxy: Schema.NullOr(Schema.JsonObject)
  }),
  disabled_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Source" })

export interface Source extends Schema.Schema.Type<typeof Source> {}
