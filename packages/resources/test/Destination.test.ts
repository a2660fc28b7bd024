import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { connectorOf, connectors } from "@tidegate/connectors/Connectors"
import { destination, type DestinationFields } from "../src/Destination.ts"
import type { Members } from "../src/Input.ts"
import { faults } from "./written.ts"

const situation = { id: null, now: new Date(0), ingress: { baseUrl: "http://in.test/e" } }
const existing = { ...situation, id: "des_1" }
const { change, create, patch, replace, write } = destination

const createDestination = (input: Members) =>
  Result.flatMap(write.judge(input, situation), (body) => create(body, situation))
const updateDestination = (input: Members) => (stored: DestinationFields) =>
  Result.flatMap(patch.judge(input, existing), (body) => change(body, existing)(stored))
const replaceDestination = (input: Members) => (stored: DestinationFields) =>
  Result.flatMap(write.judge(input, existing), (body) => replace!(body, existing)(stored))

const created = (input: Members) => Result.getOrThrow(createDestination(input))
const updated = (stored: DestinationFields, input: Members) => Result.getOrThrow(updateDestination(input)(stored))
const replaced = (stored: DestinationFields, input: Members) => Result.getOrThrow(replaceDestination(input)(stored))
const refused = (input: Members) => faults(createDestination(input))

const url = "https://target.test/hook"
const header = { header_name: "x-token", value: "secret-token" }
const stored: DestinationFields = {
  name: "shop",
  description: "the shop",
  type: "HTTP",
  config: {
    url,
    http_method: "PUT",
    path_forwarding_disabled: true,
    forward_credentials: false,
    rate_limit: 5,
    rate_limit_period: "hour",
    max_concurrency: 20,
    timeout_ms: 5_000,
    client_certificate: null,
    client_key: null,
    server_ca: null,
    auth_type: "CUSTOM_HEADER"
  },
  auth: header
}

