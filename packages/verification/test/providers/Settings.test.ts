import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { readFileSync } from "node:fs"
import { maskAuth, restoreMasked } from "@tidegate/redaction/Masking"
import type { Age, InboundRequest, Provider } from "@tidegate/verification/Provider"
import { providerFor, providers } from "@tidegate/verification/Providers"
import { maxAheadSeconds } from "../../src/SignatureScheme.ts"
import { compileSourceAuth, resolveAuthType, validateSourceAuth } from "@tidegate/verification/SourceAuth"

const stored = (type: string, authType: unknown, auth: unknown) =>
  Result.getOrThrow(validateSourceAuth(type, authType, auth))

/** `path: message` of everything that is wrong. */
const faults = (type: string, authType: unknown, auth: unknown) =>
  Result.getOrThrow(Result.flip(validateSourceAuth(type, authType, auth))).map(
    ({ message, path }) => `${path}: ${message}`
  )

describe("Settings of a provider's type", () => {
  it("Provider settings accept no auth_type, the provider's own, or PROVIDER_SIGNATURE", () => {
    const expected = { auth_type: "HMAC", auth: { webhook_secret_key: "whsec_1" } }
    for (const authType of [undefined, "HMAC", "PROVIDER_SIGNATURE"]) {
      for (const auth of [{ webhook_secret_key: "whsec_1" }, { secret: "whsec_1" }, { signing_secret: "whsec_1" }]) {
        expect(stored("STRIPE", authType, auth)).toStrictEqual(expected)
      }
    }
    expect(stored("STRIPE", "PROVIDER_SIGNATURE", { provider: "STRIPE", secret: "whsec_1" })).toStrictEqual(expected)
    expect(stored("GITLAB", undefined, { secret: "token-1" })).toStrictEqual({
      auth_type: "API_KEY",
      auth: { api_key: "token-1" }
    })
    expect(stored("POSTMARK", undefined, { username: "u", password: "p" })).toStrictEqual({
      auth_type: "BASIC_AUTH",
      auth: { username: "u", password: "p" }
    })
    expect(stored("OKTA", undefined, { api_key: "k" })).toStrictEqual({
      auth_type: "API_KEY",
      auth: { api_key: "k", header_key: "authorization" }
    })
  })

  it("Stored provider settings validate to themselves", () => {
    for (const { authType, settings, types } of providers) {
      // Only those that text can be: keys and certificates have tests of their own.
      const auth = Object.fromEntries(settings.filter(({ required }) => required).map(({ name }) => [name, "dGV4dA=="]))
      for (const type of types) {
        const once = validateSourceAuth(type, authType, auth)
        if (Result.isFailure(once)) continue
        expect(stored(type, once.success.auth_type, once.success.auth)).toStrictEqual(once.success)
      }
    }
  })

  it("Provider settings that name another provider are refused", () => {
    expect(faults("STRIPE", "PROVIDER_SIGNATURE", { provider: "GITHUB", secret: "whsec_1" })).toStrictEqual([
      "config.auth.provider: must be the type of the source, STRIPE"
    ])
  })

  it("Provider settings refuse settings of the generic schemes", () => {
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
        expect(found).toContain(`config.auth.${name}: is set by the type ${type}: leave it out`)
      }
    }
    expect(stored("STRIPE", "HMAC", { secret: "k", algorithm: null }).auth).toStrictEqual({
      webhook_secret_key: "k"
    })
  })

  it("Provider settings require all their members", () => {
    expect(faults("STRIPE", "HMAC", {})).toStrictEqual(["config.auth.webhook_secret_key: is required"])
    expect(faults("STRIPE", "PROVIDER_SIGNATURE", undefined)).toStrictEqual([
      "config.auth.webhook_secret_key: is required"
    ])
    expect(faults("GITLAB", "API_KEY", { webhook_secret: "x" })).toStrictEqual([
      "config.auth.webhook_secret: is no setting of the type GITLAB: config.auth takes api_key",
      "config.auth.api_key: is required"
    ])
    expect(faults("POSTMARK", "BASIC_AUTH", {})).toStrictEqual([
      "config.auth.username: is required",
      "config.auth.password: is required"
    ])
    for (const { authType, settings, types } of providers) {
      for (const { name } of settings.filter(({ required }) => required)) {
        expect(faults(types[0]!, authType, {})).toContain(`config.auth.${name}: is required`)
      }
    }
  })

  it("Provider settings must not be empty or too long, and must be one line", () => {
    for (const value of ["", " ", "\t"]) {
      expect(faults("STRIPE", undefined, { secret: value })).toStrictEqual(["config.auth.secret: must not be empty"])
    }
    expect(faults("STRIPE", "HMAC", { secret: 5 })).toStrictEqual(["config.auth.secret: must be a string"])
    expect(faults("STRIPE", "HMAC", { secret: "a\nb" })).toStrictEqual([
      "config.auth.secret: must not contain control characters"
    ])
    expect(faults("STRIPE", "HMAC", { secret: "\ud800" })).toStrictEqual([
      "config.auth.secret: must be valid Unicode text"
    ])
    expect(faults("STRIPE", "HMAC", { secret: "a".repeat(4097) })).toStrictEqual([
      "config.auth.secret: must be at most 4096 characters"
    ])
    expect(faults("GITLAB", "API_KEY", { api_key: "a " })).toStrictEqual([
      "config.auth.api_key: must not begin or end with white space"
    ])
    expect(faults("CHARGEBEE", "BASIC_AUTH", { username: "a:b", password: "p" })).toStrictEqual([
      "config.auth.username: must not contain a colon (it ends the user name)"
    ])
    expect(faults("OKTA", "API_KEY", { api_key: "k", header_name: "not a name" })).toStrictEqual([
      "config.auth.header_name: must be a valid HTTP header name"
    ])
    expect(faults("STRIPE", "HMAC", { secret: "a", webhook_secret_key: "b" })).toStrictEqual([
      "config.auth.secret: is another name of webhook_secret_key and differs from it"
    ])
    expect(faults("STRIPE", "HMAC", "text")).toStrictEqual(["config.auth: must be an object"])
  })

  it("Provider settings must be base64 where the key is base64", () => {
    for (const type of ["SVIX", "CLERK", "RESEND", "STANDARD", "REPLICATE", "MICROSOFT_TEAMS"]) {
      for (const secret of ["not base64!", "whsec_", "whsec_abcde", "abcde"]) {
        expect(faults(type, undefined, { secret })).toStrictEqual([
          "config.auth.secret: must be base64, with or without whsec_ before it"
        ])
      }
      stored(type, undefined, { secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" })
    }
    stored("OPENAI", undefined, { secret: "text, not base64" })
  })
})

