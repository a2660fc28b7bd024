import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from "jose"
import { Egress } from "@tidegate/egress/Egress"
import { fail, GatewayError } from "@tidegate/model/GatewayError"
import { parseJson } from "@tidegate/json/JsonText"
import { seenOf } from "@tidegate/resources/Members"
import type { Identity } from "@tidegate/storage/teams/People"

/** The accepted issuer of ID tokens, and the required audience. */
export interface Issuer {
  readonly issuer: string
  readonly audience: string
}

/** Longer than any real ID token; a longer token is refused unread. */
const longestToken = 16_384
/** Limits of an issuer's answer: bytes, milliseconds, keys. */
const largestAnswer = 262_144
const patienceMs = 5_000
const maxKeys = 100
/** How long keys are used before they are fetched again. */
const freshMs = 600_000
/** The shortest time between two fetches, whatever keys tokens name. */
const cooldownMs = 30_000
/** The tolerated difference between the issuer's clock and this one. */
const clockTolerance = 30

/**
 * Signatures that only the issuer can make. With a shared secret, or without a signature, anyone who knows the gateway's settings
 * could make one.
 */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]

/** Fails closed: without the issuer's keys no token can be verified. */
const unreachable = (why: string): GatewayError =>
  fail("QUEUE_UNAVAILABLE", `the identity provider ${why}; repeat the request`)

const refused = (why: string): GatewayError => fail("INVALID_ID_TOKEN", `the ID token ${why}`)

/** Why a token is refused. Only the name of a claim is repeated from it. */
const refusalOf = (error: unknown): GatewayError => {
  if (error instanceof errors.JWTExpired) return refused("has expired")
  if (error instanceof errors.JWTClaimValidationFailed) return refused(`has a wrong or missing claim: ${error.claim}`)
  if (error instanceof errors.JWKSNoMatchingKey) return refused("is signed by a key that the issuer does not have")
  return refused("is not a valid one of this issuer")
}

/** A text claim of at most so many characters; null when it is missing or something else. */
const textOf = (value: unknown, longest: number): string | null =>
  typeof value === "string" && value !== "" && value.isWellFormed() && !value.includes("\u0000")
    ? value.slice(0, longest)
    : null

/** Users write their own names: invisible characters are removed. */
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

/** Verifies ID tokens of the configured issuer. */
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
  /** Fetches a JSON object from the issuer, within limits. */
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
    // Keys over an unencrypted connection are not trusted, unless the issuer itself uses one.
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

  /** The issuer's keys, fetched again when they are older than that. Concurrent callers wait for the same fetch. */
  const keysSince = (since: number): Effect.Effect<Keys, GatewayError> =>
    one.withPermits(1)(
      Effect.gen(function* () {
        if (known !== null && known.at >= since) return known.keys
        const now = yield* Clock.currentTimeMillis
        if (now - triedAt < cooldownMs) {
          return known !== null && known.at >= now - freshMs ? known.keys : yield* unreachable("could not be reached")
        }
        triedAt = now
        // It continues when its caller hangs up: it was the only try of the next half minute, for all callers.
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
      // The issuer may have rotated its keys since.
      Effect.catchIf(
        (error) => error instanceof errors.JWKSNoMatchingKey,
        () => Effect.flatMap(keysSince(now), (newer) => verifyWith(newer, token, now))
      ),
      Effect.mapError((error) => (error instanceof GatewayError ? error : refusalOf(error)))
    )
    // A token with several audiences names the one that requested it.
    const party = payload["azp"]
    if (party === undefined ? Array.isArray(payload.aud) && payload.aud.length > 1 : party !== audience) {
      return yield* refused("has a wrong or missing claim: azp")
    }
    if (nonce !== null && payload["nonce"] !== nonce) return yield* refused("has a wrong or missing claim: nonce")
    const identity = identityOf(issuer, payload)
    return identity ?? (yield* refused("has a wrong or missing claim: sub"))
  })
}
