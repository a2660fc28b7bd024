import { Clock, Effect, Fiber, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { beginningInTime } from "./BeginningInTime.ts"
import type { Credential } from "./Credential.ts"
import { type Held, heldFor, nextAsk, notObtained, renewAt, settingsKey } from "./Held.ts"
import { failure, known, noConsent, type Token } from "./KnownToken.ts"
import type { NotObtained } from "./TokenAnswers.ts"
import type { Ask } from "./TokenEndpoint.ts"
import { claimMs, makeTokenRequests } from "./TokenRequests.ts"
import type { TokenStore } from "./TokenStore.ts"

/** How long the exchange of a code waits for another request to the provider to end. */
const exchangeWaitMs = 4_000
/**
 * A token that replaced a refused one is renewed again after this long at the earliest, and later each time while the target
 * accepts none.
 */
const renewalMs = { first: 10_000, max: 600_000 }

/** Returns tokens for the calls of a target. */
export interface TokenSource {
  /** The token to call with. Callers at the same time share one request to the provider. */
  readonly obtain: (credential: Credential) => Effect.Effect<Token, NotObtained>
  /** Another token than this one, which the target has refused. Null: there is none, or it is too soon to ask the provider again. */
  readonly renewed: (credential: Credential, refused: string) => Effect.Effect<Token | null, NotObtained>
  /** The target has accepted the token. */
  readonly accepted: () => void
}

const unreadable = failure("the gateway cannot read its tokens", 1_000)

/**
 * The tokens of one owner, whose credential may change (`configure`). Callers at the same time share one request to the provider. A token is
 * renewed before it expires. It is stored before it is used, so that the next owner continues with it. A failure is stored, too: no process
 * asks a provider that does not answer, or that refuses, again for a while. Fails closed: without a token nothing is sent.
 */
export const makeTokens = Effect.fnUntraced(function* (mayAsk: () => boolean, tokenStore: TokenStore) {
  const one = Semaphore.makeUnsafe(1)
  /** A hash of the current settings; empty: there are none. */
  let key = ""
  /** Null: not read yet. */
  let held: Held | null = null
  /** What obtains a token for all that want one now. */
  let obtaining: Fiber.Fiber<Token, NotObtained> | null = null
  let refusedByTarget: string | null = null
  let renewals = { count: 0, at: Number.NEGATIVE_INFINITY }
  let isAccepted = false
  /** When the database last failed: it is not read again for every waiting event. */
  let brokeDownAt = Number.NEGATIVE_INFINITY

  const found = (of: Credential, what: Held, now: number) => known(of, what, refusedByTarget, now)

  const requests = yield* makeTokenRequests(mayAsk, tokenStore, (next, isStored) => {
    // Tokens of outdated settings do not stay in memory.
    if (next.settings === key) held = isStored ? next : null
  })
  const { claimed, keep, keepUnstored } = requests
  const asked = (...request: Parameters<typeof requests.asked>) =>
    Effect.map(requests.asked(...request), (access) => {
      isAccepted = false
      // The provider may have returned the refused token again. The target refuses it again if it has to; that is no reason to
      // ask the provider again.
      refusedByTarget = null
      return access
    })

  const brokeDown = (cause: SqlError.SqlError): Effect.Effect<never, NotObtained> =>
    Effect.gen(function* () {
      brokeDownAt = yield* Clock.currentTimeMillis
      yield* Effect.logWarning("tokens cannot be read or stored", cause)
      return yield* unreadable
    })

  /** One at a time, and uninterrupted when its callers give up: a provider's answer is always stored. */
  const apart = <A>(
    work: Effect.Effect<A, NotObtained | SqlError.SqlError>
  ): Effect.Effect<Fiber.Fiber<A, NotObtained>> =>
    Effect.forkDetach(
      one.withPermits(1)(Effect.andThen(keepUnstored, work).pipe(Effect.catchTag("SqlError", brokeDown)))
    )

  const obtainNow = Effect.fnUntraced(function* (of: Credential) {
    const now = yield* Clock.currentTimeMillis
    const before = held?.settings === settingsKey(of) ? held : heldFor(of, yield* tokenStore.read(of.owner))
    if (before.settings === key) held = before
    return yield* found(of, before, now) ?? obtainByClaim(of)
  })

  const obtainByClaim = Effect.fnUntraced(function* (of: Credential) {
    const before = yield* claimed(of, claimMs)
    if (before === null) return yield* failure("another process is asking for a token")
    const now = yield* Clock.currentTimeMillis
    // Another process may have asked meanwhile, with success or without.
    const already = found(of, before, now)
    const ask = nextAsk(of, before)
    if (already !== null || ask === null) {
      yield* keep(of, before)
      return yield* already ?? noConsent
    }
    const failed = (why: NotObtained, at: number): Held => notObtained(before, why, at, Math.random())
    return yield* asked(of, before, ask, failed).pipe(
      Effect.map((access): Token => ({ value: access.token, until: renewAt(access) })),
      Effect.catchTag("NotObtained", (why) =>
        Effect.flatMap(
          Clock.currentTimeMillis,
          (at) => (held?.settings === before.settings ? found(of, held, at) : null) ?? Effect.fail(why)
        )
      )
    )
  })

  const obtain: TokenSource["obtain"] = Effect.fnUntraced(function* (
    of: Credential
  ): Effect.fn.Return<Token, NotObtained> {
    if (settingsKey(of) !== key) return yield* failure("the credential's settings have changed")
    if ((yield* Clock.currentTimeMillis) - brokeDownAt < 1_000) return yield* unreadable
    if (obtaining !== null) return yield* Fiber.join(obtaining)
    const fiber = (obtaining = yield* apart(obtainNow(of)))
    fiber.addObserver(() => {
      if (obtaining === fiber) obtaining = null
    })
    return yield* Fiber.join(fiber)
  })

  const accepted: TokenSource["accepted"] = () => {
    isAccepted = true
  }

  /** When the last token was refused as well, the provider is not asked for every call that the target does not want. */
  const renewed: TokenSource["renewed"] = Effect.fnUntraced(function* (of, refused) {
    const current = held?.access ?? null
    if (current !== null && current.token === refused && refused !== refusedByTarget) {
      const now = yield* Clock.currentTimeMillis
      const wait = Math.min(renewalMs.first * 2 ** (renewals.count - 1), renewalMs.max)
      if (renewals.count > 0 && now - renewals.at < wait) return null
      renewals = { count: isAccepted ? 1 : Math.min(renewals.count + 1, 20), at: now }
      refusedByTarget = refused
    }
    const token = yield* obtain(of)
    return token.value === refused ? null : token
  })

  return {
    obtain,
    renewed,
    accepted,
    /** From now on they are asked for like this; null: not at all. */
    configure: (next: Credential | null): void => {
      const nextKey = next === null ? "" : settingsKey(next)
      if (nextKey === key) return
      key = nextKey
      held = null
      obtaining = null
      refusedByTarget = null
      renewals = { count: 0, at: Number.NEGATIVE_INFINITY }
    },
    /**
     * Exchanges the code of a consent for these settings. Returns whether there is a refresh token, to continue after the first
     * token expires. "busy": another process is asking the provider, and nothing was done with the code.
     */
    exchange: (of: Credential, ask: Extract<Ask, { kind: "code" }>): Effect.Effect<boolean | "busy", NotObtained> =>
      beginningInTime(exchangeWaitMs, (begins) =>
        apart(
          Effect.gen(function* () {
            if (!begins.mayBegin()) return "busy"
            const before = yield* claimed(of, exchangeWaitMs)
            if (before === null) return "busy"
            if (!begins.begin()) {
              yield* keep(of, before)
              return "busy"
            }
            // A failed exchange leaves the stored tokens unchanged.
            yield* asked(of, { ...before, refresh: null }, ask, () => before)
            const next: Held = heldFor(of, yield* tokenStore.read(of.owner))
            held = next.settings === key ? next : null
            return next.refresh !== null
          })
        )
      )
  }
})

export type Tokens = Effect.Success<ReturnType<typeof makeTokens>>
