import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { claimTokens, readTokens, storeTokens } from "@tidegate/storage/delivery/DestinationTokens"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Held } from "./Held.ts"

/** The owner of the tokens. */
export interface TokenOwner {
  readonly id: string
  readonly team_id: string
}

/**
 * Where tokens are stored. A process that asks a provider needs the claim: a lock that one process has until it returns it or the
 * lock expires.
 */
export interface Keeping {
  /** The stored tokens. A value that cannot be read counts as none. */
  readonly read: (owner: TokenOwner) => Effect.Effect<unknown, SqlError.SqlError>
  /** The stored tokens, with the claim for that long; null: another process has it. */
  readonly claim: (owner: TokenOwner, claim: string, forMs: number) => Effect.Effect<unknown, SqlError.SqlError>
  /** Stores tokens and returns the claim; false: another process had the claim by then, and nothing was stored. */
  readonly store: (owner: TokenOwner, claim: string, held: Held) => Effect.Effect<boolean, SqlError.SqlError>
}

/** For a destination: its next owner reads them. */
export const keptInDatabase: Effect.Effect<Keeping, never, Database | Secrets> = Effect.map(
  Effect.context<Database | Secrets>(),
  (services): Keeping => ({
    read: (owner) => Effect.provideContext(readTokens(owner), services),
    claim: (owner, claim, forMs) => Effect.provideContext(claimTokens(owner, claim, forMs), services),
    store: (owner, claim, held) => Effect.provideContext(storeTokens(owner, claim, held), services)
  })
)

/** In the memory of one process, and lost with it: for providers that give any number of tokens. */
export const keptInMemory = (): Keeping => {
  let held: unknown = null
  return {
    read: () => Effect.sync(() => held),
    claim: () => Effect.sync(() => held ?? {}),
    store: (_owner, _claim, next) =>
      Effect.sync(() => {
        held = next
        return true
      })
  }
}
