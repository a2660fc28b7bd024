import { generateKeyPairSync, sign as signBytes } from "node:crypto"
import { describe, expect } from "vitest"
import type { Source, SourceConfig } from "../support/Contract.ts"
import { type Answer, request } from "../support/RawHttp.ts"
import { ownIt as gatewayIt } from "../support/it.ts"

/** What a source answers in its own words: contract 2.4. The answer is all that changes; what came in is routed. */

interface Sent {
  readonly method?: string
  readonly suffix?: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string
}

const allMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const

const json = [["Content-Type", "application/json"]] as const

const { privateKey, publicKey } = generateKeyPairSync("ed25519")
const auth = { public_key: publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("hex") }

const it = gatewayIt
  .extend("isLinked", { scope: "file" }, true)
  .extend(
    "answering",
    ({ gateway }) =>
      (custom_response: object, config: object = {}): Promise<Source> =>
        gateway.source({ allowed_http_methods: allMethods, custom_response, ...config } as SourceConfig)
  )
  .extend(
    "send",
    ({ gateway }) =>
      (source: Pick<Source, "id">, { suffix = "", ...parts }: Sent = {}): Promise<Answer> =>
        request(gateway.port, { ...parts, path: `/e/${source.id}${suffix}` })
  )
  .extend("discord", ({ gateway, target }) => async (config: object, type = "DISCORD"): Promise<Source> => {
    const source = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type,
      config: { auth, ...config }
    })
    await gateway.connection(source, await gateway.destination({ url: target.origin }))
    return source
  })

describe("Custom response rules", () => {
  const matched = { content_type: "text", body: "matched" }
  const table: ReadonlyArray<readonly [name: string, match: object, hit: Sent, misses: ReadonlyArray<Sent>]> = [
    ["a method", { method: "PUT" }, { method: "PUT" }, [{ method: "POST" }]],
    ["several methods", { method: ["PUT", "PATCH"] }, { method: "PATCH" }, [{ method: "POST" }]],
    ["methods as an operator", { method: { $in: ["PUT"] } }, { method: "PUT" }, [{}]],
    ["a path", { path: "/orders" }, { suffix: "/orders" }, [{ suffix: "/orders/1" }, {}]],
    [
      "the beginning of a path",
      { path: { $starts_with: "/orders" } },
      { suffix: "/orders/1" },
      [{ suffix: "/v1/orders" }]
    ],
    ["a path as a regular expression", { path: { $regex: "^/o/[0-9]+$" } }, { suffix: "/o/12" }, [{ suffix: "/o/x" }]],
    ["a star as a literal character", { path: "/orders/*" }, { suffix: "/orders/*" }, [{ suffix: "/orders/1" }]],
    [
      "a query parameter",
      { query: { mode: "test" } },
      { suffix: "?mode=live&mode=test" },
      [{ suffix: "?mode=live" }, {}]
    ],
    ["headers", { headers: { "X-Tenant": { $in: ["a"] } } }, { headers: [["x-tenant", "a"]] }, [{}]],
    [
      "a dotted path into the body",
      { body: { "order.id": { $exists: true } } },
      { headers: json, body: '{"order":{"id":0}}' },
      [{ headers: json, body: '{"order":{}}' }, { body: "order.id" }]
    ],
    ["a missing header", { headers: { "x-a": { $exists: false } } }, {}, [{ headers: [["X-A", ""]] }]],
    ["a word in the text", { body: { $contains: "urgent" } }, { body: "most urgent" }, [{ body: "soon" }]],
    [
      "several conditions, which must all hold",
      { method: "POST", path: "/a", query: { q: "1" }, headers: { h: "1" }, body: { b: 1 } },
      { suffix: "/a?q=1", headers: [...json, ["H", "1"]], body: '{"b":1}' },
      [
        { suffix: "/b?q=1", headers: [...json, ["H", "1"]], body: '{"b":1}' },
        { suffix: "/a?q=1", headers: [...json, ["H", "1"]], body: '{"b":2}' }
      ]
    ]
  ]
  for (const [name, match, hit, misses] of table) {
    it(`A custom response rule matches by ${name}`, async ({ answering, send }) => {
      const source = await answering({ content_type: "text", body: "fallback", rules: [{ match, response: matched }] })
      expect((await send(source, hit)).body).toBe("matched")
      for (const miss of misses) expect((await send(source, miss)).body).toBe("fallback")
    })
  }

  it("The first enabled rule that matches decides, and a rule without conditions always matches", async ({
    answering,
    send
  }) => {
    const rule = (body: string, match: object | undefined, enabled?: boolean) => ({
      ...(enabled === undefined ? {} : { enabled }),
      ...(match === undefined ? {} : { match }),
      response: { content_type: "text", body }
    })
    const rules = [
      rule("switched off", {}, false),
      rule("first", { path: { $starts_with: "/a" } }, true),
      rule("second", { path: "/a/b" }),
      rule("any", undefined),
      rule("never", {})
    ]
    const source = await answering({ rules })
    expect((await send(source, { suffix: "/a/b" })).body).toBe("first")
    expect((await send(source, { suffix: "/b" })).body).toBe("any")
  })

  it("Without a matching rule and a fallback the answer is the acknowledgement", async ({ answering, send }) => {
    const source = await answering({ rules: [{ match: { method: "PUT" }, response: { body: '"put"' } }] })
    expect(JSON.parse((await send(source)).body)).toEqual({
      ok: true,
      queued: true,
      transport: "queue",
      request_id: expect.stringMatching(/^req_/)
    })
  })

  it("The last of fifty response rules is still evaluated", async ({ answering, gateway, send }) => {
    const rules = Array.from({ length: 50 }, (_, i) => ({
      match: { path: `/${i}`, headers: { "x-n": String(i) } },
      response: { status: 200 + i, content_type: "text", body: i === 4 || i === 5 ? "" : `rule ${i}` }
    }))
    const source = await answering({ rules })
    for (const i of [0, 25, 49]) {
      const answer = await send(source, { suffix: `/${i}`, headers: [["x-n", String(i)]] })
      expect([answer.status, answer.body]).toEqual([200 + i, `rule ${i}`])
    }
    const { body, status } = await gateway.call("PATCH", `/sources/${source.id}`, {
      config: { custom_response: { rules: [...rules, { match: {}, response: {} }] } }
    })
    expect([status, body.data.fields[0].path]).toEqual([400, "config.custom_response.rules"])
  })

  it("A stored custom response is returned as written, and a change applies from the next request on", async ({
    answering,
    gateway,
    send
  }) => {
    const written = {
      content_type: "text",
      rules: [{ match: { path: { starts_with: "/a" } }, response: { body: "1" } }]
    }
    const source = await answering(written)
    expect((await gateway.api("GET", `/sources/${source.id}`)).config.custom_response).toEqual(written)
    for (let i = 2; i < 12; i++) {
      await gateway.api("PATCH", `/sources/${source.id}`, {
        config: { custom_response: { content_type: "text", body: `now ${i}` } }
      })
      expect((await send(source, { suffix: "/a" })).body).toBe(`now ${i}`)
    }
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { custom_response: null } })
    expect(JSON.parse((await send(source)).body).ok).toBe(true)
  })
})

