import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { maskAuth, maskSecret, restoreMasked } from "@tidegate/redaction/Masking"

const restored = (authType: unknown, written: Schema.Json, stored: Schema.Json) =>
  Result.getOrThrow(restoreMasked(authType, written, stored))

const failure = (authType: unknown, written: Schema.Json, stored: Schema.Json) =>
  Result.getOrThrow(Result.flip(restoreMasked(authType, written, stored)))

const message = "is masked and matches no stored secret: write the secret itself"

describe("maskSecret", () => {
  it.each([
    ["", "****"],
    ["a", "****"],
    ["abcdefg", "****"],
    ["abcdefgh", "****efgh"],
    ["my-webhook-secret", "****cret"],
    ["abcd🔑🔑🔑", "****"],
    ["abcde🔑🔑🔑", "****e🔑🔑🔑"]
  ])("The secret %j is masked as %j", (secret, masked) => {
    expect(maskSecret(secret)).toBe(masked)
  })
})

describe("maskAuth", () => {
  it.each<[string, Record<string, Schema.Json>, Record<string, Schema.Json>]>([
    ["BASIC_AUTH", { username: "someone@example.com", password: "correct-horse" }, { password: "****orse" }],
    ["API_KEY", { header_key: "x-api-key", query_key: "key", api_key: "0123456789" }, { api_key: "****6789" }],
    [
      "HMAC",
      {
        header_key: "x-signature",
        algorithm: "sha256",
        encoding: "hex",
        prefix: "sha256=",
        timestamp_header: "x-timestamp",
        tolerance_seconds: 300,
        webhook_secret_key: "top-secret"
      },
      { webhook_secret_key: "****cret" }
    ],
    ["CUSTOM_HEADER", { header_name: "x-token", value: "s3cr3t-token", disabled: true }, { value: "****oken" }],
    [
      "OAUTH2_CLIENT_CREDENTIALS",
      {
        token_url: "https://idp.example/token",
        client_id: "client-1234",
        client_secret: "client-secret",
        scope: "read write",
        audience: "https://api.example",
        token_auth_method: "client_secret_basic"
      },
      { client_secret: "****cret" }
    ],
    [
      "OAUTH2_AUTHORIZATION_CODE",
      { client_id: "client-1234", client_secret: "client-secret", refresh_token: "refresh-me", code: "one-time-code" },
      { client_secret: "****cret", refresh_token: "****h-me", code: "****code" }
    ],
    [
      "OAUTH_REFRESH_TOKEN",
      { client_id: "client-1234", client_secret: "client-secret", refresh_token: "refresh-me" },
      { client_secret: "****cret", refresh_token: "****h-me" }
    ],
    [
      "SERVICE_ACCOUNT",
      { client_email: "robot@example.com", private_key: "-----BEGIN KEY-----abcd", service_account_key: '{"a":"b"}' },
      { private_key: "****abcd", service_account_key: '****"b"}' }
    ],
    ["EMAIL_API_KEY", { api_key: "SG.0123456789" }, { api_key: "****6789" }],
    ["CHAT_BOT_TOKEN", { bot_token: "xoxb-123456" }, { bot_token: "****3456" }],
    ...["OBJECT_STORE_R_ACCESS_KEY", "OBJECT_STORE_S_ACCESS_KEY"].map(
      (type): [string, Record<string, Schema.Json>, Record<string, Schema.Json>] => [
        type,
        { access_key_id: "AKIA12345678", secret_access_key: "wJalrXUtnFEMI", session_token: "FQoGZXIvYXdz" },
        { secret_access_key: "****FEMI", session_token: "****YXdz" }
      ]
    ),
    [
      "AWS_SIGV4",
      {
        access_key_id: "AKIA12345678",
        secret_access_key: "wJalrXUtnFEMI",
        region: "eu-central-1",
        external_id: "e-12345678"
      },
      { secret_access_key: "****FEMI" }
    ],
    ["AZURE_SAS_KEY", { key_name: "gateway-send", key: "c2VjcmV0" }, { key: "****cmV0" }],
    ["MESSAGING_AUTH_TOKEN", { account_sid: "AC1234567890", auth_token: "0123456789" }, { auth_token: "****6789" }],
    ["DATABASE_PASSWORD", { username: "gateway_user", password: "correct-horse" }, { password: "****orse" }],
    ["NATS_TOKEN", { token: "correct-horse" }, { token: "****orse" }],
    ["NATS_NKEY", { seed: "SUAFIXEDLETTERS", jwt: "a.b.staple" }, { seed: "****TERS", jwt: "****aple" }]
  ])("The masked auth %s still shows what is not secret", (type, auth, masked) => {
    expect(maskAuth(type, auth)).toStrictEqual({ ...auth, ...masked })
  })

  it("Unknown settings and all settings of an unknown auth type are masked (fails closed)", () => {
    expect(maskAuth("HMAC", { legacy_secret: "0123456789", pin: 123_456 })).toStrictEqual({
      legacy_secret: "****6789",
      pin: "****"
    })
    expect(maskAuth("FUTURE", { username: "0123456789" })).toStrictEqual({ username: "****6789" })
    expect(maskAuth(null, { username: "0123456789" })).toStrictEqual({ username: "****6789" })
    expect(maskAuth("toString", { name: "0123456789" })).toStrictEqual({ name: "****6789" })
  })

  it("Masking works at any depth, keeps every name, and shows null and flags", () => {
    expect(
      maskAuth("HMAC", {
        keys: [{ webhook_secret_key: "0123456789", algorithm: "sha1" }, "abcdefghij"],
        on: true,
        x: null
      })
    ).toStrictEqual({ keys: [{ webhook_secret_key: "****6789", algorithm: "sha1" }, "****ghij"], on: true, x: null })
    expect(maskAuth("HMAC", null)).toStrictEqual(null)
    expect(maskAuth("HMAC", {})).toStrictEqual({})
  })
})

