import { createHash, randomBytes } from "node:crypto"
import { Clock, Effect, Schedule, type Schema } from "effect"
import type { SqlError } from "effect/sql"
import { fail, GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import type { Ingress } from "@tidegate/model/Ingress"
import type { Database } from "@tidegate/storage/Database"
import type { ConsentTaken } from "@tidegate/storage/delivery/DestinationTokens"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { query } from "@tidegate/storage/Transaction"
import type { Credential, TokenOwner } from "./Credential.ts"
import { settingsKey } from "./Held.ts"
import type { NotObtained } from "./TokenAnswers.ts"
import type { Ask } from "./TokenEndpoint.ts"

/** How long a person may take to consent. */
const consentMs = 600_000
/** How long a call waits for another one that ends the same consent: less than its caller waits. */
const underWayMs = 8_000
const pollMs = 250

/**
 * Exchanges the code of a consent, and stores what comes of it. Returns whether there is a refresh token. "busy": nothing was done
 * with the code.
 */
interface Exchange<R> {
  readonly exchange: (
    of: Credential,
    ask: Extract<Ask, { kind: "code" }>
  ) => Effect.Effect<boolean | "busy", NotObtained | GatewayError, R>
}

/** The path to which providers redirect, unless the settings say otherwise. */
export const callbackPath = "/v1/oauth/callback"

/** Consents for one kind of owner: how errors name it and its settings, and where consents are stored. */
export interface Consents {
  readonly kind: string
  readonly path: string
  readonly begin: (
    owner: TokenOwner,
    state: string,
    consent: Schema.JsonObject,
    until: Date
  ) => Effect.Effect<void, SqlError.SqlError, Database | Secrets>
  /** Takes the consent of a state, once; null: there is none, or it has expired. */
  readonly take: (
    owner: TokenOwner,
    state: string,
    now: Date
  ) => Effect.Effect<ConsentTaken | null, SqlError.SqlError, Database | Secrets>
  /** Stores what has become of a consent that was taken; null: nothing, and its state is used up. */
  readonly finish: (
    owner: TokenOwner,
    state: string,
    next: Exclude<ConsentTaken, "underWay"> | null
  ) => Effect.Effect<void, SqlError.SqlError, Database | Secrets>
}

/**
 * Sends somebody to consent. The state is a secret of 256 bits for one use, bound to this owner with these settings and this redirect. The
 * proof that the code is exchanged by who asked for it (PKCE) stays in the store.
 */
export const startConsent = (
  { begin, kind, path }: Consents,
  credential: Credential | null,
  team_id: string,
  ingress: Ingress["Service"]
): Effect.Effect<
  {
    readonly authorization_url: string
    readonly state: string
    readonly redirect_uri: string
    readonly expires_at: string
  },
  GatewayError,
  Database | Secrets
> =>
  Effect.gen(function* () {
    const impossible = (message: string): GatewayError => invalid([{ path, message }])
    if (credential !== null && credential.owner.team_id !== team_id) return yield* notFound(kind, credential.owner.id)
    const how = credential?.grant.how
    if (credential === null || how?.kind !== "authorization_code") {
      return yield* impossible(
        "must be that of OAUTH2_AUTHORIZATION_CODE, and not be switched off: to nothing else anybody consents"
      )
    }
    if (how.authorizationUrl === null)
      return yield* impossible("must have an authorization_url, where somebody consents")
    const { owner } = credential
    const state = `${owner.id}.${randomBytes(32).toString("base64url")}`
    const verifier = randomBytes(32).toString("base64url")
    const redirect_uri = how.redirectUri ?? ingress.publicUrl + callbackPath
    const until = new Date((yield* Clock.currentTimeMillis) + consentMs)
    yield* query(begin(owner, state, { verifier, redirect_uri, settings: settingsKey(credential) }, until))
    const url = new URL(how.authorizationUrl)
    const asked = {
      response_type: "code",
      client_id: how.client.id,
      redirect_uri,
      scope: credential.scope,
      audience: how.audience,
      state,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256"
    }
    for (const [name, value] of Object.entries(asked)) if (value !== null) url.searchParams.set(name, value)
    return { authorization_url: url.href, state, redirect_uri, expires_at: until.toISOString() }
  })

const unknown = fail(
  "OAUTH2_STATE_INVALID",
  "the consent was not begun here, has ended already, or was begun with other settings: start it again"
)

const busy = fail("QUEUE_UNAVAILABLE", "the consent is being ended; repeat the request")

/**
 * Waits for another call that ends the same consent, if there is one: the call comes twice when the owner changes or a browser
 * repeats it.
 */
const taken = Effect.fnUntraced(function* (
  { take }: Consents,
  owner: TokenOwner,
  state: string
): Effect.fn.Return<Exclude<ConsentTaken, "underWay">, GatewayError, Database | Secrets> {
  for (let waited = 0; waited <= underWayMs; waited += pollMs) {
    const consent = yield* query(take(owner, state, new Date(yield* Clock.currentTimeMillis)))
    if (consent === null) return yield* unknown
    if (consent !== "underWay") return consent
    yield* Effect.sleep(pollMs)
  }
  return yield* busy
})

/**
 * Takes the code that a person has come back with. The state is used up, whatever the result. A repeated call with the same code
 * gets the same result until the state expires, and the provider is not asked again. The exchange runs to its end and is stored
 * even when its caller has given up.
 */
export const endConsent = <R = never>(
  consents: Consents,
  credential: Credential | null,
  tokens: Exchange<R>,
  back: {
    readonly team_id: string
    readonly state: string
    readonly code: string | null
    readonly error: string | null
  }
): Effect.Effect<{ readonly renewable: boolean }, GatewayError, Database | Secrets | R> =>
  Effect.gen(function* () {
    if (credential === null || credential.owner.team_id !== back.team_id) return yield* unknown
    const { owner } = credential
    const code = back.code === null ? null : createHash("sha256").update(back.code).digest("base64url")
    const consent = yield* taken(consents, owner, back.state)
    if ("ended" in consent) {
      const { ended } = consent
      if (code === null || ended["code"] !== code || ended["settings"] !== settingsKey(credential))
        return yield* unknown
      return { renewable: ended["renewable"] === true }
    }
    return yield* exchanged(credential, tokens, back, consent.begun).pipe(
      Effect.tapError(() => keptOrNot(consents.finish(owner, back.state, null))),
      Effect.flatMap((renewable) => {
        // Nothing was done with the code: the same call may come again.
        if (renewable === "busy") return Effect.andThen(keptOrNot(consents.finish(owner, back.state, consent)), busy)
        const ended = { renewable, code, settings: settingsKey(credential) }
        return Effect.as(keptOrNot(consents.finish(owner, back.state, { ended })), { renewable })
      }),
      Effect.uninterruptible
    )
  })

/** Its tokens are stored by then, or there are none: a state that cannot be marked expires by itself. */
const keptOrNot = <R>(ending: Effect.Effect<void, SqlError.SqlError, R>) =>
  Effect.ignore(Effect.retry(ending, { schedule: Schedule.spaced("250 millis"), times: 8 }))

const exchanged = Effect.fnUntraced(function* <R>(
  credential: Credential,
  tokens: Exchange<R>,
  { code, error }: { readonly code: string | null; readonly error: string | null },
  { redirect_uri, settings: key, verifier }: Schema.JsonObject
): Effect.fn.Return<boolean | "busy", GatewayError, R> {
  if (typeof redirect_uri !== "string" || typeof verifier !== "string" || key !== settingsKey(credential)) {
    return yield* unknown
  }
  if (code === null) {
    const reason = error !== null && /^[\w.-]{1,64}$/.test(error) ? `: ${error}` : ""
    return yield* fail("OAUTH2_HANDSHAKE_FAILED", `the provider was not consented to${reason}`)
  }
  return yield* Effect.mapError(
    tokens.exchange(credential, { kind: "code", code, verifier, redirectUri: redirect_uri }),
    (error) => (error instanceof GatewayError ? error : fail("OAUTH2_HANDSHAKE_FAILED", error.message))
  )
})
