import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from "jose"
import { Egress } from "@tidegate/egress/Egress"
import { fail, GatewayError } from "@tidegate/model/GatewayError"
import { parseJson } from "@tidegate/json/JsonText"
import { seenOf } from "@tidegate/resources/Members"
import type { Identity } from "@tidegate/storage/teams/People"

/** Whose ID tokens are taken, and for whom they have to be made. */
export interface Issuer {
  readonly issuer: string
  readonly audience: string
}

/** Longer than any issuer's; what is longer is not looked at. */
const longestToken = 16_384
/** Of what an issuer answers: bytes, milliseconds, keys. */
const largestAnswer = 262_144
const patienceMs = 5_000
const maxKeys = 100
/** For how long keys are taken without asking for them again. */
const freshMs = 600_000
/** How often they are asked for at most, whatever keys are named by tokens. */
const cooldownMs = 30_000
/** By how much the issuer's clock and this one may differ. */
const clockTolerance = 30

/** Signatures that only the issuer can make: with a shared secret, or with none, anybody might who knows what the gateway knows. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]

/** Fails closed: without the issuer's keys nobody can be told from anybody else. */
const unreachable = (why: string): GatewayError =>
  fail("QUEUE_UNAVAILABLE", `the identity provider ${why}; repeat the request`)

const refused = (why: string): GatewayError => fail("INVALID_ID_TOKEN", `the ID token ${why}`)

/** Why a token is not taken. Nothing of it is repeated but the name of a claim. */
const refusalOf = (error: unknown): GatewayError => {
  if (error instanceof errors.JWTExpired) return refused("has expired")
  if (error instanceof errors.JWTClaimValidationFailed) return refused(`has a wrong or missing claim: ${error.claim}`)
  if (error instanceof errors.JWKSNoMatchingKey) return refused("is signed by a key that the issuer does not have")
  return refused("is not a valid one of this issuer")
}

/** A text claim of at most so many characters; null where there is none, or something else. */
const textOf = (value: unknown, longest: number): string | null =>
  typeof value === "string" && value !== "" && value.isWellFormed() && !value.includes("\u0000")
    ? value.slice(0, longest)
    : null

/** A provider's users write their names themselves: what is not seen of one is left out. */
const nameOf = (value: unknown): string | null => textOf(typeof value === "string" ? seenOf(value).trim() : null, 120)

const pictureOf = (value: unknown): string | null => {
  const text = textOf(value, 2_049)
  return text !== null && text.length <= 2_048 && URL.parse(text)?.protocol === "https:" ? text : null
}

const identityOf = (issuer: string, claims: JWTPayload): Identity | null => {
  const subject = textOf(claims.sub, 256)
  if (subject === null || subject.length > 255) return null
  const email = textOf(claims["email"], 321)
  return {
    issuer,
    subject,
    email: email !== null && email.length <= 320 ? email : null,
    email_verified: claims["email_verified"] === true,
    name: nameOf(claims["name"]),
    picture_url: pictureOf(claims["picture"])
  }
}

type Keys = ReturnType<typeof createLocalJWKSet>

/** Verifies ID tokens of the one issuer that is configured. */
export class IdTokens extends Context.Service<
  IdTokens,
  {
    /** Null: none is configured. */
    readonly verify: ((token: string, nonce: string | null) => Effect.Effect<Identity, GatewayError>) | null
  }
>()("@tidegate/api/IdTokens") {
  static readonly layer = (configured: Issuer | null): Layer.Layer<IdTokens, never, Egress> =>
    Layer.effect(
      IdTokens,
      Effect.map(Egress, (egress) =>
        IdTokens.of({ verify: configured === null ? null : makeVerify(configured, egress) })
      )
    )
}

