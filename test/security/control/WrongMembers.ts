import { type ControlCase, json } from "./Case.ts"

/** Values that are none of a kind, by the kind they are not. */
const notText: ReadonlyArray<unknown> = [1, true, [], {}]
const notTextOrNull = notText
const notName: ReadonlyArray<unknown> = [
  null,
  ...notText,
  "",
  "   ",
  "a\nb",
  "a\tb",
  "x".repeat(156),
  "\u2028",
  "\u0007"
]
const notObject: ReadonlyArray<unknown> = ["x", 1, true, [1]]
const notBoolean: ReadonlyArray<unknown> = ["true", 1, [], {}]

/** Bodies that are right but for one member: what they are sent to, the members that are right, and what is wrong. */
interface Table {
  readonly kind: "sources" | "destinations" | "connections" | "transformations"
  readonly right: Readonly<Record<string, unknown>>
  readonly wrong: Readonly<Record<string, ReadonlyArray<unknown>>>
}

const tables: ReadonlyArray<Table> = [
  {
    kind: "sources",
    right: { name: "wrong-member", config: {} },
    wrong: {
      name: notName,
      description: [...notTextOrNull, "x".repeat(4097)],
      type: [null, 1, "", "webhook", "STRIPE!", "1X", "X".repeat(65)],
      status: [null, true, "", "ENABLED", "paused"],
      url: [1, {}, "nonsense", "https://elsewhere.example/e/x", "//", "javascript:alert(1)"],
      config: notObject,
      "config.auth_type": [1, {}, "", "basic_auth", "OAUTH", "HMAC", "API_KEY", "BASIC_AUTH"],
      "config.auth": [[], "x", 1, { username: "u", password: "p" }],
      "config.allowed_http_methods": [[], "POST", [null], ["post"], ["POST", "OPTIONS"], ["CONNECT"], [1], {}],
      "config.custom_response": ["x", 1, [], { body: 1 }, { contentType: "json" }, { rulez: [] }],
      "config.mode": [null, "", 1, "WEBHOOK", "both"],
      "config.proxy": ["x", 1, [], { enabled: 1 }, { enabled: true }, { enabled: false }, { timeout_ms: 2_000 }],
      "config.chat_defer_ephemeral": [...notBoolean, true]
    }
  },
  {
    kind: "sources",
    right: {
      name: "wrong-response",
      config: {
        custom_response: { content_type: "json", body: "{}", rules: [{ match: { method: "POST" }, response: {} }] }
      }
    },
    wrong: {
      "config.custom_response.content_type": ["html", "application/json", "JSON", 1, {}],
      "config.custom_response.body": [
        1,
        {},
        [],
        "plain",
        '{"a":1,}',
        "{{",
        "{{}}",
        '"{{env.HOME}}"',
        '"{{__proto__}}"',
        '"{{constructor.constructor}}"',
        '"{{body[*]}}"',
        '"{{request.team_id}}"',
        "{{{body}}}",
        '["\\u00{{path}}"]',
        `"${"x".repeat(65_537)}"`
      ],
      "config.custom_response.rules": [
        "x",
        {},
        [1],
        [null],
        [{ enabled: "yes" }],
        [{ matcher: {} }],
        [{ conditions: {} }],
        [{ override: {} }],
        [{ match: [] }],
        [{ match: { host: "x" } }],
        [{ match: { method: 1 } }],
        [{ match: { path: ["/a"] } }],
        [{ match: { headers: "x" } }],
        [{ match: { query: [] } }],
        [{ match: { body: { a: { $foo: 1 } } } }],
        [{ match: { body: { a: { $regex: "(" } } } }],
        [{ match: { body: { a: { $regex: "(?=a)" } } } }],
        [{ match: { body: { a: { $regex: "((a{1,1000}){1,1000}){1,1000}" } } } }],
        [{ match: { path: { $regex: "x".repeat(513) } } }],
        [{ match: { body: Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`k${i}`, i])) } }],
        [{ response: [] }],
        [{ response: { status: 0 } }],
        [{ response: { status: 101 } }],
        [{ response: { status: 600 } }],
        [{ response: { status: "200" } }],
        [{ response: { status: 204, body: "{}" } }],
        [{ response: { headers: [] } }],
        [{ response: { headers: { "x-a": 1 } } }],
        [{ response: { headers: { "x-a": "b\r\nset-cookie: c=d" } } }],
        [{ response: { headers: { "x-a\r\nset-cookie": "b" } } }],
        [{ response: { headers: { "": "b" } } }],
        [{ response: { headers: { "x a": "b" } } }],
        [{ response: { headers: { "Set-Cookie": "a=b" } } }],
        [{ response: { headers: { "content-length": "0" } } }],
        [{ response: { headers: { "Transfer-Encoding": "chunked" } } }],
        [{ response: { headers: { connection: "close" } } }],
        [{ response: { headers: { host: "a" } } }],
        [{ response: { headers: { "content-type": "text/html" } } }],
        [{ response: { headers: { "x-a": "b", "X-A": "c" } } }],
        Array.from({ length: 51 }, () => ({}))
      ]
    }
  },
  {
    kind: "sources",
    right: { name: "wrong-proxy", config: { mode: "proxy", proxy: { target_url: "https://example.com/base" } } },
    wrong: {
      "config.mode": ["webhooks", {}, null],
      "config.proxy": [null, {}, { enabled: true }],
      "config.proxy.enabled": [false, 1, "true"],
      "config.proxy.target_url": [
        null,
        1,
        "",
        "/base",
        "//example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https://user:pass@example.com/",
        "https://user@example.com/",
        "https://example.com/#fragment",
        "https://exa mple.com/",
        "https:\\\\example.com",
        "https://[::1",
        "https://example.com:99999/",
        `https://example.com/${"x".repeat(2_048)}`
      ],
      "config.proxy.path_forwarding": ["true", 1, {}],
      "config.proxy.query_forwarding": ["true", 1, {}],
      "config.proxy.timeout_ms": [999, 30_001, 0, -1, 1.5, "10000", true],
      "config.proxy.capture_response_bytes": [-1, 65_537, 1.5, "1", true]
    }
  },
  {
    kind: "sources",
    right: { name: "wrong-auth", config: { auth_type: "HMAC", auth: { webhook_secret_key: "secret-of-the-sender" } } },
    wrong: {
      "config.auth.webhook_secret_key": [...notText, "", "  ", "\ufffd", "x".repeat(16_385), "****cret"],
      "config.auth.algorithm": ["sha3", "SHA256", 1, {}],
      "config.auth.encoding": ["HEX", "base32", 1],
      "config.auth.header_key": ["", "x y", "x:y", "x\r\ny: z", "ü", "x".repeat(257), 1],
      "config.auth.prefix": [" sha", "x".repeat(65), "\u0001", 1],
      "config.auth.timestamp_header": ["", "x-signature", "a b", 1],
      "config.auth.tolerance_seconds": [0, -1, 1.5, 86_401, "300", 300]
    }
  },
  {
    kind: "sources",
    right: { name: "wrong-basic", config: { auth_type: "BASIC_AUTH", auth: { username: "u", password: "p" } } },
    wrong: {
      "config.auth.username": ["", "a:b", 1, "a\nb"],
      "config.auth.password": ["", " ", "a\nb", 1, {}]
    }
  },
  {
    kind: "sources",
    right: { name: "wrong-key", config: { auth_type: "API_KEY", auth: { api_key: "key-of-the-sender" } } },
    wrong: {
      "config.auth.api_key": ["", " x", "x ", "a\nb", 1, []],
      "config.auth.header_key": ["", "a b", 1],
      "config.auth.query_key": ["", 1, "a\u0000b"]
    }
  },
  {
    kind: "destinations",
    right: { name: "wrong-member", config: { url: "https://example.com/hooks" } },
    wrong: {
      name: notName,
      description: [...notTextOrNull, "x".repeat(4097)],
      type: [null, 1, "", "http", "HTTPS", "FTP", "CLI", "SQL_DATABASE", "SPREADSHEET"],
      config: [...notObject, {}],
      "config.url": [
        ...notText,
        null,
        "",
        "/hooks",
        "//example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https://user:pass@example.com/",
        "https://user@example.com/",
        "https://example.com/#fragment",
        "https://exa mple.com/",
        "https://example.com/a b",
        "https:\\\\example.com",
        "https://[::1",
        "https://example.com:99999/",
        `https://example.com/${"x".repeat(4096)}`
      ],
      "config.path": ["/x", 1],
      "config.http_method": ["GET", "HEAD", "post", "", 1, "CONNECT"],
      "config.path_forwarding_disabled": notBoolean,
      "config.forward_credentials": notBoolean,
      "config.rate_limit": [0, -1, 1.5, "5", 1e21, Number.MAX_SAFE_INTEGER + 1, [], {}],
      "config.rate_limit_period": ["", "seconds", "SECOND", "concurrent", 1],
      "config.max_concurrency": [0, -1, 1.5, 2_001, "5", 1e21, true, [], {}],
      "config.auth_type": [1, "", "custom_header", "CUSTOM_HEADER", "OAUTH2_CLIENT_CREDENTIALS", "BASIC_AUTH"],
      "config.auth": [[], "x", 1, { header_name: "x-a", value: "b" }]
    }
  },
  {
    kind: "destinations",
    right: {
      name: "wrong-auth",
      config: {
        url: "https://example.com/",
        auth_type: "CUSTOM_HEADER",
        auth: { header_name: "x-token", value: "secret-of-the-target" }
      }
    },
    wrong: {
      "config.auth.header_name": [
        "",
        "a b",
        "a:b",
        "x\r\ny: z",
        1,
        null,
        "Host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "x-gateway-event-id",
        "TE",
        "x".repeat(257)
      ],
      "config.auth.value": ["", " x", "x ", "a\r\nb", "ü", "\u0000", 1, null, "x".repeat(16_385)],
      "config.auth.disabled": ["true", 1]
    }
  },
  {
    kind: "destinations",
    right: { name: "wrong-mock", type: "MOCK_API", config: {} },
    wrong: {
      "config.path": ["", "x", "x/y", "/a b", "/a#b", `/${"x".repeat(2048)}`, "/\u0001", 1, {}],
      "config.url": ["https://example.com/", "nonsense"],
      "config.max_concurrency": [1, 50, "5"]
    }
  },
  {
    kind: "connections",
    right: { name: "wrong-member", source_id: "{source}", destination_id: "{destination}" },
    wrong: {
      name: notName,
      description: [...notTextOrNull, "x".repeat(4097)],
      source_id: [null, 1, {}, [], "", "src with spaces", "src_'; drop table sources; --", "x".repeat(65), "../x"],
      source: [null, "x", 1, [], {}, { id: 1 }, { id: "" }],
      destination_id: [null, 1, {}, "", "des/../x", "x".repeat(65)],
      destination: ["x", [], {}, { id: null }],
      disabled_at: ["", "yesterday", 1, true, {}, "2026-01-01", "2999-01-01T00:00:00Z", "now", "2026-02-31T00:00:00Z"],
      paused_at: ["", "soon", 0, "2026-01-01T00:00:00", "2999-01-01T00:00:00Z", "1969-01-01T00:00:00Z"],
      rules: ["x", 1, {}, true],
      ordering: ["body.a", 1, [], true, {}, { key: 1 }, { on_failure: "block" }],
      "ordering.key": ["", "body", "path.x", "body.items[*]", `body.${"x".repeat(300)}`, null, {}],
      "ordering.on_failure": ["stop", null, 1]
    }
  },
  {
    kind: "transformations",
    right: { name: "wrong-member", code: "addHandler('transform', (request) => request)", env: {} },
    wrong: {
      name: notName,
      code: [null, ...notText, "", " \n ", "//".repeat(524_289), `// ${"ü".repeat(524_288)}`],
      env: [
        ...notObject,
        { "1A": "x" },
        { "A-B": "x" },
        { "": "x" },
        { A: 1 },
        { A: null },
        { A: {} },
        { A: "x".repeat(65_536) },
        Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`V${i}`, ""]))
      ]
    }
  }
]

