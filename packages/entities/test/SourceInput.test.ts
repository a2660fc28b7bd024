import { assert, describe, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import type { SourceFields } from "@tidegate/storage/Sources"
import { createSource, updateSource } from "../src/Source/SourceInput.ts"

const ingress = { baseUrl: "https://in.test/e" }

const created = (input: Schema.Json) => Result.getOrThrow(createSource(input, ingress))
const updated = (stored: SourceFields, input: Schema.Json) => Result.getOrThrow(updateSource(input, ingress)(stored))

/** `path: message` of every wrong field. */
const faults = <A>(result: Result.Result<A, { readonly code: string; readonly data?: Schema.Json }>) => {
  if (Result.isSuccess(result)) return assert.fail("it was accepted")
  assert.strictEqual(result.failure.code, "VALIDATION_ERROR")
  const { fields } = result.failure.data as { readonly fields: ReadonlyArray<{ path: string; message: string }> }
  return fields.map(({ message, path }) => `${path}: ${message}`)
}
const refused = (input: Schema.Json) => faults(createSource(input, ingress))
const refusedChange = (stored: SourceFields, input: Schema.Json) => faults(updateSource(input, ingress)(stored))

const hmac = { webhook_secret_key: "the-secret-key", header_key: "x-signature", algorithm: "sha256", encoding: "hex" }
const signed: SourceFields = {
  ...created({ name: "signed" }),
  config: { ...created({ name: "signed" }).config, auth_type: "HMAC", allowed_http_methods: ["GET"] },
  auth: hmac
}

describe("SourceInput", () => {
  it("fills in what is not given", () => {
    assert.deepStrictEqual(created({ name: "orders" }), {
      name: "orders",
      description: null,
      type: "WEBHOOK",
      disabled: false,
      config: {
        auth_type: null,
        allowed_http_methods: ["POST", "PUT", "PATCH", "DELETE"],
        custom_response: null,
        mode: "webhook",
        proxy: null
      },
      auth: {}
    })
  })

  it("takes settings inside config and at the top, once", () => {
    const nested = created({
      name: "a",
      config: { auth_type: "API_KEY", auth: { api_key: "k-k-k" }, allowed_http_methods: ["GET"] }
    })
    const flat = created({ name: "a", auth_type: "API_KEY", auth: { api_key: "k-k-k" }, allowed_http_methods: ["GET"] })
    assert.deepStrictEqual(flat, nested)
    assert.deepStrictEqual(flat.auth, { api_key: "k-k-k", header_key: "x-api-key" })
    created({ name: "a", mode: "webhook", config: { mode: "webhook" } })
    assert.deepStrictEqual(refused({ name: "a", auth_type: "HMAC", config: { auth_type: null } }), [
      "auth_type: differs from config.auth_type, which is the same setting"
    ])
  })

  it("accepts the names that can be printed", () => {
    for (const name of ["a", "Bestellungen – Köln", "日本", "a".repeat(155), "👩‍💻".repeat(50)]) {
      assert.strictEqual(created({ name }).name, name)
    }
    for (const name of ["", " ", "a".repeat(156), "a\nb", "a\u0000", "\u2028", "\ud800", 7, null, []]) {
      assert.lengthOf(refused({ name }), 1, JSON.stringify(name))
    }
    assert.deepStrictEqual(refused({}), ["name: is required"])
  })

  it("tells every field that is wrong", () => {
    assert.deepStrictEqual(
      refused({
        name: "",
        description: 1,
        type: "lower",
        status: "off",
        url: 5,
        config: { allowed_http_methods: ["post"], mode: "tunnel" }
      }),
      [
        "name: must be 1 to 155 printable characters",
        "description: must be a string or null",
        "type: must begin with a capital letter, and have capital letters, digits and underscores only",
        "status: must be one of enabled, disabled",
        "url: must be a string or null",
        "config.allowed_http_methods.0: must be one of HEAD, GET, POST, PUT, PATCH, DELETE",
        "config.mode: must be one of webhook, proxy"
      ]
    )
    assert.deepStrictEqual(refused([]), ["body: must be a JSON object"])
    assert.deepStrictEqual(refused("text"), ["body: must be a JSON object"])
    assert.deepStrictEqual(refused({ name: "a", config: [] }), ["config: must be an object"])
    assert.deepStrictEqual(refused({ name: "a", description: "\u0000" }), [
      "description: must be at most 4096 characters of valid Unicode without NUL"
    ])
  })

  it("accepts any type of the form, and its status", () => {
    assert.strictEqual(created({ name: "a", type: "SOME_VENDOR_2" }).type, "SOME_VENDOR_2")
    assert.isTrue(created({ name: "a", status: "disabled" }).disabled)
    assert.isTrue(updated(signed, { status: "disabled" }).disabled)
    assert.isFalse(updated({ ...signed, disabled: true }, { status: "enabled" }).disabled)
    assert.isTrue(updated({ ...signed, disabled: true }, {}).disabled)
  })

  it("keeps each method once; at least one", () => {
    const methods = (allowed_http_methods: Schema.Json) =>
      created({ name: "a", allowed_http_methods }).config.allowed_http_methods
    assert.deepStrictEqual(methods(["GET", "HEAD", "GET"]), ["GET", "HEAD"])
    assert.deepStrictEqual(methods(null), ["POST", "PUT", "PATCH", "DELETE"])
    assert.deepStrictEqual(refused({ name: "a", allowed_http_methods: [] }), [
      "config.allowed_http_methods: must name at least one method"
    ])
    assert.deepStrictEqual(refused({ name: "a", allowed_http_methods: "POST" }), [
      "config.allowed_http_methods: must be an array of methods"
    ])
  })

  it("refuses what is not available yet, and accepts that it is off", () => {
    const later = "is not available yet: leave it out or write null"
    assert.deepStrictEqual(refused({ name: "a", custom_response: { content_type: "json" } }), [
      `config.custom_response: ${later}`
    ])
    assert.deepStrictEqual(refused({ name: "a", config: { proxy: { enabled: false } } }), [`config.proxy: ${later}`])
    assert.deepStrictEqual(refused({ name: "a", mode: "proxy" }), ['config.mode: "proxy" is not available yet'])
    assert.deepStrictEqual(refused({ name: "a", chat_defer_ephemeral: true }), [
      "config.chat_defer_ephemeral: is not available yet"
    ])
    const off = { custom_response: {}, mode: "webhook", proxy: null, chat_defer_ephemeral: false }
    assert.deepStrictEqual(created({ name: "a", config: off }), created({ name: "a" }))
  })

  it("accepts a URL on the ingress host only", () => {
    for (const url of [null, "https://in.test/e/src_1", "https://in.test/anything"]) created({ name: "a", url })
    for (const url of ["https://elsewhere.test/e/src_1", "not a url", "https://in.test:8443/e"]) {
      assert.deepStrictEqual(refused({ name: "a", url }), ["url: must be on the ingress host, below https://in.test/e"])
    }
  })

  it("wants complete auth with an auth_type", () => {
    assert.deepStrictEqual(refused({ name: "a", auth_type: "HMAC" }), ["config.auth.webhook_secret_key: is required"])
    assert.deepStrictEqual(refused({ name: "a", auth_type: "HMAC", auth: { secret: "" } }), [
      "config.auth.secret: must not be empty"
    ])
    assert.deepStrictEqual(refused({ name: "a", auth: { api_key: "k" } }), [
      "config.auth_type: is required when config.auth is given"
    ])
    assert.deepStrictEqual(refused({ name: "a", auth_type: "OTHER" }), [
      "config.auth_type: must be one of BASIC_AUTH, API_KEY, HMAC or null"
    ])
    assert.deepStrictEqual(refusedChange(signed, { auth_type: "BASIC_AUTH" }), [
      "config.auth.username: is required",
      "config.auth.password: is required"
    ])
    assert.deepStrictEqual(refusedChange(signed, { auth: {} }), ["config.auth.webhook_secret_key: is required"])
  })

  describe("a change in part", () => {
    it("merges config by member and leaves the rest", () => {
      assert.deepStrictEqual(updated(signed, {}), { ...signed, auth: "unchanged" })
      const changed = updated(signed, { description: "new", config: { allowed_http_methods: ["PUT"] } })
      assert.deepStrictEqual(changed, {
        ...signed,
        description: "new",
        config: { ...signed.config, allowed_http_methods: ["PUT"] },
        auth: "unchanged"
      })
      assert.strictEqual(updated({ ...signed, description: "old" }, { description: null }).description, null)
    })

    it("leaves the secrets alone when the auth_type is the same", () => {
      assert.strictEqual(updated(signed, { auth_type: "HMAC" }).auth, "unchanged")
    })

    it("replaces auth whole", () => {
      const changed = updated(signed, { auth: { secret: "another-key", encoding: "base64" } })
      assert.deepStrictEqual(changed.auth, { ...hmac, webhook_secret_key: "another-key", encoding: "base64" })
      const switched = updated(signed, { auth_type: "BASIC_AUTH", auth: { username: "u", password: "p" } })
      assert.deepStrictEqual(
        [switched.config.auth_type, switched.auth],
        ["BASIC_AUTH", { username: "u", password: "p" }]
      )
    })

    it("takes a mask for the stored secret, and for no other", () => {
      const masked = { ...hmac, webhook_secret_key: "****-key" }
      assert.deepStrictEqual(updated(signed, { auth: { ...masked, encoding: "base64" } }).auth, {
        ...hmac,
        encoding: "base64"
      })
      assert.deepStrictEqual(updated(signed, { config: { auth_type: "HMAC", auth: masked } }).auth, hmac)
      const wrong = ["config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself"]
      assert.deepStrictEqual(refusedChange(signed, { auth: { ...hmac, webhook_secret_key: "****abcd" } }), wrong)
      assert.deepStrictEqual(refused({ name: "a", auth_type: "HMAC", auth: masked }), wrong)
      // Not under another meaning either.
      const other = { auth_type: "API_KEY", auth: { api_key: "****-key" } }
      assert.deepStrictEqual(refusedChange({ ...signed, auth: { ...hmac, api_key: "the-secret-key" } }, other), [
        "config.auth.api_key: is masked and matches no stored secret: write the secret itself"
      ])
    })

    it("turns verification off with an explicit null, whatever auth says", () => {
      const off = updated(signed, { config: { auth_type: null, auth: { ...hmac, webhook_secret_key: "****-key" } } })
      assert.deepStrictEqual([off.config.auth_type, off.auth], [null, {}])
    })
  })
})
