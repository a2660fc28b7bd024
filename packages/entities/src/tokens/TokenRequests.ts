import { randomUUID } from "node:crypto"
import { Clock, Effect, Result, Schedule } from "effect"
import { Egress } from "@tidegate/egress/Egress"
import type { Credential, TokenOwner } from "./Credential.ts"
import { type Held, heldFor, obtained } from "./Held.ts"
import { failure } from "./KnownToken.ts"
import { type NotObtained, patienceMs } from "./TokenAnswers.ts"
import { type Ask, askForTokens } from "./TokenEndpoint.ts"
import type { TokenStore } from "./TokenStore.ts"

/** Longer than a call and storing its result may take: a process that still has the claim then is dead. */
export const claimMs = patienceMs + 5_000
const pollMs = 250

/**
 * Asks a provider for tokens, and stores the answer before it is used. One process at a time holds the claim of an owner and may
 * ask. `applies`: called with what is stored, or is not because another process has the claim by now.
 */
export const makeTokenRequests = Effect.fnUntraced(function* (
  mayAsk: () => boolean,
  tokenStore: TokenStore,
  applies: (next: Held, isStored: boolean) => void
) {
  const egress = yield* Egress
  /** Identifies this actor: a claim that it did not return is its own at the next try. */
  const claim = randomUUID()
  /** What could not be stored yet. */
  let unstored: { readonly owner: TokenOwner; readonly next: Held } | null = null

  /** What is held, once nobody else asks; null: somebody does for that long. */
  const claimed = Effect.fnUntraced(function* (of: Credential, forMs: number) {
    for (let waited = 0; waited <= forMs; waited += pollMs) {
      const stored = yield* tokenStore.claim(of.owner, claim, claimMs)
      if (stored !== null) return heldFor(of, stored)
      yield* Effect.sleep(pollMs)
    }
    return null
  })

  /** Stores it and gives back the claim; false: that is somebody else's by now. */
  const store = Effect.fnUntraced(function* (owner: TokenOwner, next: Held) {
    unstored = { owner, next }
    const isStored = yield* tokenStore.store(owner, claim, next)
    unstored = null
    applies(next, isStored)
    return isStored
  })

  /**
   * What came cannot be asked for again: it is tried for a while against a database that does not answer, and then first of all.
   */
  const keep = (of: Credential, next: Held) =>
    Effect.retry(store(of.owner, next), { schedule: Schedule.spaced("250 millis"), times: 100 })
  const keepUnstored = Effect.suspend(() =>
    unstored === null ? Effect.void : Effect.asVoid(store(unstored.owner, unstored.next))
  )

  /** Asks the provider while holding the claim; `kept`: what to store after a failure. */
  const asked = Effect.fnUntraced(function* (
    of: Credential,
    before: Held,
    ask: Ask,
    kept: (failure: NotObtained, now: number) => Held
  ) {
    const answer = yield* Effect.result(askForTokens(egress, of, ask, mayAsk))
    const now = yield* Clock.currentTimeMillis
    if (Result.isFailure(answer)) {
      yield* Effect.logWarning(`no token was obtained: ${answer.failure.message}`, { id: of.owner.id })
      yield* keep(of, kept(answer.failure, now))
      return yield* answer.failure
    }
    const next = obtained(before, ask, answer.success, now)
    if (!(yield* keep(of, next))) return yield* failure("another process has asked for a token meanwhile")
    return next.access
  })

  return { claimed, keep, keepUnstored, asked }
})
