import { Clock, Effect, type Layer } from "effect"
import { Cookies, HttpEffect, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  generateRandomNonce,
  generateRandomState
} from "oauth4webapi"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { Egress } from "@tidegate/egress/Egress"
import { fail } from "@tidegate/model/GatewayError"
import { Ingress } from "@tidegate/model/Ingress"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import type { Database } from "@tidegate/storage/Database"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { admit } from "../auth/Admission.ts"
import { client as clientAddress, Credentials, isRefusal } from "../Credentials.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { IdTokens } from "../IdTokens.ts"
import { SignInSettings, takesDemo } from "../SignInSettings.ts"
import { begun } from "./BrowserSession.ts"
import { exchangeCode, type SignInClient } from "./CodeExchange.ts"
import { ofOwnPage } from "./OwnPage.ts"
import { BrowserSessionKey, type CookieKind, hostOf, removing, setting, textsOf } from "./SealedCookies.ts"

/** How long a person has at the identity provider (ms). */
const openMs = 600_000

/** Holds the state, the nonce and the code verifier of the sign-in that a browser has started: one at a time. */
const started: CookieKind = {
  name: "tidegate_sign_in",
  path: "/dashboard/sign-in",
  lifetimeMs: openMs,
  purpose: "sign-in"
}

/**
 * A state is good for one answer. Without Redis each process counts on its own; then the identity provider, which accepts a code
 * only once, is what refuses an answer that is brought to another process.
 */
const once = { name: "sign_in_state", calls: 1, windowMs: openMs, maxKeys: 10_000 }

/**
 * Sign-ins of a process that ask the identity provider at once, with one call each; those of one client address, and those of it that wait
 * for that. Anybody can begin a sign-in, so one address must not take the turns of all others.
 */
const atOnce = { permits: 8, perKey: 4, maxWaiting: 64 }

/** Longer than any answer of an identity provider, in characters. */
const longestAnswer = 8_192

/**
 * Signing in to the dashboard by OpenID Connect: the authorization code flow with PKCE. `GET /dashboard/session` says whether it is
 * offered. `POST /dashboard/sign-in/begin` returns the URL where the person signs in. The identity provider sends the browser back to
 * `/dashboard/signed-in`, which is the dashboard's page; the page passes the answer to `POST /dashboard/sign-in/finish`. So the
 * browser sends all cookies as a page of the gateway, and none has to be sent with a link of another site.
 */
export const layer: Layer.Layer<
  never,
  never,
  Credentials | Database | Egress | HttpRouter.HttpRouter | IdTokens | Ingress | RateLimiter
> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const database = yield* Effect.context<Database>()
    const egress = yield* Egress
    const key = yield* BrowserSessionKey
    const limiter = yield* RateLimiter
    const settings = yield* SignInSettings
    const { publicUrl } = yield* Ingress
    const { server, verify } = yield* IdTokens
    const { stranger } = yield* Credentials
    const turns = permitsByKey(atOnce)

    const client: SignInClient | null =
      settings.issuer === null || settings.clientSecret === null
        ? null
        : {
            id: settings.issuer.audience,
            secret: settings.clientSecret,
            redirectUri: `${publicUrl}/dashboard/signed-in`
          }

    yield* router.add("GET", "/dashboard/session", (request) =>
      Effect.as(
        ofOwnPage(request),
        HttpServerResponse.jsonUnsafe({
          identity_provider: client !== null,
          demo: takesDemo(settings, request.headers)
        })
      )
    )

    const configured =
      client === null || server === null || verify === null
        ? Effect.fail(fail("LOGIN_DISABLED", "no identity provider is configured here for the dashboard"))
        : Effect.succeed({ client, server, verify })

    yield* router.add("POST", "/dashboard/sign-in/begin", (request) =>
      Effect.gen(function* () {
        yield* ofOwnPage(request)
        const { client, server } = yield* configured
        const { origin } = request.headers
        // The cookie of another name of the gateway would not come back with the answer.
        if (origin !== undefined && hostOf(origin) !== hostOf(publicUrl)) {
          return yield* fail(
            "LOGIN_DISABLED",
            `the identity provider leads back to ${publicUrl}/dashboard/: sign in there`
          )
        }
        const { authorization_endpoint } = yield* server
        const [state, nonce, verifier] = [generateRandomState(), generateRandomNonce(), generateRandomCodeVerifier()]
        const challenge = yield* Effect.promise(() => calculatePKCECodeChallenge(verifier))
        const url = new URL(authorization_endpoint)
        for (const [name, value] of Object.entries({
          client_id: client.id,
          redirect_uri: client.redirectUri,
          response_type: "code",
          scope: "openid email profile",
          state,
          nonce,
          code_challenge: challenge,
          code_challenge_method: "S256"
        })) {
          url.searchParams.set(name, value)
        }
        const now = yield* Clock.currentTimeMillis
        return HttpServerResponse.setHeader(
          HttpServerResponse.jsonUnsafe({ url: url.href }),
          "set-cookie",
          setting(started, key, [state, nonce, verifier], publicUrl, now)
        )
      }).pipe(Effect.orDie)
    )

    const finished = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const { client, server, verify } = yield* configured
      const now = yield* Clock.currentTimeMillis
      const [state, nonce, verifier] = textsOf(started, key, request.headers, publicUrl, now) ?? []
      const { answer } = yield* readJsonObject(request)
      if (state === undefined || nonce === undefined || verifier === undefined) {
        return yield* fail(
          "OAUTH2_STATE_INVALID",
          "no sign-in was started in this browser during the last ten minutes; sign in again"
        )
      }
      if (!(yield* limiter.take(once, hashToken(state))).allowed) {
        return yield* fail("OAUTH2_STATE_INVALID", "this sign-in has ended already; sign in again")
      }
      if (typeof answer !== "string" || answer.length > longestAnswer) {
        return yield* fail("OAUTH2_STATE_INVALID", "the identity provider's answer is missing or too long")
      }
      const identity = yield* turns.within(yield* clientAddress)(
        Effect.gen(function* () {
          const idToken = yield* exchangeCode(egress, yield* server, client, { state, verifier }, answer)
          return yield* verify(idToken, nonce)
        }),
        fail("QUEUE_UNAVAILABLE", "too many people sign in at this moment; sign in again")
      )
      const { token } = yield* Effect.provideContext(admit(settings, identity, null), database)
      return HttpServerResponse.setHeader(
        HttpServerResponse.jsonUnsafe({ ok: true }),
        "set-cookie",
        begun(key, token, publicUrl, now)
      )
    })

    yield* router.add("POST", "/dashboard/sign-in/finish", (request) =>
      Effect.gen(function* () {
        yield* ofOwnPage(request)
        // Whatever the answer is, this sign-in is over.
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(
            HttpServerResponse.mergeCookies(response, Cookies.fromSetCookie([removing(started, publicUrl)]))
          )
        )
        // As at the API, only failures are counted for an address.
        return yield* Effect.tapError(finished(request), (error) => (isRefusal(error) ? stranger : Effect.void))
      }).pipe(Effect.scoped, Effect.orDie)
    )
  })
)
