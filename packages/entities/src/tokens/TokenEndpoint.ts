import { createPrivateKey } from "node:crypto"
import { Clock, Effect } from "effect"
import { SignJWT } from "jose"
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  genericTokenEndpointRequest,
  None,
  processGenericTokenEndpointResponse
} from "oauth4webapi"
import type { Egress } from "@tidegate/egress/Egress"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import { decodedBody } from "@tidegate/model/ContentCoding"
import { parseJson } from "@tidegate/json/JsonText"
import { Echoes } from "@tidegate/redaction/Echoes"
import type { Client, Grant } from "@tidegate/outbound-auth/types/Grant"
import { askForRole } from "./AssumedRole.ts"
import {
  failed,
  isToken,
  largestAnswer,
  lineOf,
  NotObtained,
  type Obtained,
  patienceMs,
  waitOf
} from "./TokenAnswers.ts"

const longestScope = 4_096
/** The life of a token whose provider names none. A named life is believed up to a year. */
const usualLifeMs = 3_600_000
const longestLifeMs = 31_536_000_000
/** Assertions begin in the past, so that a provider whose clock is behind ours accepts them, and last at most an hour. */
const assertionSeconds = { early: 60, life: 3_600 }

/** What is requested, and where. */
export interface TokenRequest {
  readonly grant: Grant
  /** Where the grant's token URL is called: there, or at a mock of the operator's. */
  readonly endpoint: string
  /** The scope to ask for; null: none is named. */
  readonly scope: string | null
}

/** The kind of the request: a grant's own, a refresh token, or the code of a consent. */
export type Ask =
  | { readonly kind: "own" }
  | { readonly kind: "refresh"; readonly refreshToken: string }
  | { readonly kind: "code"; readonly code: string; readonly verifier: string | null; readonly redirectUri: string }

type Parameters = readonly [grantType: string, Record<string, string>]

const given = (members: Record<string, string | null>): Record<string, string> =>
  Object.fromEntries(Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== null))

const assertion = async ({ grant, scope }: TokenRequest, nowMs: number): Promise<string> => {
  const { how, tokenUrl } = grant
  if (how.kind !== "assertion") throw failed("this grant signs nothing")
  const issuedAt = Math.floor(nowMs / 1_000) - assertionSeconds.early
  const jwt = new SignJWT(given({ scope }))
    .setProtectedHeader({ alg: "RS256", typ: "JWT", ...(how.keyId === null ? {} : { kid: how.keyId }) })
    .setIssuer(how.email)
    .setAudience(tokenUrl)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + assertionSeconds.life)
  return (how.subject === null ? jwt : jwt.setSubject(how.subject)).sign(createPrivateKey(how.privateKey))
}

const parametersOf = async (request: TokenRequest, ask: Ask, nowMs: number): Promise<Parameters> => {
  const { how } = request.grant
  if (ask.kind === "code") {
    return ["authorization_code", given({ code: ask.code, redirect_uri: ask.redirectUri, code_verifier: ask.verifier })]
  }
  if (ask.kind === "refresh") {
    // The refresh token has the scope that was consented to: a smaller one is requested only if the settings name it.
    const scope = how.kind === "refresh_token" ? request.grant.scope : null
    return ["refresh_token", given({ refresh_token: ask.refreshToken, scope })]
  }
  return how.kind === "client_credentials"
    ? ["client_credentials", given({ scope: request.scope, audience: how.audience })]
    : ["urn:ietf:params:oauth:grant-type:jwt-bearer", { assertion: await assertion(request, nowMs) }]
}

/** Null: who asks proves it by a signature. */
const clientIn = (how: Grant["how"]): Client | null => ("client" in how ? how.client : null)

/** How a client authenticates at the provider. */
export const clientAuthOf = (client: Client | null): ClientAuth => {
  // An assertion identifies the client by itself.
  if (client === null) return () => undefined
  if (client.method === "none") return None()
  return client.method === "client_secret_post" ? ClientSecretPost(client.secret) : ClientSecretBasic(client.secret)
}

/** Its error code and its description. Some providers use other members, or put both into an object. */
const wordsIn = (said: Readonly<Record<string, unknown>> | null, hidden: Echoes | null): string => {
  const { error, error_description } = said ?? {}
  const own = (typeof error === "object" && error !== null ? error : {}) as Readonly<Record<string, unknown>>
  const code = lineOf(error ?? null, hidden) || lineOf(own["type"], hidden) || lineOf(own["code"], hidden)
  const words = lineOf(error_description, hidden) || lineOf(own["message"], hidden)
  return (code === "" ? "" : ` (${code})`) + (words === "" ? "" : `: ${words}`)
}

/** The secrets of a call, which must not be shown; a provider may repeat them. */
const secretsOf = ({ grant: { how } }: TokenRequest, ask: Ask): Echoes | null => {
  const client = clientIn(how)
  return Echoes.of([
    ...(client === null ? [] : [client.secret]),
    ...(ask.kind === "refresh" ? [ask.refreshToken] : []),
    ...(ask.kind === "code" ? [ask.code, ask.verifier ?? ""] : [])
  ])
}

