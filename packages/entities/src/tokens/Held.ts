import { createHash } from "node:crypto"
import { Option, Schema } from "effect"
import type { NotObtained, Obtained } from "./TokenAnswers.ts"
import type { Ask, TokenRequest } from "./TokenEndpoint.ts"

/*
 * The tokens of a credential, as they are stored; pure. Each part says which settings it was obtained with. So tokens of other
 * settings are never used, and a refresh token stays valid when the client's secret changes.
 */

const HeldSchema = Schema.Struct({
  /** A hash of everything that a request uses: the access token and the provider's refusal belong to it. */
  settings: Schema.String,
  /** A hash of what a refresh token belongs to. */
  client: Schema.String,
  access: Schema.NullOr(Schema.Struct({ token: Schema.String, obtained_at: Schema.Number, expires_at: Schema.Number })),
  refresh: Schema.NullOr(Schema.String),
  /** Whether the code in the settings has been exchanged: it is valid once. */
  code_used: Schema.Boolean,
  failure: Schema.NullOr(
    Schema.Struct({ message: Schema.String, refused: Schema.Boolean, count: Schema.Number, until: Schema.Number })
  )
})

export type Held = typeof HeldSchema.Type
export type Failure = NonNullable<Held["failure"]>

const decode = Schema.decodeUnknownOption(HeldSchema)

const digest = (of: unknown): string => createHash("sha256").update(JSON.stringify(of)).digest("base64url")

export const settingsKey = ({ endpoint, grant, scope }: TokenRequest): string => digest([endpoint, grant, scope])

const clientKey = ({ endpoint, grant: { how } }: TokenRequest): string =>
  digest(
    how.kind === "refresh_token"
      ? [endpoint, how.client.id, how.refreshToken]
      : how.kind === "authorization_code"
        ? [endpoint, how.client.id, how.authorizationUrl, how.code, how.refreshToken]
        : [endpoint]
  )

/** The parts of a stored value that belong to these settings. */
export const heldFor = (request: TokenRequest, stored: unknown): Held => {
  const settings = settingsKey(request)
  const client = clientKey(request)
  const held = Option.getOrNull(decode(stored))
  const isSame = held !== null && held.settings === settings
  const isSameClient = held !== null && held.client === client
  return {
    settings,
    client,
    access: isSame ? held.access : null,
    refresh: isSameClient ? held.refresh : null,
    code_used: isSameClient && held.code_used,
    failure: isSame ? held.failure : null
  }
}

/** The next request to the provider; null: a person has to consent first. */
export const nextAsk = ({ grant: { how } }: TokenRequest, { code_used, refresh }: Held): Ask | null => {
  if (how.kind === "client_credentials" || how.kind === "assertion" || how.kind === "assumed_role")
    return { kind: "own" }
  const refreshToken = refresh ?? how.refreshToken
  if (refreshToken !== null) return { kind: "refresh", refreshToken }
  const { code, redirectUri } = how as Extract<typeof how, { kind: "authorization_code" }>
  return code === null || code_used || redirectUri === null ? null : { kind: "code", ...code, redirectUri }
}

/** A token is renewed this long before it expires, or after half of its life if that is shorter. */
const marginMs = 60_000
/** The shortest life of a token, whatever the provider says: it is not asked for every event. */
const minLifeMs = 2_000

/** Until when a token is used without asking for another. */
export const renewAt = ({ expires_at, obtained_at }: NonNullable<Held["access"]>): number =>
  Math.max(expires_at - marginMs, (obtained_at + expires_at) / 2)

/** `now`: when it was received. */
export const obtained = (held: Held, ask: Ask, { access, expiresAt, refresh }: Obtained, now: number) => ({
  ...held,
  access: { token: access, obtained_at: now, expires_at: Math.max(expiresAt, now + minLifeMs) },
  // When a provider sends no new refresh token, the old one stays valid.
  refresh: refresh ?? (ask.kind === "refresh" ? ask.refreshToken : null),
  code_used: held.code_used || ask.kind === "code",
  failure: null
})

/**
 * A provider that is down is asked again after 1 s, 2 s, … up to 5 minutes; one that refuses, after 1 minute, 2, … up to an hour.
 */
const downMs = { first: 1_000, max: 300_000 }
const refusedMs = { first: 60_000, max: 3_600_000 }

/** `spread`: from 0 to 1. */
export const notObtained = (
  held: Held,
  { message, refused, waitMs }: Pick<NotObtained, "message" | "refused" | "waitMs">,
  now: number,
  spread: number
): Held => {
  const count = held.failure !== null && held.failure.refused === refused ? held.failure.count + 1 : 1
  const { first, max } = refused ? refusedMs : downMs
  const backOff = Math.min(first * 2 ** Math.min(count - 1, 30), max) * (1 + spread / 4)
  return { ...held, failure: { message, refused, count, until: now + Math.max(backOff, waitMs ?? 0) } }
}
