import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { generateKeyPairSync } from "node:crypto"
import {
  compileOutboundAuth,
  outboundAuthTypes,
  validateOutboundAuth,
  validateWrittenOutboundAuth
} from "@tidegate/outbound-auth/OutboundAuth"

const normalised = (authType: unknown, auth: unknown) => Result.getOrThrow(validateOutboundAuth(authType, auth))
const compiled = (authType: unknown, auth: unknown) => compileOutboundAuth(normalised(authType, auth))
const errors = (authType: unknown, auth: unknown) =>
  Result.getOrThrow(Result.flip(validateOutboundAuth(authType, auth)))

const nothing = { headers: {}, signs: false }

describe("Auth types without settings", () => {
  it.each([[null], [undefined], ["NO_AUTH"]])("Auth type %s adds nothing", (authType) => {
    for (const auth of [undefined, null, {}, { disabled: true }, { disabled: false }]) {
      expect(compiled(authType, auth)).toStrictEqual(nothing)
    }
  })

  it("Auth type SERVICE_SIGNATURE signs unless it is disabled", () => {
    expect(compiled("SERVICE_SIGNATURE", {})).toStrictEqual({ headers: {}, signs: true })
    expect(compiled("SERVICE_SIGNATURE", { disabled: false })).toStrictEqual({ headers: {}, signs: true })
    expect(compiled("SERVICE_SIGNATURE", { disabled: true })).toStrictEqual(nothing)
  })

  it("Unknown settings of an auth type are not stored", () => {
    expect(normalised("NO_AUTH", { password: "left over", disabled: true })).toStrictEqual({
      auth_type: "NO_AUTH",
      auth: { disabled: true }
    })
    expect(normalised(undefined, {})).toStrictEqual({ auth_type: null, auth: {} })
  })

  it("Settings without an auth_type, and settings of the wrong type, are rejected", () => {
    expect(errors(undefined, { header_name: "x-token", value: "s" })).toStrictEqual([
      { path: "config.auth_type", message: "is required when config.auth is given" }
    ])
    expect(errors("SERVICE_SIGNATURE", { disabled: "yes" })).toStrictEqual([
      { path: "config.auth.disabled", message: "must be true or false" }
    ])
    expect(errors("NO_AUTH", "none")).toStrictEqual([{ path: "config.auth", message: "must be an object" }])
  })
})

describe("Auth settings as written", () => {
  const every = outboundAuthTypes.map(({ type }) => type)
  const refused = (authType: unknown, auth: unknown) =>
    Result.getOrThrow(Result.flip(validateWrittenOutboundAuth(authType, auth, every))).map(
      ({ message, path }) => `${path} ${message}`
    )

  it("A misspelled setting is rejected in every auth type, because it would be ignored silently", () => {
    for (const { settings, type } of outboundAuthTypes) {
      const takes = `is no setting of auth_type ${type}: config.auth takes ${[...Object.keys(settings), "disabled"].join(", ")}`
      expect(refused(type, { diabled: true })).toContain(`config.auth.diabled ${takes}; did you mean disabled?`)
      expect(refused(type, { zzz_of_nobody: null })).toContain(`config.auth.zzz_of_nobody ${takes}`)
    }
    expect(refused(null, { zzz_of_nobody: 1 })).toHaveLength(1)
    // What was read, and is written back with another auth_type.
    expect(validateWrittenOutboundAuth(null, { header_name: "x-token", value: "****oken" }, every)).toStrictEqual(
      Result.succeed({ auth_type: null, auth: {} })
    )
    expect(refused("CUSTOM_HEADER", { header_name: "host", valeu: "s" })).toStrictEqual([
      "config.auth.valeu is no setting of auth_type CUSTOM_HEADER: config.auth takes header_name, value, disabled; did you mean value?",
      "config.auth.header_name must not be a header that the gateway or HTTP itself sets",
      "config.auth.value is required"
    ])
  })

  it("Alternative names of settings are accepted, and so is a setting that stands for several", () => {
    const written = (authType: string, auth: unknown) =>
      Result.getOrThrow(validateWrittenOutboundAuth(authType, auth, every)).auth
    expect(written("CUSTOM_HEADER", { header_name: "x-token", header_value: "s" })).toStrictEqual({
      header_name: "x-token",
      value: "s"
    })
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const file = {
      type: "service_account",
      client_email: "a@b.test",
      private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
      universe_domain: "x"
    }
    expect(written("SERVICE_ACCOUNT", { service_account_key: JSON.stringify(file), scope: "s" })).toMatchObject({
      client_email: "a@b.test"
    })
    expect(refused("SERVICE_ACCOUNT", { service_account_key: JSON.stringify(file), scpoe: "s" })).toHaveLength(1)
  })
})

