import { Clock, Context, Effect, Layer, Option } from "effect"
import { type Headers, HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import type { Verdict } from "@tidegate/coordination/limits/Limit"
import { clientOf } from "@tidegate/model/ClientAddress"
import { fail, type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import { isProjectKey, type KeyInUse, type KeyReason } from "@tidegate/model/ProjectKey"
import type { Caller } from "@tidegate/model/Session"
import type { Database } from "@tidegate/storage/Database"
import { sessionsByToken } from "@tidegate/storage/teams/People"
import { projectKeysByText, teamKeysByText } from "@tidegate/storage/secrets/KeysInUse"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { read } from "./handlers/Calls.ts"
import { perMinute, RateLimits } from "./RateLimit.ts"
import { isSiteAdmin, SignInSettings } from "./SignInSettings.ts"

const hourMs = 3_600_000
/** How often the credentials of open streams are checked again. */
const lookedAtEveryMs = 1_000
/** Whole seconds, rounded up: after that time the caller may repeat. */
const seconds = (ms: number): number => Math.ceil(ms / 1_000)

/** The counted limits, by whose they are. */
const spent = {
  key: { what: "calls with this API key", scope: "api_key", policy: "key" },
  project_key: { what: "calls with this API key", scope: "project_key", policy: "key" },
  session: { what: "calls of this user", scope: "session", policy: "session" },
  address: { what: "calls without a valid credential from this address", scope: "address", policy: "address" },
  bin: { what: "reads of this bin", scope: "bin", policy: "bin" },
  maker: { what: "bins made from this address", scope: "address", policy: "maker" }
} as const

/** The token of `Authorization: Bearer <token>`; null: there is none. */
export const bearerOf = (headers: Headers.Headers): string | null =>
  /^bearer +(\S{1,2048})$/i.exec(headers["authorization"] ?? "")?.[1] ?? null

/** Fails, and adds the seconds after which to repeat to the answer. */
export const refuse = Effect.fnUntraced(function* (
  retry: number,
  message: string,
  data?: Readonly<Record<string, string | number>>
): Effect.fn.Return<never, GatewayError, HttpServerRequest.HttpServerRequest> {
  yield* HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", String(retry)))
  )
  return yield* fail("RATE_LIMITED", message, data)
})

/** The wait in whole seconds, at least one. */
export const retryIn = (ms: number): number => Math.max(1, seconds(ms))

/** Adds the remaining calls to the answer; fails when there are none. */
export const spend = Effect.fnUntraced(function* (
  kind: keyof typeof spent,
  { allowed, limit, remaining, resetMs, retryMs, windowMs }: Verdict
): Effect.fn.Return<void, GatewayError, HttpServerRequest.HttpServerRequest> {
  const { policy, scope, what } = spent[kind]
  const headers = {
    "ratelimit-policy": `"${policy}";q=${limit};w=${windowMs / 1_000}`,
    ratelimit: `"${policy}";r=${remaining};t=${seconds(resetMs)}`,
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(seconds(resetMs))
  }
  yield* HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeaders(response, headers))
  )
  if (!allowed) {
    const retry = retryIn(retryMs)
    yield* refuse(
      retry,
      `there are at most ${limit} ${what} ${windowMs < hourMs ? "a minute" : "an hour"}; repeat the call after ${retry} s`,
      {
        retry_after_seconds: retry,
        limit,
        scope
      }
    )
  }
})

/** The calling client, by its address. */
export const client = Effect.map(HttpServerRequest.HttpServerRequest, ({ remoteAddress }) =>
  clientOf(Option.getOrElse(remoteAddress, () => ""))
)

/** Whether a call failed because of what it sent. Many callers may share an address, so only such calls are counted for it. */
export const isRefusal = ({ code }: Pick<GatewayError, "code">): boolean => statusOf[code] < 500

/**
 * A session's token. No API key has this form: those that the gateway makes begin differently, and a custom key of this form is
 * refused.
 */
export const sessionToken = /^ses_[0-9a-f]{64}$/

/** Called with a key that exists but is no longer accepted. */
type Refused = (key: KeyInUse, reason: KeyReason) => Effect.Effect<void>

const untold: Refused = () => Effect.void

