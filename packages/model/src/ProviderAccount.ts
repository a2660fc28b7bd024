import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** Accounts at providers of sources and actions. */

/** How an account was connected. */
export const AccountConnection = Schema.Literals(["oauth2", "api_key"])
export type AccountConnection = typeof AccountConnection.Type

const count = (description: string) => Schema.Int.annotate({ description })

/** A resource that uses an account. */
export const AccountUser = Schema.Struct({
  type: Schema.Literals(["source", "action", "workflow"]),
  id: Schema.String,
  name: Schema.String
})
export interface AccountUser extends Schema.Schema.Type<typeof AccountUser> {}

export const ProviderAccount = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  provider_key: Schema.String,
  name: Schema.String,
  email: Schema.NullOr(Schema.String),
  external_account_id: Schema.NullOr(Schema.String).annotate({ description: "Its id at the provider, if known" }),
  status: Schema.Literals(["enabled", "disabled", "error"]).annotate({
    description: "error: the provider refuses its credentials; disabled: it is revoked"
  }),
  scopes: Schema.Array(Schema.String).annotate({ description: "The scopes that the provider granted" }),
  account_kind: Schema.Literals(["user", "service"]).annotate({
    description: "user: a person consented; service: somebody entered its credentials"
  }),
  connection: AccountConnection,
  base_url: Schema.String.annotate({ description: "The API that is called with its credentials" }),
  token_expires_at: Schema.NullOr(Timestamp).annotate({
    description: "When the current access token expires. The gateway renews it before"
  }),
  revoked_at: Schema.NullOr(Timestamp),
  last_error: Schema.NullOr(Schema.String).annotate({ description: "Why the provider refuses its credentials" }),
  lifecycle: Schema.Struct({
    state: Schema.Literals(["active", "expired", "error", "revoked"]),
    reconnect_mode: Schema.Literals(["oauth2", "credentials"]).annotate({
      description:
        "oauth2: by `POST /provider-accounts/oauth/start`; credentials: by `POST /provider-accounts/credentials/connect`"
    }),
    can_revoke: Schema.Boolean,
    can_reconnect: Schema.Boolean
  }),
  usage: Schema.Struct({
    sources: count("Sources that use it"),
    actions: count("Saved actions that use it"),
    workflows: count("Workflows with steps that name it, in their current version or their draft"),
    lookups: count("Always 0"),
    total: count("All of them")
  }),
  used_by: Schema.Array(AccountUser).annotate({ description: "The first 20 of them" }),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "ProviderAccount", description: "An account at a provider. Credentials are never returned." })
export interface ProviderAccount extends Schema.Schema.Type<typeof ProviderAccount> {}

/** The result of a revocation. */
export const AccountRevoked = Schema.Struct({
  id: Schema.String,
  status: Schema.Literal("disabled"),
  revoked_at: Timestamp,
  provider_revoked: Schema.Boolean.annotate({ description: "Whether the provider revoked the token, too" }),
  channels_stopped: count("Subscriptions that were ended at the provider"),
  channels_failed: count("Subscriptions that could not be ended: the provider ends them when they expire"),
  used_by: Schema.Array(AccountUser).annotate({
    description:
      "The first 20 resources that used it when it was revoked. They cannot call the provider until it is connected again"
  })
}).annotate({ identifier: "ProviderAccountRevoked" })
export interface AccountRevoked extends Schema.Schema.Type<typeof AccountRevoked> {}

/** A started consent. */
export const AccountConsentStarted = Schema.Struct({
  authorization_url: Schema.String,
  state: Schema.String,
  redirect_uri: Schema.String,
  expires_at: Timestamp
}).annotate({
  identifier: "ProviderAccountConsentStarted",
  description: "Open authorization_url in a browser before expires_at."
})
