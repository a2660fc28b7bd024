import { Effect, Redacted } from "effect"
import {
  allowInsecureRequests,
  AuthorizationResponseError,
  authorizationCodeGrantRequest,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  validateAuthResponse
} from "oauth4webapi"
import type { Egress } from "@tidegate/egress/Egress"
import { parseJson } from "@tidegate/json/JsonText"
import { fail, GatewayError } from "@tidegate/model/GatewayError"
import type { SignInServer } from "../IdTokens.ts"

/** Limits of the identity provider's answer: bytes, milliseconds. */
const largestAnswer = 65_536
const patienceMs = 10_000

/** The client that an identity provider knows the dashboard as. */
export interface SignInClient {
  readonly id: string
  readonly secret: Redacted.Redacted
  readonly redirectUri: string
}

/** The parts of a started sign-in that its answer is checked with. */
export interface Started {
  readonly state: string
  readonly verifier: string
}

const unavailable = (): GatewayError =>
  fail("QUEUE_UNAVAILABLE", "the identity provider could not be asked for an ID token; sign in again")

const otherAnswer = (): GatewayError =>
  fail("OAUTH2_STATE_INVALID", "this answer belongs to no sign-in that was started in this browser; sign in again")

/** Only the error code is repeated of what the browser brings: anybody can write the rest. */
const refusalIn = (error: unknown): GatewayError => {
  if (error instanceof GatewayError) return error
  if (!(error instanceof AuthorizationResponseError)) return otherAnswer()
  const code = /^[a-z_]{1,40}$/.test(error.error) ? error.error : "an error"
  return fail("OAUTH2_HANDSHAKE_FAILED", `the identity provider has signed nobody in: ${code}`)
}

/**
 * Exchanges the answer that a browser brings from the identity provider (its query) for an ID token, which is not verified yet. The
 * answer must have the state of the sign-in, and name no other issuer.
 */
export const exchangeCode = (
  { deliver }: Pick<Egress["Service"], "deliver">,
  { takesSecretInBody, ...server }: SignInServer,
  { id, redirectUri, secret }: SignInClient,
  { state, verifier }: Started,
  answer: string
): Effect.Effect<string, GatewayError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const client = { client_id: id }
      const authenticate = takesSecretInBody ? ClientSecretPost : ClientSecretBasic
      const brought = validateAuthResponse(server, client, new URLSearchParams(answer), state)
      if (!brought.has("code")) throw otherAnswer()
      const response = await authorizationCodeGrantRequest(
        server,
        client,
        authenticate(Redacted.value(secret)),
        brought,
        redirectUri,
        verifier,
        {
          // Whoever sets the issuer decides whether unencrypted HTTP is acceptable; the egress guard checks where it leads.
          [allowInsecureRequests]: true,
          [customFetch]: async (url, { body, headers }) => {
            const answered = await deliver({
              method: "POST",
              url,
              headers: Object.entries(headers).flat(),
              body: body.toString(),
              timeoutMs: patienceMs,
              captureBytes: largestAnswer,
              signal
            })
            if (answered.errorCode !== null || answered.status === null || answered.bodyTruncated) throw unavailable()
            return new Response(new Uint8Array(answered.body), { status: answered.status })
          }
        }
      )
      if (response.status >= 500) throw unavailable()
      const parsed = parseJson(Buffer.from(await response.arrayBuffer()))
      const said = parsed.kind === "json" ? (parsed.value as { readonly id_token?: unknown } | null) : null
      if (response.status !== 200 || typeof said?.id_token !== "string") {
        throw fail("OAUTH2_HANDSHAKE_FAILED", "the identity provider gives no ID token for this sign-in; sign in again")
      }
      return said.id_token
    },
    catch: refusalIn
  })
