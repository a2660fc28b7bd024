import type { Hostile } from "./Hostile.ts"

/** Code that returns, logs or is too much. */
export const output: ReadonlyArray<Hostile> = [
  {
    name: "a body of eleven million characters",
    handler: "return { body: 'x'.repeat(11e6) }",
    ends: ["OUTPUT_TOO_LARGE"]
  },
  {
    name: "a body that is too large in bytes only",
    handler: "return { body: '\\u20ac'.repeat(4e6) }",
    ends: ["OUTPUT_TOO_LARGE"]
  },
  {
    name: "headers of eleven million characters",
    handler: "return { headers: { a: 'x'.repeat(11e6) } }",
    ends: ["OUTPUT_TOO_LARGE"]
  },
  {
    name: "a hundred thousand headers",
    handler: "const headers = {}; for (let i = 0; i < 100000; i++) headers['x' + i] = '1'; return { headers }",
    ends: ["INVALID_OUTPUT", "TIMEOUT"]
  },
  {
    name: "one header a hundred thousand times",
    handler: "return { headers: { x: Array(100000).fill('1') } }",
    ends: ["INVALID_OUTPUT", "TIMEOUT"]
  },
  {
    name: "a header of five megabytes",
    handler: "return { headers: { a: 'x'.repeat(5e6) } }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a header name of a megabyte",
    handler: "return { headers: { ['x'.repeat(1e6)]: '1' } }",
    ends: ["INVALID_OUTPUT"]
  },
  { name: "a path of nine megabytes", handler: "return { path: '/' + 'x'.repeat(9e6) }", ends: ["INVALID_OUTPUT"] },
  {
    name: "a path that grows as it is encoded",
    handler: "return { path: '/' + '\\u20ac'.repeat(700) }",
    ends: ["INVALID_OUTPUT"]
  },
  { name: "a query of nine megabytes", handler: "return { query: 'x'.repeat(9e6) }", ends: ["INVALID_OUTPUT"] },
  {
    name: "a query that grows as it is encoded",
    handler: "return { query: { a: '\\u20ac'.repeat(6000) } }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a query of ten thousand values",
    handler: "return { query: { a: Array(10000).fill('') } }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a parsed query of ten thousand values",
    handler: "return { parsed_query: Object.fromEntries(Array.from({ length: 10000 }, (_, i) => ['a' + i, ''])) }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "members that are brackets",
    handler: "return { headers: Array(40000).fill([[[[]]]]) }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a body of three million numbers",
    handler: "return { body: Array(3e6).fill(1) }",
    ends: ["INVALID_OUTPUT", "TIMEOUT"]
  },
  {
    name: "a body of a million empty lists",
    handler: "return { body: Array(1e6).fill([]) }",
    ends: ["INVALID_OUTPUT", "TIMEOUT"]
  },
  {
    name: "an error with a name and a message of twenty million characters",
    handler: "throw { name: 'n'.repeat(2e7), message: 'm'.repeat(2e7) }",
    ends: ["RUNTIME_ERROR", "MEMORY_LIMIT"]
  },
  {
    name: "a hundred log lines of ten million characters",
    handler: "const line = 'x'.repeat(1e7); for (let i = 0; i < 100; i++) console.log(line); return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "a flood of log lines",
    handler: "for (let i = 0; i < 1e5; i++) console.log('line', i); return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  { name: "an endless flood of log lines", handler: "for (;;) console.error('x')", ends: ["TIMEOUT"] },
  {
    name: "a log line of ten million characters",
    handler: "console.log('x'.repeat(1e7)); return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "a log line that throws",
    handler:
      "console.log({ toJSON() { throw 1 } }, new Proxy({}, { get() { throw 1 } }), Symbol('x'), 1n); return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "a log line that logs",
    handler: "const o = { toJSON() { console.log(o) } }; console.log(o); return { body: 1 }",
    ends: ["ok", "RUNTIME_ERROR"]
  },
  { name: "a cycle", handler: "const o = {}; o.o = o; return { body: o }", ends: ["INVALID_OUTPUT"] },
  { name: "a big integer", handler: "return { body: 1n }", ends: ["INVALID_OUTPUT"] },
  { name: "a function", handler: "return { body: () => 1 }", ends: ["INVALID_OUTPUT"] },
  { name: "raw JSON", handler: "return { body: JSON.rawJSON('1e999') }", ends: ["ok", "INVALID_OUTPUT"] },
  {
    name: "a body ten thousand deep",
    handler: "let b = 1; for (let i = 0; i < 10000; i++) b = [b]; return { body: b }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a body a million deep",
    handler: "let b = 1; for (let i = 0; i < 1e6; i++) b = [b]; return { body: b }",
    ends: ["INVALID_OUTPUT", "MEMORY_LIMIT", "TIMEOUT"]
  },
  { name: "lone surrogates", handler: "return { body: '\\ud800', path: '/\\ud800' }", ends: ["ok"], body: "\ud800" },
  {
    name: "__proto__ in the body",
    handler: 'return { body: JSON.parse(\'{"__proto__":{"leak":1},"constructor":1}\') }',
    ends: ["ok"],
    body: JSON.parse('{"__proto__":{"leak":1},"constructor":1}')
  },
  {
    name: "__proto__ as a header",
    handler: 'return { headers: JSON.parse(\'{"__proto__":"x"}\'), body: 1 }',
    ends: ["ok"],
    body: 1
  },
  {
    name: "line breaks in a header",
    handler: "return { headers: { a: 'b\\r\\nset-cookie: x' } }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "line breaks in the path",
    handler: "return { path: '/a HTTP/1.1\\r\\nhost: evil' }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "thousands of handlers",
    handler: "for (let i = 0; i < 1e5; i++) addHandler('transform', () => i); return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "code of a million characters",
    code: `addHandler("transform", () => ({ body: ${JSON.stringify("x".repeat(1_000_000))}.length }))`,
    ends: ["ok"],
    body: 1_000_000,
    probe: false
  },
  { name: "code of more than a mebibyte", code: `//${"x".repeat(1_048_576)}`, ends: ["SYNTAX_ERROR"], probe: false },
  {
    name: "an identifier of half a million characters",
    code: `const ${"x".repeat(500_000)} = 1; addHandler("transform", () => ({ body: ${"x".repeat(500_000)} }))`,
    ends: ["ok"],
    body: 1,
    probe: false
  },
  {
    name: "a hundred thousand brackets",
    code: `${"(".repeat(100_000)}1${")".repeat(100_000)}`,
    ends: ["SYNTAX_ERROR", "RUNTIME_ERROR"],
    probe: false
  },
  {
    name: "a hundred thousand operators",
    code: `addHandler("transform", () => ({ body: ${"1+".repeat(100_000)}1 }))`,
    ends: ["ok", "RUNTIME_ERROR", "SYNTAX_ERROR"],
    probe: false
  },
  {
    name: "a template a hundred thousand deep",
    code: `${"`${".repeat(100_000)}1${"}`".repeat(100_000)}`,
    ends: ["SYNTAX_ERROR", "RUNTIME_ERROR"],
    probe: false
  },
  { name: "a regular expression that V8 refuses", code: "/(?:/", ends: ["SYNTAX_ERROR"], probe: false },
  {
    name: "a regular expression too large to compile",
    handler: `return { body: new RegExp("(" + "a?".repeat(1e6) + ")").test("aaa") }`,
    ends: ["ok", "RUNTIME_ERROR", "TIMEOUT", "MEMORY_LIMIT"]
  }
]