describe("Content of a custom response", () => {
  const types = [
    ["json", '{"a":1}', "application/json; charset=utf-8"],
    ["text", "plain <b>", "text/plain; charset=utf-8"],
    ["xml", "<ok/>", "application/xml; charset=utf-8"]
  ] as const
  for (const [content_type, body, header] of types) {
    it(`A custom response of type ${content_type} is not interpreted as a page by browsers`, async ({
      answering,
      send
    }) => {
      const answer = await send(await answering({ content_type, body }))
      expect([answer.status, answer.body, answer.headers["content-type"]]).toEqual([200, body, header])
      expect(answer.headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox"
      })
    })
  }

  const values = '{"order":{"id":7,"tags":["a","b"]},"text":"\\"quoted\\" <tag> & ü\\n","none":null}'
  const sent: Sent = {
    method: "PUT",
    suffix: "/p/1?q=a%20b&r=1&r=2",
    headers: [...json, ["X-Tenant", "acme"]],
    body: values
  }

  it("Placeholders are filled in JSON responses", async ({ answering, gateway, send }) => {
    const body =
      '{"id":{{body.order.id}},"tags":{{body.order.tags}},"tag":"{{body.order.tags[1]}}","text":"{{body.text}}",' +
      '"tenant":"{{headers.X-Tenant}}","q":"{{query.q}}","r":{{query.r}},"path":"{{path}}","method":"{{method}}",' +
      '"missing":"{{body.no.such}}","nothing":{{body.no.such}},"none":{{body.none}},"request":"{{request.id}}"}'
    const source = await answering({ body })
    const answered = JSON.parse((await send(source, sent)).body)
    const [row] = await gateway.requests(source.id)
    expect(answered).toEqual({
      id: 7,
      tags: ["a", "b"],
      tag: "b",
      text: '"quoted" <tag> & ü\n',
      tenant: "acme",
      q: "a b",
      r: ["1", "2"],
      path: "/p/1",
      method: "PUT",
      missing: "",
      nothing: null,
      none: null,
      request: row.id
    })
  })

  it("Placeholders are filled in text and XML responses", async ({ answering, send }) => {
    const text = await answering({ content_type: "text", body: "[{{body.text}}] [{{body.order.tags}}] [{{body.no}}]" })
    expect((await send(text, sent)).body).toBe('["quoted" <tag> & ü\n] [["a","b"]] []')
    const xml = await answering({ content_type: "xml", body: '<a b="{{body.text}}">{{query.q}}</a>' })
    const answer = (await send(xml, sent)).body
    expect(answer).toContain("&lt;tag&gt; &amp; ü")
    expect(answer).not.toContain("<tag>")
    expect(answer.endsWith(">a b</a>")).toBe(true)
  })

  it("A sender's value cannot change the structure of a JSON response", async ({ answering, send }) => {
    const source = await answering({ body: '{"name":"{{body.name}}","role":"user"}' })
    const name = '","role":"admin","x":"{{request.id}}'
    expect(JSON.parse((await send(source, { headers: json, body: JSON.stringify({ name }) })).body)).toEqual({
      name,
      role: "user"
    })
  })

  it("A custom response can have headers, which a sender's value cannot break", async ({ answering, send }) => {
    const headers = {
      "X-Order": "{{body.id}}",
      "Retry-After": "120",
      "Cache-Control": "no-store",
      "Access-Control-Allow-Origin": "*"
    }
    const source = await answering({
      rules: [{ response: { status: 429, content_type: "text", body: "slow", headers } }]
    })
    const answer = await send(source, { headers: json, body: '{"id":"7\\r\\nX-Evil: 1\\r\\n\\r\\nü"}' })
    expect([answer.status, answer.body]).toEqual([429, "slow"])
    expect(answer.headers).toMatchObject({
      "retry-after": "120",
      "cache-control": "no-store",
      "access-control-allow-origin": "*"
    })
    expect(answer.headers).not.toHaveProperty("x-evil")
    expect(answer.headers["x-order"]).toContain("7")
  })

  it("Custom response headers keep non-ASCII values as they came", async ({ answering, send }) => {
    const headers = { "X-City": "Z\xfcrich", "X-Echo": "{{headers.x-name}}" }
    const source = await answering({ rules: [{ response: { content_type: "text", body: "grüße", headers } }] })
    const answer = await send(source, { headers: [["X-Name", "caf\xe9"]] })
    expect([answer.body, answer.headers["x-city"], answer.headers["x-echo"]]).toEqual(["grüße", "Z\xfcrich", "caf\xe9"])
  })

  it("HEAD has the same custom response without its body", async ({ answering, send }) => {
    const source = await answering({ content_type: "text", body: "eight by" })
    const answer = await send(source, { method: "HEAD" })
    expect([answer.status, answer.body, answer.headers["content-length"]]).toEqual([200, "", "8"])
  })

  it("A custom response that would be too long is replaced by the acknowledgement", async ({ answering, send }) => {
    const source = await answering({ content_type: "text", body: "{{body}}{{body}}" })
    const short = await send(source, { body: "ab" })
    expect(short.body).toBe("abab")
    const long = await send(source, { body: "x".repeat(200_000) })
    expect([long.status, JSON.parse(long.body).ok]).toEqual([200, true])
  })
})

