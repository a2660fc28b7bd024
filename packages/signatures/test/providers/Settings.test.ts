import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { readFileSync } from "node:fs"
import { maskAuth, restoreMasked } from "@tidegate/signatures/Masking"
import type { InboundRequest, Provider } from "@tidegate/signatures/Provider"
import { providerFor, providers } from "@tidegate/signatures/Providers"
import { compileSourceAuth, resolveAuthType, validateSourceAuth } from "@tidegate/signatures/SourceAuth"

const stored = (type: string, authType: unknown, auth: unknown) =>
  Result.getOrThrow(validateSourceAuth(type, authType, auth))

/** `path: message` of everything that is wrong. */
const faults = (type: string, authType: unknown, auth: unknown) =>
  Result.getOrThrow(Result.flip(validateSourceAuth(type, authType, auth))).map(
    ({ message, path }) => `${path}: ${message}`
  )

describe("the settings of a type that is a provider's", () => {
  it("need no auth_type, or the row's, or PROVIDER_SIGNATURE", () => {
    const expected = { auth_type: "HMAC", auth: { webhook_secret_key: "whsec_1" } }
    for (const authType of [undefined, "HMAC", "PROVIDER_SIGNATURE"]) {
      for (const auth of [{ webhook_secret_key: "whsec_1" }, { secret: "whsec_1" }, { signing_secret: "whsec_1" }]) {
        assert.deepStrictEqual<unknown>(stored("STRIPE", authType, auth), expected)
      }
    }
    assert.deepStrictEqual<unknown>(
      stored("STRIPE", "PROVIDER_SIGNATURE", { provider: "STRIPE", secret: "whsec_1" }),
      expected
    )
    assert.deepStrictEqual<unknown>(stored("GITLAB", undefined, { secret: "token-1" }), {
      auth_type: "API_KEY",
      auth: { api_key: "token-1" }
    })
    assert.deepStrictEqual<unknown>(stored("POSTMARK", undefined, { username: "u", password: "p" }), {
      auth_type: "BASIC_AUTH",
      auth: { username: "u", password: "p" }
    })
    assert.deepStrictEqual<unknown>(stored("OKTA", undefined, { api_key: "k" }), {
      auth_type: "API_KEY",
      auth: { api_key: "k", header_key: "authorization" }
    })
  })

  it("are the same when what is stored is written again", () => {
    for (const { authType, settings, types } of providers) {
      // Only those that text can be: keys and certificates have tests of their own.
      const auth = Object.fromEntries(settings.filter(({ required }) => required).map(({ name }) => [name, "dGV4dA=="]))
      for (const type of types) {
        const once = validateSourceAuth(type, authType, auth)
        if (Result.isFailure(once)) continue
        assert.deepStrictEqual(stored(type, once.success.auth_type, once.success.auth), once.success)
      }
    }
  })

  it("of another provider are refused", () => {
    assert.deepStrictEqual(faults("STRIPE", "PROVIDER_SIGNATURE", { provider: "GITHUB", secret: "whsec_1" }), [
      "config.auth.provider: must be the type of the source, STRIPE"
    ])
  })

  it("say what the type does not: settings of the generic schemes are refused", () => {
    const generic = {
      header_key: "x-signature",
      algorithm: "sha1",
      encoding: "base64",
      prefix: "v1=",
      timestamp_header: "x-timestamp",
      tolerance_seconds: 5,
      query_key: "key"
    }
    for (const [name, value] of Object.entries(generic)) {
      for (const type of ["STRIPE", "GITHUB", "GITLAB", "POSTMARK", "DISCORD"]) {
        const found = faults(type, "PROVIDER_SIGNATURE", { [name]: value })
        assert.include(found, `config.auth.${name}: is set by the type ${type}: leave it out`)
      }
    }
    assert.deepStrictEqual<unknown>(stored("STRIPE", "HMAC", { secret: "k", algorithm: null }).auth, {
      webhook_secret_key: "k"
    })
  })

  it("are complete", () => {
    assert.deepStrictEqual(faults("STRIPE", "HMAC", {}), ["config.auth.webhook_secret_key: is required"])
    assert.deepStrictEqual(faults("STRIPE", "PROVIDER_SIGNATURE", undefined), [
      "config.auth.webhook_secret_key: is required"
    ])
    assert.deepStrictEqual(faults("GITLAB", "API_KEY", { webhook_secret: "x" }), [
      "config.auth.webhook_secret: is no setting of the type GITLAB: config.auth takes api_key",
      "config.auth.api_key: is required"
    ])
    assert.deepStrictEqual(faults("POSTMARK", "BASIC_AUTH", {}), [
      "config.auth.username: is required",
      "config.auth.password: is required"
    ])
    for (const { authType, settings, types } of providers) {
      for (const { name } of settings.filter(({ required }) => required)) {
        assert.include(faults(types[0]!, authType, {}), `config.auth.${name}: is required`)
      }
    }
  })

  it("are not empty, not too long, and one line", () => {
    for (const value of ["", " ", "\t"]) {
      assert.deepStrictEqual(faults("STRIPE", undefined, { secret: value }), ["config.auth.secret: must not be empty"])
    }
    assert.deepStrictEqual(faults("STRIPE", "HMAC", { secret: 5 }), ["config.auth.secret: must be a string"])
    assert.deepStrictEqual(faults("STRIPE", "HMAC", { secret: "a\nb" }), [
      "config.auth.secret: must not contain control characters"
    ])
    assert.deepStrictEqual(faults("STRIPE", "HMAC", { secret: "\ud800" }), [
      "config.auth.secret: must be valid Unicode text"
    ])
    assert.deepStrictEqual(faults("STRIPE", "HMAC", { secret: "a".repeat(4097) }), [
      "config.auth.secret: must be at most 4096 characters"
    ])
    assert.deepStrictEqual(faults("GITLAB", "API_KEY", { api_key: "a " }), [
      "config.auth.api_key: must not begin or end with white space"
    ])
    assert.deepStrictEqual(faults("CHARGEBEE", "BASIC_AUTH", { username: "a:b", password: "p" }), [
      "config.auth.username: must not contain a colon (it ends the user name)"
    ])
    assert.deepStrictEqual(faults("OKTA", "API_KEY", { api_key: "k", header_name: "not a name" }), [
      "config.auth.header_name: must be a valid HTTP header name"
    ])
    assert.deepStrictEqual(faults("STRIPE", "HMAC", { secret: "a", webhook_secret_key: "b" }), [
      "config.auth.secret: is another name of webhook_secret_key and differs from it"
    ])
    assert.deepStrictEqual(faults("STRIPE", "HMAC", "text"), ["config.auth: must be an object"])
  })

  it("are base64 where the key is", () => {
    for (const type of ["SVIX", "CLERK", "RESEND", "STANDARD", "REPLICATE", "MICROSOFT_TEAMS"]) {
      for (const secret of ["not base64!", "whsec_", "whsec_abcde", "abcde"]) {
        assert.deepStrictEqual(faults(type, undefined, { secret }), [
          "config.auth.secret: must be base64, with or without whsec_ before it"
        ])
      }
      stored(type, undefined, { secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" })
    }
    stored("OPENAI", undefined, { secret: "text, not base64" })
  })
})

describe("another auth_type than the provider's", () => {
  it("is the generic scheme, because its writer said so", () => {
    const basic = stored("GITHUB", "BASIC_AUTH", { username: "u", password: "p" })
    assert.deepStrictEqual<unknown>(basic, { auth_type: "BASIC_AUTH", auth: { username: "u", password: "p" } })
    assert.isUndefined(providerFor("GITHUB", "BASIC_AUTH"))
    assert.deepStrictEqual<unknown>(stored("GITHUB", "API_KEY", { api_key: "k" }).auth, {
      api_key: "k",
      header_key: "x-api-key"
    })
    assert.deepStrictEqual<unknown>(stored("GITLAB", "HMAC", { secret: "k", algorithm: "sha1" }).auth, {
      webhook_secret_key: "k",
      header_key: "x-signature",
      algorithm: "sha1",
      encoding: "hex"
    })
  })

  it("null, or nothing at all, is no verification", () => {
    for (const auth of [undefined, null, {}]) {
      assert.deepStrictEqual<unknown>(stored("STRIPE", undefined, auth), { auth_type: null, auth: {} })
    }
    assert.deepStrictEqual<unknown>(stored("STRIPE", null, { secret: "k" }), { auth_type: null, auth: {} })
  })

  it("that does not exist is refused", () => {
    assert.deepStrictEqual(faults("STRIPE", "SIGNATURE", {}), [
      "config.auth_type: must be one of BASIC_AUTH, API_KEY, HMAC or null"
    ])
  })
})

describe("a type of no provider", () => {
  it("is as the settings say, and has no signature of its own", () => {
    assert.strictEqual(resolveAuthType("WEBHOOK", undefined, { secret: "k" }), undefined)
    assert.deepStrictEqual(faults("ACME", undefined, { secret: "k" }), [
      "config.auth_type: is required when config.auth is given, because the type ACME is no provider's"
    ])
    assert.deepStrictEqual(faults("ACME", "PROVIDER_SIGNATURE", { provider: "STRIPE", secret: "k" }), [
      "config.auth_type: PROVIDER_SIGNATURE needs a type that names a provider, and ACME does not"
    ])
    assert.deepStrictEqual<unknown>(stored("ACME", "HMAC", { secret: "k" }).auth, {
      webhook_secret_key: "k",
      header_key: "x-signature",
      algorithm: "sha256",
      encoding: "hex"
    })
  })
})

describe("docs/providers.md", () => {
  it("names every type with its settings", () => {
    const page = readFileSync(new URL("../../../../docs/providers.md", import.meta.url), "utf8")
    for (const { settings, types } of providers) {
      for (const type of types) {
        const row = page.split("\n").find((line) => line.startsWith("|") && line.split("|")[1]?.includes(`\`${type}\``))
        assert.isDefined(row, type)
        for (const { name } of settings) assert.include(row, `\`${name}\``, type)
      }
    }
  })

  /** The cells of the row that names the type, by the heading of their column. */
  const rowsOf = (page: string): ReadonlyMap<string, Readonly<Record<string, string>>> => {
    const rows = new Map<string, Readonly<Record<string, string>>>()
    let headings: ReadonlyArray<string> = []
    for (const line of page.split("\n")) {
      if (!line.startsWith("|")) continue
      const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
      if (cells[1] === "Type") headings = cells
      const row = Object.fromEntries(cells.map((cell, index) => [headings[index] ?? "", cell]))
      for (const [, type] of (cells[1] ?? "").matchAll(/`([A-Z_]+)`/g)) rows.set(type!, row)
    }
    return rows
  }

  const seconds = (count: number): string => `${count.toLocaleString("en-US")} s`

  const age = ({ verification }: Provider): string => {
    if (verification.kind === "scheme") {
      const { timestamp } = verification.schemes[0]
      return timestamp === null ? "–" : seconds(timestamp.toleranceSeconds)
    }
    const age = verification.kind === "code" ? verification.age : null
    if (age === null) return "–"
    return age.past === age.ahead ? seconds(age.past) : `${seconds(age.past)}, ${seconds(age.ahead)} ahead`
  }

  const answer = ({ answer }: Provider): string =>
    [answer.status, ...(answer.seconds === null ? [] : [`${answer.seconds} s`])].join(", ") +
    (answer.body === "any" ? "" : `; ${answer.body}`)

  it("says of every type how old a timestamp may be, and what it wants of the answer", () => {
    const rows = rowsOf(readFileSync(new URL("../../../../docs/providers.md", import.meta.url), "utf8"))
    for (const provider of providers) {
      for (const type of provider.types) {
        const row = rows.get(type)
        assert.strictEqual(row?.["Answer"], answer(provider), type)
        if (provider.authType === "HMAC") assert.strictEqual(row?.["Age"], age(provider), type)
      }
    }
  })

  it("the gateway's answer has a status that the type takes", () => {
    for (const { answer } of providers) {
      if (answer.status === "204") assert.strictEqual(answer.body, "empty")
      else assert.match(answer.status, /^2(?:xx|00)/)
    }
  })
})

describe("masking", () => {
  it("shows of each provider exactly the settings that are no secrets", () => {
    for (const { authType, settings, types } of providers) {
      const auth = Object.fromEntries(settings.map(({ name }) => [name, "0123456789"]))
      const expected = Object.fromEntries(
        settings.map(({ name, secret }) => [name, secret ? "****6789" : "0123456789"])
      )
      assert.deepStrictEqual<unknown>(maskAuth(authType, auth), expected, types.join())
      assert.deepStrictEqual<unknown>(Result.getOrThrow(restoreMasked(authType, expected, auth)), auth, types.join())
    }
  })
})

describe("the verifier of stored settings", () => {
  const request: InboundRequest = {
    method: "POST",
    url: "https://in.example.com/e/src_01",
    headers: {},
    query: "",
    body: new Uint8Array(),
    nowSeconds: 1_700_000_000
  }
  const compiled = (type: string, auth_type: string | null, auth: unknown) =>
    compileSourceAuth({ type, auth_type, auth })

  it("settings that do not validate verify nobody and answer nobody", () => {
    const challenge = { ...request, method: "GET", query: "challenge=abc" }
    for (const auth of [{}, null, { webhook_secret_key: "" }, { webhook_secret_key: 5 }, "x"]) {
      const { handshake, verify } = compiled("DROPBOX", "HMAC", auth)
      assert.strictEqual(verify(challenge), "failed")
      assert.isNull(handshake(challenge))
    }
    assert.strictEqual(compiled("DROPBOX", "PROVIDER", { secret: "k" }).verify(request), "failed")
  })

  it("a provider's question is found whether or not its requests are verified", () => {
    const challenge = { ...request, method: "GET", query: "challenge=abc" }
    for (const [authType, auth] of [
      ["HMAC", { webhook_secret_key: "k" }],
      [null, {}]
    ] as const) {
      const answer = compiled("DROPBOX", authType, auth).handshake(challenge)
      assert.isTrue(answer !== null && answer !== "refuse" && answer.body === "abc")
      assert.isNull(compiled("DROPBOX", authType, auth).handshake(request))
      assert.isNull(compiled("STRIPE", authType, auth).handshake(challenge))
      assert.isNull(compiled("WEBHOOK", authType, auth).handshake(challenge))
    }
    // Whoever verifies in another way than the provider's answers in another way, too.
    assert.isNull(compiled("DROPBOX", "API_KEY", { api_key: "k" }).handshake(challenge))
  })

  it("nothing is fetched, and nobody refused, for a source that verifies nobody", () => {
    const arn = "arn:aws:sns:us-east-1:123456789012:orders"
    const confirmation = JSON.stringify({
      Type: "SubscriptionConfirmation",
      TopicArn: arn,
      Token: "token-1",
      SubscribeURL: `https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${arn}&Token=token-1`
    })
    const asked = { ...request, body: Buffer.from(confirmation) }
    const answer = compiled("AWS_SNS", "HMAC", {}).handshake(asked)
    assert.isTrue(answer !== null && answer !== "refuse" && answer.confirmUrl !== undefined && answer.needsCheck)
    assert.isNull(compiled("AWS_SNS", null, {}).handshake(asked))

    const subscribe = { ...request, method: "GET", query: "hub.mode=subscribe&hub.verify_token=t&hub.challenge=c" }
    assert.strictEqual(compiled("META", "HMAC", { webhook_secret_key: "k" }).handshake(subscribe), "refuse")
    assert.isNull(compiled("META", null, {}).handshake(subscribe))
  })

  describe("ASANA", () => {
    const secret = "0123456789abcdef0123456789abcdef"
    const first = { ...request, headers: { "x-hook-secret": secret } }

    it("without a secret it verifies nobody, and learns the secret of the first call", () => {
      const { auth, auth_type } = stored("ASANA", "HMAC", {})
      assert.deepStrictEqual<unknown>(auth, {})
      const { handshake, verify } = compiled("ASANA", auth_type, auth)
      assert.strictEqual(verify(request), "failed")
      // printf '' | openssl dgst -sha256 -hmac '' -r
      const empty = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
      assert.strictEqual(verify({ ...request, headers: { "x-hook-signature": empty } }), "failed")
      const answer = handshake(first)
      assert.isTrue(answer !== null && answer !== "refuse" && answer.remember === secret)
    })

    it("with a secret it keeps it", () => {
      const { handshake } = compiled("ASANA", "HMAC", { webhook_secret_key: secret })
      const answer = handshake(first)
      assert.isTrue(answer !== null && answer !== "refuse" && answer.remember === undefined)
      assert.strictEqual(handshake({ ...request, headers: { "x-hook-secret": `${secret}0` } }), "refuse")
    })

    it("a source that verifies nobody on purpose answers, and keeps no secret", () => {
      const answer = compiled("ASANA", null, {}).handshake(first)
      assert.isTrue(answer !== null && answer !== "refuse" && !("remember" in answer))
      assert.strictEqual(compiled("ASANA", null, {}).verify(request), "unverified")
    })
  })
})
