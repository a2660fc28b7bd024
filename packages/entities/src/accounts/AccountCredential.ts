import type { Schema } from "effect"
import type { AccountKind } from "@tidegate/channels/SourceProvider"
import type { Origins } from "@tidegate/connectors/Origins"
import type { Client, Grant } from "@tidegate/outbound-auth/types/Grant"
import type { OpenedAccount } from "@tidegate/storage/accounts/ProviderAccounts"
import { type Credential, credentialOf, type TokenOwner } from "../tokens/Credential.ts"

/** A text member of an account's credentials. */
export const fieldOf = (fields: Schema.JsonObject, name: string): string | null => {
  const value = fields[name]
  return typeof value === "string" && value !== "" ? value : null
}

/** The OAuth client that somebody has registered at the provider. */
export const clientOf = (fields: Schema.JsonObject): Client => {
  const secret = fieldOf(fields, "client_secret")
  const method = secret === null ? "none" : fieldOf(fields, "token_auth_method")
  return {
    id: fieldOf(fields, "client_id") ?? "",
    secret: secret ?? "",
    method: method === "none" || method === "client_secret_basic" ? method : "client_secret_post"
  }
}

/**
 * The OAuth 2 of the service at this base URL; null: it has none. Fails closed: what is meant for the provider's own service, a
 * client's secret or a code, is not sent to another server, and the other way round.
 */
export const oauthAt = ({ oauth2, origin }: AccountKind, base_url: string): AccountKind["oauth2"] => {
  if (oauth2 === null || new URL(base_url).origin === new URL(origin).origin) return oauth2
  if (oauth2.selfHosted !== undefined) return { ...oauth2, ...oauth2.selfHosted }
  return oauth2.tokenUrl.startsWith("/") ? oauth2 : null
}

/** An endpoint of the row: a path belongs to the account's own origin. */
export const endpointOf = (endpoint: string, base_url: string): string => new URL(endpoint, base_url).href

interface ConsentAt {
  readonly authorizationUrl: string
  readonly redirectUri: string | null
  readonly scope: string | null
}

/**
 * How the tokens of an OAuth 2 account are asked for; null: its service has no OAuth 2. `consent`: for a consent. Without it the
 * credential has nothing that a new version of the provider's row changes easily, because the tokens belong to its settings.
 */
export const accountCredential = (
  owner: TokenOwner,
  kind: AccountKind,
  { base_url, fields }: { readonly base_url: string; readonly fields: Schema.JsonObject },
  origins: Origins,
  consent: ConsentAt | null = null
): Credential | null => {
  const oauth2 = oauthAt(kind, base_url)
  if (oauth2 === null) return null
  const grant: Grant = {
    tokenUrl: endpointOf(oauth2.tokenUrl, base_url),
    scope: consent?.scope ?? null,
    how: {
      kind: "authorization_code",
      client: clientOf(fields),
      audience: null,
      authorizationUrl: consent?.authorizationUrl ?? null,
      redirectUri: consent?.redirectUri ?? null,
      code: null,
      refreshToken: null
    }
  }
  return credentialOf(owner, grant, null, origins)
}

/** How an account gets tokens as a client of its own; null: it has a token, which somebody has entered. */
export const appCredential = (
  owner: TokenOwner,
  { appTokens }: AccountKind,
  fields: Schema.JsonObject,
  origins: Origins
): Credential | null => {
  if (appTokens === undefined || fieldOf(fields, "client_secret") === null) return null
  const how = { kind: "client_credentials", client: clientOf(fields), audience: null } as const
  return credentialOf(owner, { tokenUrl: appTokens.tokenUrl, scope: null, how }, null, origins)
}

/** How an account gets its tokens; null: it has one, which somebody has entered. */
export const credentialFor = (account: OpenedAccount, kind: AccountKind, origins: Origins): Credential | null =>
  account.connection === "oauth2"
    ? accountCredential(account, kind, account, origins)
    : appCredential(account, kind, account.fields, origins)

/** The fields that the provider's headers may use beside the token: an OAuth 2 account has its client's id. */
export const headerFields = (connection: "oauth2" | "api_key", fields: Schema.JsonObject): Schema.JsonObject =>
  connection === "oauth2" ? { client_id: fieldOf(fields, "client_id") ?? "" } : fields
