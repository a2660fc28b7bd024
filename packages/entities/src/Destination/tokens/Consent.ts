import { createHash, randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { fail, type GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import { type Ingress, publicUrl } from "@tidegate/model/Ingress"
import type { Database } from "@tidegate/storage/Database"
import { beginConsent, endConsent as takeConsent } from "@tidegate/storage/DestinationTokens"
import type { Secrets } from "@tidegate/storage/Secrets"
import { query } from "@tidegate/storage/Transaction"
import { settingsKey } from "./Held.ts"
import type { Tokens, TokenSettings } from "./Tokens.ts"

/** How long somebody may take to consent. */
const consentMs = 600_000

/** Where providers lead people back to, unless the settings say otherwise. */
export const callbackPath = "/v1/oauth/callback"

const impossible = (message: string): GatewayError => invalid([{ path: "config.auth", message }])

/**
 * Sends somebody to consent. The state is a secret of 256 bits for one use, bound to this destination with these settings and this
 * redirect; what proves that the code is exchanged by who asked for it (PKCE) stays here.
 */
export const startConsent = (
  settings: TokenSettings | null,
  team_id: string,
  ingress: Ingress["Service"]
): Effect.Effect<
  { readonly authorization_url: string; readonly redirect_uri: string; readonly expires_at: string },
  GatewayError,
  Database | Secrets
> =>
  Effect.gen(function* () {
    if (settings !== null && settings.owner.team_id !== team_id)
      return yield* notFound("destination", settings.owner.id)
    const how = settings?.grant.how
    if (settings === null || how?.kind !== "authorization_code") {
      return yield* impossible(
        "must be that of OAUTH2_AUTHORIZATION_CODE, and not be switched off: to nothing else anybody consents"
      )
    }
    if (how.authorizationUrl === null)
      return yield* impossible("must have an authorization_url, where somebody consents")
    const { owner } = settings
    const state = `${owner.id}.${randomBytes(32).toString("base64url")}`
    const verifier = randomBytes(32).toString("base64url")
    const redirect_uri = how.redirectUri ?? publicUrl(ingress) + callbackPath
    const until = new Date((yield* Clock.currentTimeMillis) + consentMs)
    yield* query(beginConsent(owner, state, { verifier, redirect_uri, settings: settingsKey(settings) }, until))
    const url = new URL(how.authorizationUrl)
    const asked = {
      response_type: "code",
      client_id: how.client.id,
      redirect_uri,
      scope: settings.scope,
      audience: how.audience,
      state,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256"
    }
    for (const [name, value] of Object.entries(asked)) if (value !== null) url.searchParams.set(name, value)
    return { authorization_url: url.href, redirect_uri, expires_at: until.toISOString() }
  })

const unknown = fail(
  "OAUTH2_STATE_INVALID",
  "the consent was not begun here, has ended already, or was begun with other settings: start it again"
)

/** Takes what somebody has come back with. Whatever comes of it, the state is used up. */
export const endConsent = (
  settings: TokenSettings | null,
  tokens: Tokens,
  back: {
    readonly team_id: string
    readonly state: string
    readonly code: string | null
    readonly error: string | null
  }
): Effect.Effect<{ readonly renewable: boolean }, GatewayError, Database | Secrets> =>
  Effect.gen(function* () {
    if (settings === null || settings.owner.team_id !== back.team_id) return yield* unknown
    const now = new Date(yield* Clock.currentTimeMillis)
    const consent = yield* query(takeConsent(settings.owner, back.state, now))
    const { redirect_uri, settings: key, verifier } = consent ?? {}
    if (typeof redirect_uri !== "string" || typeof verifier !== "string" || key !== settingsKey(settings)) {
      return yield* unknown
    }
    if (back.code === null) {
      const told = back.error !== null && /^[\w.-]{1,64}$/.test(back.error) ? `: ${back.error}` : ""
      return yield* fail("OAUTH2_HANDSHAKE_FAILED", `the provider was not consented to${told}`)
    }
    const ask = { kind: "code", code: back.code, verifier, redirectUri: redirect_uri } as const
    return yield* tokens.exchange(settings, ask).pipe(
      Effect.map((renewable) => ({ renewable })),
      Effect.mapError(({ message }) => fail("OAUTH2_HANDSHAKE_FAILED", message))
    )
  })
