import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { validateSourceAuth } from "@tidegate/verification/SourceAuth"

const errors = (authType: unknown, auth: unknown) =>
  Result.getOrThrow(Result.flip(validateSourceAuth("WEBHOOK", authType, auth)))

describe("Settings without auth_type", () => {
  it("A missing or null auth_type is stored as null", () => {
    expect(validateSourceAuth("WEBHOOK", null, {})).toStrictEqual(Result.succeed({ auth_type: null, auth: {} }))
    expect(validateSourceAuth("WEBHOOK", undefined, undefined)).toStrictEqual(
      Result.succeed({ auth_type: null, auth: {} })
    )
  })

  it("An auth_type of null turns verification off and drops leftover settings", () => {
    expect(validateSourceAuth("WEBHOOK", null, { webhook_secret_key: "k" })).toStrictEqual(
      Result.succeed({ auth_type: null, auth: {} })
    )
  })

  it("Settings without an auth_type are refused, because their writer expects verification", () => {
    expect(errors(undefined, { webhook_secret_key: "k" })).toStrictEqual([
      {
        path: "config.auth_type",
        message: "is required when config.auth is given, because the type WEBHOOK is no provider's"
      }
    ])
  })

  it.each(["hmac", "OAUTH", "", 5, {}, []])("The auth_type %j is refused", (authType) => {
    expect(errors(authType, {})).toStrictEqual([
      { path: "config.auth_type", message: "must be one of BASIC_AUTH, API_KEY, HMAC or null" }
    ])
  })

  it.each([["text"], [5], [true], [[]]])("Settings of the value %j are refused", (auth) => {
    for (const authType of ["BASIC_AUTH", "API_KEY", "HMAC"]) {
      expect(errors(authType, auth)).toStrictEqual([{ path: "config.auth", message: "must be an object" }])
    }
  })
})

describe("HMAC settings", () => {
  it("HMAC settings get their defaults", () => {
    expect(validateSourceAuth("WEBHOOK", "HMAC", { webhook_secret_key: "k" })).toStrictEqual(
      Result.succeed({
        auth_type: "HMAC",
        auth: { webhook_secret_key: "k", header_key: "x-signature", algorithm: "sha256", encoding: "hex" }
      })
    )
  })

  it("HMAC settings accept alternative names and treat null as not given", () => {
    const written = {
      secret: "k",
      signature_header: "X-Hub-Signature-256",
      prefix: "sha256=",
      timestamp_header: "X-Timestamp",
      algorithm: null
    }
    expect(validateSourceAuth("WEBHOOK", "HMAC", written)).toStrictEqual(
      Result.succeed({
        auth_type: "HMAC",
        auth: {
          webhook_secret_key: "k",
          header_key: "X-Hub-Signature-256",
          algorithm: "sha256",
          encoding: "hex",
          prefix: "sha256=",
          timestamp_header: "X-Timestamp",
          tolerance_seconds: 300
        }
      })
    )
  })

  it("Stored HMAC settings validate to themselves", () => {
    const once = Result.getOrThrow(
      validateSourceAuth("WEBHOOK", "HMAC", { secret: "k", header_name: "x-s", prefix: "", timestamp_header: "x-t" })
    )
    expect(Result.getOrThrow(validateSourceAuth("WEBHOOK", once.auth_type, once.auth))).toStrictEqual(once)
  })

  it.each([
    [{}, "webhook_secret_key", "is required"],
    [{ webhook_secret_key: null }, "webhook_secret_key", "is required"],
    [{ webhook_secret_key: "" }, "webhook_secret_key", "must not be empty"],
    [{ webhook_secret_key: " \n" }, "webhook_secret_key", "must not be empty"],
    [{ webhook_secret_key: 12_345_678 }, "webhook_secret_key", "must be a string"],
    [{ webhook_secret_key: "\ud800abc" }, "webhook_secret_key", "must be valid Unicode text"],
    [{ webhook_secret_key: "k".repeat(16_385) }, "webhook_secret_key", "must be at most 16384 characters"],
    [{ secret: "" }, "secret", "must not be empty"],
    [{ secret: "a", webhook_secret_key: "b" }, "secret", "is another name of webhook_secret_key and differs from it"],
    [{ secret: "k", algorithm: "sha384" }, "algorithm", "must be one of md5, sha1, sha256, sha512"],
    [{ secret: "k", encoding: "base32" }, "encoding", "must be one of hex, base64, base64url"],
    [{ secret: "k", header_key: "" }, "header_key", "must be a valid HTTP header name"],
    [{ secret: "k", header_key: "x signature" }, "header_key", "must be a valid HTTP header name"],
    [{ secret: "k", signature_header: "x:" }, "signature_header", "must be a valid HTTP header name"],
    [
      { secret: "k", prefix: "v1\r\n" },
      "prefix",
      "must be at most 64 printable ASCII characters and not begin with a space"
    ],
    [{ secret: "k", tolerance_seconds: 300 }, "tolerance_seconds", "needs timestamp_header"],
    [
      { secret: "k", timestamp_header: "x-t", tolerance_seconds: 0 },
      "tolerance_seconds",
      "must be a whole number of seconds from 1 to 86400"
    ],
    [
      { secret: "k", timestamp_header: "x-t", tolerance_seconds: "300" },
      "tolerance_seconds",
      "must be a whole number of seconds from 1 to 86400"
    ],
    [{ secret: "k", timestampHeader: "x-t" }, "timestampHeader", "is written config.auth.timestamp_header"],
    [{ secret: "k", auth_type: "HMAC" }, "auth_type", "belongs into config.auth_type"],
    [
      { secret: "k", surprise: null },
      "surprise",
      "is no setting of auth_type HMAC: config.auth takes webhook_secret_key, header_key, algorithm, encoding, prefix, timestamp_header, tolerance_seconds"
    ],
    [{ secret: "k", timestamp_header: "X-Signature" }, "timestamp_header", "must not be the header of the signature"]
  ])("The HMAC settings %j are refused", (auth, name, message) => {
    expect(errors("HMAC", auth)).toStrictEqual([{ path: `config.auth.${name}`, message }])
  })

  it("All errors of HMAC settings are reported at once, without any value", () => {
    const reported = errors("HMAC", { secret: { top: "hush-hush" }, algorithm: "hush-hush", header_key: "hush hush" })
    expect(reported.map(({ path }) => path)).toStrictEqual([
      "config.auth.secret",
      "config.auth.header_key",
      "config.auth.algorithm"
    ])
    expect(JSON.stringify(reported)).not.toContain("hush")
  })
})