/** The bodies that all of it stands in, which are right. */
export const rightBodies = tables.map(({ kind, right }) => ({ kind, right }))

/** A copy of `body` whose member at `path` is `value`. */
const withMember = (body: Readonly<Record<string, unknown>>, path: string, value: unknown): unknown => {
  const [name = "", ...rest] = path.split(".")
  const inner = body[name]
  if (rest.length === 0) return { ...body, [name]: value }
  return {
    ...body,
    [name]: withMember((typeof inner === "object" ? inner : {}) as Record<string, unknown>, rest.join("."), value)
  }
}

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "undefined"
  return text.length > 40 ? `${text.slice(0, 40)}… (${text.length})` : text
}

/** Every member of every body, with everything it must not be: as a create, and (one value each) as every other write. */
export const wrongMembers: ReadonlyArray<ControlCase> = tables.flatMap(({ kind, right, wrong }) =>
  Object.entries(wrong).flatMap(([path, values]) =>
    values.flatMap((value, index): ReadonlyArray<ControlCase> => {
      const body = json(withMember(right, path, value))
      const code = path === "rules" ? "RULE_INVALID" : "VALIDATION_ERROR"
      const create = {
        name: `${path} ${shown(value)}`,
        method: "POST",
        path: `/v1/${kind}`,
        body,
        status: 400,
        code
      }
      if (index > 0) return [create]
      return [create, { ...create, method: "PUT" }]
    })
  )
)

