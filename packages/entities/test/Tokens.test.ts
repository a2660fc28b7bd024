import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { RequestListener } from "node:http"
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"
import { Egress } from "@tidegate/egress/Egress"
import { compileOutboundAuth, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { loopbackOnly } from "../../egress/src/Guard.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import {
  accountFile,
  clientOf,
  redirectUri,
  TokenProvider,
  type TokenProviderOptions
} from "../../../test/support/TokenProvider.ts"
import { tokenStore } from "../src/Destination/DestinationTokens.ts"
import type { Credential } from "../src/tokens/Credential.ts"
import { askForTokens } from "../src/tokens/TokenEndpoint.ts"
import { makeTokens } from "../src/tokens/Tokens.ts"

/** The tokens of destinations, obtained from a real provider and stored in a real database, by a clock of the test's. */

const world = ControlPlane.layer.pipe(
  Layer.provideMerge(Egress.layer({ allow: loopbackOnly })),
  Layer.provide(Layer.effectDiscard(TestClock.setTime(Date.now())))
)

const provided = (options?: TokenProviderOptions) =>
  Effect.acquireRelease(
    Effect.promise(() => TokenProvider.start(options)),
    (provider) => Effect.promise(() => provider.close())
  )

const settingsOf = (destinationId: string, auth_type: string, auth: object): Credential => {
  const { grant } = compileOutboundAuth(Result.getOrThrow(validateOutboundAuth(auth_type, auth)))
  const owner = { id: destinationId, team_id: ControlPlane.team }
  return { owner, grant: grant!, endpoint: grant!.tokenUrl, scope: grant!.scope }
}

/** The tokens of a destination of its own, and of a runner that has taken it over. */
const destination = Effect.fnUntraced(function* (auth_type: string, auth: object) {
  const { id } = yield* ControlPlane.createDestination()
  const runner = Effect.fnUntraced(function* (auth_: object = auth) {
    const tokens = yield* makeTokens(() => true, yield* tokenStore)
    const settings = settingsOf(id, auth_type, auth_)
    tokens.configure(settings)
    const renewed = (refused: string) => tokens.renewed(settings, refused)
    return { ...tokens, obtain: tokens.obtain(settings), renewed, obtainBy: tokens.obtain }
  })
  return { id, runner, settings: settingsOf(id, auth_type, auth) }
})

const basic = clientOf("client_secret_basic")
const credentials = (provider: TokenProvider, change: object = {}) => ({
  token_url: provider.tokenUrl,
  ...basic,
  scope: "events:write",
  ...change
})

/** A refresh token that somebody has given the gateway. */
const refreshTokenOf = (provider: TokenProvider) =>
  Effect.gen(function* () {
    const asked = new URLSearchParams({
      client_id: basic.client_id,
      redirect_uri: redirectUri,
      response_type: "code",
      scope: "openid offline_access events:write",
      prompt: "consent",
      code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
      code_challenge_method: "S256"
    })
    const back = yield* Effect.promise(() =>
      provider.consent(`${provider.authorizationUrl}?${asked.toString()}`, "ada")
    )
    return back.searchParams.get("code")!
  })
const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

/** The provider answers when it is let: `asked`, once it is. */
const heldBack = (provider: TokenProvider, token: object) => {
  const asked = Promise.withResolvers<() => void>()
  provider.instead = (_, response) =>
    asked.resolve(() => void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(token)))
  return Effect.promise(() => asked.promise)
}

const failure =
  (code: string): RequestListener =>
  (_, response) =>
    void response
      .writeHead(400, { "content-type": "application/json" })
      .end(JSON.stringify({ error: code, error_description: basic.client_secret }))

/**
 * Waits for a fiber, as the time passes that it waits for: not much faster than it does, because connecting to the database has a time, too, and a
 * busy machine takes longer for that than a turn of the loop.
 */