describe("Destination", () => {
  it("A new destination gets default values for what is omitted", () => {
    expect(created({ name: "a", config: { url } })).toStrictEqual({
      name: "a",
      description: null,
      type: "HTTP",
      config: {
        url,
        http_method: null,
        path_forwarding_disabled: false,
        forward_credentials: null,
        rate_limit: null,
        rate_limit_period: "second",
        max_concurrency: null,
        timeout_ms: null,
        client_certificate: null,
        client_key: null,
        server_ca: null,
        auth_type: null
      },
      auth: {}
    })
    const nothing = {
      http_method: null,
      path_forwarding_disabled: null,
      forward_credentials: null,
      rate_limit: null,
      rate_limit_period: null,
      max_concurrency: null
    }
    expect(created({ name: "a", config: { url, path: null, ...nothing } })).toStrictEqual(created({ name: "a", url }))
  })

  it("Destination settings are accepted inside config and at the top level", () => {
    const config = { ...stored.config, auth: header }
    expect(created({ name: "shop", description: "the shop", config })).toStrictEqual(stored)
    expect(created({ name: "shop", description: "the shop", ...config })).toStrictEqual(stored)
  })

  it("The URL of a destination must be absolute http or https, without fragment and user name", () => {
    const fault = (text: Schema.Json) => refused({ name: "a", url: text })
    for (const good of [
      "http://a.test",
      "https://a.test:8443/x?y=1&z=@",
      "HTTPS://a.test/%20",
      "http://[::1]:80/",
      "http://bücher.test/a@b"
    ]) {
      expect(created({ name: "a", url: good }).config.url).toBe(good)
    }
    const absolute = ["config.url: must be an absolute http or https URL"]
    for (const bad of [
      "",
      "/relative",
      "a.test/x",
      "ftp://a.test",
      "http:a.test",
      "http://",
      "https://a.test/a b",
      "https://a\\b.test",
      " http://a.test",
      "http://a.test:99999",
      "http://a.test/\n"
    ]) {
      expect(fault(bad), bad).toStrictEqual(absolute)
    }
    expect(fault("https://a.test/#")).toStrictEqual(["config.url: must not have a fragment"])
    for (const bad of ["https://u:p@a.test/", "https://u@a.test", "https://@a.test"]) {
      expect(fault(bad), bad).toStrictEqual(["config.url: must not contain a user name or password: use config.auth"])
    }
    expect(fault(`https://a.test/${"x".repeat(4096)}`)).toStrictEqual(["config.url: must be at most 4096 characters"])
    expect(fault(null)).toStrictEqual(["config.url: is required: an absolute http or https URL"])
    expect(fault(5)).toStrictEqual(["config.url: must be a string"])
  })

  it("A MOCK_API destination has a path instead of a URL", () => {
    expect(created({ name: "a", type: "MOCK_API" }).config).toStrictEqual({
      path: "/",
      http_method: null,
      path_forwarding_disabled: false,
      forward_credentials: null,
      rate_limit: null,
      rate_limit_period: "second",
      auth_type: null
    })
    expect(created({ name: "a", type: "MOCK_API", path: "/status/503?x=1" }).config.path).toBe("/status/503?x=1")
    for (const path of ["", "status", "/a b", "/a#b", "/\u0000", 5]) {
      expect(refused({ name: "a", type: "MOCK_API", path }), JSON.stringify(path)).toHaveLength(1)
    }
    expect(refused({ name: "a", type: "MOCK_API", url })).toStrictEqual([
      "config.url: is fixed for MOCK_API destinations; use config.path"
    ])
    expect(refused({ name: "a", type: "MOCK_API", max_concurrency: 5 })).toStrictEqual([
      "config.max_concurrency: has no effect on MOCK_API destinations, which answer at once; use config.rate_limit"
    ])
    // As it is shown: not stored, for it is fixed.
    expect(created({ name: "a", type: "MOCK_API", url: "https://mock.invalid/" }).config).not.toHaveProperty("url")
    expect(refused({ name: "a", url, path: "/x" })).toStrictEqual([
      "config.path: is for MOCK_API destinations; write it into config.url"
    ])
  })

  it("An unknown destination type is rejected, and all known types are listed", () => {
    expect(refused({ name: "a", type: "FAX", url })).toStrictEqual([
      `type: must be one of ${connectors.map(({ type }) => type).join(", ")}`
    ])
  })

  it("All invalid settings of a destination are reported", () => {
    expect(
      refused({
        name: "a",
        config: {
          url,
          http_method: "GET",
          path_forwarding_disabled: "no",
          forward_credentials: "no",
          rate_limit: 0,
          rate_limit_period: "week"
        }
      })
    ).toStrictEqual([
      "config.http_method: must be one of POST, PUT, PATCH, DELETE",
      "config.path_forwarding_disabled: must be true or false",
      "config.forward_credentials: must be true, false or null",
      "config.rate_limit: must be a positive whole number or null",
      "config.rate_limit_period: must be one of second, minute, hour, day"
    ])
    for (const rate_limit of [-1, 1.5, "10", 2 ** 60]) {
      expect(refused({ name: "a", url, rate_limit })).toStrictEqual([
        "config.rate_limit: must be a positive whole number or null"
      ])
    }
    for (const timeout_ms of [0, 999, 60_001, 1_000.5, "1000", true]) {
      expect(refused({ name: "a", url, timeout_ms })).toStrictEqual([
        "config.timeout_ms: must be a whole number from 1000 to 60000, or null"
      ])
    }
    for (const max_concurrency of [0, 2_001, 1.5, "10", true]) {
      expect(refused({ name: "a", url, max_concurrency })).toStrictEqual([
        "config.max_concurrency: must be a whole number from 1 to 2000, or null"
      ])
    }
    expect(refused({ url })).toStrictEqual(["name: is required"])
  })

  it("An auth_type of a destination needs all of its settings", () => {
    expect(created({ name: "a", url, auth_type: "SERVICE_SIGNATURE" }).config.auth_type).toStrictEqual(
      "SERVICE_SIGNATURE"
    )
    expect(refused({ name: "a", url, auth_type: "CUSTOM_HEADER" })).toStrictEqual([
      "config.auth.header_name: is required",
      "config.auth.value: is required"
    ])
    const allowed = connectorOf("HTTP")!.auths.join(", ")
    expect(refused({ name: "a", url, auth_type: "EMAIL_API_KEY", auth: { api_key: "k" } })).toStrictEqual([
      `config.auth_type: must be one of ${allowed} or null`
    ])
  })

  describe("Partial change of a destination", () => {
    it("A partial change merges config by member and keeps the rest", () => {
      expect(updated(stored, {})).toStrictEqual({ ...stored, auth: "unchanged" })
      expect(updated(stored, { name: "new", rate_limit: 7 })).toStrictEqual({
        ...stored,
        name: "new",
        config: { ...stored.config, rate_limit: 7 },
        auth: "unchanged"
      })
      const cleared = updated(stored, { config: { rate_limit: null, http_method: null }, description: null })
      expect(cleared.config).toStrictEqual({ ...stored.config, rate_limit: null, http_method: null })
      expect(cleared.description).toBe(null)
    })

    it("A partial change cannot remove the target", () => {
      expect(faults(updateDestination({ url: null })(stored))).toStrictEqual([
        "config.url: is required: an absolute http or https URL"
      ])
    })

    it("A change to another type needs the target of that type and keeps the common settings", () => {
      const mock = updated(stored, { type: "MOCK_API", path: "/x" })
      const ofHttp = new Set(["url", "max_concurrency", "timeout_ms", "client_certificate", "client_key", "server_ca"])
      const common = Object.entries(stored.config).filter(([name]) => !ofHttp.has(name))
      expect(mock.config).toStrictEqual({ path: "/x", ...Object.fromEntries(common) })
      expect(
        faults(updateDestination({ type: "HTTP" })({ ...stored, type: "MOCK_API", config: mock.config }))
      ).toStrictEqual(["config.url: is required: an absolute http or https URL"])
    })

    it("A change to another API needs new credentials", () => {
      const config = { channel: "C1", text_template: "x", auth_type: "CHAT_BOT_TOKEN", auth: { bot_token: "xoxb-1" } }
      const { auth, config: kept } = created({ name: "a", type: "CHAT_BOT", config })
      const bot = { ...stored, type: "CHAT_BOT", config: kept, auth }
      const messenger = { chat_id: "1", text_template: "x" }
      expect(faults(updateDestination({ type: "MESSENGER_MESSAGE", config: messenger })(bot))).toStrictEqual([
        "config.auth: is required with another type: what is stored is the credential of another API"
      ])
      const own = { ...messenger, auth_type: "CHAT_BOT_TOKEN", auth: { bot_token: "123:abc" } }
      expect(updated(bot, { type: "MESSENGER_MESSAGE", config: own }).type).toBe("MESSENGER_MESSAGE")
    })

    describe("Stored credential after a change of address", () => {
      const moved = ["config.auth: must be sent again, as a whole: what is stored belongs to another address"]
      const tokens = {
        token_url: "https://id.test/token",
        client_id: "gateway",
        client_secret: "secret-of-the-client"
      }
      const client: DestinationFields = {
        ...stored,
        config: { ...stored.config, auth_type: "OAUTH2_CLIENT_CREDENTIALS" },
        auth: tokens
      }
      const masked = { ...tokens, client_secret: "****ient" }
      const password = { username: "writer", password: "secret-password" }
      const database = created({
        name: "rows",
        type: "SQL_DATABASE",
        config: { host: "db.test", database: "a", table: "b", auth_type: "DATABASE_PASSWORD", auth: password }
      })

      const key = { access_key_id: "AKIA0000000000000000", secret_access_key: "secret-of-the-key" }
      const store = (auth: Members) =>
        created({
          name: "store",
          type: "OBJECT_STORE_S",
          config: { region: "eu-central-1", bucket: "a-bucket", auth_type: "OBJECT_STORE_S_ACCESS_KEY", auth }
        })
      const session = store({ ...key, session_token: "session-token" })
      const keyed = store(key)

      it.each<[string, DestinationFields, Members, boolean]>([
        ["another path", stored, { url: "https://target.test/other?a=1" }, true],
        ["another host", stored, { url: "https://elsewhere.test/hook" }, false],
        ["another port", stored, { url: "https://target.test:8443/hook" }, false],
        ["no TLS any more", stored, { url: "http://target.test/hook" }, false],
        [
          "another host, and a mask",
          stored,
          { url: "https://elsewhere.test", auth: { ...header, value: "****oken" } },
          false
        ],
        ["another host, and the secret", stored, { url: "https://elsewhere.test", auth: header }, true],
        ["another host, and no credential any more", stored, { url: "https://elsewhere.test", auth_type: null }, true],
        ["a database in the clear", database, { tls_mode: "disable" }, false],
        ["a database in the clear, and the password", database, { tls_mode: "disable", auth: password }, true],
        ["another table of a database", database, { table: "c" }, true],
        ["what leads nowhere", stored, { type: "MOCK_API" }, true],
        ["a tunnel", stored, { type: "CLI" }, false],
        [
          "what was of a mock",
          created({ name: "m", type: "MOCK_API", config: { auth_type: "CUSTOM_HEADER", auth: header } }),
          { type: "HTTP", url },
          false
        ],
        [
          "signatures, which say no secret",
          created({ name: "s", config: { url, auth_type: "SERVICE_SIGNATURE" } }),
          { url: "https://elsewhere.test" },
          true
        ],
        ["tokens for the same target", client, { auth: { ...masked, scope: "a" } }, true],
        ["tokens for another target", client, { url: "https://elsewhere.test" }, false],
        [
          "tokens asked for elsewhere",
          client,
          { auth: { ...masked, token_url: "https://elsewhere.test/token" } },
          false
        ],
        [
          "the same by another name",
          client,
          { auth: { client_id: "gateway", client_secret: "****ient", auth_server: "https://elsewhere.test/token" } },
          false
        ],
        [
          "tokens asked for elsewhere, by the secret",
          client,
          { auth: { ...tokens, token_url: "https://elsewhere.test/token" } },
          true
        ],
        ["another endpoint of a session's token", session, { endpoint: "https://elsewhere.test" }, false],
        [
          "another endpoint, and the key with the token",
          session,
          { endpoint: "https://elsewhere.test", auth: { ...key, session_token: "session-token" } },
          true
        ],
        ["another bucket with a session's token", session, { bucket: "another-bucket" }, true],
        ["another endpoint of a key, which only signs", keyed, { endpoint: "https://elsewhere.test" }, true],
        ["another table", database, { config: { table: "c" } }, true],
        ["another database server", database, { config: { host: "elsewhere.test" } }, false],
        ["another one, by one setting", database, { config: { endpoint: "elsewhere.test/a" } }, false]
      ])("A stored credential is used only for the address it was written for (%s)", (_, before, input, isTaken) => {
        const after = updateDestination(input)(before)
        if (isTaken) expect(Result.isSuccess(after)).toBe(true)
        else expect(faults(after)).toEqual(moved)
      })

      it("A replaced destination keeps a masked credential only for the same address", () => {
        const config = {
          url: "https://elsewhere.test",
          auth_type: "CUSTOM_HEADER",
          auth: { ...header, value: "****oken" }
        }
        expect(faults(replaceDestination({ name: "a", config })(stored))).toEqual(moved)
        expect(replaced(stored, { name: "a", config: { ...config, url } }).auth).toStrictEqual(header)
      })
    })

    it("A mask keeps the stored secret, and auth is replaced as a whole", () => {
      const masked = { header_name: "x-other", value: "****oken" }
      expect(updated(stored, { auth: masked }).auth).toStrictEqual({ header_name: "x-other", value: "secret-token" })
      expect(faults(updateDestination({ auth: { value: "new-token" } })(stored))).toStrictEqual([
        "config.auth.header_name: is required"
      ])
      expect(updated(stored, { auth_type: null, auth: masked }).auth).toStrictEqual({})
    })
  })

  describe("Replacement of a destination", () => {
    it("A replacement keeps nothing of the earlier destination", () => {
      expect(replaced(stored, { name: "b", url })).toStrictEqual(created({ name: "b", url }))
      expect(faults(replaceDestination({ url })(stored))).toStrictEqual(["name: is required"])
      expect(faults(replaceDestination({ name: "b" })(stored))).toStrictEqual([
        "config.url: is required: an absolute http or https URL"
      ])
      expect(faults(replaceDestination({ name: "b", url, auth_type: "CUSTOM_HEADER" })(stored))).toStrictEqual([
        "config.auth.header_name: is required",
        "config.auth.value: is required"
      ])
    })

    it("A replacement keeps secrets that it repeats as masks", () => {
      const config = { url, auth_type: "CUSTOM_HEADER", auth: { ...header, value: "****oken" } }
      expect(replaced(stored, { name: "b", config }).auth).toStrictEqual(header)
    })
  })
})