describe("Another auth_type than the provider's", () => {
  it("An explicit generic auth_type replaces the provider's verification", () => {
    const basic = stored("GITHUB", "BASIC_AUTH", { username: "u", password: "p" })
    expect(basic).toStrictEqual({ auth_type: "BASIC_AUTH", auth: { username: "u", password: "p" } })
    expect(providerFor("GITHUB", "BASIC_AUTH")).toBeUndefined()
    expect(stored("GITHUB", "API_KEY", { api_key: "k" }).auth).toStrictEqual({
      api_key: "k",
      header_key: "x-api-key"
    })
    expect(stored("GITLAB", "HMAC", { secret: "k", algorithm: "sha1" }).auth).toStrictEqual({
      webhook_secret_key: "k",
      header_key: "x-signature",
      algorithm: "sha1",
      encoding: "hex"
    })
  })

  it("A null auth_type, or no settings at all, turns a provider's verification off", () => {
    for (const auth of [undefined, null, {}]) {
      expect(stored("STRIPE", undefined, auth)).toStrictEqual({ auth_type: null, auth: {} })
    }
    expect(stored("STRIPE", null, { secret: "k" })).toStrictEqual({ auth_type: null, auth: {} })
  })

  it("An unknown auth_type of a provider's type is refused", () => {
    expect(faults("STRIPE", "SIGNATURE", {})).toStrictEqual([
      "config.auth_type: must be one of BASIC_AUTH, API_KEY, HMAC or null"
    ])
  })
})

