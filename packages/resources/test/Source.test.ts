import { assert, describe, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { source, type SourceFields } from "../src/Source.ts"
import * as Written from "./written.ts"

const createSource = (input: Schema.Json, ingress: { readonly baseUrl: string }) =>
  Written.created(source, input, { ingress })
const updateSource =
  (id: string, input: Schema.Json, ingress: { readonly baseUrl: string }) => (stored: SourceFields) =>
    Written.changed(source, stored, input, { id, ingress })

const ingress = { baseUrl: "https://in.test/e" }

const created = (input: Schema.Json) => Result.getOrThrow(createSource(input, ingress))
const id = "src_01kaxg3j7qzfn8m4s2v6w9t5bc"
const updated = (stored: SourceFields, input: Schema.Json) =>
  Result.getOrThrow(updateSource(id, input, ingress)(stored))

/** `path: message` of every wrong field. */
const faults = <A>(result: Result.Result<A, { readonly code: string; readonly data?: Schema.Json }>) => {
  if (Result.isSuccess(result)) return assert.fail("it was accepted")
  assert.strictEqual(result.failure.code, "VALIDATION_ERROR")
  const { fields } = result.failure.data as { readonly fields: ReadonlyArray<{ path: string; message: string }> }
  return fields.map(({ message, path }) => `${path}: ${message}`)
}
const refused = (input: Schema.Json) => faults(createSource(input, ingress))
const refusedChange = (stored: SourceFields, input: Schema.Json) => faults(updateSource(id, input, ingress)(stored))

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
      slug: null,
      config: {
        auth_type: null,
        allowed_http_methods: ["POST", "PUT", "PATCH", "DELETE"],
        custom_response: null,
        mode: "webhook",
        proxy: null,
        chat_defer_ephemeral: false
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

  describe("url", () => {
    it("is a slug below the ingress URL", () => {
      const slugs = ["orders", "a-1", "---", "0".repeat(63)]
      for (const slug of slugs) {
        assert.strictEqual(created({ name: "a", url: `https://in.test/e/${slug}` }).slug, slug)
        assert.strictEqual(updated(signed, { url: `https://in.test/e/${slug}` }).slug, slug)
      }
      assert.strictEqual(created({ name: "a", url: "HTTPS://IN.test:443/e/orders" }).slug, "orders")
    })

    it("is given up by null and by the URL of the id, and kept when it is left out", () => {
      const named: SourceFields = { ...signed, slug: "orders" }
      assert.strictEqual(updated(named, { name: "b" }).slug, "orders")
      assert.isNull(updated(named, { url: null }).slug)
      assert.isNull(updated(named, { url: `https://in.test/e/${id}` }).slug)
      assert.isNull(created({ name: "a", url: null }).slug)
    })

    it("is refused where nothing would arrive", () => {
      const host = "url: must be on the ingress host, below https://in.test/e"
      const form = "url: must be https://in.test/e/ and 3 to 63 lower-case letters, digits and hyphens"
      const other = "url: is the URL of another source: leave it out"
      const table: ReadonlyArray<readonly [string, string]> = [
        ["https://elsewhere.test/e/orders", host],
        ["http://in.test/e/orders", host],
        ["https://in.test:8443/e/orders", host],
        ["https://in.test.evil.test/e/orders", host],
        ["https://user@in.test/e/orders", host],
        ["https://in.test/anything", host],
        ["https://in.test/e", host],
        ["//in.test/e/orders", host],
        ["orders", host],
        ["", host],
        ["https://in.test/e/", form],
        ["https://in.test/e/ab", form],
        [`https://in.test/e/${"a".repeat(64)}`, form],
        ["https://in.test/e/Orders", form],
        ["https://in.test/e/src_1", form],
        ["https://in.test/e/orders/", form],
        ["https://in.test/e/orders?x=1", form],
        ["https://in.test/e/orders#x", form],
        ["https://in.test/e/or%64ers", form],
        ["https://in.test/e/bestellungen-köln", form],
        ["https://in.test/e/src_01kaxg3j7qzfn8m4s2v6w9t5bd", other]
      ]
      for (const [url, message] of table) {
        assert.deepStrictEqual(refused({ name: "a", url }), [message], url)
        assert.deepStrictEqual(refusedChange(signed, { url }), [message], url)
      }
      assert.deepStrictEqual(refused({ name: "a", url: `https://in.test/e/${id}` }), [other])
    })
  })

  it("refuses a secret that stands beside auth, because it would verify nothing", () => {
    assert.deepStrictEqual(refused({ name: "a", type: "STRIPE", config: { webhook_secret_key: "k" } }), [
      "config.webhook_secret_key: belongs into config.auth.webhook_secret_key"
    ])
    assert.deepStrictEqual(refused({ name: "a", username: "u", password: "p" }), [
      "username: belongs into config.auth.username",
      "password: belongs into config.auth.password"
    ])
    assert.deepStrictEqual(refusedChange(signed, { config: { secret: "new" } }), [
      "config.secret: belongs into config.auth.secret"
    ])
  })

  it("verifies by the type alone where the provider needs no settings, and only when it is made", () => {
    for (const type of ["ASANA", "NOTION", "AWS_SNS"]) {
      assert.deepStrictEqual(created({ name: "a", type }).config.auth_type, "HMAC", type)
      assert.deepStrictEqual(created({ name: "a", type, config: { auth: {} } }).config.auth_type, "HMAC", type)
      assert.isNull(created({ name: "a", type, config: { auth_type: null } }).config.auth_type, type)
    }
    assert.isNull(created({ name: "a", type: "STRIPE" }).config.auth_type)
    const open = created({ name: "a", type: "ASANA", config: { auth_type: null } })
    const renamed = updated(open, { name: "b" })
    assert.isNull(renamed.config.auth_type)
  })

  it("wants complete auth with an auth_type", () => {
    assert.deepStrictEqual(refused({ name: "a", auth_type: "HMAC" }), ["config.auth.webhook_secret_key: is required"])
    assert.deepStrictEqual(refused({ name: "a", auth_type: "HMAC", auth: { secret: "" } }), [
      "config.auth.secret: must not be empty"
    ])
    assert.deepStrictEqual(refused({ name: "a", auth: { api_key: "k" } }), [
      "config.auth_type: is required when config.auth is given, because the type WEBHOOK is no provider's"
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

  describe("custom_response", () => {
    const response = (custom_response: Schema.Json) => ({ name: "a", config: { custom_response } })
    const written: Schema.Json = {
      content_type: "json",
      body: '{"ok":true}',
      rules: [
        {
          enabled: false,
          match: { method: ["POST"], path: { starts_with: "/a" }, body: { "order.id": { $exists: true, $ne: null } } },
          response: { status: 202, content_type: "xml", body: "<id>{{body.order.id}}</id>", headers: { "X-Mock": "1" } }
        },
        { match: null, response: { body: '"{{ path }}"' } }
      ]
    }

    it("is stored as it was written, whatever the spelling", () => {
      assert.deepStrictEqual<unknown>(created(response(written)).config.custom_response, written)
      assert.deepStrictEqual<unknown>(created({ name: "a", custom_response: written }).config.custom_response, written)
    })

    it("null and an empty one are none", () => {
      for (const none of [null, {}]) {
        assert.isNull(created(response(none)).config.custom_response)
        const stored = created(response(written))
        assert.isNull(updated(stored, { custom_response: none }).config.custom_response)
      }
    })

    it("is replaced whole by a change, and left alone without one", () => {
      const stored = created(response(written))
      assert.deepStrictEqual<unknown>(updated(stored, { description: "x" }).config.custom_response, written)
      const changed = updated(stored, { config: { custom_response: { content_type: "text", body: "pong" } } })
      assert.deepStrictEqual(changed.config, {
        ...stored.config,
        custom_response: { content_type: "text", body: "pong" }
      })
    })

    it("is refused with the place of what is wrong", () => {
      const rule = (rule: Schema.Json) => response({ rules: [{}, {}, rule] })
      const at = "config.custom_response"
      const cases: ReadonlyArray<readonly [Schema.Json, RegExp]> = [
        [response("x"), /^config\.custom_response: must be an object or null$/],
        [response([]), /^config\.custom_response: must be an object or null$/],
        [response({ content_type: "html" }), /^config\.custom_response\.content_type: must be json, text or xml/],
        [response({ body: "{" }), /^config\.custom_response\.body: is not valid JSON/],
        [response({ body: '"{{nope}}"' }), /^config\.custom_response\.body: a placeholder begins with/],
        [response({ rulez: [] }), /^config\.custom_response\.rulez: is not a field/],
        [rule({ matcher: {} }), /^config\.custom_response\.rules\[2\]\.matcher: is not a field/],
        [
          rule({ match: { body: { a: { $regex: "(" } } } }),
          /^config\.custom_response\.rules\[2\]\.match\.body\.a\.\$regex: the pattern is not valid/
        ],
        [rule({ response: { status: 100 } }), /^config\.custom_response\.rules\[2\]\.response\.status: /],
        [
          rule({ response: { headers: { "Set-Cookie": "a=b" } } }),
          /^config\.custom_response\.rules\[2\]\.response\.headers\.Set-Cookie: cannot be set here/
        ]
      ]
      for (const [input, message] of cases) {
        const [first, ...others] = refused(input)
        assert.match(first ?? "", message)
        assert.lengthOf(others, 0)
      }
      const stored = created({ name: "a" })
      assert.match(refusedChange(stored, { custom_response: { body: "{" } })[0] ?? "", new RegExp(`^${at}\\.body: `))
    })
  })

  describe("mode and proxy", () => {
    const url = "https://api.example.com/base?x=1"
    const full = {
      enabled: true,
      target_url: url,
      path_forwarding: true,
      query_forwarding: true,
      timeout_ms: 10_000,
      capture_response_bytes: 65_536
    }
    const dormant = { ...full, enabled: false }
    const source = (config: Schema.Json) => created({ name: "a", config }).config
    const modeOf = ({ mode, proxy }: SourceFields["config"]) => ({ mode, proxy })
    const proxied = created({ name: "a", config: { mode: "proxy", proxy: { target_url: url, timeout_ms: 2_000 } } })
    const asleep = created({ name: "a", config: { proxy: { target_url: url, timeout_ms: 2_000 } } })

    it("each implies the other", () => {
      const on = { mode: "proxy", proxy: full }
      const off = { mode: "webhook", proxy: dormant }
      const table: ReadonlyArray<readonly [Schema.Json, object]> = [
        [{ mode: "proxy", proxy: { target_url: url } }, on],
        [{ proxy: { enabled: true, target_url: url } }, on],
        [{ mode: "proxy", proxy: { enabled: true, target_url: url } }, on],
        [{ mode: "proxy", proxy: { enabled: null, target_url: url } }, on],
        [{ proxy: { target_url: url } }, off],
        [{ proxy: { enabled: false, target_url: url } }, off],
        [{ mode: "webhook", proxy: { target_url: url } }, off],
        [{ mode: "webhook", proxy: { enabled: false, target_url: url } }, off],
        [{ mode: "webhook" }, { mode: "webhook", proxy: null }],
        [
          { mode: "webhook", proxy: null },
          { mode: "webhook", proxy: null }
        ],
        [{ proxy: {} }, { mode: "webhook", proxy: null }]
      ]
      for (const [config, expected] of table) {
        assert.deepStrictEqual<object>(modeOf(source(config)), expected, JSON.stringify(config))
      }
      assert.deepStrictEqual<object>(
        modeOf(created({ name: "a", mode: "proxy", proxy: { target_url: url } }).config),
        on
      )
    })

    it("must not contradict each other", () => {
      assert.deepStrictEqual(refused({ name: "a", mode: "webhook", proxy: { enabled: true, target_url: url } }), [
        'config.proxy.enabled: must not be true when config.mode is "webhook"'
      ])
      assert.deepStrictEqual(refused({ name: "a", mode: "proxy", proxy: { enabled: false, target_url: url } }), [
        'config.proxy.enabled: must not be false when config.mode is "proxy"'
      ])
      for (const proxy of [undefined, null, {}]) {
        assert.deepStrictEqual(
          refused({ name: "a", config: { mode: "proxy", ...(proxy === undefined ? {} : { proxy }) } }),
          ['config.proxy: is required while config.mode is "proxy"']
        )
      }
      for (const proxy of [{ enabled: true }, { enabled: false }, { target_url: null }, { timeout_ms: 1_000 }]) {
        assert.deepStrictEqual(refused({ name: "a", proxy }), [
          "config.proxy.target_url: is required: an absolute http or https URL"
        ])
      }
    })

    it("a change of the mode wakes the settings up and puts them to sleep", () => {
      const settings = { ...full, timeout_ms: 2_000 }
      assert.deepStrictEqual(modeOf(proxied.config), { mode: "proxy", proxy: settings })
      const off = updated(proxied, { mode: "webhook" })
      assert.deepStrictEqual(modeOf(off.config), { mode: "webhook", proxy: { ...settings, enabled: false } })
      assert.deepStrictEqual(modeOf(updated(asleep, { mode: "proxy" }).config), { mode: "proxy", proxy: settings })
      assert.deepStrictEqual(modeOf(updated(proxied, { description: "x" }).config), modeOf(proxied.config))
      assert.deepStrictEqual(modeOf(updated(asleep, { description: "x" }).config), modeOf(asleep.config))
    })

    it("a change of the settings replaces them whole, in the mode that is stored unless it says otherwise", () => {
      const other = { target_url: "http://other.example" }
      const expected = { ...full, ...other }
      assert.deepStrictEqual(modeOf(updated(proxied, { proxy: other }).config), { mode: "proxy", proxy: expected })
      assert.deepStrictEqual(modeOf(updated(asleep, { proxy: other }).config), {
        mode: "webhook",
        proxy: { ...expected, enabled: false }
      })
      assert.strictEqual(updated(asleep, { proxy: { enabled: true, ...other } }).config.mode, "proxy")
      assert.strictEqual(updated(proxied, { proxy: { enabled: false, ...other } }).config.mode, "webhook")
      assert.deepStrictEqual(refusedChange(proxied, { proxy: { timeout_ms: 5_000 } }), [
        "config.proxy.target_url: is required: an absolute http or https URL"
      ])
    })

    it("null clears the settings, but not under a source that needs them", () => {
      assert.deepStrictEqual(modeOf(updated(asleep, { proxy: null }).config), { mode: "webhook", proxy: null })
      const both = updated(proxied, { mode: "webhook", proxy: null })
      assert.deepStrictEqual(modeOf(both.config), { mode: "webhook", proxy: null })
      for (const config of [{ proxy: null }, { proxy: {} }]) {
        assert.deepStrictEqual(refusedChange(proxied, { config }), [
          'config.proxy: is required while config.mode is "proxy"'
        ])
      }
      assert.deepStrictEqual(refusedChange(created({ name: "a" }), { mode: "proxy" }), [
        'config.proxy: is required while config.mode is "proxy"'
      ])
    })

    it("the settings have limits", () => {
      const fault = (member: object) => refused({ name: "a", proxy: { target_url: url, ...member } })
      const times = "must be a whole number from 1000 to 30000, or null"
      for (const timeout_ms of [999, 30_001, 1_000.5, "2000", true, -1]) {
        assert.deepStrictEqual(fault({ timeout_ms }), [`config.proxy.timeout_ms: ${times}`])
      }
      for (const capture_response_bytes of [-1, 65_537, 0.5, "0"]) {
        assert.deepStrictEqual(fault({ capture_response_bytes }), [
          "config.proxy.capture_response_bytes: must be a whole number from 0 to 65536, or null"
        ])
      }
      for (const flag of ["enabled", "path_forwarding", "query_forwarding"]) {
        assert.deepStrictEqual(fault({ [flag]: 1 }), [`config.proxy.${flag}: must be true, false or null`])
      }
      const accepted = {
        timeout_ms: 30_000,
        capture_response_bytes: 0,
        path_forwarding: false,
        query_forwarding: false
      }
      assert.deepStrictEqual(source({ proxy: { target_url: url, ...accepted } }).proxy, {
        enabled: false,
        target_url: url,
        ...accepted
      })
      assert.deepStrictEqual(
        source({ proxy: { target_url: url, timeout_ms: null, path_forwarding: null } }).proxy,
        dormant
      )
      assert.deepStrictEqual(refused({ name: "a", proxy: "x" }), ["config.proxy: must be an object or null"])
    })

    it("the target is an absolute http or https URL", () => {
      const long = `https://a.example/${"x".repeat(2048)}`
      const table: ReadonlyArray<readonly [Schema.Json, string]> = [
        ["", "must be an absolute http or https URL"],
        ["/path", "must be an absolute http or https URL"],
        ["//a.example", "must be an absolute http or https URL"],
        ["ftp://a.example", "must be an absolute http or https URL"],
        ["file:///etc/passwd", "must be an absolute http or https URL"],
        ["https://", "must be an absolute http or https URL"],
        ["https://a b.example", "must be an absolute http or https URL"],
        ["https:\\\\a.example", "must be an absolute http or https URL"],
        ["https://a.example/#x", "must not have a fragment"],
        ["https://u:p@a.example", "must not contain a user name or password"],
        ["https://u@a.example", "must not contain a user name or password"],
        [long, "must be at most 2048 characters"],
        [1, "must be a string"]
      ]
      for (const [target_url, message] of table) {
        assert.deepStrictEqual(refused({ name: "a", proxy: { target_url } }), [`config.proxy.target_url: ${message}`])
      }
      for (const target_url of ["http://a.example", "HTTPS://a.example:8443/x@y?z=1", long.slice(0, 2048)]) {
        assert.strictEqual(source({ proxy: { target_url } }).proxy?.target_url, target_url)
      }
    })
  })

  describe("chat_defer_ephemeral", () => {
    const chat = created({ name: "a", type: "DISCORD", chat_defer_ephemeral: true })
    const only = ["config.chat_defer_ephemeral: is for sources of type DISCORD only"]

    it("is for chat interactions only", () => {
      assert.isTrue(chat.config.chat_defer_ephemeral)
      assert.isFalse(created({ name: "a", type: "DISCORD" }).config.chat_defer_ephemeral)
      for (const off of [false, null]) {
        assert.isFalse(created({ name: "a", config: { chat_defer_ephemeral: off } }).config.chat_defer_ephemeral)
      }
      assert.deepStrictEqual(refused({ name: "a", chat_defer_ephemeral: true }), only)
      assert.deepStrictEqual(refused({ name: "a", type: "DISCORD_EVENTS", chat_defer_ephemeral: true }), only)
      assert.deepStrictEqual(refused({ name: "a", chat_defer_ephemeral: "true" }), [
        "config.chat_defer_ephemeral: must be true, false or null"
      ])
    })

    it("stays unless it is changed, and ends with the type", () => {
      assert.isTrue(updated(chat, { description: "x" }).config.chat_defer_ephemeral)
      assert.isFalse(updated(chat, { chat_defer_ephemeral: false }).config.chat_defer_ephemeral)
      assert.isFalse(updated(chat, { chat_defer_ephemeral: null }).config.chat_defer_ephemeral)
      assert.isFalse(updated(chat, { type: "WEBHOOK" }).config.chat_defer_ephemeral)
      assert.deepStrictEqual(refusedChange(chat, { type: "WEBHOOK", chat_defer_ephemeral: true }), only)
      assert.isTrue(
        updated(created({ name: "a" }), { type: "DISCORD", chat_defer_ephemeral: true }).config.chat_defer_ephemeral
      )
    })
  })

  describe("a change in part", () => {
    it("tells in one answer what is wrong by itself, and what is by what is stored", () => {
      const wrong = { name: "", allowed_http_methods: ["post"], mode: "proxy", chat_defer_ephemeral: true, slug: "x" }
      assert.deepStrictEqual(refusedChange(signed, { ...wrong, auth: { ...hmac, webhook_secret_key: "****abcd" } }), [
        "name: must be 1 to 155 printable characters",
        "config.allowed_http_methods.0: must be one of HEAD, GET, POST, PUT, PATCH, DELETE",
        "config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself",
        'config.proxy: is required while config.mode is "proxy"',
        "config.chat_defer_ephemeral: is for sources of type DISCORD only"
      ])
    })

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