describe("BASIC_AUTH settings", () => {
  it.each([
    [{ username: "u" }, "password", "is required"],
    [{ password: "p" }, "username", "is required"],
    [{ username: "u", password: "" }, "password", "must not be empty"],
    [{ username: "", password: "p" }, "username", "must not be empty"],
    [{ username: "a:b", password: "p" }, "username", "must not contain a colon (it ends the user name)"],
    [{ username: "u", password: "p\n" }, "password", "must not contain control characters"]
  ])("The BASIC_AUTH settings %j are refused", (auth, name, message) => {
    expect(errors("BASIC_AUTH", auth)).toStrictEqual([{ path: `config.auth.${name}`, message }])
  })
})

describe("API_KEY settings", () => {
  it("API_KEY settings get a default header unless a query parameter is given", () => {
    const normalised = (auth: unknown) => Result.getOrThrow(validateSourceAuth("WEBHOOK", "API_KEY", auth)).auth
    expect(normalised({ api_key: "k" })).toStrictEqual({ api_key: "k", header_key: "x-api-key" })
    expect(normalised({ api_key: "k", header_name: "X-Token" })).toStrictEqual({
      api_key: "k",
      header_key: "X-Token"
    })
    expect(normalised({ api_key: "k", query_key: "token" })).toStrictEqual({ api_key: "k", query_key: "token" })
  })

  it.each([
    [{}, "api_key", "is required"],
    [{ api_key: "" }, "api_key", "must not be empty"],
    [{ api_key: "k\ufffd" }, "api_key", "must be valid Unicode text"],
    [{ api_key: "key " }, "api_key", "must not begin or end with white space"],
    [{ api_key: "k\r\ney" }, "api_key", "must not contain control characters"],
    [{ api_key: "k", header_name: "a b" }, "header_name", "must be a valid HTTP header name"],
    [{ api_key: "k", query_key: "" }, "query_key", "must not be empty"],
    [
      { api_key: "k", header_key: "a", header_name: "b" },
      "header_name",
      "is another name of header_key and differs from it"
    ]
  ])("The API_KEY settings %j are refused", (auth, name, message) => {
    expect(errors("API_KEY", auth)).toStrictEqual([{ path: `config.auth.${name}`, message }])
  })
})
