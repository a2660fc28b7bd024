import { Clock, Context, Effect, Layer, Option } from "effect"
import { type Headers, HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RateLimiter, type Verdict } from "@tidegate/coordination/limits/RateLimiter"
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
/** How often what has been let in for long is looked at again. */
const lookedAtEveryMs = 1_000
/** Whole seconds, rounded up: who waits that long has waited long enough. */
const seconds = (ms: number): number => Math.ceil(ms / 1_000)

/** What is counted, by whose allowance it is. */
const spent = {
  key: { what: "calls with this API key", told: "api_key", policy: "key" },
  project_key: { what: "calls with this API key", told: "project_key", policy: "key" },
  session: { what: "calls of this user", told: "session", policy: "session" },
  address: { what: "calls without a valid credential from this address", told: "address", policy: "address" },
  bin: { what: "reads of this bin", told: "bin", policy: "bin" },
  maker: { what: "bins made from this address", told: "address", policy: "maker" }
} as const

/** The token of `Authorization: Bearer <token>`; null: there is none. */
export const bearerOf = (headers: Headers.Headers): string | null =>
  /^bearer +(\S{1,2048})$/i.exec(headers["authorization"] ?? "")?.[1] ?? null

/** Fails, and lets the answer say after how many seconds to come again. */
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

/** In how many whole seconds, at least one. */
export const retryIn = (ms: number): number => Math.max(1, seconds(ms))

/** Lets the answer tell what is left; fails when nothing is. */
export const spend = Effect.fnUntraced(function* (
  scope: keyof typeof spent,
  { allowed, limit, remaining, resetMs, retryMs, windowMs }: Verdict
): Effect.fn.Return<void, GatewayError, HttpServerRequest.HttpServerRequest> {
  const { policy, told, what } = spent[scope]
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
        scope: told
      }
    )
  }
})

/** The client that calls, as far as its address tells. */
export const client = Effect.map(HttpServerRequest.HttpServerRequest, ({ remoteAddress }) =>
  clientOf(Option.getOrElse(remoteAddress, () => ""))
)

/** Whether a call has failed by what it brought. Behind one address may be everybody, so that only such calls are counted by it. */
export const isRefusal = ({ code }: Pick<GatewayError, "code">): boolean => statusOf[code] < 500

/** A session's token, and no API key: those that were made here begin otherwise, and others are not taken when they are of this form. */
export const sessionToken = /^ses_[0-9a-f]{64}$/

/** Is told of a key that was right, and is not let in any more. */
type Refused = (key: KeyInUse, reason: KeyReason) => Effect.Effect<void>

const untold: Refused = () => Effect.void

/**
 * Who calls, by an API key or a session's token. Looks it up by its hash with every call, so that a rotated key and an ended session are
 * dead everywhere at once; it is a read of a unique index, which calls at the same time share. Fails closed: a database that does not answer is a 503, never an unchecked call.
 *
 * Counts, of each client address, the calls that bring no valid one, wherever they were made. Beyond its limit an address is
 * answered 429, but a valid key is let in from there all the same: behind a proxy or a NAT one address is many callers, and
 * one of them with a wrong key must not shut out the others. What keeps a key from being guessed is its length.
 * Fails open where there is no Redis to ask: each process counts for itself.
 */
export class Credentials extends Context.Service<
  Credentials,
  {
    readonly callerOf: (
      credential: string,
      refused?: Refused
    ) => Effect.Effect<Caller, GatewayError, HttpServerRequest.HttpServerRequest>
    /**
     * Looks at what the credential is, and gives what completes within a second or so of each change of that: revoked, disabled, its scopes others,
     * its session over. Asked for before it is let in, it misses none. It is no call, and is not in the audit. All that is open in a process
     * is looked at in the same moment, and so by one statement for each kind of credential. While the database does not answer, nothing has changed.
     */
    readonly changes: (credential: string) => Effect.Effect<Effect.Effect<void>>
    /** Counts a call that brings no credential because it is to get one. */
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
        // No credential arrives as an empty one.
        if (credential === "") {
          return yield* fail(
            "UNAUTHENTICATED",
            "send a team's API key or a session's token: Authorization: Bearer <key>"
          )
        }
        if (sessionToken.test(credential)) {
          const signedIn = yield* read(findSession(credential))
          if (signedIn === null) return yield* fail("SESSION_EXPIRED", "the session is over; sign in again")
          return {
            kind: "session",
            signedIn,
            isSiteAdmin: isSiteAdmin(settings, { ...signedIn, email: signedIn.user.email })
          }
        }
        const found = yield* keyOf(credential)
        if (found !== null && found.status === "active") return { kind: "key", key: found.key }
        // One answer for all: whether a key was ever valid is told to its owners alone.
        if (found !== null) yield* refused(found.key, found.status === "disabled" ? "key_disabled" : "key_revoked")
        return yield* fail("INVALID_API_KEY", "the API key is not valid")
      })

      const stranger = Effect.gen(function* () {
        yield* spend("address", yield* limiter.take(failures, yield* client))
      })

      const told = (credential: string): Effect.Effect<string, GatewayError> =>
        Effect.map(
          sessionToken.test(credential) ? read(findSession(credential)) : keyOf(credential),
          (found: unknown) => JSON.stringify(found)
        )

      const changes = Effect.fnUntraced(function* (credential: string) {
        let last = Option.getOrNull(yield* Effect.option(told(credential)))
        return Effect.gen(function* () {
          while (true) {
            const now = Option.getOrNull(yield* Effect.option(told(credential)))
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