describe("Custom response statuses", () => {
  for (const status of [200, 201, 202, 204, 299, 301, 304, 400, 401, 404, 409, 410, 422, 429, 500, 503, 599]) {
    it(`A custom response with status ${status} still accepts and routes the request`, async ({
      gateway,
      send,
      target
    }) => {
      const body = status === 204 || status === 304 ? "" : `status ${status}`
      const { source } = await gateway.route(target, {
        source: { custom_response: { rules: [{ response: { status, content_type: "text", body } }] } }
      })
      const answer = await send(source, { body: "payload" })
      expect([answer.status, answer.body]).toEqual([status, body])
      const [delivery] = await target.next()
      expect(delivery!.body.toString()).toBe("payload")
      const [row] = await gateway.requests(source.id)
      expect(row).toMatchObject({ status: "accepted", rejection_cause: null, events_count: 1 })
    })
  }
})

describe("Requests without a custom response", () => {
  it("Rejected requests and unknown or disabled sources get no custom response", async ({
    answering,
    gateway,
    send
  }) => {
    const source = await answering(
      { rules: [{ response: { status: 202, content_type: "text", body: "custom" } }] },
      { allowed_http_methods: ["POST"], auth_type: "API_KEY", auth: { api_key: "the-sender's-key" } }
    )
    const key = ["X-Api-Key", "the-sender's-key"] as const
    expect((await send({ id: "src_00000000000000000000000000" }, { headers: [key] })).status).toBe(404)
    expect((await send(source, { method: "PUT", headers: [key] })).status).toBe(405)
    expect((await send(source, { headers: [key, ["Content-Length", String(11 * 1024 * 1024)]] })).status).toBe(413)
    expect((await send(source, { headers: [["X-Api-Key", "guess"]] })).status).toBe(401)
    expect((await send(source, { headers: [key] })).body).toBe("custom")
    await gateway.api("PUT", `/sources/${source.id}/disable`)
    expect((await send(source, { headers: [key] })).status).toBe(403)
    const causes = (await gateway.requests(source.id)).map((row) => row.rejection_cause)
    expect(causes).toEqual([
      "SOURCE_METHOD_NOT_ALLOWED",
      "PAYLOAD_TOO_LARGE",
      "SOURCE_AUTH_FAILED",
      null,
      "SOURCE_DISABLED"
    ])
  })

  it("Without the database the sender is asked to retry and gets no custom response", async ({
    answering,
    gateway,
    send
  }) => {
    const source = await answering({ rules: [{ response: { status: 202, body: '"custom"' } }] })
    expect((await send(source)).status).toBe(202)
    await gateway.link.cut()
    try {
      expect((await send(source)).status).toBe(503)
    } finally {
      await gateway.link.mend()
    }
    await gateway.eventually("requests are taken again", async () =>
      (await send(source)).status === 202 ? true : null
    )
  })
})

