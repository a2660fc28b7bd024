import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { maskAuth } from "@tidegate/signatures/Masking"
import { changeSourceAuth, checkSourceAuth } from "../src/AuthInput.ts"

type Created = Parameters<typeof checkSourceAuth>[1]
type Stored = Parameters<typeof changeSourceAuth>[2]

const created = (type: string, written: Created) => Result.getOrThrow(checkSourceAuth(type, written))
const changed = (type: string, written: Created, stored: Stored): unknown =>
  Result.getOrThrow(changeSourceAuth(type, written, stored))

type Checked = ReturnType<typeof checkSourceAuth> | ReturnType<typeof changeSourceAuth>
const faults = (result: Checked) =>
  Result.isSuccess(result)
    ? assert.fail("it was accepted")
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

describe("a new source", () => {
  it("of a provider's type needs its secret only", () => {
    const expected = { auth_type: "HMAC", auth: stripe.auth }
    assert.deepStrictEqual<unknown>(created("STRIPE", { auth: stripe.auth }), expected)
    assert.deepStrictEqual<unknown>(created("STRIPE", { auth_type: "PROVIDER_SIGNATURE", auth: stripe.auth }), expected)
    assert.deepStrictEqual<unknown>(created("STRIPE", {}), { auth_type: null, auth: {} })
    assert.deepStrictEqual<unknown>(created("ASANA", { auth_type: "HMAC", auth: {} }), { auth_type: "HMAC", auth: {} })
    assert.deepStrictEqual<unknown>(created("ASANA", { auth_type: "HMAC" }), { auth_type: "HMAC", auth: {} })
  })

  it("cannot begin with a mask", () => {
    for (const auth_type of [undefined, "HMAC", "PROVIDER_SIGNATURE"]) {
      const written = { ...(auth_type === undefined ? {} : { auth_type }), auth: { webhook_secret_key: "****6789" } }
      assert.deepStrictEqual(faults(checkSourceAuth("STRIPE", written)), [
        "config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself"
      ])
    }
  })
})

describe("a change of the same type", () => {
  it("without settings changes nothing", () => {
    const unchanged = { auth_type: "HMAC", auth: "unchanged" }
    assert.deepStrictEqual(changed("STRIPE", {}, stripe), unchanged)
    assert.deepStrictEqual(changed("STRIPE", { auth_type: "HMAC" }, stripe), unchanged)
    assert.deepStrictEqual(changed("STRIPE", { auth_type: "PROVIDER_SIGNATURE" }, stripe), unchanged)
    assert.deepStrictEqual(changed("STRIPE", {}, open), { auth_type: null, auth: "unchanged" })
  })

  it("takes the masks back for the secrets, however the auth_type is written", () => {
    const auth = maskAuth("HMAC", stripe.auth) as Stored["auth"]
    assert.deepStrictEqual<unknown>(auth, { webhook_secret_key: "****6789" })
    for (const auth_type of ["HMAC", "PROVIDER_SIGNATURE"]) {
      const { auth: restored } = changed("STRIPE", { auth_type, auth }, stripe) as Stored
      assert.deepStrictEqual(restored, stripe.auth)
    }
    assert.deepStrictEqual(changed("STRIPE", { auth }, stripe), { auth_type: "HMAC", auth: stripe.auth })
    assert.deepStrictEqual(faults(changeSourceAuth("STRIPE", { auth: { webhook_secret_key: "****0000" } }, stripe)), [
      "config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself"
    ])
  })

  it("settings alone are of the stored auth_type, or turn on the provider's", () => {
    assert.deepStrictEqual(changed("STRIPE", { auth: { secret: "whsec_2" } }, open), {
      auth_type: "HMAC",
      auth: { webhook_secret_key: "whsec_2" }
    })
    assert.deepStrictEqual(changed("GITHUB", { auth: { username: "v", password: "****6789" } }, basic), {
      auth_type: "BASIC_AUTH",
      auth: { username: "v", password: "pass-0123456789" }
    })
    assert.deepStrictEqual(changed("GITHUB", { auth_type: "PROVIDER_SIGNATURE", auth: { secret: "k" } }, basic), {
      auth_type: "HMAC",
      auth: { webhook_secret_key: "k" }
    })
  })

  it("another auth_type needs its own settings, and masks stand for nothing in it", () => {
    assert.deepStrictEqual(faults(changeSourceAuth("GITHUB", { auth_type: "HMAC" }, basic)), [
      "config.auth.webhook_secret_key: is required"
    ])
    assert.deepStrictEqual(
      faults(changeSourceAuth("GITHUB", { auth_type: "HMAC", auth: { secret: "****6789" } }, basic)),
      ["config.auth.secret: is masked and matches no stored secret: write the secret itself"]
    )
  })

  it("null turns verification off", () => {
    assert.deepStrictEqual(changed("STRIPE", { auth_type: null }, stripe), { auth_type: null, auth: {} })
  })
})