const passing = Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>) {
  while (fiber.pollUnsafe() === undefined) {
    yield* TestClock.adjust("20 millis")
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1)))
  }
  return yield* Fiber.join(fiber)
})

layer(world)("Tokens of a destination", (it) => {
  for (const method of ["client_secret_basic", "client_secret_post"] as const) {
    it.effect(`A token by ${method} is requested once for all, and again a minute before its end`, () =>
      Effect.gen(function* () {
        const provider = yield* provided({ life: 600 })
        const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider, clientOf(method)))
        const tokens = yield* runner()
        const all = yield* Effect.all(
          Array.from({ length: 100 }, () => tokens.obtain),
          { concurrency: "unbounded" }
        )
        expect(new Set(all.map(({ value }) => value)).size).toBe(1)
        expect(provider.given).toEqual([
          expect.objectContaining({ access_token: all[0]!.value, scope: "events:write" })
        ])
        expect(provider.calls.length).toBe(1)
        expect(provider.calls[0]!.authorization === null).toBe(method === "client_secret_post")
        yield* TestClock.adjust("530 seconds")
        expect((yield* tokens.obtain).value).toBe(all[0]!.value)
        yield* TestClock.adjust("20 seconds")
        expect((yield* tokens.obtain).value).not.toBe(all[0]!.value)
        expect(provider.calls.length).toBe(2)
      })
    )
  }

  const answers: ReadonlyArray<readonly [how: string, coding: string | null, write: (json: Buffer) => Buffer]> = [
    ["compressed by gzip", "gzip", gzipSync],
    ["compressed by deflate", "deflate", deflateSync],
    ["compressed by brotli", "br", brotliCompressSync],
    ["behind a byte order mark", null, (json) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), json])]
  ]
  for (const [how, coding, write] of answers) {
    it.effect(`A token is accepted from an answer ${how}`, () =>
      Effect.gen(function* () {
        const provider = yield* provided()
        provider.instead = (_, response) =>
          void response
            .writeHead(200, coding === null ? {} : { "content-encoding": coding })
            .end(write(Buffer.from('{"access_token":"t0ken","token_type":"Bearer","expires_in":3600}')))
        const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
        expect((yield* (yield* runner()).obtain).value).toBe("t0ken")
      })
    )
  }

  it.effect("A service account gets tokens with a signed assertion", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const auth = { service_account_key: JSON.stringify(accountFile(provider.tokenUrl)), scope: "events:write" }
      const { runner } = yield* destination("SERVICE_ACCOUNT", auth)
      // The provider's clock is real, and the assertion's is the test's.
      expect((yield* (yield* runner()).obtain).value).toBe(provider.given[0]!.access_token)
      expect(provider.given[0]!.scope).toBe("events:write")
    })
  )

  it.effect("A token is requested for an audience if one is set", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const auth = credentials(provider, { audience: "https://api.example.com" })
      const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", auth)
      yield* (yield* runner()).obtain
      expect(provider.calls[0]!.form).toMatchObject({ audience: "https://api.example.com", scope: "events:write" })
    })
  )

  it.effect("Another runner reuses the stored token without a request", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const { id, runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
      const { value } = yield* (yield* runner()).obtain
      expect((yield* (yield* runner()).obtain).value).toBe(value)
      expect(provider.calls.length).toBe(1)
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ row: string }>`
        select row_to_json(t)::text as row from destination_tokens t where destination_id = ${id}`
      expect(row!.row).toContain("v1.")
      for (const secret of [value, basic.client_secret]) expect(row!.row).not.toContain(secret)
    })
  )

  // By the real clock: connections to the database are opened meanwhile.
  it.effect("Only one of two runners that both act as owner requests a token", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
      const [one, two] = [yield* runner(), yield* runner()]
      const [a, b] = yield* TestClock.withLive(Effect.all([one.obtain, two.obtain], { concurrency: 2 }))
      expect(a.value).toBe(b.value)
      expect(provider.calls.length).toBe(1)
    })
  )

  it.effect("Each new refresh token is stored before it is needed, by any runner", () =>
    Effect.gen(function* () {
      const provider = yield* provided({ life: 600 })
      const code = yield* refreshTokenOf(provider)
      const auth = { ...credentials(provider), code, code_verifier: verifier, redirect_uri: redirectUri }
      const { runner } = yield* destination("OAUTH2_AUTHORIZATION_CODE", auth)
      const first = yield* (yield* runner()).obtain
      const seen = new Set([first.value])
      for (let i = 1; i <= 3; i++) {
        yield* TestClock.adjust("10 minutes")
        // Each time by a runner that knows only what is stored.
        seen.add((yield* (yield* runner()).obtain).value)
      }
      expect(seen.size).toBe(4)
      expect(provider.calls.map(({ form }) => form["grant_type"])).toEqual([
        "authorization_code",
        "refresh_token",
        "refresh_token",
        "refresh_token"
      ])
      // Reused, an old one would have ended them all.
      expect(new Set(provider.calls.map(({ form }) => form["refresh_token"])).size).toBe(4)
    })
  )

  it.effect(
    "Only a refresh token survives a change of the client's secret, and no token of another client is kept",
    () =>
      Effect.gen(function* () {
        const provider = yield* provided()
        const code = yield* refreshTokenOf(provider)
        const auth = { ...credentials(provider), code, code_verifier: verifier, redirect_uri: redirectUri }
        const { runner } = yield* destination("OAUTH2_AUTHORIZATION_CODE", auth)
        yield* (yield* runner()).obtain
        // The same in another way: what is held was obtained with other settings.
        const changed = yield* runner({ ...auth, scope: "events:write openid" })
        yield* changed.obtain
        expect(provider.calls.map(({ form }) => form["grant_type"])).toEqual(["authorization_code", "refresh_token"])
        const other = yield* runner({ ...auth, ...clientOf("client_secret_post") })
        const refusal = yield* Effect.flip(other.obtain)
        expect(refusal.message).toContain("invalid_grant")
        expect(provider.calls.at(-1)!.form).toMatchObject({ grant_type: "authorization_code" })
      })
  )

  it.effect("A token request continues when nobody waits any more, and its result is kept", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
      const tokens = yield* runner()
      const asked = heldBack(provider, { access_token: "t0ken" })
      const waiting = yield* Effect.forkChild(tokens.obtain)
      const answer = yield* asked
      // At once, and not when the provider has answered.
      yield* Fiber.interrupt(waiting)
      answer()
      expect((yield* tokens.obtain).value).toBe("t0ken")
      expect((yield* (yield* runner()).obtain).value).toBe("t0ken")
      expect(provider.calls.length).toBe(1)
    })
  )

  it.effect("A consent does not wait for a slow token request, and its code stays unused", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const auth = credentials(provider, { authorization_url: provider.authorizationUrl })
      const { runner, settings } = yield* destination("OAUTH2_AUTHORIZATION_CODE", auth)
      const ask = { kind: "code", code: yield* refreshTokenOf(provider), verifier, redirectUri } as const
      const [tokens, other] = [yield* runner(), yield* runner()]
      const asked = heldBack(provider, { access_token: "first", token_type: "Bearer", expires_in: 60 })
      const answered = yield* Effect.forkChild(other.exchange(settings, { ...ask, code: "another" }))
      const answer = yield* asked
      // The asking of its own process, and that of another, which has the claim.
      const both = yield* Effect.forkChild(
        Effect.all([other.exchange(settings, ask), tokens.exchange(settings, ask)], { concurrency: 2 })
      )
      expect(yield* passing(both)).toEqual(["busy", "busy"])
      expect(provider.calls.length).toBe(1)
      answer()
      expect(yield* Fiber.join(answered)).toBe(false)
      provider.instead = null
      // Who was sent away may still be looking for the claim: the clock passes faster here than the database answers.
      let ended: boolean | "busy" = "busy"
      while (ended === "busy") ended = yield* passing(yield* Effect.forkChild(tokens.exchange(settings, ask)))
      expect(ended).toBe(true)
    })
  )

  it.effect("A token belongs to the settings that requested it, and is not given to others", () =>
    Effect.gen(function* () {
      const [before, after] = [yield* provided(), yield* provided()]
      const { id, runner, settings } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(before))
      const tokens = yield* runner()
      const asked = heldBack(before, { access_token: "t0ken" })
      const first = yield* Effect.forkChild(tokens.obtain)
      const answer = yield* asked
      const other = settingsOf(id, "OAUTH2_CLIENT_CREDENTIALS", credentials(after))
      tokens.configure(other)
      const second = yield* Effect.forkChild(tokens.obtainBy(other))
      expect((yield* Effect.flip(tokens.obtainBy(settings))).message).toContain("have changed")
      expect((yield* Effect.flip(tokens.renewed("t0ken"))).message).toContain("have changed")
      answer()
      expect((yield* Fiber.join(first)).value).toBe("t0ken")
      expect((yield* Fiber.join(second)).value).toBe(after.given[0]!.access_token)
    })
  )

  it.effect("A token that could not be stored is stored before another one is requested", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const provider = yield* provided()
      const auth = { ...credentials(provider), refresh_token: "r3fresh" }
      const { runner } = yield* destination("OAUTH_REFRESH_TOKEN", auth)
      const tokens = yield* runner()
      const asked = heldBack(provider, { access_token: "t0ken", refresh_token: "the-next-one", expires_in: 86_400 })
      const waiting = yield* Effect.forkChild(Effect.flip(tokens.obtain))
      const answer = yield* asked
      yield* sql`alter table destination_tokens rename to out_of_reach`
      answer()
      while (waiting.pollUnsafe() === undefined) {
        yield* TestClock.adjust("250 millis")
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      expect((yield* Fiber.join(waiting)).message).toBe("the gateway cannot read its tokens")
      yield* sql`alter table out_of_reach rename to destination_tokens`
      yield* TestClock.adjust("1 second")
      expect((yield* tokens.obtain).value).toBe("t0ken")
      expect(provider.calls.length).toBe(1)
      yield* TestClock.adjust("1 day")
      const again = heldBack(provider, { access_token: "an0ther" })
      const last = yield* Effect.forkChild((yield* runner()).obtain)
      const end = yield* again
      end()
      expect((yield* Fiber.join(last)).value).toBe("an0ther")
      expect(provider.calls.map(({ form }) => form["refresh_token"])).toEqual(["r3fresh", "the-next-one"])
    })
  )

  it.effect("A token that the target rejects is renewed once, and then less and less often", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
      const tokens = yield* runner()
      const first = (yield* tokens.obtain).value
      const renewed = yield* Effect.all(
        Array.from({ length: 50 }, () => tokens.renewed(first)),
        { concurrency: "unbounded" }
      )
      expect(new Set(renewed.map((token) => token?.value)).size).toBe(1)
      expect(provider.calls.length).toBe(2)
      const second = renewed[0]!.value
      expect(yield* tokens.renewed(second)).toBe(null)
      yield* TestClock.adjust("10 seconds")
      const third = (yield* tokens.renewed(second))!.value
      expect(provider.calls.length).toBe(3)
      yield* TestClock.adjust("10 seconds")
      expect(yield* tokens.renewed(third)).toBe(null)
      // One that was taken for a while is renewed as soon as the first.
      yield* TestClock.adjust("10 seconds")
      const fourth = (yield* tokens.renewed(third))!.value
      tokens.accepted()
      yield* TestClock.adjust("40 seconds")
      expect((yield* tokens.renewed(fourth))!.value).not.toBe(fourth)
      yield* TestClock.adjust("10 seconds")
      expect(provider.calls.length).toBe(5)
    })
  )
})

