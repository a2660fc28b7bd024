import { runToEnd } from "@tidegate/runtime/Resumable"
import type { Json } from "@tidegate/model/Rule"
import {
  compileCustomResponse,
  compilingCustomResponse,
  type CustomReply,
  type ReplyInput
} from "@tidegate/rules/CustomResponse"
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"

const input = (more: Partial<ReplyInput> = {}): ReplyInput => ({
  method: "POST",
  headers: { "x-tenant": "a" },
  query: { mode: "test" },
  path: "/orders/7",
  body: () => ({ order: { id: 7 } }),
  requestId: "req_1",
  ...more
})

const respond = (config: unknown, request: ReplyInput = input()): CustomReply | null =>
  Result.getOrThrow(compileCustomResponse(config)).respond(request)

const refusal = (config: unknown): string => {
  const result = compileCustomResponse(config)
  if (Result.isSuccess(result)) return expect.fail(`accepted: ${JSON.stringify(config).slice(0, 200)}`)
  return `${result.failure.path}: ${result.failure.message}`
}

/** With every answer, so that no browser runs it. */
const inert = { "content-security-policy": "default-src 'none'; sandbox", "x-content-type-options": "nosniff" }

const example = {
  content_type: "json",
  body: '{"ok":true}',
  rules: [
    {
      enabled: true,
      match: {
        method: "POST",
        path: { $starts_with: "/orders" },
        query: { mode: "test" },
        headers: { "x-tenant": { $in: ["a", "b"] } },
        body: { "order.id": { $exists: true } }
      },
      response: {
        status: 202,
        content_type: "json",
        body: '{"id":"{{body.order.id}}"}',
        headers: { "x-mock": "1" }
      }
    }
  ]
}

describe("Choice of the response", () => {
  const hit = {
    status: 202,
    contentType: "application/json; charset=utf-8",
    headers: { "x-mock": "1", ...inert },
    body: '{"id":"7"}'
  }
  const fallback = { status: 200, contentType: hit.contentType, headers: inert, body: '{"ok":true}' }

  it("A rule answers if all of its conditions match, and the fallback answers otherwise", () => {
    expect(respond(example)).toStrictEqual(hit)
    const misses: ReadonlyArray<Partial<ReplyInput>> = [
      { method: "PUT" },
      { path: "/other" },
      { query: {} },
      { query: { mode: "live" } },
      { headers: { "x-tenant": "c" } },
      { headers: {} },
      { body: () => ({ order: {} }) },
      { body: () => "not JSON" }
    ]
    for (const miss of misses) expect(respond(example, input(miss)), Object.keys(miss).join()).toStrictEqual(fallback)
    expect(respond(example, input({ query: { mode: ["live", "test"] } }))).toStrictEqual(hit)
  })

  it("The first enabled rule that matches answers", () => {
    const rule = (status: number, more: object = {}) => ({ response: { status }, ...more })
    const rules = [
      rule(201, { enabled: false }),
      rule(202, { match: { path: "/none" } }),
      rule(203, { enabled: null, match: { path: "/orders/7" } }),
      rule(206)
    ]
    expect(respond({ rules })?.status).toBe(203)
    expect(respond({ rules }, input({ path: "/" }))?.status).toBe(206)
    expect(respond({ rules: rules.slice(0, 2) })).toBeNull()
  })

  it("An empty match accepts every request, and null targets are ignored", () => {
    for (const match of [{}, null, { path: null, body: null }]) {
      expect(respond({ rules: [{ match, response: { status: 404 } }] })?.status).toBe(404)
    }
    expect(respond({ rules: [{}] })?.status).toBe(200)
  })

  it("Without a fallback the plain acknowledgement is sent", () => {
    for (const config of [{}, { content_type: "xml" }, { body: null }, { rules: [] }, { rules: null }]) {
      expect(respond(config)).toBeNull()
    }
    expect(respond({ body: "" })).toStrictEqual({ ...fallback, body: "" })
  })
})

