import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { source, type SourceFields } from "../src/Source.ts"
import * as Written from "./written.ts"

const id = "src_01kaxg3j7qzfn8m4s2v6w9t5bc"
const created = (input: Schema.Json) => Result.getOrThrow(Written.created(source, input))
const changed = (stored: SourceFields, input: Schema.Json) => Written.changed(source, stored, input, { id })
const updated = (stored: SourceFields, input: Schema.Json) => Result.getOrThrow(changed(stored, input))
const refused = (input: Schema.Json) => Written.faults(Written.created(source, input))
const refusedChange = (stored: SourceFields, input: Schema.Json) => Written.faults(changed(stored, input))

const hmac = { webhook_secret_key: "the-secret-key", header_key: "x-signature", algorithm: "sha256", encoding: "hex" }
const signed: SourceFields = {
  ...created({ name: "signed" }),
  config: { ...created({ name: "signed" }).config, auth_type: "HMAC", allowed_http_methods: ["GET"] },
  auth: hmac
}

describe("Input of a source", () => {
  it("A new source gets default values for what is omitted", () => {
    expect(created({ name: "orders" })).toStrictEqual({
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
        chat_defer_ephemeral: false,
        rate_limit: null,
        rate_limit_period: null
      },
      auth: {}
    })
  })

  it("Source settings are accepted inside config and at the top level, but must not differ", () => {
    const nested = created({
      name: "a",
      config: { auth_type: "API_KEY", auth: { api_key: "k-k-k" }, allowed_http_methods: ["GET"] }
    })
    const flat = created({ name: "a", auth_type: "API_KEY", auth: { api_key: "k-k-k" }, allowed_http_methods: ["GET"] })
    expect(flat).toStrictEqual(nested)
    expect(flat.auth).toStrictEqual({ api_key: "k-k-k", header_key: "x-api-key" })
    created({ name: "a", mode: "webhook", config: { mode: "webhook" } })
    expect(refused({ name: "a", auth_type: "HMAC", config: { auth_type: null } })).toStrictEqual([
      "auth_type: differs from config.auth_type, which is the same setting"
    ])
  })

  it("A source name may have up to 155 printable characters", () => {
    for (const name of ["a", "Bestellungen – Köln", "日本", "a".repeat(155), "👩‍💻".repeat(50)]) {
      expect(created({ name }).name).toBe(name)
    }
    for (const name of ["", " ", "a".repeat(156), "a\nb", "a\u0000", "\u2028", "\ud800", 7, null, []]) {
      expect(refused({ name }), JSON.stringify(name)).toHaveLength(1)
    }
    expect(refused({})).toStrictEqual(["name: is required"])
  })

  it("All invalid fields of a source are reported", () => {
    expect(
      refused({
        name: "",
        description: 1,
        type: "lower",
        status: "off",
        url: 5,
        config: { allowed_http_methods: ["post"], mode: "tunnel" }
      })
    ).toStrictEqual([
      "name: must be 1 to 155 printable characters",
      "description: must be a string or null",
      "type: must begin with a capital letter, and have capital letters, digits and underscores only",
      "status: must be one of enabled, disabled",
      "url: must be a string or null",
      "config.allowed_http_methods.0: must be one of HEAD, GET, POST, PUT, PATCH, DELETE",
      "config.mode: must be one of webhook, proxy"
    ])
    expect(refused([])).toStrictEqual(["body: must be a JSON object"])
    expect(refused("text")).toStrictEqual(["body: must be a JSON object"])
    expect(refused({ name: "a", config: [] })).toStrictEqual(["config: must be an object"])
    expect(refused({ name: "a", description: "\u0000" })).toStrictEqual([
      "description: must be at most 4096 characters of valid Unicode without NUL"
    ])
  })

  it("A source accepts an unknown vendor type only if it says how to verify, and accepts a status", () => {
    expect(created({ name: "a", type: "SOME_VENDOR_2", config: { auth_type: null } }).type).toBe("SOME_VENDOR_2")
    expect(created({ name: "a", type: "PIPEDRIVE" }).type).toBe("PIPEDRIVE")
    expect(refused({ name: "a", type: "SOME_VENDOR_2" })).toHaveLength(1)
    expect(refused({ name: "a", type: "GITHUBB", config: { auth_type: null } })).toStrictEqual([
      "type: is no type of source; did you mean GITHUB?"
    ])
    expect(updated({ ...signed, type: "SOME_VENDOR_2" }, { type: "SOME_VENDOR_2", name: "b" }).name).toBe("b")
    expect(created({ name: "a", status: "disabled" }).disabled).toBe(true)
    expect(updated(signed, { status: "disabled" }).disabled).toBe(true)
    expect(updated({ ...signed, disabled: true }, { status: "enabled" }).disabled).toBe(false)
    expect(updated({ ...signed, disabled: true }, {}).disabled).toBe(true)
  })

  it("The allowed methods of a source are stored without duplicates, and one is required", () => {
    const methods = (allowed_http_methods: Schema.Json) =>
      created({ name: "a", allowed_http_methods }).config.allowed_http_methods
    expect(methods(["GET", "HEAD", "GET"])).toStrictEqual(["GET", "HEAD"])
    expect(methods(null)).toStrictEqual(["POST", "PUT", "PATCH", "DELETE"])
    expect(refused({ name: "a", allowed_http_methods: [] })).toStrictEqual([
      "config.allowed_http_methods: must name at least one method"
    ])
    expect(refused({ name: "a", allowed_http_methods: "POST" })).toStrictEqual([
      "config.allowed_http_methods: must be an array of methods"
    ])
  })

  describe("URL of a source", () => {
    it("The URL of a source contains a slug below the ingress URL", () => {
      const slugs = ["orders", "a-1", "---", "0".repeat(63)]
      for (const slug of slugs) {
        expect(created({ name: "a", url: `https://in.test/e/${slug}` }).slug).toBe(slug)
        expect(updated(signed, { url: `https://in.test/e/${slug}` }).slug).toBe(slug)
      }
      expect(created({ name: "a", url: "HTTPS://IN.test:443/e/orders" }).slug).toBe("orders")
    })

    it("The slug is removed by null and by the URL of the id, and kept if the URL is omitted", () => {
      const named: SourceFields = { ...signed, slug: "orders" }
      expect(updated(named, { name: "b" }).slug).toBe("orders")
      expect(updated(named, { url: null }).slug).toBeNull()
      expect(updated(named, { url: `https://in.test/e/${id}` }).slug).toBeNull()
      expect(created({ name: "a", url: null }).slug).toBeNull()
    })

    it("A source URL that would receive nothing is rejected", () => {
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
        expect(refused({ name: "a", url }), url).toStrictEqual([message])
        expect(refusedChange(signed, { url }), url).toStrictEqual([message])
      }
      expect(refused({ name: "a", url: `https://in.test/e/${id}` })).toStrictEqual([other])
    })
  })

  it("A secret beside auth is rejected, because it would verify nothing", () => {
    expect(refused({ name: "a", type: "STRIPE", config: { webhook_secret_key: "k" } })).toStrictEqual([
      "config.webhook_secret_key: belongs into config.auth.webhook_secret_key"
    ])
    expect(refused({ name: "a", username: "u", password: "p" })).toStrictEqual([
      "username: belongs into config.auth.username",
      "password: belongs into config.auth.password"
    ])
    expect(refusedChange(signed, { config: { secret: "new" } })).toStrictEqual([
      "config.secret: belongs into config.auth.secret"
    ])
  })

  it("A new source is verified by its type alone if the provider needs no settings", () => {
    for (const type of ["ASANA", "NOTION", "AWS_SNS"]) {
      expect(created({ name: "a", type }).config.auth_type, type).toStrictEqual("HMAC")
      expect(created({ name: "a", type, config: { auth: {} } }).config.auth_type, type).toStrictEqual("HMAC")
      expect(created({ name: "a", type, config: { auth_type: null } }).config.auth_type, type).toBeNull()
    }
    expect(created({ name: "a", type: "STRIPE" }).config.auth_type).toBeNull()
    const open = created({ name: "a", type: "ASANA", config: { auth_type: null } })
    const renamed = updated(open, { name: "b" })
    expect(renamed.config.auth_type).toBeNull()
  })

  it("An auth_type of a source needs all of its settings", () => {
    expect(refused({ name: "a", auth_type: "HMAC" })).toStrictEqual(["config.auth.webhook_secret_key: is required"])
    expect(refused({ name: "a", auth_type: "HMAC", auth: { secret: "" } })).toStrictEqual([
      "config.auth.secret: must not be empty"
    ])
    expect(refused({ name: "a", auth: { api_key: "k" } })).toStrictEqual([
      "config.auth_type: is required when config.auth is given, because the type WEBHOOK is no provider's"
    ])
    expect(refused({ name: "a", auth_type: "OTHER" })).toStrictEqual([
      "config.auth_type: must be one of BASIC_AUTH, API_KEY, HMAC or null"
    ])
    expect(refusedChange(signed, { auth_type: "BASIC_AUTH" })).toStrictEqual([
      "config.auth.username: is required",
      "config.auth.password: is required"
    ])
    expect(refusedChange(signed, { auth: {} })).toStrictEqual(["config.auth.webhook_secret_key: is required"])
  })

  describe("Custom response of a source", () => {
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

    it("A custom response is stored as it was written", () => {
      expect(created(response(written)).config.custom_response).toStrictEqual(written)
      expect(created({ name: "a", custom_response: written }).config.custom_response).toStrictEqual(written)
    })

    it("Null and an empty custom response are the same as none", () => {
      for (const none of [null, {}]) {
        expect(created(response(none)).config.custom_response).toBeNull()
        const stored = created(response(written))
        expect(updated(stored, { custom_response: none }).config.custom_response).toBeNull()
      }
    })

    it("A change replaces the custom response as a whole, or keeps it", () => {
      const stored = created(response(written))
      expect(updated(stored, { description: "x" }).config.custom_response).toStrictEqual(written)
      const changed = updated(stored, { config: { custom_response: { content_type: "text", body: "pong" } } })
      expect(changed.config).toStrictEqual({
        ...stored.config,
        custom_response: { content_type: "text", body: "pong" }
      })
    })

    it("An invalid custom response is rejected with the path of the fault", () => {
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
        expect(first ?? "").toMatch(message)
        expect(others).toHaveLength(0)
      }
      const stored = created({ name: "a" })
      expect(refusedChange(stored, { custom_response: { body: "{" } })[0] ?? "").toMatch(new RegExp(`^${at}\\.body: `))
    })
  })

  describe("Mode and proxy settings of a source", () => {
    const url = "https://api.example.com/base?x=1"
    const full = {
      enabled: true,
      target_url: url,
      path_forwarding: true,
      query_forwarding: true,
      forward_credentials: false,
      timeout_ms: 10_000,
      capture_response_bytes: 65_536
    }
    const dormant = { ...full, enabled: false }
    const source = (config: Schema.Json) => created({ name: "a", config }).config
    const modeOf = ({ mode, proxy }: SourceFields["config"]) => ({ mode, proxy })
    const proxied = created({ name: "a", config: { mode: "proxy", proxy: { target_url: url, timeout_ms: 2_000 } } })
    const asleep = created({ name: "a", config: { proxy: { target_url: url, timeout_ms: 2_000 } } })

    it("The mode and the proxy's switch imply each other", () => {
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
        expect(modeOf(source(config)), JSON.stringify(config)).toStrictEqual(expected)
      }
      expect(modeOf(created({ name: "a", mode: "proxy", proxy: { target_url: url } }).config)).toStrictEqual(on)
    })

    it("The mode and the proxy's switch must not contradict each other", () => {
      expect(refused({ name: "a", mode: "webhook", proxy: { enabled: true, target_url: url } })).toStrictEqual([
        'config.proxy.enabled: must not be true when config.mode is "webhook"'
      ])
      expect(refused({ name: "a", mode: "proxy", proxy: { enabled: false, target_url: url } })).toStrictEqual([
        'config.proxy.enabled: must not be false when config.mode is "proxy"'
      ])
      for (const proxy of [undefined, null, {}]) {
        expect(
          refused({ name: "a", config: { mode: "proxy", ...(proxy === undefined ? {} : { proxy }) } })
        ).toStrictEqual(['config.proxy: is required while config.mode is "proxy"'])
      }
      for (const proxy of [{ enabled: true }, { enabled: false }, { target_url: null }, { timeout_ms: 1_000 }]) {
        expect(refused({ name: "a", proxy })).toStrictEqual([
          "config.proxy.target_url: is required: an absolute http or https URL"
        ])
      }
    })

    it("A change of the mode enables or disables the stored proxy settings", () => {
      const settings = { ...full, timeout_ms: 2_000 }
      expect(modeOf(proxied.config)).toStrictEqual({ mode: "proxy", proxy: settings })
      const off = updated(proxied, { mode: "webhook" })
      expect(modeOf(off.config)).toStrictEqual({ mode: "webhook", proxy: { ...settings, enabled: false } })
      expect(modeOf(updated(asleep, { mode: "proxy" }).config)).toStrictEqual({ mode: "proxy", proxy: settings })
      expect(modeOf(updated(proxied, { description: "x" }).config)).toStrictEqual(modeOf(proxied.config))
      expect(modeOf(updated(asleep, { description: "x" }).config)).toStrictEqual(modeOf(asleep.config))
    })

    it("New proxy settings replace the old ones as a whole and keep the mode by default", () => {
      const other = { target_url: "http://other.example" }
      const expected = { ...full, ...other }
      expect(modeOf(updated(proxied, { proxy: other }).config)).toStrictEqual({ mode: "proxy", proxy: expected })
      expect(modeOf(updated(asleep, { proxy: other }).config)).toStrictEqual({
        mode: "webhook",
        proxy: { ...expected, enabled: false }
      })
      expect(updated(asleep, { proxy: { enabled: true, ...other } }).config.mode).toBe("proxy")
      expect(updated(proxied, { proxy: { enabled: false, ...other } }).config.mode).toBe("webhook")
      expect(refusedChange(proxied, { proxy: { timeout_ms: 5_000 } })).toStrictEqual([
        "config.proxy.target_url: is required: an absolute http or https URL"
      ])
    })

    it("Null removes the proxy settings, except of a source in proxy mode", () => {
      expect(modeOf(updated(asleep, { proxy: null }).config)).toStrictEqual({ mode: "webhook", proxy: null })
      const both = updated(proxied, { mode: "webhook", proxy: null })
      expect(modeOf(both.config)).toStrictEqual({ mode: "webhook", proxy: null })
      for (const config of [{ proxy: null }, { proxy: {} }]) {
        expect(refusedChange(proxied, { config })).toStrictEqual([
          'config.proxy: is required while config.mode is "proxy"'
        ])
      }
      expect(refusedChange(created({ name: "a" }), { mode: "proxy" })).toStrictEqual([
        'config.proxy: is required while config.mode is "proxy"'
      ])
    })

    it("Proxy settings outside their limits are rejected", () => {
      const fault = (member: object) => refused({ name: "a", proxy: { target_url: url, ...member } })
      const times = "must be a whole number from 1000 to 30000, or null"
      for (const timeout_ms of [999, 30_001, 1_000.5, "2000", true, -1]) {
        expect(fault({ timeout_ms })).toStrictEqual([`config.proxy.timeout_ms: ${times}`])
      }
      for (const capture_response_bytes of [-1, 65_537, 0.5, "0"]) {
        expect(fault({ capture_response_bytes })).toStrictEqual([
          "config.proxy.capture_response_bytes: must be a whole number from 0 to 65536, or null"
        ])
      }
      for (const flag of ["enabled", "path_forwarding", "query_forwarding", "forward_credentials"]) {
        expect(fault({ [flag]: 1 })).toStrictEqual([`config.proxy.${flag}: must be true, false or null`])
      }
      const accepted = {
        timeout_ms: 30_000,
        capture_response_bytes: 0,
        path_forwarding: false,
        query_forwarding: false,
        forward_credentials: true
      }
      expect(source({ proxy: { target_url: url, ...accepted } }).proxy).toStrictEqual({
        enabled: false,
        target_url: url,
        ...accepted
      })
      expect(source({ proxy: { target_url: url, timeout_ms: null, path_forwarding: null } }).proxy).toStrictEqual(
        dormant
      )
      expect(refused({ name: "a", proxy: "x" })).toStrictEqual(["config.proxy: must be an object or null"])
    })

    it("The proxy's target must be an absolute http or https URL", () => {
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
        expect(refused({ name: "a", proxy: { target_url } })).toStrictEqual([`config.proxy.target_url: ${message}`])
      }
      for (const target_url of ["http://a.example", "HTTPS://a.example:8443/x@y?z=1", long.slice(0, 2048)]) {
        expect(source({ proxy: { target_url } }).proxy?.target_url).toBe(target_url)
      }
    })
  })

  describe("Setting chat_defer_ephemeral", () => {
    const chat = created({ name: "a", type: "DISCORD", chat_defer_ephemeral: true })
    const only = ["config.chat_defer_ephemeral: is for sources of type DISCORD only"]

    it("The setting chat_defer_ephemeral is for DISCORD sources only", () => {
      expect(chat.config.chat_defer_ephemeral).toBe(true)
      expect(created({ name: "a", type: "DISCORD" }).config.chat_defer_ephemeral).toBe(false)
      for (const off of [false, null]) {
        expect(created({ name: "a", config: { chat_defer_ephemeral: off } }).config.chat_defer_ephemeral).toBe(false)
      }
      expect(refused({ name: "a", chat_defer_ephemeral: true })).toStrictEqual(only)
      expect(refused({ name: "a", type: "DISCORD_EVENTS", chat_defer_ephemeral: true })).toStrictEqual(only)
      expect(refused({ name: "a", chat_defer_ephemeral: "true" })).toStrictEqual([
        "config.chat_defer_ephemeral: must be true, false or null"
      ])
    })

    it("The setting chat_defer_ephemeral stays until it or the type is changed", () => {
      expect(updated(chat, { description: "x" }).config.chat_defer_ephemeral).toBe(true)
      expect(updated(chat, { chat_defer_ephemeral: false }).config.chat_defer_ephemeral).toBe(false)
      expect(updated(chat, { chat_defer_ephemeral: null }).config.chat_defer_ephemeral).toBe(false)
      expect(updated(chat, { type: "WEBHOOK" }).config.chat_defer_ephemeral).toBe(false)
      expect(refusedChange(chat, { type: "WEBHOOK", chat_defer_ephemeral: true })).toStrictEqual(only)
      expect(
        updated(created({ name: "a" }), { type: "DISCORD", chat_defer_ephemeral: true }).config.chat_defer_ephemeral
      ).toBe(true)
    })
  })

  describe("Rate limit of a source", () => {
    const limit = (config: {
      readonly [member: string]: number | string | null
    }): readonly [number | null, string | null] => {
      const { rate_limit, rate_limit_period } = created({ name: "a", config }).config
      return [rate_limit, rate_limit_period]
    }

    it("The rate limit of a source counts per second by default", () => {
      expect(limit({ rate_limit: 10 })).toStrictEqual([10, "second"])
      expect(limit({ rate_limit: 1, rate_limit_period: null })).toStrictEqual([1, "second"])
      expect(limit({ rate_limit: 1e9, rate_limit_period: "day" })).toStrictEqual([1e9, "day"])
      expect(limit({ rate_limit: null, rate_limit_period: "hour" })).toStrictEqual([null, "hour"])
      expect(limit({})).toStrictEqual([null, null])
      expect(created({ name: "a", rate_limit: 5 }).config.rate_limit).toBe(5)
    })

    it("The rate limit of a source must be a whole number in a known period", () => {
      const message = "config.rate_limit: must be a whole number from 1 to 1000000000, or null"
      for (const rate_limit of [0, -1, 1.5, 1e9 + 1, "10", true]) {
        expect(refused({ name: "a", config: { rate_limit } })).toStrictEqual([message])
      }
      expect(refused({ name: "a", config: { rate_limit: 1, rate_limit_period: "week" } })).toStrictEqual([
        "config.rate_limit_period: must be one of second, minute, hour, day"
      ])
    })

    it("The rate limit of a source stays until it is changed", () => {
      const limited = created({ name: "a", rate_limit: 5, rate_limit_period: "minute" })
      expect(updated(limited, { description: "x" }).config).toMatchObject({
        rate_limit: 5,
        rate_limit_period: "minute"
      })
      expect(updated(limited, { rate_limit: 6 }).config).toMatchObject({ rate_limit: 6, rate_limit_period: "minute" })
      expect(updated(limited, { rate_limit: null }).config.rate_limit).toBe(null)
    })
  })

  describe("Partial change of a source", () => {
    it("One answer reports the faults of a change by itself and those against the stored source", () => {
      const wrong = { name: "", allowed_http_methods: ["post"], mode: "proxy", chat_defer_ephemeral: true, slug: "x" }
      expect(refusedChange(signed, { ...wrong, auth: { ...hmac, webhook_secret_key: "****abcd" } })).toStrictEqual([
        "name: must be 1 to 155 printable characters",
        "config.allowed_http_methods.0: must be one of HEAD, GET, POST, PUT, PATCH, DELETE",
        "config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself",
        'config.proxy: is required while config.mode is "proxy"',
        "config.chat_defer_ephemeral: is for sources of type DISCORD only"
      ])
    })

    it("A partial change merges the source's config by member and keeps the rest", () => {
      expect(updated(signed, {})).toStrictEqual({ ...signed, auth: "unchanged" })
      const changed = updated(signed, { description: "new", config: { allowed_http_methods: ["PUT"] } })
      expect(changed).toStrictEqual({
        ...signed,
        description: "new",
        config: { ...signed.config, allowed_http_methods: ["PUT"] },
        auth: "unchanged"
      })
      expect(updated({ ...signed, description: "old" }, { description: null }).description).toBe(null)
    })

    it("The secrets of a source stay unchanged with the same auth_type", () => {
      expect(updated(signed, { auth_type: "HMAC" }).auth).toBe("unchanged")
    })

    it("A change replaces the source's auth as a whole", () => {
      const changed = updated(signed, { auth: { secret: "another-key", encoding: "base64" } })
      expect(changed.auth).toStrictEqual({ ...hmac, webhook_secret_key: "another-key", encoding: "base64" })
      const switched = updated(signed, { auth_type: "BASIC_AUTH", auth: { username: "u", password: "p" } })
      expect([switched.config.auth_type, switched.auth]).toStrictEqual(["BASIC_AUTH", { username: "u", password: "p" }])
    })

    it("A mask keeps the stored secret of a source, but of no other setting", () => {
      const masked = { ...hmac, webhook_secret_key: "****-key" }
      expect(updated(signed, { auth: { ...masked, encoding: "base64" } }).auth).toStrictEqual({
        ...hmac,
        encoding: "base64"
      })
      expect(updated(signed, { config: { auth_type: "HMAC", auth: masked } }).auth).toStrictEqual(hmac)
      const wrong = ["config.auth.webhook_secret_key: is masked and matches no stored secret: write the secret itself"]
      expect(refusedChange(signed, { auth: { ...hmac, webhook_secret_key: "****abcd" } })).toStrictEqual(wrong)
      expect(refused({ name: "a", auth_type: "HMAC", auth: masked })).toStrictEqual(wrong)
      // Not under another meaning either.
      const other = { auth_type: "API_KEY", auth: { api_key: "****-key" } }
      expect(refusedChange({ ...signed, auth: { ...hmac, api_key: "the-secret-key" } }, other)).toStrictEqual([
        "config.auth.api_key: is masked and matches no stored secret: write the secret itself"
      ])
    })

    it("An explicit null as auth_type turns verification off, whatever auth contains", () => {
      const off = updated(signed, { config: { auth_type: null, auth: { ...hmac, webhook_secret_key: "****-key" } } })
      expect([off.config.auth_type, off.auth]).toStrictEqual([null, {}])
    })
  })
})