describe("restoreMasked", () => {
  const stored = { header_key: "x-signature", webhook_secret_key: "top-secret" }

  it("A mask that is written back unchanged keeps the stored secret", () => {
    expect(restored("HMAC", { header_key: "x-other", webhook_secret_key: "****cret" }, stored)).toStrictEqual({
      header_key: "x-other",
      webhook_secret_key: "top-secret"
    })
    expect(restored("BASIC_AUTH", { password: "****" }, { password: "short" })).toStrictEqual({ password: "short" })
  })

  it("A new secret replaces the stored one, and an omitted secret is not restored", () => {
    expect(restored("HMAC", { webhook_secret_key: "another" }, stored)).toStrictEqual({
      webhook_secret_key: "another"
    })
    expect(restored("HMAC", { header_key: "x" }, stored)).toStrictEqual({ header_key: "x" })
    expect(restored("HMAC", { webhook_secret_key: "" }, stored)).toStrictEqual({ webhook_secret_key: "" })
    expect(restored("HMAC", { webhook_secret_key: "****longer-secret" }, stored)).toStrictEqual({
      webhook_secret_key: "****longer-secret"
    })
  })

  it.each<[string, Schema.Json]>([
    ["****cre", stored],
    ["****", stored],
    ["****CRET", stored],
    ["****cret", {}],
    ["****cret", null],
    ["****cret", { webhook_secret_key: { deeper: "top-secret" } }],
    ["****cret", { other: "top-secret" }],
    ["****cret", ["top-secret"]]
  ])("The mask %j that matches nothing stored in %j is a field error", (written, old) => {
    expect(failure("HMAC", { webhook_secret_key: written }, old)).toStrictEqual([
      { path: "config.auth.webhook_secret_key", message }
    ])
  })

  it("A mask never matches what JavaScript puts into every object", () => {
    expect(failure("HMAC", { constructor: "****" }, {})).toHaveLength(1)
    const written: Schema.Json = JSON.parse('{"__proto__":"****"}')
    expect(failure("HMAC", written, {})).toHaveLength(1)
  })

  it("Masks are restored at any depth, and every wrong mask is reported", () => {
    const old = { keys: [{ secret: "0123456789" }, { secret: "abcdefghij" }], pin: 123_456 }
    expect(restored("HMAC", maskAuth("HMAC", old), old)).toStrictEqual(old)
    expect(
      failure("HMAC", { keys: [{ secret: "****ghij" }, { secret: "****ghij" }, { secret: "****ghij" }] }, old)
    ).toStrictEqual([
      { path: "config.auth.keys.0.secret", message },
      { path: "config.auth.keys.2.secret", message }
    ])
  })

  it("A readable setting may look like a mask", () => {
    expect(restored("BASIC_AUTH", { username: "****" }, {})).toStrictEqual({ username: "****" })
  })

  it.each<[Schema.Json]>([[null], ["text"], [5], [true]])("The value %j is left to the validation", (written) => {
    expect(restored("HMAC", written, stored)).toStrictEqual(written)
  })

  it.prop(
    "Auth settings that are read and written back stay the same",
    { username: Schema.String, password: Schema.String, extra: Schema.Array(Schema.Struct({ key: Schema.String })) },
    (auth) => {
      expect(restored("BASIC_AUTH", maskAuth("BASIC_AUTH", auth), auth)).toEqual(auth)
    }
  )

  it.prop("A mask shows at most the last four characters", { secret: Schema.String }, ({ secret }) => {
    const masked = maskSecret(secret)
    expect(masked.startsWith("****")).toBe(true)
    expect(Array.from(masked).length).toBeLessThanOrEqual(8)
    expect(secret.endsWith(masked.slice(4))).toBe(true)
    expect(Array.from(secret).length).toBeGreaterThanOrEqual(2 * (Array.from(masked).length - 4))
  })
})