describe("Type that no provider has", () => {
  it("A type that no provider has follows its settings and has no provider signature", () => {
    expect(resolveAuthType("WEBHOOK", undefined, { secret: "k" })).toBe(undefined)
    expect(faults("ACME", undefined, { secret: "k" })).toStrictEqual([
      "config.auth_type: is required when config.auth is given, because the type ACME is no provider's"
    ])
    expect(faults("ACME", "PROVIDER_SIGNATURE", { provider: "STRIPE", secret: "k" })).toStrictEqual([
      "config.auth_type: PROVIDER_SIGNATURE needs a type that names a provider, and ACME does not"
    ])
    expect(stored("ACME", "HMAC", { secret: "k" }).auth).toStrictEqual({
      webhook_secret_key: "k",
      header_key: "x-signature",
      algorithm: "sha256",
      encoding: "hex"
    })
  })
})

describe("docs/providers.md", () => {
  it("The providers page names every type with its settings", () => {
    const page = readFileSync(new URL("../../../../docs/providers.md", import.meta.url), "utf8")
    for (const { settings, types } of providers) {
      for (const type of types) {
        const row = page.split("\n").find((line) => line.startsWith("|") && line.split("|")[1]?.includes(`\`${type}\``))
        expect(row, type).toBeDefined()
        for (const { name } of settings) expect(row, type).toContain(`\`${name}\``)
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
      if (timestamp === null) return "–"
      const { toleranceSeconds: past } = timestamp
      return within({ past, ahead: Math.min(past, maxAheadSeconds) })
    }
    const age = verification.kind === "code" ? verification.age : null
    return age === null ? "–" : within(age)
  }

  const within = ({ ahead, past }: Age): string =>
    past === ahead ? seconds(past) : `${seconds(past)}, ${seconds(ahead)} ahead`

  const answer = ({ answer }: Provider): string =>
    [answer.status, ...(answer.seconds === null ? [] : [`${answer.seconds} s`])].join(", ") +
    (answer.body === "any" ? "" : `; ${answer.body}`)

  it("The providers page states each type's timestamp age and expected answer", () => {
    const rows = rowsOf(readFileSync(new URL("../../../../docs/providers.md", import.meta.url), "utf8"))
    for (const provider of providers) {
      for (const type of provider.types) {
        const row = rows.get(type)
        expect(row?.["Answer"], type).toBe(answer(provider))
        if (provider.authType === "HMAC") expect(row?.["Age"], type).toBe(age(provider))
      }
    }
  })

  it("The gateway answers each provider with a status that it accepts", () => {
    for (const { answer } of providers) {
      if (answer.status === "204") expect(answer.body).toBe("empty")
      else expect(answer.status).toMatch(/^2(?:xx|00)/)
    }
  })
})

describe("Masking of provider settings", () => {
  it("Masking shows only the provider settings that are not secret", () => {
    for (const { authType, settings, types } of providers) {
      const auth = Object.fromEntries(settings.map(({ name }) => [name, "0123456789"]))
      const expected = Object.fromEntries(
        settings.map(({ name, secret }) => [name, secret ? "****6789" : "0123456789"])
      )
      expect(maskAuth(authType, auth), types.join()).toStrictEqual(expected)
      expect(Result.getOrThrow(restoreMasked(authType, expected, auth)), types.join()).toStrictEqual(auth)
    }
  })
})

describe("Verifier of stored settings", () => {
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

  it("Invalid stored settings verify nobody and answer no handshake", () => {
    const challenge = { ...request, method: "GET", query: "challenge=abc" }
    for (const auth of [{}, null, { webhook_secret_key: "" }, { webhook_secret_key: 5 }, "x"]) {
      const { handshake, verify } = compiled("DROPBOX", "HMAC", auth)
      expect(verify(challenge)).toBe("failed")
      expect(handshake(challenge)).toBeNull()
    }
    expect(compiled("DROPBOX", "PROVIDER", { secret: "k" }).verify(request)).toBe("failed")
  })

  it("A provider's handshake is recognized whether or not its requests are verified", () => {
    const challenge = { ...request, method: "GET", query: "challenge=abc" }
    for (const [authType, auth] of [
      ["HMAC", { webhook_secret_key: "k" }],
      [null, {}]
    ] as const) {
      const answer = compiled("DROPBOX", authType, auth).handshake(challenge)
      expect(answer !== null && answer !== "refuse" && answer.body === "abc").toBe(true)
      expect(compiled("DROPBOX", authType, auth).handshake(request)).toBeNull()
      expect(compiled("STRIPE", authType, auth).handshake(challenge)).toBeNull()
      expect(compiled("WEBHOOK", authType, auth).handshake(challenge)).toBeNull()
    }
    // Whoever verifies in another way than the provider's answers in another way, too.
    expect(compiled("DROPBOX", "API_KEY", { api_key: "k" }).handshake(challenge)).toBeNull()
  })

  it("A source without verification fetches no confirmation URL and refuses no handshake", () => {
    const arn = "arn:aws:sns:us-east-1:123456789012:orders"
    const confirmation = JSON.stringify({
      Type: "SubscriptionConfirmation",
      TopicArn: arn,
      Token: "token-1",
      SubscribeURL: `https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${arn}&Token=token-1`
    })
    const asked = { ...request, body: Buffer.from(confirmation) }
    const answer = compiled("AWS_SNS", "HMAC", {}).handshake(asked)
    expect(answer !== null && answer !== "refuse" && answer.confirmUrl !== undefined && answer.needsCheck).toBe(true)
    expect(compiled("AWS_SNS", null, {}).handshake(asked)).toBeNull()

    const subscribe = { ...request, method: "GET", query: "hub.mode=subscribe&hub.verify_token=t&hub.challenge=c" }
    expect(compiled("META", "HMAC", { webhook_secret_key: "k" }).handshake(subscribe)).toBe("refuse")
    expect(compiled("META", null, {}).handshake(subscribe)).toBeNull()
  })

  describe("ASANA", () => {
    const secret = "0123456789abcdef0123456789abcdef"
    const first = { ...request, headers: { "x-hook-secret": secret } }

    it("An Asana source without a secret verifies nobody and stores the secret of the first call", () => {
      const { auth, auth_type } = stored("ASANA", "HMAC", {})
      expect(auth).toStrictEqual({})
      const { handshake, verify } = compiled("ASANA", auth_type, auth)
      expect(verify(request)).toBe("failed")
      // printf '' | openssl dgst -sha256 -hmac '' -r
      const empty = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
      expect(verify({ ...request, headers: { "x-hook-signature": empty } })).toBe("failed")
      const answer = handshake(first)
      expect(answer !== null && answer !== "refuse" && answer.remember === secret).toBe(true)
    })

    it("An Asana source with a secret keeps it", () => {
      const { handshake } = compiled("ASANA", "HMAC", { webhook_secret_key: secret })
      const answer = handshake(first)
      expect(answer !== null && answer !== "refuse" && answer.remember === undefined).toBe(true)
      expect(handshake({ ...request, headers: { "x-hook-secret": `${secret}0` } })).toBe("refuse")
    })

    it("An Asana source whose verification is off answers handshakes and stores no secret", () => {
      const answer = compiled("ASANA", null, {}).handshake(first)
      expect(answer !== null && answer !== "refuse" && !("remember" in answer)).toBe(true)
      expect(compiled("ASANA", null, {}).verify(request)).toBe("unverified")
    })
  })
})
