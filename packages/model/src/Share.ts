import { Schema } from "effect"
import { Values } from "./Message.ts"
import { RequestStatus } from "./Request.ts"
import { storedPayload } from "./StoredPayload.ts"
import { Timestamp } from "./Timestamp.ts"

/** A request as strangers see it: secrets read `[redacted]`. */
export const SharedRequest = Schema.Struct({
  id: Schema.String,
  status: RequestStatus,
  verified: Schema.Boolean,
  created_at: Timestamp,
  method: Schema.String,
  path: Schema.String,
  url: Schema.String.annotate({ description: "Path and query" }),
  headers: Values,
  query: Values,
  body: Schema.Json,
  body_truncated: Schema.Boolean.annotate({
    description: "Whether `body` is only the beginning, or was left out because its content is unknown"
  })
}).annotate({ identifier: "SharedRequest", ...storedPayload })

export interface SharedRequest extends Schema.Schema.Type<typeof SharedRequest> {}

/** A link to one request that anyone may open until it expires. `token` is the link's credential, and is returned only here. */
export const Share = Schema.Struct({
  id: Schema.String,
  token: Schema.String,
  team_id: Schema.String,
  request_id: Schema.String,
  source_id: Schema.String,
  title: Schema.NullOr(Schema.String),
  url: Schema.String,
  share_url: Schema.String.annotate({ description: "The same as url" }),
  expires_at: Timestamp,
  revoked_at: Schema.NullOr(Timestamp),
  access_count: Schema.Int,
  last_accessed_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp,
  sanitized: Schema.Literal(true),
  request: SharedRequest
}).annotate({ identifier: "Share" })

export interface Share extends Schema.Schema.Type<typeof Share> {}

export const ShareStatus = Schema.Literals(["active", "expired", "revoked"])
export type ShareStatus = typeof ShareStatus.Type

/** A share in a list: without its link, of which only the hash is stored, and without the data that it shows. */
export const ListedShare = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  request_id: Schema.String,
  title: Schema.NullOr(Schema.String),
  status: ShareStatus.annotate({
    description: "Expired and revoked shares are listed until 7 days after their `expires_at`"
  }),
  expires_at: Timestamp,
  revoked_at: Schema.NullOr(Timestamp),
  access_count: Schema.Int,
  last_accessed_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "ListedShare" })

export interface ListedShare extends Schema.Schema.Type<typeof ListedShare> {}

/** The data for anyone who has the link. */
export const PublicShare = Schema.Struct({
  title: Schema.NullOr(Schema.String),
  expires_at: Timestamp,
  created_at: Timestamp,
  sanitized: Schema.Literal(true),
  request: SharedRequest
}).annotate({ identifier: "PublicShare" })

export interface PublicShare extends Schema.Schema.Type<typeof PublicShare> {}