describe("Content of the response", () => {
  it("The content type of a rule defaults to the outer one, and that one to JSON", () => {
    const type = (outer: string | undefined, inner: string | undefined) =>
      respond({
        ...(outer === undefined ? {} : { content_type: outer }),
        rules: [{ response: inner === undefined ? {} : { content_type: inner } }]
      })?.contentType
    expect(type(undefined, undefined)).toBe("application/json; charset=utf-8")
    expect(type("xml", undefined)).toBe("application/xml; charset=utf-8")
    expect(type("xml", "text")).toBe("text/plain; charset=utf-8")
    expect(respond({ content_type: "text", body: "pong" })?.contentType).toBe("text/plain; charset=utf-8")
  })

  it("A rule without a body answers with an empty body, whatever the fallback is", () => {
    expect(respond({ body: '{"ok":true}', rules: [{ response: { status: 404 } }] })?.body).toBe("")
  })

  it("Placeholders are escaped for the content type", () => {
    const body = () => ({ name: `"<&>\n'` })
    const said = (content_type: string, text: string) => respond({ content_type, body: text }, input({ body }))?.body
    expect(said("json", '{"n":"{{body.name}}","v":{{body.name}}}')).toBe(`{"n":"\\"<&>\\n'","v":"\\"<&>\\n'"}`)
    expect(said("xml", "<n>{{body.name}}</n>")).toBe("<n>&quot;&lt;&amp;&gt;\n&#39;</n>")
    expect(said("text", "{{body.name}}")).toBe(`"<&>\n'`)
    expect(
      respond({ content_type: "text", body: "{{request.id}} {{method}} {{path}} {{query.mode}} {{headers.X-Tenant}}" })
        ?.body
    ).toBe("req_1 POST /orders/7 test a")
  })

  it("Placeholders in headers are filled in without line breaks", () => {
    const response = { status: 302, headers: { Location: " /at{{path}}\t", "X-Copy": "{{body}}" } }
    const answer = respond({ rules: [{ response }] }, input({ body: () => "a\r\nset-cookie: b=c\u0000", path: "/x" }))
    expect(answer?.headers).toStrictEqual({ location: "/at/x", "x-copy": "aset-cookie: b=c", ...inert })
  })

  it("A response header may have the name of an object's own member", () => {
    const headers = JSON.parse('{"__proto__":"a","constructor":"b"}') as Json
    const answer = respond({ rules: [{ response: { headers } }] })
    expect(Object.getOwnPropertyDescriptor(answer?.headers, "__proto__")?.value).toBe("a")
    expect(answer?.headers["constructor"]).toBe("b")
  })

  it("The plain acknowledgement replaces a response that would be too long", () => {
    const body = () => "x".repeat(300_000)
    expect(respond({ content_type: "text", body: "{{body}}" }, input({ body }))).toBeNull()
    const inHeader = { rules: [{ response: { headers: { "x-copy": "{{body}}" } } }] }
    expect(respond(inHeader, input({ body: () => "x".repeat(9_000) }))).toBeNull()
    expect(respond(inHeader, input({ body: () => "x".repeat(8_000) }))).not.toBeNull()
  })

  it.prop(
    "A JSON response is valid JSON for any request",
    { body: Arbitrary.schema(Schema.Json), tenant: Arbitrary.schema(Schema.String) },
    ({ body, tenant }) => {
      const text = '{"a":"{{body}} {{headers.x-tenant}}","b":[{{body}},{{headers.x-tenant}},{{body.a.b}}]}'
      const answer = respond({ body: text }, input({ body: () => body, headers: { "x-tenant": tenant } }))
      const { b } = JSON.parse(answer?.body ?? "") as { readonly b: ReadonlyArray<unknown> }
      expect(b.slice(0, 2)).toEqual([JSON.parse(JSON.stringify(body)), tenant])
    },
    { arbitrary: { runs: 500, size: 40 } }
  )
})

describe("Body of a request", () => {
  const counting = () => {
    let reads = 0
    const request = input({
      body: () => {
        reads++
        return { a: 1 }
      }
    })
    return { request, reads: () => reads }
  }

  it("A body is not parsed if a cheaper condition decides, in any order of conditions", () => {
    const { reads, request } = counting()
    const rules = [
      { match: { body: { a: 1 }, path: "/other" } },
      { match: { body: { a: 1 }, query: { mode: "live" } } },
      { match: { method: "PUT", body: { a: 1 } } },
      { match: { body: { a: 1 }, headers: { "x-tenant": "b" } } },
      { response: { status: 201, body: '"{{path}}"' } }
    ]
    expect(respond({ rules }, request)?.status).toBe(201)
    expect(reads()).toBe(0)
  })

  it("A body is read once for all rules and placeholders", () => {
    const { reads, request } = counting()
    const rules = [
      { match: { body: { a: 2 } } },
      { match: { body: { a: 1 } }, response: { body: '[{{body}},"{{body.a}}"]' } }
    ]
    expect(respond({ rules }, request)?.body).toBe('[{"a":1},"1"]')
    expect(reads()).toBe(1)
  })

  it("Fifty rules share the work limit of one: beyond it, neither body conditions nor later rules match", () => {
    const heavy = Array.from({ length: 49 }, () => ({ match: { body: { a: { $lt: -1 } } }, response: { status: 500 } }))
    const config = {
      body: '"fallback"',
      rules: [...heavy, { match: { path: "/orders/7" }, response: { status: 201 } }]
    }
    const list = (length: number) => input({ body: () => Array.from({ length }, (_, i) => ({ a: i })) })
    expect(respond(config, list(10))?.status).toBe(201)
    expect(respond(config, list(100_000))?.body).toBe('"fallback"')
    expect(respond(config, list(10))?.status).toBe(201)
  })
})

