import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Transformation } from "@tidegate/model/Transformation"
import { shownTo } from "../src/transformations/TransformationHandlers.ts"
import { call, layer as server } from "./ControlServer.ts"

const sentences: ReadonlyArray<readonly [method: string, path: string, body: unknown, message: string]> = [
  ["GET", "/sources?limit=ten", undefined, "limit must be a whole number from 1"],
  ["GET", "/sources?limit=0", undefined, "limit must be a whole number from 1"],
  ["GET", "/sources?limit=1&limit=2", undefined, "limit must be given once"],
  ["GET", "/sources?order_by=id", undefined, "order_by must be name or created_at or updated_at"],
  ["GET", "/sources?include_disabled=yes", undefined, "include_disabled must be true or false"],
  ["GET", `/requests?q=${"x".repeat(201)}`, undefined, "q must be at most 200 characters"],
  ["GET", "/sources/%zz", undefined, "url must be percent-encoded UTF-8 without NUL characters"],
  ["POST", "/sources", "[]", "body must be a JSON object"],
  ["POST", "/sources", `{"name":"x","x":[${"0,".repeat(100_000)}0]}`, "body has more than 100000 JSON values"]
]

const manyFaults: ReadonlyArray<
  readonly [method: string, path: string, body: unknown, code: string, fields: ReadonlyArray<string>]
> = [
  [
    "POST",
    "/destinations",
    { description: 5, config: { url: "ftp://x", rate_limit: -1, auth_type: "CUSTOM_HEADER", auth: {} } },
    "VALIDATION_ERROR",
    ["description", "config.url", "config.rate_limit", "name", "config.auth.header_name", "config.auth.value"]
  ],
  [
    "POST",
    "/sources",
    {
      status: "on",
      config: {
        auth_type: "HMAC",
        auth: {},
        allowed_http_methods: [],
        mode: "proxy",
        custom_response: { rules: 5 },
        chat_defer_ephemeral: true
      }
    },
    "VALIDATION_ERROR",
    [
      "status",
      "config.allowed_http_methods",
      "name",
      "config.auth",
      "config.custom_response",
      "config.proxy",
      "config.chat_defer_ephemeral"
    ]
  ],
  [
    "POST",
    "/connections",
    { name: "", source_id: "src_1", paused_at: "soon", rules: [{ type: "delay", delay: -1 }, { type: "filter" }] },
    "VALIDATION_ERROR",
    ["name", "paused_at", "destination_id", "rules[0].delay", "rules[1]"]
  ],
  [
    "POST",
    "/connections",
    {
      name: "x",
      source_id: "src_1",
      destination_id: "des_1",
      rules: [{ type: "delay", delay: -1 }, { type: "filter" }]
    },
    "RULE_INVALID",
    ["rules[0].delay", "rules[1]"]
  ],
  ["POST", "/transformations", { env: { A: 1 } }, "VALIDATION_ERROR", ["env.A", "name", "code"]],
  [
    "POST",
    "/transformations/run",
    { env: { A: 1 }, request: { path: "x", query: { a: "x".repeat(70_000) } } },
    "VALIDATION_ERROR",
    ["env.A", "request.path", "code"]
  ]
]

const unseen: ReadonlyArray<readonly [what: string, name: string, status: number]> = [
  ["a right-to-left override", "invoice\u202egpj.exe", 400],
  ["an isolate", "a\u2066b", 400],
  ["an Arabic letter mark", "a\u061cb", 400],
  ["a zero-width space", "pay\u200bments", 400],
  ["a zero-width joiner", "pay\u200dments", 400],
  ["a word joiner", "pay\u2060ments", 400],
  ["a byte order mark", "\ufeffpayments", 400],
  ["a soft hyphen", "pay\u00adments", 400],
  ["a Hangul filler", "\u3164", 400],
  ["a tag character", "payments\u{e0041}", 400],
  ["a variation selector behind a letter", "a\ufe0f", 400],
  ["an emoji of several characters", "orders \u2764\ufe0f \u{1f468}\u200d\u{1f469}\u200d\u{1f467}", 200],
  ["letters of other scripts", "\u0637\u0644\u0628\u0627\u062a \u05e9\u05dc\u05d5\u05dd \u6ce8\u6587", 200]
]

layer(server, { excludeTestServices: true })("Field errors", (it) => {
  for (const [method, path, body, message] of sentences) {
    it.effect(`API reports the field error: ${message}`, () =>
      Effect.gen(function* () {
        const answer = yield* call(method, path, body === undefined ? {} : { body })
        expect([answer.status, answer.body.message]).toEqual([400, message])
        expect(answer.body.data.fields[0].path).toBe(message.split(" ")[0])
      })
    )
  }

  for (const [method, path, body, code, fields] of manyFaults) {
    it.effect(`API reports all faults of ${method} ${path}: ${fields.join(", ")}`, () =>
      Effect.gen(function* () {
        const answer = yield* call(method, path, { body })
        expect([answer.status, answer.body.code]).toEqual([400, code])
        const told = answer.body.data.fields.map(({ path }: { readonly path: string }) => path)
        for (const [index, field] of fields.entries())
          expect(told[index]).toMatch(new RegExp(`^${RegExp.escape(field)}`))
        expect(told).toHaveLength(fields.length)
        expect(answer.body.message).toContain(`(and ${fields.length - 1} more`)
      })
    )
  }

  it.effect("PATCH reports all faults of the changed fields", () =>
    Effect.gen(function* () {
      const { body } = yield* call("POST", "/destinations", { body: { name: "part", type: "MOCK_API" } })
      const answer = yield* call("PATCH", `/destinations/${body.id}`, {
        body: { name: "", url: "http://x", http_method: "GET" }
      })
      const told = answer.body.data.fields.map(({ path }: { readonly path: string }) => path)
      expect(told).toEqual(["name", "config.http_method", "config.url"])
    })
  )

  for (const [what, name, status] of unseen) {
    it.effect(`API ${status === 400 ? "refuses" : "accepts"} a name with ${what}`, () =>
      Effect.gen(function* () {
        const ends = { source_id: "src_1", destination_id: "des_1" }
        const inline = { type: "transform", transformation: { name, code: "x" } }
        for (const [path, body] of [
          ["/sources", { name }],
          ["/destinations", { name, type: "MOCK_API" }],
          ["/transformations", { name, code: "x" }],
          ["/connections", { name, ...ends }],
          ["/connections", { name: "inline", ...ends, rules: [inline] }]
        ] as const) {
          const answer = yield* call("POST", path, { body })
          // Connections have no ends here: their names are right when that is what is told.
          if (status === 200) expect([path, answer.status]).toEqual([path, path === "/connections" ? 404 : 200])
          else expect([path, answer.status]).toEqual([path, 400])
        }
      })
    )
  }
})

layer(server, { excludeTestServices: true })("Variables of a transformation", (it) => {
  it.effect("Variables of a transformation are shown to owners and masked for other roles", () =>
    Effect.gen(function* () {
      const env = { TOKEN: "a long secret", EMPTY: "", SHORT: "abc" }
      const { body } = yield* call("POST", "/transformations", { body: { name: "env", code: "x", env } })
      expect(body.env).toEqual(env)
      const stored = body as Transformation
      expect(shownTo("owner", stored)).toEqual(stored)
      const { env: _, ...others } = stored
      expect(shownTo("member", stored)).toEqual({ ...others, env: { TOKEN: "****cret", EMPTY: "****", SHORT: "****" } })
    })
  )
})