describe("a change of the type", () => {
  it("keeps settings that are right for the new one", () => {
    assert.deepStrictEqual(changed("GITHUB", {}, stripe), { auth_type: "HMAC", auth: stripe.auth })
    assert.deepStrictEqual(changed("STRIPE", {}, { ...generic, auth: { webhook_secret_key: "k" } }), {
      auth_type: "HMAC",
      auth: { webhook_secret_key: "k" }
    })
    assert.deepStrictEqual(changed("GITHUB", {}, open), { auth_type: null, auth: "unchanged" })
    assert.deepStrictEqual(changed("ACME", {}, generic), { auth_type: "HMAC", auth: generic.auth })
    // From a provider's to none: the generic scheme, with its defaults to be seen.
    assert.deepStrictEqual(changed("ACME", {}, stripe), {
      auth_type: "HMAC",
      auth: { webhook_secret_key: "whsec_0123456789", header_key: "x-signature", algorithm: "sha256", encoding: "hex" }
    })
  })

  it("is refused when they are not", () => {
    assert.deepStrictEqual(faults(changeSourceAuth("STRIPE", {}, generic)), [
      "config.auth.header_key: is set by the type STRIPE: leave it out",
      "config.auth.algorithm: is set by the type STRIPE: leave it out",
      "config.auth.encoding: is set by the type STRIPE: leave it out"
    ])
    assert.deepStrictEqual(faults(changeSourceAuth("PAYPAL", {}, stripe)), [
      "config.auth.webhook_secret_key: is no setting of the type PAYPAL: config.auth takes webhook_id",
      "config.auth.webhook_id: is required"
    ])
    assert.deepStrictEqual(
      faults(changeSourceAuth("SVIX", { auth_type: "HMAC" }, { ...stripe, auth: { webhook_secret_key: "!" } })),
      ["config.auth.webhook_secret_key: must be base64, with or without whsec_ before it"]
    )
    // Both have an api_key, or a secret; what GitLab presents says nothing about GitHub.
    assert.deepStrictEqual(faults(changeSourceAuth("GITHUB", {}, gitlab)), [
      "config.auth: is required: the settings of GITLAB are not those of GITHUB"
    ])
    // Stored settings that cannot be read any more are none.
    assert.deepStrictEqual(faults(changeSourceAuth("GITHUB", {}, { ...stripe, auth: {} })), [
      "config.auth.webhook_secret_key: is required"
    ])
  })

  it("takes new settings by the rule of the new type", () => {
    assert.deepStrictEqual(changed("GITHUB", { auth: { secret: "k" } }, gitlab), {
      auth_type: "HMAC",
      auth: { webhook_secret_key: "k" }
    })
    assert.deepStrictEqual(changed("TELEGRAM", { auth: { api_key: "****6789" } }, gitlab), {
      auth_type: "API_KEY",
      auth: gitlab.auth
    })
    assert.deepStrictEqual(changed("ACME", { auth: { api_key: "k" } }, gitlab), {
      auth_type: "API_KEY",
      auth: { api_key: "k", header_key: "x-api-key" }
    })
    assert.deepStrictEqual(changed("GITHUB", { auth_type: null }, gitlab), { auth_type: null, auth: {} })
    assert.deepStrictEqual(faults(changeSourceAuth("GITHUB", { auth: { api_key: "k" } }, gitlab)), [
      "config.auth.api_key: is no setting of the type GITHUB: config.auth takes webhook_secret_key",
      "config.auth.webhook_secret_key: is required"
    ])
  })
})