it("A custom response is compiled in parts, one for each rule and one for each pattern", () => {
  const rules = Array.from({ length: 20 }, () => ({ match: { path: { $or: [{ $regex: "a+" }, { $regex: "b+" }] } } }))
  const work = compilingCustomResponse({ rules })
  let count = 0
  for (let part = work.next(); part.done !== true; part = work.next()) count++
  expect(count).toBe(60)
})

describe("Rejected custom responses", () => {
  const rule = (response: unknown, match: unknown = {}) => ({ rules: [{}, {}, { match, response }] })
  const headers = (headers: unknown) => rule({ headers })
  const cases: ReadonlyArray<readonly [config: unknown, message: RegExp]> = [
    [null, /^: must be an object$/],
    ["x", /^: /],
    [[], /^: /],
    [{ content_type: "html" }, /^content_type: must be json, text or xml$/],
    [{ contentType: "json" }, /^contentType: is not a field of a custom response/],
    [{ body: 1 }, /^body: /],
    [{ body: {} }, /^body: /],
    [{ rules: {} }, /^rules: must be an array or null$/],
    [{ rules: [1] }, /^rules\[0\]: must be an object$/],
    [{ rules: [{ enabled: "yes" }] }, /^rules\[0\]\.enabled: /],
    // Left out silently, it would answer every request.
    [{ rules: [{ matcher: { path: "/" } }] }, /^rules\[0\]\.matcher: is not a field/],
    [{ rules: [{ match: { header: {} } }] }, /^rules\[0\]\.match\.header: is not a field/],
    [{ rules: [{ response: { code: 200 } }] }, /^rules\[0\]\.response\.code: is not a field/],
    [{ rules: Array.from({ length: 51 }, () => ({})) }, /^rules: at most 50/],
    [
      {
        content_type: "text",
        rules: Array.from({ length: 5 }, () => ({ response: { body: "{{body}}".repeat(5_000) } }))
      },
      /^: its bodies hold more than 20000 placeholders/
    ],
    [rule({ status: 199 }), /^rules\[2\]\.response\.status: must be a whole number from 200 to 599$/],
    [rule({ status: 600 }), /^rules\[2\]\.response\.status: /],
    [rule({ status: "200" }), /^rules\[2\]\.response\.status: must be a whole number from 200 to 599$/],
    [rule({ status: 200.5 }), /^rules\[2\]\.response\.status: /],
    [rule({ status: 204, body: "{}" }), /^rules\[2\]\.response\.body: must be empty/],
    [rule({ status: 304, body: "{}" }), /^rules\[2\]\.response\.body: must be empty/],
    [rule({ content_type: "text", body: "x".repeat(65_537) }), /^rules\[2\]\.response\.body: is longer than 65536/],
    [{ content_type: "text", body: "ü".repeat(32_769) }, /^body: is longer than 65536 bytes/],
    [{ body: "{{body" }, /^body: the placeholder is not closed \(at character 0\)/],
    [{ body: '{"a":"{{env.KEY}}"}' }, /^body: a placeholder begins with .* \(at character 6\)/],
    [rule({ body: '"{{}}"' }), /^rules\[2\]\.response\.body: the placeholder is empty/],
    [{ body: "plain text" }, /^body: is not valid JSON: .*content_type to "text"/],
    [{ body: '{"a":1,}' }, /^body: is not valid JSON/],
    [{ body: '{"a":{{body.a}}' }, /^body: is not valid JSON/],
    [{ body: "{{{path}}:1}" }, /^body: a placeholder begins/],
    [{ body: "{ {{path}}: 1 }" }, /^body: is not valid JSON/],
    [{ body: "[1{{body.a}}]" }, /^body: is not valid JSON/],
    [{ body: "[{{body.a}}{{body.b}}]" }, /^body: is not valid JSON/],
    [{ body: '["\\u00{{body.a}}"]' }, /^body: is not valid JSON/],
    [{ body: '["\\{{body.a}}"]' }, /^body: is not valid JSON/],
    [
      { content_type: "xml", rules: [{ response: { content_type: "json", body: "<a/>" } }] },
      /^rules\[0\].*not valid JSON/
    ],
    [rule({}, { path: { sub: 1 } }), /^rules\[2\]\.match\.path\.sub: /],
    [rule({}, { headers: "x" }), /^rules\[2\]\.match\.headers: takes an object/],
    [rule({}, { method: 1 }), /^rules\[2\]\.match\.method: /],
    [rule({}, { body: { a: { $regex: "(" } } }), /^rules\[2\]\.match\.body\.a\.\$regex: the pattern is not valid/],
    [rule({}, { path: { $regex: "a".repeat(513) } }), /^rules\[2\]\.match\.path\.\$regex: .*longer than 512/],
    [
      { rules: [{ enabled: false, match: { body: { $x: 1 } } }] },
      /^rules\[0\]\.match\.body\.\$x: is not an operator: there are \$eq, /
    ],
    [headers([]), /^rules\[2\]\.response\.headers: /],
    [headers({ "x-a": 1 }), /^rules\[2\]\.response\.headers\.x-a: /],
    [headers({ "x-a": null }), /^rules\[2\]\.response\.headers\.x-a: /],
    [headers({ "x a": "1" }), /^rules\[2\]\.response\.headers\["x a"\]: is not the name of a header/],
    [headers({ "": "1" }), /is not the name of a header/],
    [headers({ "x-a:": "1" }), /is not the name of a header/],
    [headers({ "x-ü": "1" }), /is not the name of a header/],
    [headers({ "x-a\r\nx-b": "1" }), /is not the name of a header/],
    [headers({ "x-a": "1\r\nx-b: 2" }), /one line/],
    [headers({ "x-a": "1\n" }), /one line/],
    [headers({ "x-a": "\u0000" }), /one line/],
    [headers({ "x-a": "日本" }), /one line/],
    [headers({ "x-a": "{{nope}}" }), /^rules\[2\]\.response\.headers\.x-a: a placeholder begins/],
    [headers({ "X-A": "1", "x-a": "2" }), /^rules\[2\]\.response\.headers\.x-a: is there twice/],
    [headers({ "x-a": "x".repeat(8_192) }), /longer than 8192/],
    [headers(Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`x-${i}`, ""]))), /at most 50 headers/]
  ]
  for (const [config, message] of cases) {
    it(`Response ${JSON.stringify(config).slice(0, 100)} is rejected`, () => expect(refusal(config)).toMatch(message))
  }

  const reserved = [
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
    "Content-Encoding",
    "Content-Type",
    "Host",
    "Set-Cookie",
    "Content-Security-Policy",
    "X-Content-Type-Options",
    "Clear-Site-Data",
    "Strict-Transport-Security"
  ]
  for (const name of reserved) {
    it(`The header ${name} is rejected in a custom response`, () => {
      expect(refusal(headers({ [name]: "1" }))).toMatch(/cannot be set here/)
      expect(refusal(headers({ [name.toLowerCase()]: "1" }))).toMatch(/cannot be set here/)
    })
  }

  it("A custom response exactly at the limits is accepted", () => {
    const body = "x".repeat(65_536)
    expect(respond({ content_type: "text", body })?.body).toBe(body)
    const many = { content_type: "text", rules: [{ response: { body: "{{body}}".repeat(5_000) } }] }
    expect(Result.isSuccess(compileCustomResponse({ ...many, body: "{{body}}".repeat(5_000) }))).toBe(true)
    const larger = { content_type: "text", rules: Array.from({ length: 5 }, () => many.rules[0]) }
    // What was stored before there was a bound goes on.
    expect(Result.isSuccess(runToEnd(compilingCustomResponse(larger, true)))).toBe(true)
    const pattern = { rules: [{ match: { path: { $regex: "a".repeat(512) } } }] }
    expect(Result.isSuccess(compileCustomResponse(pattern))).toBe(true)
    expect(Result.isSuccess(compileCustomResponse({ rules: Array.from({ length: 50 }, () => ({})) }))).toBe(true)
    for (const status of [200, 204, 304, 400, 404, 409, 418, 503, 599]) {
      expect(respond({ rules: [{ response: { status } }] })?.status).toBe(status)
    }
  })
})
