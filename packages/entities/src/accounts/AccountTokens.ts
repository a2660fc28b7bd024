import { Effect } from "effect"
import { Egress } from "@tidegate/egress/Egress"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import { claimAccountTokens, readAccountTokens, storeAccountTokens } from "@tidegate/storage/accounts/AccountTokens"
import type { AccountRow } from "@tidegate/storage/accounts/ProviderAccounts"
import type { Credential } from "../tokens/Credential.ts"
import { makeTokens, type Tokens } from "../tokens/Tokens.ts"
import { inDatabase } from "../tokens/TokenStore.ts"

/** Accounts whose tokens one process keeps in memory. */
const maxHeld = 256

const tokenStore = inDatabase({ read: readAccountTokens, claim: claimAccountTokens, store: storeAccountTokens })

/**
 * The tokens of OAuth 2 accounts. They are stored with the account, so every process uses the same ones and only one asks the
 * provider at a time. An account that is connected again has another version, and no tokens in memory.
 */
export const makeAccountTokens = Effect.gen(function* () {
  const egress = yield* Egress
  const store = yield* tokenStore
  const held = new WeighedCache<string, Tokens>(maxHeld)
  return Effect.fnUntraced(function* (
    { id, team_id, version }: Pick<AccountRow, "id" | "team_id" | "version">,
    credential: Credential
  ): Effect.fn.Return<Tokens> {
    const key = `${id} ${version}`
    let tokens = held.get(key)
    if (tokens === undefined) {
      const made = yield* makeTokens(() => true, store).pipe(Effect.provideService(Egress, egress))
      // Somebody may have made them meanwhile.
      tokens = held.get(key) ?? held.set(key, made, { owner: team_id, bytes: runToEnd(weighing(credential)) })
    }
    tokens.configure(credential)
    return tokens
  })
})