describe("CUSTOM_HEADER", () => {
  it("CUSTOM_HEADER adds its header and accepts the other name of its value", () => {
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

  it("CUSTOM_HEADER keeps its settings and adds nothing while it is disabled", () => {
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
  ])("CUSTOM_HEADER cannot set the header %s", (header_name) => {
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
  ])("CUSTOM_HEADER rejects the settings %j", (auth, expected) => {
    expect(errors("CUSTOM_HEADER", auth)).toStrictEqual(
      Object.entries(expected).map(([name, message]) => ({ path: `config.auth.${name}`, message }))
    )
  })
})

describe("Other auth types", () => {
  it.each(["HMAC", "custom_header", "", 7, {}])("The value %j is not an auth type", (authType) => {
    expect(errors(authType, {})).toStrictEqual([
      {
        path: "config.auth_type",
        message: `must be one of ${outboundAuthTypes.map(({ type }) => type).join(", ")} or null`
      }
    ])
  })
})

const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" })

describe("Auth types that obtain a token", () => {
  const client = { token_url: "https://id.example.com/token", client_id: "gateway", client_secret: "s3cret" }
  const grantOf = (authType: string, auth: object) => compiled(authType, auth).grant

  it("The method of client authentication can be spelled in two ways", () => {
    const methods = [
      [undefined, "client_secret_basic"],
      ["client_secret_basic", "client_secret_basic"],
      ["basic", "client_secret_basic"],
      ["client_secret_post", "client_secret_post"],
      ["x-www-form-urlencoded", "client_secret_post"]
    ] as const
    for (const [written, method] of methods) {
      const auth = { ...client, token_auth_method: written }
      expect(grantOf("OAUTH2_CLIENT_CREDENTIALS", auth)?.how).toMatchObject({ client: { method } })
    }
    const { token_url, ...rest } = client
    expect(
      grantOf("OAUTH2_CLIENT_CREDENTIALS", { ...rest, auth_server: token_url, authentication_type: "basic" })
    ).toMatchObject({ tokenUrl: token_url, scope: null })
  })

  it.each([
    ["OAUTH2_CLIENT_CREDENTIALS", {}, ["token_url", "client_id", "client_secret"]],
    ["OAUTH_REFRESH_TOKEN", {}, ["token_url", "client_id", "client_secret", "refresh_token"]],
    ["OAUTH2_AUTHORIZATION_CODE", {}, ["token_url", "client_id", "client_secret"]],
    ["SERVICE_ACCOUNT", {}, ["client_email", "private_key"]]
  ])("%s with %j reports the missing settings", (authType, auth, names) => {
    expect(errors(authType, auth)).toStrictEqual(
      names.map((name) => ({ path: `config.auth.${name}`, message: "is required" }))
    )
  })

  it.each([
    ["id.example.com/token", "must be an absolute http or https URL"],
    ["ftp://id.example.com/", "must be an absolute http or https URL"],
    ["https://id.example.com/#a", "must not have a fragment"],
    ["https://me:pw@id.example.com/", "must not contain a user name or password"]
  ])("The token_url %s is rejected", (token_url, message) => {
    expect(errors("OAUTH2_CLIENT_CREDENTIALS", { ...client, token_url })).toStrictEqual([
      { path: "config.auth.token_url", message }
    ])
  })

  it("OAUTH2_AUTHORIZATION_CODE needs an authorization_url, a code or a refresh_token", () => {
    expect(errors("OAUTH2_AUTHORIZATION_CODE", client)).toStrictEqual([
      { path: "config.auth", message: "needs an authorization_url, a code or a refresh_token" }
    ])
    expect(errors("OAUTH2_AUTHORIZATION_CODE", { ...client, code: "c" })).toStrictEqual([
      { path: "config.auth.redirect_uri", message: "is required with a code: it was given out for one" }
    ])
    const authorization_url = "https://id.example.com/auth?access_type=offline"
    for (const auth of [
      { authorization_url },
      { refresh_token: "r" },
      { code: "c", redirect_uri: "https://me.example/" }
    ]) {
      expect(normalised("OAUTH2_AUTHORIZATION_CODE", { ...client, ...auth }).auth).toStrictEqual({ ...client, ...auth })
    }
    expect(normalised("OAUTH2_AUTHORIZATION_CODE", { ...client, disabled: true }).auth).toMatchObject({
      disabled: true
    })
  })

  it("SERVICE_ACCOUNT accepts a key file as it is, and a key with escaped line breaks", () => {
    const file = {
      type: "service_account",
      project_id: "p",
      private_key: key,
      client_email: "a@b.example",
      token_uri: client.token_url
    }
    const settings = { private_key: key, client_email: "a@b.example", token_uri: client.token_url }
    const written = normalised("SERVICE_ACCOUNT", { service_account_key: JSON.stringify(file), scope: "s" })
    expect(written.auth).toStrictEqual({ ...settings, scope: "s" })
    expect(normalised("SERVICE_ACCOUNT", { service_account_key: file }).auth).toStrictEqual(settings)
    const spelt = key.replaceAll("\n", "\\n")
    expect(normalised("SERVICE_ACCOUNT", { ...settings, private_key: spelt }).auth).toStrictEqual(settings)
    expect(grantOf("SERVICE_ACCOUNT", { client_email: "a@b.example", private_key: key })?.tokenUrl).toBe(
      "https://oauth2.googleapis.com/token"
    )
  })

  it.each(["", "{", "[]", "7", '{"client_email":"a"}', "x".repeat(40_000)])(
    "SERVICE_ACCOUNT rejects the key file %.20j",
    (text) => {
      expect(errors("SERVICE_ACCOUNT", { service_account_key: text })).toStrictEqual([
        { path: "config.auth.service_account_key", message: "must be the JSON of a service account's key" }
      ])
    }
  )

  it("SERVICE_ACCOUNT rejects a key that cannot sign, and does not show it", () => {
    const short = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({
      type: "pkcs8",
      format: "pem"
    })
    const curve = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" })
    for (const private_key of ["s3cret", short, curve]) {
      expect(errors("SERVICE_ACCOUNT", { client_email: "a@b.example", private_key })).toStrictEqual([
        { path: "config.auth.private_key", message: "must be an RSA private key of 2048 to 8192 bits, in PEM" }
      ])
    }
  })
})