describe("Chat interactions", () => {
  const interaction = (body: string): Sent => {
    const at = String(Math.floor(Date.now() / 1000))
    return {
      headers: [
        ...json,
        ["X-Signature-Timestamp", at],
        ["X-Signature-Ed25519", signBytes(null, Buffer.from(at + body), privateKey).toString("hex")]
      ],
      body
    }
  }

  it("Chat interactions are deferred, publicly or only for their sender, and delivered", async ({
    discord,
    send,
    target
  }) => {
    for (const [config, answer] of [
      [{}, { type: 5 }],
      [{ chat_defer_ephemeral: false }, { type: 5 }],
      [{ chat_defer_ephemeral: true }, { type: 5, data: { flags: 64 } }]
    ] as const) {
      target.reset()
      const source = await discord(config)
      const command = '{"type":2,"token":"t","data":{"name":"ask"}}'
      const answered = await send(source, interaction(command))
      expect([answered.status, JSON.parse(answered.body)]).toEqual([200, answer])
      expect((await target.next())[0]!.body.toString()).toBe(command)
    }
  })

  it("A chat autocomplete gets no choices, and a ping gets a pong", async ({ discord, send }) => {
    const source = await discord({ chat_defer_ephemeral: true })
    expect(JSON.parse((await send(source, interaction('{"type":4}'))).body)).toEqual({ type: 8, data: { choices: [] } })
    expect(JSON.parse((await send(source, interaction('{"type":1}'))).body)).toEqual({ type: 1 })
    expect((await send(source, { ...interaction('{"type":2}'), body: '{"type":2 }' })).status).toBe(401)
  })

  it("Chat events are acknowledged with 204 and delivered", async ({ discord, send, target }) => {
    const source = await discord({}, "DISCORD_EVENTS")
    const event = '{"type":1,"event":{"type":"APPLICATION_AUTHORIZED"}}'
    const answered = await send(source, interaction(event))
    expect([answered.status, answered.body]).toEqual([204, ""])
    expect((await target.next())[0]!.body.toString()).toBe(event)
  })

  it("A change of chat_defer_ephemeral applies at once, and only Discord sources accept it", async ({
    discord,
    gateway,
    send
  }) => {
    const source = await discord({})
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { chat_defer_ephemeral: true } })
    expect(JSON.parse((await send(source, interaction('{"type":2}'))).body)).toEqual({ type: 5, data: { flags: 64 } })
    const { body, status } = await gateway.call("POST", "/sources", {
      name: gateway.name("source"),
      config: { chat_defer_ephemeral: true }
    })
    expect([status, body.data.fields[0].path]).toEqual([400, "config.chat_defer_ephemeral"])
  })

  it("A custom response overrides the deferral of a chat interaction", async ({ discord, send }) => {
    const rules = [
      { match: { body: { "data.name": "ask" } }, response: { body: '{"type":4,"data":{"content":"Hi"}}' } }
    ]
    const source = await discord({ custom_response: { rules } })
    expect(JSON.parse((await send(source, interaction('{"type":2,"data":{"name":"ask"}}'))).body).type).toBe(4)
    expect(JSON.parse((await send(source, interaction('{"type":2,"data":{"name":"other"}}'))).body)).toEqual({
      type: 5
    })
  })
})