const record = (body: Buffer): Readonly<Record<string, unknown>> | null => {
  const parsed = parseJson(body)
  return parsed.kind === "json" && typeof parsed.value === "object" && parsed.value !== null
    ? (parsed.value as Readonly<Record<string, unknown>>)
    : null
}

/** The codes by which a provider refuses a request for good (RFC 6749, 5.2; RFC 8707). */
const refusals: ReadonlySet<unknown> = new Set([
  "invalid_grant",
  "invalid_client",
  "invalid_request",
  "invalid_scope",
  "invalid_target",
  "unauthorized_client",
  "unsupported_grant_type",
  "access_denied"
])

/**
 * The library's access to the network. Only an answer that may contain tokens is passed on, and only the members that are used.
 */
const fetchBy =
  ({ deliver }: Pick<Egress["Service"], "deliver">, mayStart: () => boolean, hidden: Echoes | null) =>
  async (
    url: string,
    { body, headers }: { readonly body: URLSearchParams; readonly headers: Record<string, string> }
  ): Promise<Response> => {
    const answer = await deliver({
      method: "POST",
      url,
      headers: [...Object.entries(headers).flat(), "user-agent", "event-gateway/1"],
      body: body.toString(),
      timeoutMs: patienceMs,
      captureBytes: largestAnswer,
      mayStart
    })
    const { errorCode, status } = answer
    if (errorCode !== null || status === null) throw failed(unreached(errorCode ?? "UNKNOWN"))
    if (answer.bodyTruncated) throw failed(`the token endpoint answers more than ${largestAnswer} bytes`)
    const coding = answer.headers["content-encoding"]
    const plain = decodedBody(answer.body, coding, largestAnswer)
    if (plain === null) throw failed("the token endpoint answers in a content-encoding that cannot be read")
    const said = record(plain)
    // Some providers refuse with a 200.
    if (status !== 200 || (said !== null && said["error"] !== undefined && said["access_token"] === undefined)) {
      const { error } = said ?? {}
      const message = `the token endpoint gives no token: HTTP ${status}${wordsIn(said, hidden)}`
      const refused = status === 401 || (status < 500 && refusals.has(error))
      throw new NotObtained({ message, refused, waitMs: waitOf(answer) })
    }
    if (said === null) throw failed("the token endpoint answers no JSON object")
    // An ID token is for signing in, which nobody does here. A token without a type is a bearer token.
    const { access_token, expires_in, refresh_token, scope, token_type = "Bearer" } = said
    const kept = {
      access_token,
      scope: typeof scope === "string" ? scope : undefined,
      token_type,
      expires_in: expires_in ?? undefined,
      refresh_token: refresh_token ?? undefined
    }
    return new Response(JSON.stringify(kept), { headers: { "content-type": "application/json" } })
  }

const unreached = (code: AttemptErrorCode): string => `the token endpoint could not be asked: ${code}`

/**
 * Asks a provider for tokens: once, within limits. `mayStart` is called when the request is about to be written. The caller holds
 * the claim, and stores the result before it uses it: a provider that rotates refresh tokens accepts no old one again.
 */
export const askForTokens = (
  egress: Pick<Egress["Service"], "deliver">,
  request: TokenRequest,
  ask: Ask,
  mayStart: () => boolean
): Effect.Effect<Obtained, NotObtained> =>
  Effect.gen(function* () {
    const askedAt = yield* Clock.currentTimeMillis
    const { how } = request.grant
    if (how.kind === "assumed_role") return yield* askForRole(egress, request.endpoint, how, mayStart)
    const client = clientIn(how)
    const server = { issuer: request.endpoint, token_endpoint: request.endpoint }
    const self = { client_id: client?.id ?? "assertion" }
    const answered = yield* Effect.tryPromise({
      try: async () => {
        const [grantType, parameters] = await parametersOf(request, ask, askedAt)
        const response = await genericTokenEndpointRequest(server, self, clientAuthOf(client), grantType, parameters, {
          [customFetch]: fetchBy(egress, mayStart, secretsOf(request, ask)),
          // The author of the address decides whether unencrypted HTTP is acceptable, as for any target; the egress guard checks
          // where it leads.
          [allowInsecureRequests]: true
        })
        return processGenericTokenEndpointResponse(server, self, response)
      },
      // The library's own messages may repeat the answer.
      catch: (cause) => (cause instanceof NotObtained ? cause : failed("the token endpoint answers no bearer token"))
    })
    const { access_token, expires_in, refresh_token } = answered
    if (answered.token_type !== "bearer" || !isToken(access_token)) {
      return yield* failed("the token endpoint answers no bearer token")
    }
    if (refresh_token !== undefined && !isToken(refresh_token)) {
      return yield* failed("the token endpoint answers a refresh token that cannot be one")
    }
    const lifeMs = expires_in === undefined ? usualLifeMs : Math.min(Math.max(0, expires_in) * 1_000, longestLifeMs)
    const scope = typeof answered.scope === "string" && answered.scope.length <= longestScope ? answered.scope : null
    return { access: access_token, expiresAt: askedAt + lifeMs, refresh: refresh_token ?? null, scope }
  })
