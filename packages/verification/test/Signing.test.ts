import { describe, expect, it } from "vitest"
import { providers } from "@tidegate/verification/Providers"
import { signerOf, signingSecretOf, type Verifying } from "@tidegate/verification/Signing"
import { compileSourceAuth } from "@tidegate/verification/SourceAuth"

const base64Secret = "c2VjcmV0LXRoYXQtaXMtYmFzZTY0LWFuZC1sb25n"
const secrets = { webhook_secret_key: base64Secret, api_key: "token-of-a-test", username: "ada", password: "lovelace" }

const unsigned = {
  method: "POST",
  url: "https://hooks.example.com/e/src_1/orders?a=%3A1",
  headers: { "content-type": "application/json" },
  body: Buffer.from('{"type":"order.created","text":"Grüße"}'),
  nowSeconds: 1_800_000_000.4,
  id: "msg_1"
}

/** What the source says of a request that was signed for it, with `changed` of it replaced. */
const verdict = (source: Verifying, changed: object = {}) => {
  const signed = signerOf(source)?.(unsigned)
  if (signed === null || signed === undefined) return "not signed"
  const request = {
    ...unsigned,
    query: "a=%3A1",
    body: signed.body,
    headers: { ...unsigned.headers, ...signed.headers }
  }
  return compileSourceAuth(source).verify({ ...request, ...changed })
}

const rows = providers.flatMap(({ authType, settings, types, verification }) => {
  const auth = Object.fromEntries(
    Object.entries({ ...secrets, header_key: "x-custom" }).filter(([name]) => settings.some((one) => one.name === name))
  )
  return types.map((type) => [type, { type, auth_type: authType, auth }, verification.kind] as const)
})

describe.each(rows.filter(([, , kind]) => kind !== "code"))("A signed request of %s", (_, source) => {
  it("A signed request is verified, and another body with its headers is refused", () => {
    expect(verdict(source)).toBe("verified")
    if (signingSecretOf(source) === "webhook_secret_key") {
      expect(verdict(source, { body: Buffer.from('{"type":"order.created"}') })).toBe("failed")
    }
  })

  it("A request without a secret is not signed", () => {
    expect(verdict({ ...source, auth: {} })).toBe("not signed")
  })
})

it.each(rows.filter(([type, , kind]) => kind === "code" && type !== "TWILIO"))(
  "Nothing is signed for %s, which code verifies",
  (_, source) => {
    expect([signingSecretOf(source), verdict(source)]).toEqual([null, "not signed"])
  }
)

it("A signed form of Twilio is verified; another form, another URL and a JSON body are not", () => {
  const source = { type: "TWILIO", auth_type: "HMAC", auth: { webhook_secret_key: "an auth token" } }
  const form = { ...unsigned, headers: { "content-type": "application/x-www-form-urlencoded" } }
  const body = Buffer.from("Body=Hi+there&From=%2B15551234567")
  const signed = signerOf(source)!({ ...form, body })!
  const check = (changed: object) =>
    compileSourceAuth(source).verify({
      ...form,
      query: "a=%3A1",
      body: signed.body,
      headers: { ...form.headers, ...signed.headers },
      ...changed
    })
  expect(check({})).toBe("verified")
  expect(check({ body: Buffer.from("Body=Hi+there&From=%2B15551234568") })).toBe("failed")
  expect(check({ url: "https://hooks.example.com/e/src_2/orders?a=%3A1" })).toBe("failed")
  expect(verdict(source)).toBe("not signed")
})

it.each<[string, Verifying["auth_type"], Record<string, string>]>([
  ["HMAC", "HMAC", { webhook_secret_key: "a secret", prefix: "v1=", encoding: "base64", algorithm: "sha512" }],
  ["HMAC with a timestamp", "HMAC", { webhook_secret_key: "a secret", timestamp_header: "X-Time" }],
  ["an API key", "API_KEY", { api_key: "a secret key", header_key: "X-Key" }],
  ["Basic", "BASIC_AUTH", { username: "ada", password: "löve" }]
])("A request signed with the source's own settings is verified: %s", (_, auth_type, auth) => {
  const complete =
    auth_type === "HMAC" ? { header_key: "x-signature", algorithm: "sha256", encoding: "hex", ...auth } : auth
  expect(verdict({ type: "WEBHOOK", auth_type, auth: complete })).toBe("verified")
})

it("A body that must contain the timestamp is not signed when it is not an object", () => {
  const sign = signerOf({ type: "LINEAR", auth_type: "HMAC", auth: secrets })!
  for (const body of ["[]", "text", "1"]) expect(sign({ ...unsigned, body: Buffer.from(body) })).toBeNull()
})