/** Changes in part that are wrong whatever is stored. */
export const wrongChanges: ReadonlyArray<ControlCase> = [
  ["/sources/{source}", { name: null }],
  ["/sources/{source}", { name: "" }],
  ["/sources/{source}", { config: { auth_type: "HMAC" } }],
  ["/sources/{source}", { config: { auth: { webhook_secret_key: "x" } } }],
  ["/sources/{source}", { config: { allowed_http_methods: [] } }],
  ["/sources/{source}", { status: "gone" }],
  ["/sources/{source}", { auth_type: "HMAC", config: { auth_type: null } }],
  ["/sources/{source}", { config: { mode: "proxy" } }],
  ["/sources/{source}", { mode: "webhook", config: { mode: "proxy", proxy: { target_url: "https://a.example" } } }],
  ["/sources/{source}", { config: { mode: "webhook", proxy: { enabled: true, target_url: "https://a.example" } } }],
  ["/sources/{source}", { config: { proxy: { enabled: true } } }],
  ["/sources/{source}", { config: { custom_response: { rules: [{ matcher: {} }] } } }],
  ["/sources/{source}", { config: { custom_response: { body: "{" } } }],
  ["/sources/{source}", { config: { chat_defer_ephemeral: true } }],
  ["/sources/{source}", { custom_response: {}, config: { custom_response: { body: "{}" } } }],
  ["/destinations/{destination}", { config: { url: "nonsense" } }],
  ["/destinations/{destination}", { config: { url: null } }],
  ["/destinations/{destination}", { url: "https://a.example/", config: { url: "https://b.example/" } }],
  ["/destinations/{destination}", { type: "MOCK_API", config: { url: "https://example.com/" } }],
  ["/destinations/{destination}", { config: { auth_type: "CUSTOM_HEADER" } }],
  ["/destinations/{destination}", { config: { auth: { header_name: "x", value: "y" } } }],
  ["/destinations/{destination}", { config: { rate_limit: 0 } }],
  ["/connections/{connection}", { name: "" }],
  ["/connections/{connection}", { source_id: null }],
  ["/connections/{connection}", { paused_at: "2999-01-01T00:00:00Z" }],
  ["/connections/{connection}", { disabled_at: 5 }],
  ["/transformations/{transformation}", { name: "" }],
  ["/transformations/{transformation}", { name: null }],
  ["/transformations/{transformation}", { code: "" }],
  ["/transformations/{transformation}", { code: null }],
  ["/transformations/{transformation}", { env: "A=1" }],
  ["/transformations/{transformation}", { env: { A: true } }]
].map(([path, body]): ControlCase => ({
  name: `change ${JSON.stringify(body)}`,
  method: "PATCH",
  path: `/v1${path as string}`,
  body: json(body),
  status: 400,
  code: "VALIDATION_ERROR"
}))

