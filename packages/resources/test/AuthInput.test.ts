import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { maskAuth } from "@tidegate/redaction/Masking"
import { changeSourceAuth, checkSourceAuth } from "../src/AuthInput.ts"

type Created = Parameters<typeof checkSourceAuth>[1]
type Stored = Parameters<typeof changeSourceAuth>[2]

const created = (type: string, written: Created) => Result.getOrThrow(checkSourceAuth(type, written))
const changed = (type: string, written: Created, stored: Stored): unknown =>
  Result.getOrThrow(changeSourceAuth(type, written, stored))

type Checked = ReturnType<typeof checkSourceAuth> | ReturnType<typeof changeSourceAuth>
const faults = (result: Checked) =>
  Result.isSuccess(result)
    ? expect.fail("it was accepted")
    : result.failure.map(({ message, path }) => `${path}: ${message}`)

const stripe: Stored = { type: "STRIPE", auth_type: "HMAC", auth: { webhook_secret_key: "whsec_0123456789" } }
const gitlab: Stored = { type: "GITLAB", auth_type: "API_KEY", auth: { api_key: "token-0123456789" } }
const open: Stored = { type: "STRIPE", auth_type: null, auth: {} }
const generic: Stored = {
  type: "WEBHOOK",
  auth_type: "HMAC",
  auth: { webhook_secret_key: "key-0123456789", header_key: "x-signature", algorithm: "sha1", encoding: "hex" }
}
const basic: Stored = { type: "GITHUB", auth_type: "BASIC_AUTH", auth: { username: "u", password: "pass-0123456789" } }

describe("Auth of a new source", () => {
  it("A new source of a provider type needs only the provider's secret", () => {
    const expected = { auth_type: "HMAC", auth: stripe.auth }
    expect(created("STRIPE", { auth: stripe.auth })).toStrictEqual(expected)
    expect(created("STRIPE", { auth_type: "PROVIDER_SIGNATURE", auth: stripe.auth })).toStrictEqual(expected)
    expect(created("STRIPE", {})).toStrictEqual({ auth_type: null, auth: {} })
    expect(created("ASANA", { auth_type: "HMAC", auth: {} })).toStrictEqual({ auth_type: "HMAC", auth: {} })
    expect(created("ASANA", { auth_type: "HMAC" })).toStrictEqual({ auth_type: "HMAC", auth: {} })
  })

  it("A new source cannot be created with a masked secret", () => {
    for (const auth_type of [undefined, "HMAC", "PROVIDER_SIGNATURE"]) {
      const written = { ...(auth_type === undefined ? {} : { auth_type }), auth: { webhook_secret_key: "****6789" } }
      expect(faults(checkSourceAuth("STRIPE", written))).toStrictEqual([
        "config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself"
      ])
    }
  })
})

describe("Auth change that keeps the type", () => {
  it("A change without auth settings changes nothing", () => {
    const unchanged = { auth_type: "HMAC", auth: "unchanged" }
    expect(changed("STRIPE", {}, stripe)).toStrictEqual(unchanged)
    expect(changed("STRIPE", { auth_type: "HMAC" }, stripe)).toStrictEqual(unchanged)
    expect(changed("STRIPE", { auth_type: "PROVIDER_SIGNATURE" }, stripe)).toStrictEqual(unchanged)
    expect(changed("STRIPE", {}, open)).toStrictEqual({ auth_type: null, auth: "unchanged" })
  })

  it("Masks that are written back keep the stored secrets, however the auth_type is written", () => {
    const auth = maskAuth("HMAC", stripe.auth) as Stored["auth"]
    expect(auth).toStrictEqual({ webhook_secret_key: "****6789" })
    for (const auth_type of ["HMAC", "PROVIDER_SIGNATURE"]) {
      const { auth: restored } = changed("STRIPE", { auth_type, auth }, stripe) as Stored
      expect(restored).toStrictEqual(stripe.auth)
    }
    expect(changed("STRIPE", { auth }, stripe)).toStrictEqual({ auth_type: "HMAC", auth: stripe.auth })
    expect(faults(changeSourceAuth("STRIPE", { auth: { webhook_secret_key: "****0000" } }, stripe))).toStrictEqual([
      "config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself"
    ])
  })

  it("Auth settings without an auth_type belong to the stored one, or enable the provider's", () => {
    expect(changed("STRIPE", { auth: { secret: "whsec_2" } }, open)).toStrictEqual({
      auth_type: "HMAC",
      auth: { webhook_secret_key: "whsec_2" }
    })
    expect(changed("GITHUB", { auth: { username: "v", password: "****6789" } }, basic)).toStrictEqual({
      auth_type: "BASIC_AUTH",
      auth: { username: "v", password: "pass-0123456789" }
    })
    expect(changed("GITHUB", { auth_type: "PROVIDER_SIGNATURE", auth: { secret: "k" } }, basic)).toStrictEqual({
      auth_type: "HMAC",
      auth: { webhook_secret_key: "k" }
    })
  })

  it("Another auth_type needs its own settings, and a mask does not restore a secret in it", () => {
    expect(faults(changeSourceAuth("GITHUB", { auth_type: "HMAC" }, basic))).toStrictEqual([
      "config.auth.webhook_secret_key: is required"
    ])
    expect(
      faults(changeSourceAuth("GITHUB", { auth_type: "HMAC", auth: { secret: "****6789" } }, basic))
    ).toStrictEqual(["config.auth.secret: is masked and matches no stored secret: write the secret itself"])
  })

  it("An auth_type of null turns verification off", () => {
    expect(changed("STRIPE", { auth_type: null }, stripe)).toStrictEqual({ auth_type: null, auth: {} })
  })
})

