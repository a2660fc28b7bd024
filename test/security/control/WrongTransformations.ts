import { type ControlCase, json } from "./Case.ts"

/** What is no program, however it is looked at. */
const notCode: ReadonlyArray<readonly [name: string, code: string]> = [
  ["an unclosed brace", "addHandler('transform', (request) => {"],
  ["an extra bracket", "addHandler('transform', (request) => request))"],
  ["an unclosed text", "const a = 'b"],
  ["an unclosed template", "const a = `b"],
  ["an unclosed comment", "/* "],
  ["an invalid regular expression", "const a = /(/"],
  ["a name that is a number", "const 1a = 2"],
  ["a reserved word", "const class = 1"],
  ["a constant without a value", "const a"],
  ["a repeated name", "const a = 1; let a = 2"],
  ["a return outside a function", "return 1"],
  ["an import", "import fs from 'node:fs'"],
  ["an export", "export default (request) => request"],
  ["await outside a function", "const a = await 1; a"],
  ["another language", "def handler(request):\n  return request"],
  ["markup", "<script>alert(1)</script>"],
  ["JSON", '{"a":1,"b":2}'],
  ["a wrong assignment", "1 = a"],
  ["an invalid line after valid ones", "addHandler('transform', (r) => r)\n\n)"],
  ["ten thousand open parentheses", "(".repeat(10_000)]
]

const writes = (
  body: Readonly<Record<string, unknown>>
): ReadonlyArray<readonly [method: string, path: string, body: string]> => [
  ["POST", "/v1/transformations", json({ name: "wrong-code", ...body })],
  ["PUT", "/v1/transformations", json({ name: "present", ...body })],
  ["PATCH", "/v1/transformations/{transformation}", json(body)],
  ["POST", "/v1/transformations/run", json(body)]
]

/** Every one as it is created; the first few as everything else. */
export const wrongCode: ReadonlyArray<ControlCase> = notCode.flatMap(([name, code], index) =>
  writes({ code })
    .slice(0, index < 3 ? undefined : 1)
    .map(([method, path, body]) => ({ name, method, path, body, status: 400, code: "TRANSFORMATION_INVALID" }))
)

const right = "addHandler('transform', (request) => request)"

const notRuns: ReadonlyArray<unknown> = [
  {},
  { code: null, transformation_id: null },
  { code: "" },
  { code: 1 },
  { transformation_id: 1 },
  { transformation_id: ["trs_1"] },
  ...["x", 1, [], null].map((request) => ({ code: right, request })),
  ...[
    "x",
    1,
    [],
    null,
    { a: 1 },
    { a: null },
    { a: [1] },
    { "": "x" },
    { "a b": "x" },
    { "a:": "x" },
    { a: "b\r\nc: d" }
  ].map((headers) => ({ code: right, request: { headers } })),
  ...[1, true, null, ["a"], { a: {} }, { a: [[]] }].map((query) => ({ code: right, request: { query } })),
  ...["", "x", "https://example.com/", 1, null, `/${"x".repeat(2_048)}`].map((path) => ({
    code: right,
    request: { path }
  })),
  ...["", "get", "CONNECT", "TRACE", "POST ", 1, null].map((method) => ({ code: right, request: { method } })),
  ...["A=1", 1, [], { "a b": "c" }, { a: 1 }].map((env) => ({ code: right, env })),
  ...["", "soon", "2026-02-30", 1, null].map((timestamp) => ({ code: right, timestamp })),
  ...["x", 1, [], null, { source_id: 1 }, { request_id: {} }].map((context) => ({ code: right, context }))
]

export const wrongRuns: ReadonlyArray<ControlCase> = [
  ...notRuns.map((body, index): ControlCase => ({
    name: json(body).slice(0, 120),
    method: index % 2 === 0 ? "POST" : "PUT",
    path: "/v1/transformations/run",
    body: json(body),
    status: 400,
    code: "VALIDATION_ERROR"
  })),
  ...["GET", "DELETE"].map((method): ControlCase => ({
    name: "a transformation named run",
    method,
    path: "/v1/transformations/run",
    status: 404,
    code: "NOT_FOUND"
  })),
  ...(
    [
      ["/v1/transformations", 4],
      ["/v1/transformations/run", 16]
    ] as const
  ).map(([path, mebibytes]): ControlCase => ({
    name: `one byte too many for ${path}`,
    method: "PUT",
    path,
    body: `{}${" ".repeat(mebibytes * 1024 * 1024 - 1)}`,
    status: 413,
    code: "PAYLOAD_TOO_LARGE"
  }))
]
