import { Effect } from "effect"
import { Egress } from "@tidegate/egress/Egress"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import type { Credential } from "./Credential.ts"
import { settingsKey } from "./Held.ts"
import { makeTokens, type TokenSource } from "./Tokens.ts"
import { inMemory } from "./TokenStore.ts"

/** Credentials whose tokens one process keeps. */
const maxHeld = 256

/**
 * The tokens of credentials that have no actor of their own: all owners of a team that have the same credential share its tokens. They are
 * in this process alone, because any number of tokens may be asked for by such a credential.
 */
export const makeSharedTokens = Effect.gen(function* () {
  const egress = yield* Egress
  const held = new WeighedCache<string, TokenSource>(maxHeld)
  return Effect.fnUntraced(function* (credential: Credential): Effect.fn.Return<TokenSource> {
    const { team_id } = credential.owner
    const key = `${team_id} ${settingsKey(credential)}`
    const known = held.get(key)
    if (known !== undefined) return known
    const tokens = yield* makeTokens(() => true, inMemory()).pipe(Effect.provideService(Egress, egress))
    tokens.configure(credential)
    // Somebody may have made them meanwhile.
    return held.get(key) ?? held.set(key, tokens, { owner: team_id, bytes: runToEnd(weighing(credential)) })
  })
})
