import { Effect } from "effect"
import type { Database } from "@tidegate/storage/Database"
import {
  beginConsent,
  claimTokens,
  readTokens,
  settleConsent,
  storeTokens,
  takeConsent
} from "@tidegate/storage/delivery/DestinationTokens"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Consents } from "../tokens/Consent.ts"
import type { TokenStore } from "../tokens/TokenStore.ts"

/** The tokens of a destination are stored in the database, so that the next owner of its actor continues with them. */
export const tokenStore: Effect.Effect<TokenStore, never, Database | Secrets> = Effect.map(
  Effect.context<Database | Secrets>(),
  (services) => ({
    read: (owner) => Effect.provideContext(readTokens(owner), services),
    claim: (owner, claim, forMs) => Effect.provideContext(claimTokens(owner, claim, forMs), services),
    store: (owner, claim, held) => Effect.provideContext(storeTokens(owner, claim, held), services)
  })
)

/** The consents for destinations are stored in the same row as its tokens. */
export const consents: Consents = {
  kind: "destination",
  path: "config.auth",
  begin: beginConsent,
  take: takeConsent,
  finish: settleConsent
}
