import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { TokenOwner } from "./Credential.ts"
import type { Held } from "./Held.ts"

/**
 * Where the tokens of one owner are stored. A process holds the claim while it asks the provider. Only one process has it at a time, until it
 * returns the claim or the claim expires: two requests at the same time would use up one refresh token.
 */
export interface TokenStore {
  /** What is stored; empty when it cannot be read. */
  readonly read: (owner: TokenOwner) => Effect.Effect<unknown, SqlError.SqlError>
  /** Takes the claim for so long, and answers with what is stored; null: somebody else has the claim. */
  readonly claim: (owner: TokenOwner, claim: string, forMs: number) => Effect.Effect<unknown, SqlError.SqlError>
  /** Stores what is held from now on, and gives the claim back; false: somebody else has the claim by now, and nothing was stored. */
  readonly store: (owner: TokenOwner, claim: string, held: Held) => Effect.Effect<boolean, SqlError.SqlError>
}

/** The functions of a store that need services. */
type Stored<R> = {
  readonly [Name in keyof TokenStore]: (
    ...asked: Parameters<TokenStore[Name]>
  ) => Effect.Effect<Effect.Success<ReturnType<TokenStore[Name]>>, SqlError.SqlError, R>
}

/** In the database, so that every process has the same tokens. */
export const inDatabase = <R>({ claim, read, store }: Stored<R>): Effect.Effect<TokenStore, never, R> =>
  Effect.map(Effect.context<R>(), (services) => ({
    read: (...asked) => Effect.provideContext(read(...asked), services),
    claim: (...asked) => Effect.provideContext(claim(...asked), services),
    store: (...asked) => Effect.provideContext(store(...asked), services)
  }))

/** In this process alone, and lost with it: for credentials by which any number of tokens may be asked for. */
export const inMemory = (): TokenStore => {
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