describe("Invalid custom responses", () => {
  const rule = (match: unknown, response: unknown = { body: "1" }) => ({ rules: [{ match, response }] })
  const at = "config.custom_response"
  const wrong: ReadonlyArray<readonly [name: string, custom_response: unknown, path: string]> = [
    ["not an object", "ok", at],
    ["an unknown content type", { content_type: "html", body: "" }, `${at}.content_type`],
    ["an unknown member", { bdy: "" }, at],
    ["a misspelled matcher", rule({ paths: "/" }), `${at}.rules[0].match`],
    ["an unknown operator", rule({ body: { $like: "a" } }), `${at}.rules[0].match.body.$like`],
    ["an operand of another kind", rule({ body: { a: { $in: { b: 1 } } } }), `${at}.rules[0].match.body.a.$in`],
    ["an invalid regular expression", rule({ path: { $regex: "(" } }), `${at}.rules[0].match.path.$regex`],
    [
      "a regular expression with a backreference",
      rule({ path: { $regex: "(a)\\1" } }),
      `${at}.rules[0].match.path.$regex`
    ],
    [
      "a regular expression of 513 characters",
      rule({ path: { $regex: "a".repeat(513) } }),
      `${at}.rules[0].match.path.$regex`
    ],
    ["status 199", rule({}, { status: 199 }), `${at}.rules[0].response.status`],
    ["status 600", rule({}, { status: 600 }), `${at}.rules[0].response.status`],
    ["status 200.5", rule({}, { status: 200.5 }), `${at}.rules[0].response.status`],
    ["a body with 204", rule({}, { status: 204, body: "1" }), `${at}.rules[0].response.body`],
    ["invalid JSON", { body: "{" }, `${at}.body`],
    ["a placeholder that is not closed", { content_type: "text", body: "{{body" }, `${at}.body`],
    ["an unknown placeholder", { content_type: "text", body: "{{env.SECRET}}" }, `${at}.body`],
    ["a body of 64 KiB and a byte", { content_type: "text", body: "x".repeat(65_537) }, `${at}.body`],
    [
      "the header set-cookie",
      rule({}, { headers: { "Set-Cookie": "a=1" } }),
      `${at}.rules[0].response.headers.Set-Cookie`
    ],
    [
      "the header content-length",
      rule({}, { headers: { "content-length": "1" } }),
      `${at}.rules[0].response.headers.content-length`
    ],
    [
      "the header transfer-encoding",
      rule({}, { headers: { "transfer-encoding": "x" } }),
      `${at}.rules[0].response.headers.transfer-encoding`
    ],
    ["the header host", rule({}, { headers: { Host: "x" } }), `${at}.rules[0].response.headers.Host`],
    ["a line break in a header", rule({}, { headers: { a: "b\r\nc: d" } }), `${at}.rules[0].response.headers.a`],
    ["an invalid header name", rule({}, { headers: { "a b": "c" } }), `${at}.rules[0].response.headers`]
  ]
  for (const [name, custom_response, path] of wrong) {
    it(`A custom response is refused: ${name}`, async ({ gateway }) => {
      const { body, status } = await gateway.call("POST", "/sources", {
        name: gateway.name("source"),
        config: { custom_response }
      })
      expect([status, body.code]).toEqual([400, "VALIDATION_ERROR"])
      expect(body.data.fields[0].path).toContain(path)
    })
  }
})
