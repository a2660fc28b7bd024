import { randomUUID } from "node:crypto"
import { Clock, Deferred, Effect, Exit, Fiber, Result, Schedule, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { Egress } from "@tidegate/egress/Egress"
import type { Credential, TokenOwner } from "./Credential.ts"
import { type Held, heldFor, nextAsk, notObtained, obtained, renewAt, settingsKey } from "./Held.ts"
import { type Ask, askForTokens, NotObtained, patienceMs } from "./TokenEndpoint.ts"
import type { TokenStore } from "./TokenStore.ts"

/** Longer than a call may take and its outcome to be stored: who still has a claim then is dead. */
const claimMs = patienceMs + 5_000
const pollMs = 250
/** How long somebody who has consented waits for another asking of the provider to end. */
const exchangeWaitMs = 4_000
/** A token that came instead of one that the target had refused is renewed in its turn after so long, and then ever later while none is taken. */
const renewalMs = { first: 10_000, most: 600_000 }

/** A token, and until when it is used. */
export interface Token {
  readonly value: string
  readonly until: number
}

/** What callers of a target need: a token for a credential. */
export interface TokenSource {
  /** The token to call with. All who ask at the same time wait for the same answer of the provider. */
  readonly obtain: (credential: Credential) => Effect.Effect<Token, NotObtained>
  /** Another token than this one, which the target has refused; null: there is none, or the provider is not asked again so soon. */
  readonly renewed: (credential: Credential, refused: string) => Effect.Effect<Token | null, NotObtained>
  /** The target has answered to the token otherwise than by refusing it. */
  readonly accepted: () => void
}

const failure = (message: string, waitMs: number | null = null): NotObtained =>
  new NotObtained({ message, refused: false, waitMs })

const unreadable = failure("the gateway cannot read its tokens", 1_000)
const noConsent = failure("nobody has consented yet, or what they have consented to is used up: start a consent")

/**
 * The tokens of one owner, whose credential may change (`configure`). Whoever wants a token while one is asked for waits for the one that
 * comes. A token is renewed before it expires. What is obtained is stored before it is used, so that whoever owns the tokens next goes on
 * with it. A failure is stored, too: a provider that does not answer, or says no, is left alone by all for a while. Fails closed: without a
 * token nothing is sent.
 */
export const makeTokens = Effect.fnUntraced(function* (mayAsk: () => boolean, tokenStore: TokenStore) {
  const egress = yield* Egress
  const one = Semaphore.makeUnsafe(1)
  /** Of this actor: what it has claimed and not given back is its own at the next try. */
  const claim = randomUUID()
  /** Of the settings that hold now; empty: there are none. */
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
  /** When the database did not answer: it is not asked for every event that waits. */
  let brokeDownAt = Number.NEGATIVE_INFINITY

  const usable = ({ access }: Held, now: number): Token | null =>
    access === null || access.token === refusedByTarget || now >= renewAt(access)
      ? null
      : { value: access.token, until: renewAt(access) }

  /** One that is still good, while no other can be had. */
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
    // Of settings that hold no more nothing stays in memory.
    if (next.settings === key) held = isStored ? next : null
    return isStored
  })

  /** What came cannot be asked for again: it is tried for a while against a database that does not answer, and then first of all. */
  const keep = (of: Credential, next: Held) =>
    Effect.retry(store(of.owner, next), { schedule: Schedule.spaced("250 millis"), times: 100 })
  const keepUnstored = Effect.suspend(() =>
    unstored === null ? Effect.void : Effect.asVoid(store(unstored.owner, unstored.next))
  )

  /** Asks the provider with the claim in hand; `kept`: what of a failure is. */
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
    // What the target has refused came again: that it is refused again is the target's word, and no reason to ask again.
    refusedByTarget = null
    return next.access
  })

  const brokeDown = (cause: SqlError.SqlError): Effect.Effect<never, NotObtained> =>
    Effect.gen(function* () {
      brokeDownAt = yield* Clock.currentTimeMillis
      yield* Effect.logWarning("tokens cannot be read or stored", cause)
      return yield* unreadable
    })

  /** One at a time, and whatever becomes of who waits for it: what a provider has answered is kept. */
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
    // Somebody else may have asked, with success or without.
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
     * Exchanges the code of a consent for these settings. Whether it can be gone on with once its first token is over; "busy": the
     * provider is being asked by somebody else, and nothing was done with the code.
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
            // What a failed exchange leaves is what there was.
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