const makeVerify = ({ audience, issuer }: Issuer, { deliver }: Egress["Service"]) => {
  /** A JSON object of the issuer's, within bounds. */
  const get = Effect.fnUntraced(function* (url: string) {
    const answer = yield* Effect.promise((signal) =>
      deliver({
        method: "GET",
        url,
        headers: ["accept", "application/json"],
        timeoutMs: patienceMs,
        captureBytes: largestAnswer,
        signal
      })
    )
    if (answer.errorCode !== null || answer.status !== 200) return yield* unreachable("could not be asked for its keys")
    if (answer.bodyTruncated) return yield* unreachable("answers more than is read")
    const parsed = parseJson(answer.body)
    const value = parsed.kind === "json" ? parsed.value : null
    if (typeof value !== "object" || value === null) return yield* unreachable("answers no JSON")
    return value as { readonly [member: string]: unknown }
  })

  const load = Effect.gen(function* () {
    const about = yield* get(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)
    if (about["issuer"] !== issuer || typeof about["jwks_uri"] !== "string") {
      return yield* unreachable("is not the issuer that is configured")
    }
    // Keys that come over an open line are nobody's, unless the issuer itself is on one.
    if (URL.parse(about["jwks_uri"])?.protocol !== "https:" && !issuer.startsWith("http:")) {
      return yield* unreachable("has its keys where anybody could change them")
    }
    const { keys } = yield* get(about["jwks_uri"])
    if (!Array.isArray(keys) || keys.length > maxKeys) return yield* unreachable("has no set of keys")
    return yield* Effect.try({
      try: () => createLocalJWKSet({ keys }),
      catch: () => unreachable("has no set of keys")
    })
  })

  let known: { readonly keys: Keys; readonly at: number } | null = null
  let triedAt = Number.NEGATIVE_INFINITY
  const one = Semaphore.makeUnsafe(1)

  /** The issuer's keys, asked for again when they are older than that. Who asks meanwhile waits, and asks no more. */
  const keysSince = (since: number): Effect.Effect<Keys, GatewayError> =>
    one.withPermits(1)(
      Effect.gen(function* () {
        if (known !== null && known.at >= since) return known.keys
        const now = yield* Clock.currentTimeMillis
        if (now - triedAt < cooldownMs) {
          return known !== null && known.at >= now - freshMs ? known.keys : yield* unreachable("could not be reached")
        }
        triedAt = now
        // Carried through when its caller hangs up: it was the one try of the next half minute, for everybody.
        return yield* Effect.uninterruptible(
          Effect.map(load, (keys) => {
            known = { keys, at: now }
            return keys
          })
        )
      })
    )

  const verifyWith = (keys: Keys, token: string, now: number) =>
    Effect.tryPromise({
      try: () =>
        jwtVerify(token, keys, {
          issuer,
          audience,
          algorithms,
          clockTolerance,
          currentDate: new Date(now),
          requiredClaims: ["sub", "exp", "iat"]
        }),
      catch: (error) => error
    })

  return Effect.fnUntraced(function* (token: string, nonce: string | null): Effect.fn.Return<Identity, GatewayError> {
    if (token.length > longestToken) return yield* refused("is too long")
    const now = yield* Clock.currentTimeMillis
    const keys = yield* keysSince(now - freshMs)
    const { payload } = yield* verifyWith(keys, token, now).pipe(
      // The issuer may have changed its keys since.
      Effect.catchIf(
        (error) => error instanceof errors.JWKSNoMatchingKey,
        () => Effect.flatMap(keysSince(now), (newer) => verifyWith(newer, token, now))
      ),
      Effect.mapError((error) => (error instanceof GatewayError ? error : refusalOf(error)))
    )
    // Made for several, it says which of them asked for it.
    const party = payload["azp"]
    if (party === undefined ? Array.isArray(payload.aud) && payload.aud.length > 1 : party !== audience) {
      return yield* refused("has a wrong or missing claim: azp")
    }
    if (nonce !== null && payload["nonce"] !== nonce) return yield* refused("has a wrong or missing claim: nonce")
    const identity = identityOf(issuer, payload)
    return identity ?? (yield* refused("has a wrong or missing claim: sub"))
  })
}
