import { describe, expect, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Egress } from "@tidegate/egress/Egress"
import { IdTokens } from "../src/IdTokens.ts"
import { audience, OpenIdProvider } from "./OpenIdProvider.ts"

/** ID tokens of a real provider, and those that are nearly its own. */

const people = {
  ada: { email: "ada@example.com", email_verified: true, name: "Ada", picture: "https://example.com/ada.png" },
  mallory: {
    email: "mallory@example.com",
    email_verified: false,
    name: `\u001b]0;\u202e\u009b${"x".repeat(300)}`,
    picture: "javascript:alert(1)"
  }
}

const withProvider = Effect.acquireRelease(
  Effect.promise(() => OpenIdProvider.start(people)),
  (provider) => Effect.promise(() => provider.close())
)

const verifier = Effect.fnUntraced(function* ({ issuer }: OpenIdProvider) {
  const tokens = IdTokens.layer({ issuer, audience }).pipe(Layer.provide(Egress.layer({ allow: ["127.0.0.0/8"] })))
  const { verify } = Context.get(yield* Layer.build(tokens), IdTokens)
  yield* TestClock.setTime(Date.now())
  return verify!
})

const codeOf = <A>(effect: Effect.Effect<A, { readonly code: string; readonly message: string }>) =>
  Effect.map(Effect.flip(effect), ({ code, message }) => `${code} ${message}`)

describe("ID token", () => {
  it.effect("ID token of the provider identifies the person", () =>
    Effect.gen(function* () {
      const provider = yield* withProvider
      const verify = yield* verifier(provider)
      const token = yield* Effect.promise(() => provider.idToken("ada", "nonce-1"))
      const { picture, ...ada } = people.ada
      const who = { issuer: provider.issuer, subject: "ada", ...ada, picture_url: picture }
      expect(yield* verify(token, null)).toEqual(who)
      expect(yield* verify(token, "nonce-1")).toEqual(who)
      expect(yield* codeOf(verify(token, "nonce-2"))).toMatch(/^INVALID_ID_TOKEN .*nonce$/)
      const other = yield* verify(yield* Effect.promise(() => provider.idToken("mallory", "n")), null)
      expect(other).toMatchObject({ email_verified: false, name: `]0;${"x".repeat(117)}`, picture_url: null })
      expect(provider.asked).toBe(1)
    })
  )

  it.effect("ID token is refused when any part of it is wrong", () =>
    Effect.gen(function* () {
      const provider = yield* withProvider
      const stranger = yield* withProvider
      const verify = yield* verifier(provider)
      const now = Math.floor(Date.now() / 1000)
      const signed = (claims: object, header: object = {}) =>
        Effect.promise(() => provider.sign({ ...claims }, { ...header }))
      expect((yield* verify(yield* signed({}), null)).subject).toBe("ada")
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
      const claims = part({ iss: provider.issuer, aud: audience, sub: "eve", iat: now, exp: now + 60 })
      const shared = `${part({ alg: "HS256" })}.${claims}`
      const whole = yield* signed({})
      const wrong: Readonly<Record<string, string>> = {
        "another issuer": yield* signed({ iss: "https://elsewhere.example" }),
        "another audience": yield* signed({ aud: "somebody-else" }),
        "several audiences, and no party": yield* signed({ aud: [audience, "somebody-else"] }),
        "another party": yield* signed({ azp: "somebody-else" }),
        "its time is over": yield* signed({ iat: now - 600, exp: now - 60 }),
        "its time is to come": yield* signed({ nbf: now + 600 }),
        "no end": yield* signed({ exp: undefined }),
        "no subject": yield* signed({ sub: undefined }),
        "an empty subject": yield* signed({ sub: "" }),
        "a subject that is too long": yield* signed({ sub: "x".repeat(256) }),
        "no signature": `${part({ alg: "none" })}.${claims}.`,
        "a shared secret": `${shared}.${createHmac("sha256", audience).update(shared).digest("base64url")}`,
        "somebody else's key": yield* Effect.promise(() => stranger.sign({ iss: provider.issuer })),
        "changed claims": `${whole.split(".")[0]}.${claims}.${whole.split(".")[2]}`,
        "cut short": whole.slice(0, -10),
        "no token": "no token",
        empty: ".."
      }
      for (const [name, token] of Object.entries(wrong)) {
        expect(yield* codeOf(verify(token, null)), name).toMatch(/^INVALID_ID_TOKEN /)
        expect(yield* codeOf(verify(token, null)), name).not.toContain("somebody-else")
      }
      expect(yield* codeOf(verify("x".repeat(20_000), null))).toContain("too long")
      // Tokens that name keys of their own do not make the gateway ask for them again and again.
      expect(provider.asked).toBe(1)
    })
  )

  it.effect("ID tokens follow a change of the provider's keys, and tokens of the old key are refused", () =>
    Effect.gen(function* () {
      const provider = yield* withProvider
      const verify = yield* verifier(provider)
      const before = yield* Effect.promise(() => provider.sign({}))
      yield* verify(before, null)
      yield* Effect.promise(() => provider.rotate())
      const after = yield* Effect.promise(() => provider.sign({}))
      // The keys were asked for just now.
      expect(yield* codeOf(verify(after, null))).toMatch(/^INVALID_ID_TOKEN .*key/)
      yield* TestClock.adjust("31 seconds")
      expect((yield* verify(after, null)).subject).toBe("ada")
      expect(yield* codeOf(verify(before, null))).toMatch(/^INVALID_ID_TOKEN .*key/)
      expect(provider.asked).toBe(2)
    })
  )

  it.effect("ID token is refused while the provider's keys are unavailable or malformed", () =>
    Effect.gen(function* () {
      const provider = yield* withProvider
      const token = yield* Effect.promise(() => provider.sign({}))
      const about = JSON.stringify({ issuer: provider.issuer, jwks_uri: `${provider.issuer}/jwks` })
      const keys = (text: string) => (path: string) => (path.startsWith("/jwks") ? text : about)
      const answers: ReadonlyArray<(path: string) => string | null> = [
        () => null,
        () => "no JSON",
        () => "[]",
        () => JSON.stringify({ issuer: "https://elsewhere.example", jwks_uri: `${provider.issuer}/jwks` }),
        () => JSON.stringify({ issuer: provider.issuer, jwks_uri: "file:///etc/passwd" }),
        keys("{}"),
        keys(JSON.stringify({ keys: "none" })),
        keys(JSON.stringify({ keys: Array.from({ length: 101 }, () => ({ kty: "RSA" })) })),
        keys(JSON.stringify({ keys: [], padding: "x".repeat(300_000) }))
      ]
      for (const [index, answer] of answers.entries()) {
        const verify = yield* verifier(provider)
        provider.answerWith((request, response) => {
          const text = answer(request.url ?? "")
          response.statusCode = text === null ? 500 : 200
          response.end(text)
        })
        expect(yield* codeOf(verify(token, null)), String(index)).toMatch(/^QUEUE_UNAVAILABLE /)
      }
    })
  )
})