layer(world)("Token provider that gives no token", (it) => {
  const endings: ReadonlyArray<readonly [name: string, instead: RequestListener, message: RegExp]> = [
    ["does not know the client", failure("invalid_client"), /HTTP 400 \(invalid_client\): \*\*\*\*\S{0,4}$/],
    [
      "describes its error",
      (_, response) =>
        void response.writeHead(400).end(
          JSON.stringify({
            error: "invalid_grant",
            error_description: "AADSTS700082: The refresh token\nhas expired"
          })
        ),
      /HTTP 400 \(invalid_grant\): AADSTS700082: The refresh token has expired$/
    ],
    [
      "reports an error with status 200",
      (_, response) => void response.end('{"error":"bad_verification_code","error_description":"The code is over."}'),
      /HTTP 200 \(bad_verification_code\): The code is over\.$/
    ],
    [
      "repeats a secret in its error",
      (_, response) =>
        void response.writeHead(400).end(JSON.stringify({ error: `No client\nhas ${basic.client_secret}` })),
      /HTTP 400 \(No client has \*{4}\S{0,4}\)$/
    ],
    [
      "returns its error as an object",
      (_, response) =>
        void response.end(
          JSON.stringify({ error: { message: "The code is used up.", type: "OAuthException", code: 100 } })
        ),
      /HTTP 200 \(OAuthException\): The code is used up\.$/
    ],
    [
      "returns a very long error",
      (_, response) => void response.writeHead(400).end(JSON.stringify({ error_description: "x".repeat(10_000) })),
      /HTTP 400: x{200}…$/
    ],
    [
      "answers in an unknown encoding",
      (_, response) => void response.writeHead(200, { "content-encoding": "compress" }).end("abc"),
      /content-encoding that cannot be read$/
    ],
    [
      "answers with a decompression bomb",
      (_, response) =>
        void response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(10_000_000))),
      /content-encoding that cannot be read$/
    ],
    ["answers with status 500", (_, response) => void response.writeHead(500).end("oops"), /HTTP 500$/],
    ["answers with HTML", (_, response) => void response.end("<html>"), /no JSON object$/],
    ["answers with a list", (_, response) => void response.end("[]"), /no bearer token$/],
    ["answers without a token", (_, response) => void response.end('{"token_type":"bearer"}'), /no bearer token$/],
    [
      "answers with another type of token",
      (_, response) => void response.end('{"access_token":"a","token_type":"mac"}'),
      /no bearer token$/
    ],
    [
      "answers with a token that is no header value",
      (_, response) => void response.end('{"access_token":"a\\r\\nx: y"}'),
      /no bearer token$/
    ],
    ["answers with endless nesting", (_, response) => void response.end("[".repeat(60_000)), /no JSON object$/],
    ["sends a megabyte", (_, response) => void response.end(`"${"a".repeat(1_000_000)}"`), /more than 65536 bytes$/],
    [
      "redirects the request",
      (_, response) => void response.writeHead(307, { location: "http://127.0.0.1:1/" }).end(),
      /HTTP 307$/
    ],
    ["hangs up", (request) => void request.socket.destroy(), /could not be asked: (SOCKET_CLOSED|CONNECTION_RESET)$/]
  ]
  for (const [name, instead, message] of endings) {
    it.effect(`A provider that ${name} fails the attempt without showing a secret`, () =>
      Effect.gen(function* () {
        const provider = yield* provided()
        provider.instead = instead
        const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
        const why = yield* Effect.flip((yield* runner()).obtain)
        expect(why.message).toMatch(message)
        expect(why.message).not.toContain(basic.client_secret)
        expect(why.waitMs).toBeGreaterThan(0)
      })
    )
  }

  it.effect("A failing provider gets few requests for a thousand events, and none of another runner", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      provider.instead = (_, response) => void response.writeHead(503).end()
      const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
      const tokens = yield* runner()
      const all = Array.from({ length: 1_000 }, () => Effect.flip(tokens.obtain))
      yield* Effect.all(all, { concurrency: 50 })
      expect(provider.calls.length).toBe(1)
      yield* Effect.flip((yield* runner()).obtain)
      expect(provider.calls.length).toBe(1)
      // Twice as long each time: about nine times in five minutes.
      for (let second = 0; second < 300; second++) {
        yield* TestClock.adjust("1 second")
        yield* Effect.flip(tokens.obtain)
      }
      expect(provider.calls.length).toBeGreaterThan(6)
      expect(provider.calls.length).toBeLessThan(11)
      provider.instead = null
      yield* TestClock.adjust("10 minutes")
      expect((yield* tokens.obtain).value).toBe(provider.given[0]!.access_token)
    })
  )

  it.effect("A provider that rejects is asked again after a minute, not before", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      provider.instead = failure("invalid_grant")
      const auth = { ...credentials(provider), refresh_token: "r3fresh" }
      const { runner } = yield* destination("OAUTH_REFRESH_TOKEN", auth)
      const tokens = yield* runner()
      for (let second = 0; second < 60; second++) {
        expect((yield* Effect.flip(tokens.obtain)).refused).toBe(true)
        yield* TestClock.adjust("1 second")
      }
      expect(provider.calls.length).toBe(1)
      // Other settings are another question.
      const other = settingsOf((yield* ControlPlane.createDestination()).id, "OAUTH_REFRESH_TOKEN", {
        ...auth,
        refresh_token: "an0ther"
      })
      tokens.configure(other)
      yield* Effect.flip(tokens.obtainBy(other))
      expect(provider.calls.map(({ form }) => form["refresh_token"])).toEqual(["r3fresh", "an0ther"])
    })
  )

  it.effect.each([
    ["90", 90_000],
    ["90.5", 90_500],
    ["Fri, 02 Jan 2026 00:01:30 GMT", 90_000]
  ] as const)("A provider is left alone for the time in its Retry-After (%s)", ([after, waitMs]) =>
    Effect.gen(function* () {
      const provider = yield* provided()
      provider.instead = (_, response) =>
        void response.writeHead(503, { "retry-after": after, date: "Fri, 02 Jan 2026 00:00:00 GMT" }).end()
      const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
      expect((yield* Effect.flip((yield* runner()).obtain)).waitMs).toBe(waitMs)
    })
  )

  it.effect("The last token is used while it is valid, even if the provider fails", () =>
    Effect.gen(function* () {
      const provider = yield* provided({ life: 600 })
      const { runner } = yield* destination("OAUTH2_CLIENT_CREDENTIALS", credentials(provider))
      const tokens = yield* runner()
      const first = (yield* tokens.obtain).value
      provider.instead = (_, response) => void response.writeHead(503).end()
      yield* TestClock.adjust("550 seconds")
      expect((yield* tokens.obtain).value).toBe(first)
      expect((yield* tokens.obtain).value).toBe(first)
      expect(provider.calls.length).toBe(2)
      yield* TestClock.adjust("60 seconds")
      yield* Effect.flip(tokens.obtain)
    })
  )

  it.effect("A token endpoint at a forbidden address is not called", () =>
    Effect.gen(function* () {
      const egress = yield* Egress
      const settings = settingsOf("des_x", "OAUTH2_CLIENT_CREDENTIALS", {
        ...basic,
        token_url: "http://169.254.169.254/latest"
      })
      const why = yield* Effect.flip(askForTokens(egress, settings, { kind: "own" }, () => true))
      expect(why.message).toBe("the token endpoint could not be asked: TARGET_NOT_ALLOWED")
    })
  )

  it.effect("No token is requested before somebody has consented", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const auth = { ...credentials(provider), authorization_url: provider.authorizationUrl }
      const { runner } = yield* destination("OAUTH2_AUTHORIZATION_CODE", auth)
      expect((yield* Effect.flip((yield* runner()).obtain)).message).toContain("nobody has consented yet")
      expect(provider.calls.length).toBe(0)
    })
  )
})
