import {
  beginConsent,
  claimTokens,
  readTokens,
  settleConsent,
  storeTokens,
  takeConsent
} from "@tidegate/storage/delivery/DestinationTokens"
import type { Consents } from "../tokens/Consent.ts"
import { inDatabase } from "../tokens/TokenStore.ts"

/** The tokens of a destination are stored in the database, so that the next owner of its actor continues with them. */
export const tokenStore = inDatabase({ read: readTokens, claim: claimTokens, store: storeTokens })

/** The consents for destinations are stored in the same row as its tokens. */
export const consents: Consents = {
  kind: "destination",
  path: "config.auth",
  begin: beginConsent,
  take: takeConsent,
  finish: settleConsent
}
