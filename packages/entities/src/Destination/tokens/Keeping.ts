import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { claimTokens, readTokens, storeTokens } from "@tidegate/storage/delivery/DestinationTokens"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Held } from "./Held.ts"

/** Whose tokens they are. */
export interface TokenOwner {
  readonly id: string
  readonly team_id: string
}

/** Where what is held is kept. Who asks a provider has the claim, which is one's alone until it is given back, or over. */
export interface Keeping {
  /** What is held; nothing that can be read: nothing is. */
  readonly read: (owner: TokenOwner) => Effect.Effect<unknown, SqlError.SqlError>
  /** What is held, with the claim for so long; null: it is somebody else's. */
  readonly claim: (owner: TokenOwner, claim: string, forMs: number) => Effect.Effect<unknown, SqlError.SqlError>
  /** Gives the claim back; false: it was somebody else's by then, and nothing was stored. */
  readonly store: (owner: TokenOwner, claim: string, held: Held) => Effect.Effect<boolean, SqlError.SqlError>
}

/** Of a destination: for whoever owns it next. */
export const keptInDatabase: Effect.Effect<Keeping, never, Database | Secrets> = Effect.map(
  Effect.context<Database | Secrets>(),
  (services): Keeping => ({
    read: (owner) => Effect.provideContext(readTokens(owner), services),
    claim: (owner, claim, forMs) => Effect.provideContext(claimTokens(owner, claim, forMs), services),
    store: (owner, claim, held) => Effect.provideContext(storeTokens(owner, claim, held), services)
  })
)

/** Of one process, and lost with it: for what any number of tokens is given for. */
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
