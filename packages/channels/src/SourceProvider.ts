import type { Settings } from "@tidegate/connectors/Settings"
import type { Schema } from "effect"
import type { Adapter, Poller } from "./Adapter.ts"

/**
 * A provider of sources. A provider is one row and one file: its description, its account, and its triggers. All other code reads
 * the list in `SourceProviders.ts`.
 */
export interface SourceProvider {
  /** At most 32 characters, lower-case with underscores. */
  readonly key: string
  readonly name: string
  readonly description: string
  readonly icon_key: string
  /** Increased with every change of the row. */
  readonly manifest_version: string
  /** How its calls authenticate; null: they need no account. */
  readonly account: AccountKind | null
  readonly triggers: ReadonlyArray<Trigger>
}

/** The accounts of a provider. */
export interface AccountKind {
  /** The ways to connect one, the usual one first. */
  readonly connections: readonly ["oauth2" | "api_key", ...ReadonlyArray<"oauth2" | "api_key">]
  /** The origin of the API, where credentials are sent, for example `https://www.googleapis.com`. */
  readonly origin: string
  /** Whether an account may name another origin (`base_url`), because the service is self-hosted too. */
  readonly selfHosted: boolean
  /** Null: it has no OAuth 2. */
  readonly oauth2: ServiceOauth | null
  /** How an account gets its own tokens with the client's credentials (`client_id`, `client_secret`); absent: it cannot. */
  readonly appTokens?: { readonly tokenUrl: string; readonly revocationUrl: string | null }
  /** The fields of an account with an API key. They are stored encrypted. One of them is `token`, or `client_secret` with `appTokens`. */
  readonly fields: ReadonlyArray<AccountField>
  /** The headers that carry the credentials: `token` is the access token or the key. By lower-case name. */
  readonly headers: (token: string, fields: Schema.JsonObject) => Readonly<Record<string, string>>
  /** How to read the owner of the account: a path below the origin, and the members of its answer. */
  readonly identity: {
    readonly path: string
    readonly id: ReadonlyArray<string>
    readonly name: ReadonlyArray<string>
    readonly email: ReadonlyArray<string>
  } | null
}

/** Endpoints on `origin` begin with a slash; others are absolute URLs. */
interface OauthEndpoints {
  readonly authorizationUrl: string
  readonly tokenUrl: string
  /** RFC 7009; null: a revocation is not possible by API. */
  readonly revocationUrl: string | null
}

interface ServiceOauth extends OauthEndpoints {
  readonly scopes: ReadonlyArray<string>
  /** Parameters beside the usual ones, for example `access_type=offline`. */
  readonly parameters: Readonly<Record<string, string>>
  /** The endpoints of a self-hosted service, relative to the account's `base_url`. Absent: such accounts cannot be connected by consent. */
  readonly selfHosted?: OauthEndpoints
}

export interface AccountField {
  readonly key: string
  readonly label: string
  readonly type: "secret" | "text"
  readonly required: boolean
  readonly help: string | null
}

/**
 * Something that happens at the provider. Its two definitions are the instant one (`key`) and the polling one (`pollingKey`); both
 * have the `pair_key` `provider.key`, the same inputs and the same items.
 */
export interface Trigger {
  /** For example `item.changed`. With both ways, the polling definition is `item.changed_polling`. */
  readonly key: string
  readonly name: string
  readonly description: string
  readonly category: string
  readonly version: string
  readonly requiredScopes: ReadonlyArray<string>
  /** Declared like a destination's settings: each has a default or is required. */
  readonly inputs: Settings
  /** JSON Schema of the body of its requests. */
  readonly output: Schema.JsonObject
  readonly primaryOutput: string | null
  readonly sample: { readonly inputs: Schema.JsonObject; readonly output: Schema.JsonObject }
  /** Notifications; null: there are none. */
  readonly adapter: Adapter | null
  /** The list of the same items. Every trigger can be polled: a dirty notification, a silence check and a fall-back need it. */
  readonly poller: Poller
  /** Expected notifications: silence is checked even if none ever came. */
  readonly expectsTraffic?: true
}
