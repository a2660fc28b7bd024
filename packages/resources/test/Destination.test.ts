import { assert, describe, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { destination, type DestinationFields } from "../src/Destination.ts"
import type { Members } from "../src/Input.ts"

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

/** `path: message` of every wrong field. */
const faults = <A>(result: Result.Result<A, { readonly code: string; readonly data?: Schema.Json }>) => {
  if (Result.isSuccess(result)) return assert.fail("it was accepted")
  assert.strictEqual(result.failure.code, "VALIDATION_ERROR")
  const { fields } = result.failure.data as { readonly fields: ReadonlyArray<{ path: string; message: string }> }
  return fields.map(({ message, path }) => `${path}: ${message}`)
}
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
    auth_type: "CUSTOM_HEADER"
  },
  auth: header
}

describe("a destination", () => {
  it("fills in what is not given", () => {
    assert.deepStrictEqual(created({ name: "a", config: { url } }), {
      name: "a",
      description: null,
      type: "HTTP",
      config: {
        url,
        http_method: null,
        path_forwarding_disabled: false,
        forward_credentials: true,
        rate_limit: null,
        rate_limit_period: "second",
        auth_type: null
      },
      auth: {}
    })
    const nothing = {
      http_method: null,
      path_forwarding_disabled: null,
      forward_credentials: null,
      rate_limit: null,
      rate_limit_period: null
    }
    assert.deepStrictEqual(created({ name: "a", config: { url, path: null, ...nothing } }), created({ name: "a", url }))
  })

  it("takes settings inside config and at the top", () => {
    const config = { ...stored.config, auth: header }
    assert.deepStrictEqual(created({ name: "shop", description: "the shop", config }), stored)
    assert.deepStrictEqual(created({ name: "shop", description: "the shop", ...config }), stored)
  })

  it("wants an absolute http or https URL, without fragment or user", () => {
    const fault = (text: Schema.Json) => refused({ name: "a", url: text })
    for (const good of [
      "http://a.test",
      "https://a.test:8443/x?y=1&z=@",
      "HTTPS://a.test/%20",
      "http://[::1]:80/",
      "http://bücher.test/a@b"
    ]) {
      assert.strictEqual(created({ name: "a", url: good }).config.url, good)
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
      assert.deepStrictEqual(fault(bad), absolute, bad)
    }
    assert.deepStrictEqual(fault("https://a.test/#"), ["config.url: must not have a fragment"])
    for (const bad of ["https://u:p@a.test/", "https://u@a.test", "https://@a.test"]) {
      assert.deepStrictEqual(fault(bad), ["config.url: must not contain a user name or password: use config.auth"], bad)
    }
    assert.deepStrictEqual(fault(`https://a.test/${"x".repeat(4096)}`), ["config.url: must be at most 4096 characters"])
    assert.deepStrictEqual(fault(null), ["config.url: is required: an absolute http or https URL"])
    assert.deepStrictEqual(fault(5), ["config.url: must be a string"])
  })

  it("of a mock API, keeps the path", () => {
    assert.deepStrictEqual(created({ name: "a", type: "MOCK_API" }).config, {
      path: "/",
      http_method: null,
      path_forwarding_disabled: false,
      forward_credentials: true,
      rate_limit: null,
      rate_limit_period: "second",
      auth_type: null
    })
    assert.strictEqual(created({ name: "a", type: "MOCK_API", path: "/status/503?x=1" }).config.path, "/status/503?x=1")
    for (const path of ["", "status", "/a b", "/a#b", "/\u0000", 5]) {
      assert.lengthOf(refused({ name: "a", type: "MOCK_API", path }), 1, JSON.stringify(path))
    }
    assert.deepStrictEqual(refused({ name: "a", type: "MOCK_API", url }), [
      "config.url: is fixed for MOCK_API destinations; use config.path"
    ])
    // As it is shown: not stored, for it is fixed.
    assert.notProperty(created({ name: "a", type: "MOCK_API", url: "https://mock.invalid/" }).config, "url")
    assert.deepStrictEqual(refused({ name: "a", url, path: "/x" }), [
      "config.path: is for MOCK_API destinations; write it into config.url"
    ])
  })

  it("names the types that are not available yet, and refuses unknown ones", () => {
    for (const type of ["CLI", "SPREADSHEET", "MESSENGER_MESSAGE", "OBJECT_STORE_S", "SQL_DATABASE"]) {
      assert.deepStrictEqual(refused({ name: "a", type, url }), [`type: ${type} destinations are not available yet`])
    }
    assert.deepStrictEqual(refused({ name: "a", type: "FAX", url }), ["type: must be one of HTTP, MOCK_API"])
  })

  it("tells every setting that is wrong", () => {
    assert.deepStrictEqual(
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
      }),
      [
        "config.http_method: must be one of POST, PUT, PATCH, DELETE",
        "config.path_forwarding_disabled: must be true or false",
        "config.forward_credentials: must be true or false",
        "config.rate_limit: must be a positive whole number or null",
        "config.rate_limit_period: must be one of second, minute, hour, day"
      ]
    )
    for (const rate_limit of [-1, 1.5, "10", 2 ** 60]) {
      assert.deepStrictEqual(refused({ name: "a", url, rate_limit }), [
        "config.rate_limit: must be a positive whole number or null"
      ])
    }
    assert.deepStrictEqual(refused({ url }), ["name: is required"])
  })

  it("wants complete auth with an auth_type", () => {
    assert.deepStrictEqual(
      created({ name: "a", url, auth_type: "SERVICE_SIGNATURE" }).config.auth_type,
      "SERVICE_SIGNATURE"
    )
    assert.deepStrictEqual(refused({ name: "a", url, auth_type: "CUSTOM_HEADER" }), [
      "config.auth.header_name: is required",
      "config.auth.value: is required"
    ])
    assert.deepStrictEqual(refused({ name: "a", url, auth_type: "EMAIL_API_KEY", auth: { api_key: "k" } }), [
      "config.auth_type: EMAIL_API_KEY is not built yet"
    ])
  })

  describe("a change in part", () => {
    it("merges config by member and leaves the rest", () => {
      assert.deepStrictEqual(updated(stored, {}), { ...stored, auth: "unchanged" })
      assert.deepStrictEqual(updated(stored, { name: "new", rate_limit: 7 }), {
        ...stored,
        name: "new",
        config: { ...stored.config, rate_limit: 7 },
        auth: "unchanged"
      })
      const cleared = updated(stored, { config: { rate_limit: null, http_method: null }, description: null })
      assert.deepStrictEqual(cleared.config, { ...stored.config, rate_limit: null, http_method: null })
      assert.strictEqual(cleared.description, null)
    })

    it("keeps the target required", () => {
      assert.deepStrictEqual(faults(updateDestination({ url: null })(stored)), [
        "config.url: is required: an absolute http or https URL"
      ])
    })

    it("to another type needs that type's target and keeps what both have", () => {
      const mock = updated(stored, { type: "MOCK_API", path: "/x" })
      const { url: _, ...common } = stored.config
      assert.deepStrictEqual(mock.config, { path: "/x", ...common })
      assert.deepStrictEqual(
        faults(updateDestination({ type: "HTTP" })({ ...stored, type: "MOCK_API", config: mock.config })),
        ["config.url: is required: an absolute http or https URL"]
      )
    })

    it("takes a mask for the stored secret; replaces auth whole", () => {
      const masked = { header_name: "x-other", value: "****oken" }
      assert.deepStrictEqual(updated(stored, { auth: masked }).auth, { header_name: "x-other", value: "secret-token" })
      assert.deepStrictEqual(faults(updateDestination({ auth: { value: "new-token" } })(stored)), [
        "config.auth.header_name: is required"
      ])
      assert.deepStrictEqual(updated(stored, { auth_type: null, auth: masked }).auth, {})
    })
  })

  describe("a replacement", () => {
    it("keeps nothing of what was", () => {
      assert.deepStrictEqual(replaced(stored, { name: "b", url }), created({ name: "b", url }))
      assert.deepStrictEqual(faults(replaceDestination({ url })(stored)), ["name: is required"])
      assert.deepStrictEqual(faults(replaceDestination({ name: "b" })(stored)), [
        "config.url: is required: an absolute http or https URL"
      ])
      assert.deepStrictEqual(faults(replaceDestination({ name: "b", url, auth_type: "CUSTOM_HEADER" })(stored)), [
        "config.auth.header_name: is required",
        "config.auth.value: is required"
      ])
    })

    it("but secrets that it repeats masked", () => {
      const config = { url, auth_type: "CUSTOM_HEADER", auth: { ...header, value: "****oken" } }
      assert.deepStrictEqual(replaced(stored, { name: "b", config }).auth, header)
    })
  })
})