describe("Change of a source's type", () => {
  it("A change of type keeps auth settings that are valid for the new type", () => {
    expect(changed("GITHUB", {}, stripe)).toStrictEqual({ auth_type: "HMAC", auth: stripe.auth })
    expect(changed("STRIPE", {}, { ...generic, auth: { webhook_secret_key: "k" } })).toStrictEqual({
      auth_type: "HMAC",
      auth: { webhook_secret_key: "k" }
    })
    expect(changed("GITHUB", {}, open)).toStrictEqual({ auth_type: null, auth: "unchanged" })
    expect(changed("ACME", {}, generic)).toStrictEqual({ auth_type: "HMAC", auth: generic.auth })
    // From a provider's to none: the generic scheme, with its defaults to be seen.
    expect(changed("ACME", {}, stripe)).toStrictEqual({
      auth_type: "HMAC",
      auth: { webhook_secret_key: "whsec_0123456789", header_key: "x-signature", algorithm: "sha256", encoding: "hex" }
    })
  })

  it("A change of type is rejected if the stored auth settings are invalid for the new type", () => {
    expect(faults(changeSourceAuth("STRIPE", {}, generic))).toStrictEqual([
      "config.auth.header_key: is set by the type STRIPE: leave it out",
      "config.auth.algorithm: is set by the type STRIPE: leave it out",
      "config.auth.encoding: is set by the type STRIPE: leave it out"
    ])
    expect(faults(changeSourceAuth("PAYPAL", {}, stripe))).toStrictEqual([
      "config.auth.webhook_secret_key: is no setting of the type PAYPAL: config.auth takes webhook_id",
      "config.auth.webhook_id: is required"
    ])
    expect(
      faults(changeSourceAuth("SVIX", { auth_type: "HMAC" }, { ...stripe, auth: { webhook_secret_key: "!" } }))
    ).toStrictEqual(["config.auth.webhook_secret_key: must be base64, with or without whsec_ before it"])
    // Both have an api_key, or a secret; what GitLab presents says nothing about GitHub.
    expect(faults(changeSourceAuth("GITHUB", {}, gitlab))).toStrictEqual([
      "config.auth: is required: the settings of GITLAB are not those of GITHUB"
    ])
    // Stored settings that cannot be read any more are none.
    expect(faults(changeSourceAuth("GITHUB", {}, { ...stripe, auth: {} }))).toStrictEqual([
      "config.auth.webhook_secret_key: is required"
    ])
  })

  it("New auth settings with a change of type follow the rules of the new type", () => {
    expect(changed("GITHUB", { auth: { secret: "k" } }, gitlab)).toStrictEqual({
      auth_type: "HMAC",
      auth: { webhook_secret_key: "k" }
    })
    expect(changed("TELEGRAM", { auth: { api_key: "****6789" } }, gitlab)).toStrictEqual({
      auth_type: "API_KEY",
      auth: gitlab.auth
    })
    expect(changed("ACME", { auth: { api_key: "k" } }, gitlab)).toStrictEqual({
      auth_type: "API_KEY",
      auth: { api_key: "k", header_key: "x-api-key" }
    })
    expect(changed("GITHUB", { auth_type: null }, gitlab)).toStrictEqual({ auth_type: null, auth: {} })
    expect(faults(changeSourceAuth("GITHUB", { auth: { api_key: "k" } }, gitlab))).toStrictEqual([
      "config.auth.api_key: is no setting of the type GITHUB: config.auth takes webhook_secret_key",
      "config.auth.webhook_secret_key: is required"
    ])
  })
})
