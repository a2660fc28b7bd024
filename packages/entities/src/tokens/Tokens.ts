import { randomUUID } from "node:crypto"
import { Clock, Deferred, Effect, Exit, Fiber, Result, Schedule, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { Egress } from "@tidegate/egress/Egress"
import type { Credential, TokenOwner } from "./Credential.ts"
import { type Held, heldFor, nextAsk, notObtained, obtained, renewAt, settingsKey } from "./Held.ts"
import { type Ask, askForTokens, NotObtained, patienceMs } from "./TokenEndpoint.ts"
import type { TokenStore } from "./TokenStore.ts"

/** Longer than a call and storing its result may take: a process that still has the claim then is dead. */
const claimMs = patienceMs + 5_000
const pollMs = 250
/** How long the exchange of a code waits for another request to the provider to end. */
const exchangeWaitMs = 4_000
/**
 * A token that replaced a refused one is renewed again after this long at the earliest, and later each time while the target
 * accepts none.
 */
const renewalMs = { first: 10_000, most: 600_000 }

/** A token, and until when it is used. */
export interface Token {
  readonly value: string
  readonly until: number
}

/** Returns tokens for the calls of a target. */
export interface TokenSource {
  /** The token to call with. Callers at the same time share one request to the provider. */
  readonly obtain: (credential: Credential) => Effect.Effect<Token, NotObtained>
  /** Another token than this one, which the target has refused. Null: there is none, or it is too soon to ask the provider again. */
  readonly renewed: (credential: Credential, refused: string) => Effect.Effect<Token | null, NotObtained>
  /** The target has accepted the token. */
  readonly accepted: () => void
}

const failure = (message: string, waitMs: number | null = null): NotObtained =>
  new NotObtained({ message, refused: false, waitMs })

const unreadable = failure("the gateway cannot read its tokens", 1_000)
const noConsent = failure("nobody has consented yet, or what they have consented to is used up: start a consent")

/**
 * The tokens of one owner, whose credential may change (`configure`). Callers at the same time share one request to the provider. A token is
 * renewed before it expires. It is stored before it is used, so that the next owner continues with it. A failure is stored, too: no process
 * asks a provider that does not answer, or that refuses, again for a while. Fails closed: without a token nothing is sent.
 */
export const makeTokens = Effect.fnUntraced(function* (mayAsk: () => boolean, tokenStore: TokenStore) {
  const egress = yield* Egress
  const one = Semaphore.makeUnsafe(1)
  /** Identifies this actor: a claim that it did not return is its own at the next try. */
  const claim = randomUUID()
  /** A hash of the current settings; empty: there are none. */
  let key = ""
  /** Null: not read yet. */
  let held: Held | null = null
  /** What could not be stored yet. */
  let unstored: { readonly owner: TokenOwner; readonly next: Held } | null = null
  /** What obtains a token for all that want one now. */
  let obtaining: Fiber.Fiber<Token, NotObtained> | null = null
  let refusedByTarget: string | null = null
  let renewals = { count: 0, at: Number.NEGATIVE_INFINITY }
  let isAccepted = false
  /** When the database last failed: it is not read again for every waiting event. */
  let brokeDownAt = Number.NEGATIVE_INFINITY

  const usable = ({ access }: Held, now: number): Token | null =>
    access === null || access.token === refusedByTarget || now >= renewAt(access)
      ? null
      : { value: access.token, until: renewAt(access) }

  /** The current token if it is still valid, when no new one can be obtained. */
  const lastingOr = ({ access, failure }: Held, now: number, why: NotObtained): Effect.Effect<Token, NotObtained> =>
    access === null || access.token === refusedByTarget || now >= access.expires_at
      ? Effect.fail(why)
      : Effect.succeed({ value: access.token, until: Math.min(access.expires_at, failure?.until ?? access.expires_at) })

  /** What is known without asking: a token, or why there is none; null: the provider has to be asked. */
  const found = (of: Credential, what: Held, now: number): Effect.Effect<Token, NotObtained> | null => {
    const token = usable(what, now)
    if (token !== null) return Effect.succeed(token)
    if (what.failure !== null && now < what.failure.until) {
      const { message, refused, until } = what.failure
      return lastingOr(what, now, new NotObtained({ message, refused, waitMs: until - now }))
    }
    return nextAsk(of, what) === null ? lastingOr(what, now, noConsent) : null
  }

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
    // Tokens of outdated settings do not stay in memory.
    if (next.settings === key) held = isStored ? next : null
    return isStored
  })

  /** What came cannot be asked for again: it is tried for a while against a database that does not answer, and then first of all. */
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
    isAccepted = false
    // The provider returned the refused token again. The target refuses it again if it has to; that is no reason to ask the
    // provider again.
    refusedByTarget = null
    return next.access
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
    const known = found(of, before, now)
    const ask = nextAsk(of, before)
    if (known !== null || ask === null) {
      yield* keep(of, before)
      return yield* known ?? noConsent
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
      const wait = Math.min(renewalMs.first * 2 ** (renewals.count - 1), renewalMs.most)
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
      Effect.gen(function* () {
        const answer = Deferred.makeUnsafe<boolean | "busy", NotObtained>()
        let turn: "waits" | "has come" | "given up" = "waits"
        const isGivenUp = (): boolean => turn === "given up"
        const fiber = yield* apart(
          Effect.gen(function* () {
            if (isGivenUp()) return "busy"
            const before = yield* claimed(of, exchangeWaitMs)
            if (before === null) return "busy"
            if (isGivenUp()) {
              yield* keep(of, before)
              return "busy"
            }
            turn = "has come"
            // A failed exchange leaves the stored tokens unchanged.
            yield* asked(of, { ...before, refresh: null }, ask, () => before)
            const next: Held = heldFor(of, yield* tokenStore.read(of.owner))
            held = next.settings === key ? next : null
            return next.refresh !== null
          })
        )
        fiber.addObserver((exit) => Deferred.doneUnsafe(answer, exit))
        const giveUp = Effect.sync(() => {
          if (turn !== "waits") return
          turn = "given up"
          Deferred.doneUnsafe(answer, Exit.succeed("busy"))
        })
        const timer = yield* Effect.forkDetach(Effect.andThen(Effect.sleep(exchangeWaitMs), giveUp))
        return yield* Effect.ensuring(
          Deferred.await(answer),
          Effect.sync(() => timer.interruptUnsafe())
        )
      })
  }
})

export type Tokens = Effect.Success<ReturnType<typeof makeTokens>>
