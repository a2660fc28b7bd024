import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import {
  compileOutboundAuth,
  notBuilt,
  outboundAuthTypes,
  validateOutboundAuth
} from "@tidegate/signatures/OutboundAuth"

const normalised = (authType: unknown, auth: unknown) => Result.getOrThrow(validateOutboundAuth(authType, auth))
const compiled = (authType: unknown, auth: unknown) => compileOutboundAuth(normalised(authType, auth))
const errors = (authType: unknown, auth: unknown) =>
  Result.getOrThrow(Result.flip(validateOutboundAuth(authType, auth)))

const nothing = { headers: {}, signs: false }

describe("types without settings", () => {
  it.each([[null], [undefined], ["NO_AUTH"]])("%s adds nothing", (authType) => {
    for (const auth of [undefined, null, {}, { disabled: true }, { disabled: false }]) {
      expect(compiled(authType, auth)).toStrictEqual(nothing)
    }
  })

  it("SERVICE_SIGNATURE signs, unless it is disabled", () => {
    expect(compiled("SERVICE_SIGNATURE", {})).toStrictEqual({ headers: {}, signs: true })
    expect(compiled("SERVICE_SIGNATURE", { disabled: false })).toStrictEqual({ headers: {}, signs: true })
    expect(compiled("SERVICE_SIGNATURE", { disabled: true })).toStrictEqual(nothing)
  })

  it("stores nothing that it does not know", () => {
    expect(normalised("NO_AUTH", { password: "left over", disabled: true })).toStrictEqual({
      auth_type: "NO_AUTH",
      auth: { disabled: true }
    })
    expect(normalised(undefined, {})).toStrictEqual({ auth_type: null, auth: {} })
  })

  it("refuses settings without an auth_type, and settings of the wrong kind", () => {
    expect(errors(undefined, { header_name: "x-token", value: "s" })).toStrictEqual([
      { path: "config.auth_type", message: "is required when config.auth is given" }
    ])
    expect(errors("SERVICE_SIGNATURE", { disabled: "yes" })).toStrictEqual([
      { path: "config.auth.disabled", message: "must be true or false" }
    ])
    expect(errors("NO_AUTH", "none")).toStrictEqual([{ path: "config.auth", message: "must be an object" }])
  })
})

describe("CUSTOM_HEADER", () => {
  it("adds its header, and takes the other name of its value", () => {
    expect(normalised("CUSTOM_HEADER", { header_name: "X-Token", header_value: "s3 cr3t" })).toStrictEqual({
      auth_type: "CUSTOM_HEADER",
      auth: { header_name: "X-Token", value: "s3 cr3t" }
    })
    expect(compiled("CUSTOM_HEADER", { header_name: "X-Token", value: "s3 cr3t" })).toStrictEqual({
      headers: { "x-token": "s3 cr3t" },
      signs: false
    })
    expect(compiled("CUSTOM_HEADER", { header_name: "Authorization", value: "Bearer abc" }).headers).toStrictEqual({
      authorization: "Bearer abc"
    })
  })

  it("disabled, it keeps its settings and adds nothing", () => {
    const auth = { header_name: "x-token", value: "s3cr3t", disabled: true }
    expect(normalised("CUSTOM_HEADER", auth)).toStrictEqual({ auth_type: "CUSTOM_HEADER", auth })
    expect(compiled("CUSTOM_HEADER", auth)).toStrictEqual(nothing)
    expect(compiled("CUSTOM_HEADER", { disabled: true })).toStrictEqual(nothing)
    expect(errors("CUSTOM_HEADER", { disabled: true, header_name: "host" })).toStrictEqual([
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
    expect(errors("CUSTOM_HEADER", { header_name, value: "v" })).toStrictEqual([
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
    expect(errors("CUSTOM_HEADER", auth)).toStrictEqual(
      Object.entries(expected).map(([name, message]) => ({ path: `config.auth.${name}`, message }))
    )
  })
})

describe("other types", () => {
  it.each([...notBuilt.keys()])("%s is refused by name, even disabled", (authType) => {
    for (const auth of [{}, { disabled: true }]) {
      expect(errors(authType, auth)).toStrictEqual([
        { path: "config.auth_type", message: `${authType} is not built yet` }
      ])
    }
  })

  it.each(["HMAC", "custom_header", "", 7, {}])("%j is no type", (authType) => {
    expect(errors(authType, {})).toStrictEqual([
      {
        path: "config.auth_type",
        message: `must be one of ${outboundAuthTypes.map(({ type }) => type).join(", ")} or null`
      }
    ])
  })
})
