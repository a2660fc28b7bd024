import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { compileOutboundAuth, validateOutboundAuth } from "@tidegate/signatures/OutboundAuth"

const normalised = (authType: unknown, auth: unknown) => Result.getOrThrow(validateOutboundAuth(authType, auth))
const compiled = (authType: unknown, auth: unknown) => compileOutboundAuth(normalised(authType, auth))
const errors = (authType: unknown, auth: unknown) =>
  Result.getOrThrow(Result.flip(validateOutboundAuth(authType, auth)))

const nothing = { headers: {}, signs: false }

describe("types without settings", () => {
  it.each([[null], [undefined], ["NO_AUTH"]])("%s adds nothing", (authType) => {
    for (const auth of [undefined, null, {}, { disabled: true }, { disabled: false }]) {
      assert.deepStrictEqual(compiled(authType, auth), nothing)
    }
  })

  it("SERVICE_SIGNATURE signs, unless it is disabled", () => {
    assert.deepStrictEqual(compiled("SERVICE_SIGNATURE", {}), { headers: {}, signs: true })
    assert.deepStrictEqual(compiled("SERVICE_SIGNATURE", { disabled: false }), { headers: {}, signs: true })
    assert.deepStrictEqual(compiled("SERVICE_SIGNATURE", { disabled: true }), nothing)
  })

  it("stores nothing that it does not know", () => {
    assert.deepStrictEqual(normalised("NO_AUTH", { password: "left over", disabled: true }), {
      auth_type: "NO_AUTH",
      auth: { disabled: true }
    })
    assert.deepStrictEqual(normalised(undefined, {}), { auth_type: null, auth: {} })
  })

  it("refuses settings without an auth_type, and settings of the wrong kind", () => {
    assert.deepStrictEqual(errors(undefined, { header_name: "x-token", value: "s" }), [
      { path: "config.auth_type", message: "is required when config.auth is given" }
    ])
    assert.deepStrictEqual(errors("SERVICE_SIGNATURE", { disabled: "yes" }), [
      { path: "config.auth.disabled", message: "must be true or false" }
    ])
    assert.deepStrictEqual(errors("NO_AUTH", "none"), [{ path: "config.auth", message: "must be an object" }])
  })
})

describe("CUSTOM_HEADER", () => {
  it("adds its header, and takes the other name of its value", () => {
    assert.deepStrictEqual(normalised("CUSTOM_HEADER", { header_name: "X-Token", header_value: "s3 cr3t" }), {
      auth_type: "CUSTOM_HEADER",
      auth: { header_name: "X-Token", value: "s3 cr3t" }
    })
    assert.deepStrictEqual(compiled("CUSTOM_HEADER", { header_name: "X-Token", value: "s3 cr3t" }), {
      headers: { "x-token": "s3 cr3t" },
      signs: false
    })
    assert.deepStrictEqual(compiled("CUSTOM_HEADER", { header_name: "Authorization", value: "Bearer abc" }).headers, {
      authorization: "Bearer abc"
    })
  })

  it("disabled, it keeps its settings and adds nothing", () => {
    const auth = { header_name: "x-token", value: "s3cr3t", disabled: true }
    assert.deepStrictEqual(normalised("CUSTOM_HEADER", auth), { auth_type: "CUSTOM_HEADER", auth })
    assert.deepStrictEqual(compiled("CUSTOM_HEADER", auth), nothing)
    assert.deepStrictEqual(compiled("CUSTOM_HEADER", { disabled: true }), nothing)
    assert.deepStrictEqual(errors("CUSTOM_HEADER", { disabled: true, header_name: "host" }), [
      { path: "config.auth.header_name", message: "must not be a header that the gateway or HTTP itself sets" }
    ])
  })

  it.each([
    "Host",
    "content-length",
    "Transfer-Encoding",
    "connection",
    "Keep-Alive",
    "Proxy-Authorization",
    "te",
    "trailer",
    "Upgrade",
    "Expect",
    "X-Gateway-Signature",
    "x-gateway-",
    "x-gateway-anything"
  ])("refuses to set %s", (header_name) => {
    assert.deepStrictEqual(errors("CUSTOM_HEADER", { header_name, value: "v" }), [
      { path: "config.auth.header_name", message: "must not be a header that the gateway or HTTP itself sets" }
    ])
  })

  it.each([
    [{}, { header_name: "is required", value: "is required" }],
    [{ header_name: "x-token", value: "" }, { value: "must not be empty" }],
    [{ header_name: "x-token", header_value: "  " }, { header_value: "must not be empty" }],
    [{ header_name: "x token", value: "v" }, { header_name: "must be a valid HTTP header name" }],
    [{ header_name: "x-token\r\nx-evil", value: "v" }, { header_name: "must be a valid HTTP header name" }],
    [{ header_name: "", value: "v" }, { header_name: "must be a valid HTTP header name" }],
    [{ header_name: "x-token", value: "v\r\nx-evil: 1" }, { value: "must not contain control characters" }],
    [{ header_name: "x-token", value: "v\n" }, { value: "must not contain control characters" }],
    [{ header_name: "x-token", value: "v\u0000" }, { value: "must not contain control characters" }],
    [{ header_name: "x-token", value: " v" }, { value: "must not begin or end with white space" }],
    [{ header_name: "x-token", value: "clé" }, { value: "must be printable ASCII" }],
    [{ header_name: "x-token", value: ["v"] }, { value: "must be a string" }]
  ])("refuses %j", (auth, expected) => {
    assert.deepStrictEqual(
      errors("CUSTOM_HEADER", auth),
      Object.entries(expected).map(([name, message]) => ({ path: `config.auth.${name}`, message }))
    )
  })
})

describe("other types", () => {
  it.each([
    "OAUTH2_CLIENT_CREDENTIALS",
    "OAUTH2_AUTHORIZATION_CODE",
    "SERVICE_ACCOUNT",
    "OAUTH_REFRESH_TOKEN",
    "EMAIL_API_KEY",
    "CHAT_BOT_TOKEN",
    "OBJECT_STORE_R_ACCESS_KEY",
    "OBJECT_STORE_S_ACCESS_KEY",
    "MESSAGING_AUTH_TOKEN",
    "DATABASE_PASSWORD"
  ])("%s is refused by name, even disabled", (authType) => {
    for (const auth of [{}, { disabled: true }]) {
      assert.deepStrictEqual(errors(authType, auth), [
        { path: "config.auth_type", message: `${authType} is not built yet` }
      ])
    }
  })

  it.each(["HMAC", "custom_header", "", 7, {}])("%j is no type", (authType) => {
    assert.deepStrictEqual(errors(authType, {}), [
      { path: "config.auth_type", message: "must be one of NO_AUTH, SERVICE_SIGNATURE, CUSTOM_HEADER or null" }
    ])
  })
})