/** What is well-formed and names what is not there, or what is taken. */
export const conflicts: ReadonlyArray<ControlCase> = [
  ["POST", "/sources", { name: "present" }, 409, "RESOURCE_ALREADY_EXISTS"],
  ["POST", "/destinations", { name: "present", url: "https://example.com/" }, 409, "RESOURCE_ALREADY_EXISTS"],
  [
    "POST",
    "/connections",
    { name: "present", source_id: "{source}", destination_id: "{destination}" },
    409,
    "RESOURCE_ALREADY_EXISTS"
  ],
  [
    "POST",
    "/connections",
    { name: "n", source_id: "{destination}", destination_id: "{destination}" },
    404,
    "NOT_FOUND"
  ],
  ["POST", "/connections", { name: "n", source_id: "{source}", destination_id: "{source}" }, 404, "NOT_FOUND"],
  ["POST", "/connections", { name: "n", source_id: "src_x", destination_id: "{destination}" }, 404, "NOT_FOUND"],
  ["PATCH", "/connections/{connection}", { source_id: "src_00000000000000000000000000" }, 404, "NOT_FOUND"],
  ["PATCH", "/connections/{connection}", { destination_id: "{connection}" }, 404, "NOT_FOUND"],
  ["PUT", "/connections", { id: "web_00000000000000000000000000", name: "n" }, 404, "NOT_FOUND"],
  ["PUT", "/connections", { id: "{source}", name: "n" }, 404, "NOT_FOUND"],
  ["POST", "/transformations", { name: "present", code: "1" }, 409, "RESOURCE_ALREADY_EXISTS"],
  ["PATCH", "/transformations/trs_00000000000000000000000000", { code: "1" }, 404, "NOT_FOUND"],
  ["PATCH", "/transformations/{source}", { code: "1" }, 404, "NOT_FOUND"],
  ["POST", "/transformations/run", { transformation_id: "trs_00000000000000000000000000" }, 404, "NOT_FOUND"],
  ["POST", "/transformations/run", { transformation_id: "{source}" }, 404, "NOT_FOUND"],
  ["PUT", "/transformations/run", { transformation_id: "../x" }, 404, "NOT_FOUND"],
  ["DELETE", "/transformations/{transformation}", {}, 409, "RESOURCE_IN_USE"],
  ["PUT", "/destinations/{destination}", { name: "replaced" }, 400, "VALIDATION_ERROR"],
  ["PUT", "/destinations/{destination}", { config: { url: "https://example.com/" } }, 400, "VALIDATION_ERROR"],
  ["PUT", "/destinations/{destination}", {}, 400, "VALIDATION_ERROR"]
].map(([method, path, body, status, code]): ControlCase => ({
  name: json(body),
  method: method as string,
  path: `/v1${path as string}`,
  body: json(body),
  status: status as number,
  code: code as string
}))
