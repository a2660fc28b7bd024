import type { Schema } from "effect"
import type { AccountKind } from "@tidegate/channels/SourceProvider"
import type { Origins } from "@tidegate/connectors/Origins"
import type { Client, Grant } from "@tidegate/outbound-auth/types/Grant"
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

/** An endpoint of the row: a path belongs to the account's own origin. */
export const endpointOf = (endpoint: string, base_url: string): string => new URL(endpoint, base_url).href

interface ConsentAt {
  readonly authorizationUrl: string
  readonly redirectUri: string | null
  readonly scope: string | null
}

/**
 * How the tokens of an OAuth 2 account are asked for; null: the provider has no OAuth 2. `consent`: for a consent. Without it the
 * credential has nothing that a new version of the provider's row changes easily, because the tokens belong to its settings.
 */
export const accountCredential = (
  owner: TokenOwner,
  { oauth2 }: AccountKind,
  { base_url, fields }: { readonly base_url: string; readonly fields: Schema.JsonObject },
  origins: Origins,
  consent: ConsentAt | null = null
): Credential | null => {
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

/** The fields that the provider's headers may use beside the token: an OAuth 2 account has its client's id. */
export const headerFields = (connection: "oauth2" | "api_key", fields: Schema.JsonObject): Schema.JsonObject =>
  connection === "oauth2" ? { client_id: fieldOf(fields, "client_id") ?? "" } : fields