/**
 * Identifies the caller by an API key or a session's token. Each call looks its hash up, so that a rotated key and an ended
 * session are invalid everywhere at once. It is a read of a unique index, which concurrent calls share. Fails closed: when the
 * database does not answer, the result is a 503 and never an unchecked call.
 *
 * For each client address, calls without a valid credential are counted, on any route. Beyond its limit an address gets 429, but
 * a valid key from it is still accepted: behind a proxy or NAT, one address is many callers, and one of them with a wrong key
 * must not lock out the others. The length of a key prevents guessing. Fails open without Redis: each process counts on its own.
 */
export class Credentials extends Context.Service<
  Credentials,
  {
    readonly callerOf: (
      credential: string,
      refused?: Refused
    ) => Effect.Effect<Caller, GatewayError, HttpServerRequest.HttpServerRequest>
    /**
     * Reads the state of a credential, and returns an effect that completes within about a second after each change: revoked,
     * disabled, other scopes, session ended. When it is called before the credential is accepted, no change is missed. It does
     * not count as a call, and is not in the audit. All open credentials of a process are checked at the same moment, with one
     * statement per kind of credential. While the database does not answer, nothing counts as changed.
     */
    readonly changes: (credential: string) => Effect.Effect<Effect.Effect<void>>
    /** Counts a call without a credential, because its purpose is to get one. */
    readonly stranger: Effect.Effect<void, GatewayError, HttpServerRequest.HttpServerRequest>
  }
>()("@tidegate/api/Credentials") {
  static readonly layer: Layer.Layer<Credentials, never, Database | RateLimiter | Secrets> = Layer.effect(
    Credentials,
    Effect.gen(function* () {
      const findTeamKey = yield* teamKeysByText
      const findProjectKey = yield* projectKeysByText
      const findSession = yield* sessionsByToken
      const settings = yield* SignInSettings
      const { failedPerAddress } = yield* RateLimits
      const limiter = yield* RateLimiter
      const failures = perMinute("failed_calls", failedPerAddress)

      const keyOf = (credential: string) => read((isProjectKey(credential) ? findProjectKey : findTeamKey)(credential))

      const find = Effect.fnUntraced(function* (
        credential: string,
        refused: Refused
      ): Effect.fn.Return<Caller, GatewayError> {
        // A missing credential arrives as an empty one.
        if (credential === "") {
          return yield* fail(
            "UNAUTHENTICATED",
            "send a team's API key or a session's token: Authorization: Bearer <key>"
          )
        }
        if (sessionToken.test(credential)) {
          const signedIn = yield* read(findSession(credential))
          if (signedIn === null) return yield* fail("SESSION_EXPIRED", "the session has ended; sign in again")
          return {
            kind: "session",
            signedIn,
            isSiteAdmin: isSiteAdmin(settings, { ...signedIn, email: signedIn.user.email })
          }
        }
        const found = yield* keyOf(credential)
        if (found !== null) {
          const { expiresAt, key, status } = found
          if (status === "active") return { kind: "key", key }
          yield* refused(key, `key_${status}`)
          if (status === "expired" && expiresAt !== null) {
            // Who has the whole key may learn its end: a client that says why it is refused is mended sooner.
            const expired_at = new Date(expiresAt).toISOString()
            return yield* fail(
              "INVALID_API_KEY",
              `the API key expired at ${expired_at}; an owner of the team can give it more time or make another`,
              { expired_at }
            )
          }
        }
        // One answer for all others: only its owners may learn whether a key was ever valid.
        return yield* fail("INVALID_API_KEY", "the API key is not valid")
      })

      const stranger = Effect.gen(function* () {
        yield* spend("address", yield* limiter.take(failures, yield* client))
      })

      const callerOf = (credential: string): Effect.Effect<string, GatewayError> =>
        Effect.map(
          sessionToken.test(credential) ? read(findSession(credential)) : keyOf(credential),
          (found: unknown) => JSON.stringify(found)
        )

      const changes = Effect.fnUntraced(function* (credential: string) {
        let last = Option.getOrNull(yield* Effect.option(callerOf(credential)))
        return Effect.gen(function* () {
          while (true) {
            const now = Option.getOrNull(yield* Effect.option(callerOf(credential)))
            const isOther = now !== null && last !== null && now !== last
            last = now ?? last
            if (isOther) return
            yield* Effect.sleep(lookedAtEveryMs - ((yield* Clock.currentTimeMillis) % lookedAtEveryMs))
          }
        })
      })

      return Credentials.of({
        changes,
        callerOf: (credential, refused = untold) =>
          Effect.catchIf(
            find(credential, refused),
            ({ code }) => statusOf[code] === 401,
            (error) => Effect.andThen(stranger, error)
          ),
        stranger
      })
    })
  )
}
