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

/** How people sign in at the issuer, as it says itself. */
export interface SignInServer {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  /** Whether it takes a client's secret in the body only. By default it is a header (OpenID Connect Discovery, 3). */
  readonly takesSecretInBody: boolean
  /** Whether it says in each answer who it is (RFC 9207). */
  readonly authorization_response_iss_parameter_supported: boolean
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

/** What was read of the issuer. */
interface Loaded {
  readonly keys: Keys
  /** Null: nobody can sign in there through a browser. */
  readonly server: SignInServer | null
}

/** Verifies ID tokens of the configured issuer. */
export class IdTokens extends Context.Service<
  IdTokens,
  {
    /** Null: none is configured. */
    readonly verify: ((token: string, nonce: string | null) => Effect.Effect<Identity, GatewayError>) | null
    /** Null: none is configured. */
    readonly server: Effect.Effect<SignInServer, GatewayError> | null
  }
>()("@tidegate/api/IdTokens") {
  static readonly layer = (configured: Issuer | null): Layer.Layer<IdTokens, never, Egress> =>
    Layer.effect(
      IdTokens,
      Effect.map(Egress, (egress) =>
        IdTokens.of(configured === null ? { verify: null, server: null } : make(configured, egress))
      )
    )
}

/** Whether an issuer supports only the secret in the body. */
const secretInBody = (methods: unknown): boolean =>
  Array.isArray(methods) && !methods.includes("client_secret_basic") && methods.includes("client_secret_post")

const make = ({ audience, issuer }: Issuer, { deliver }: Egress["Service"]) => {
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

  /** An unencrypted connection is not trusted, unless the issuer itself uses one. */
  const isTrusted = (url: unknown): url is string =>
    typeof url === "string" &&
    /^https?:$/.test(URL.parse(url)?.protocol ?? "") &&
    (url.startsWith("https:") || issuer.startsWith("http:"))

  const serverOf = (about: { readonly [member: string]: unknown }): SignInServer | null => {
    const { authorization_endpoint, token_endpoint } = about
    if (!isTrusted(authorization_endpoint) || !isTrusted(token_endpoint)) return null
    return {
      issuer,
      authorization_endpoint,
      token_endpoint,
      takesSecretInBody: secretInBody(about["token_endpoint_auth_methods_supported"]),
      authorization_response_iss_parameter_supported: about["authorization_response_iss_parameter_supported"] === true
    }
  }

  const load = Effect.gen(function* () {
    const about = yield* get(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)
    if (about["issuer"] !== issuer || typeof about["jwks_uri"] !== "string") {
      return yield* unreachable("is not the issuer that is configured")
    }
    if (!isTrusted(about["jwks_uri"])) return yield* unreachable("has its keys where anybody could change them")
    const { keys } = yield* get(about["jwks_uri"])
    if (!Array.isArray(keys) || keys.length > maxKeys) return yield* unreachable("has no set of keys")
    const set = yield* Effect.try({
      try: () => createLocalJWKSet({ keys }),
      catch: () => unreachable("has no set of keys")
    })
    return { keys: set, server: serverOf(about) }
  })

  let known: (Loaded & { readonly at: number }) | null = null
  let triedAt = Number.NEGATIVE_INFINITY
  const one = Semaphore.makeUnsafe(1)

  /** What the issuer says of itself, fetched again when it is older than that. Concurrent callers wait for the same fetch. */
  const loadedSince = (since: number): Effect.Effect<Loaded, GatewayError> =>
    one.withPermits(1)(
      Effect.gen(function* () {
        if (known !== null && known.at >= since) return known
        const now = yield* Clock.currentTimeMillis
        if (now - triedAt < cooldownMs) {
          return known !== null && known.at >= now - freshMs ? known : yield* unreachable("could not be reached")
        }
        triedAt = now
        // It continues when its caller hangs up: it was the only try of the next half minute, for all callers.
        return yield* Effect.uninterruptible(
          Effect.map(load, (loaded) => {
            known = { ...loaded, at: now }
            return known
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

  const verify = Effect.fnUntraced(function* (
    token: string,
    nonce: string | null
  ): Effect.fn.Return<Identity, GatewayError> {
    if (token.length > longestToken) return yield* refused("is too long")
    const now = yield* Clock.currentTimeMillis
    const { keys } = yield* loadedSince(now - freshMs)
    const { payload } = yield* verifyWith(keys, token, now).pipe(
      // The issuer may have rotated its keys since.
      Effect.catchIf(
        (error) => error instanceof errors.JWKSNoMatchingKey,
        () => Effect.flatMap(loadedSince(now), (newer) => verifyWith(newer.keys, token, now))
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

  const server = Effect.gen(function* () {
    const loaded = yield* loadedSince((yield* Clock.currentTimeMillis) - freshMs)
    return loaded.server ?? (yield* unreachable("does not say where people sign in"))
  })

  return { verify, server }
}
