import type { Origins } from "@tidegate/connectors/Origins"
import type { Grant } from "@tidegate/outbound-auth/types/Grant"
import type { TokenRequest } from "./TokenEndpoint.ts"

/** What has a credential: a destination or a saved action. */
export interface TokenOwner {
  readonly id: string
  readonly team_id: string
}

/** What tokens are asked for with, and whose it is. */
export interface Credential extends TokenRequest {
  readonly owner: TokenOwner
}

/** `usualScope`: what is asked for where the grant names no scope. */
export const credentialOf = (
  owner: TokenOwner,
  grant: Grant,
  usualScope: string | null,
  origins: Origins
): Credential => {
  const url = new URL(grant.tokenUrl)
  return { owner, grant, endpoint: origins(url.origin) + url.pathname + url.search, scope: grant.scope ?? usualScope }
}
