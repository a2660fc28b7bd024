import type { Hostile } from "./Hostile.ts"

/** Code that means not to end. */
export const time: ReadonlyArray<Hostile> = [
  { name: "an endless loop", handler: "for (;;);", ends: ["TIMEOUT"] },
  { name: "an endless loop outside of the handler", code: "while (true) {}", ends: ["TIMEOUT"] },
  {
    name: "an endless loop that catches everything",
    handler: "for (;;) { try { for (;;); } catch {} finally { continue } }",
    ends: ["TIMEOUT"]
  },
  {
    name: "a regular expression that backtracks",
    handler: 'return { body: /^(a+)+$/.test("a".repeat(40) + "!") }',
    ends: ["TIMEOUT"]
  },
  {
    name: "a replacement that backtracks",
    handler: 'return { body: "x".repeat(60000).replace(/(x+x+)+y/g, "") }',
    ends: ["TIMEOUT", "RUNTIME_ERROR", "ok"]
  },
  {
    name: "a loop of microtasks",
    handler: "const again = () => Promise.resolve().then(again); again(); return request",
    ends: ["TIMEOUT", "MEMORY_LIMIT"]
  },
  {
    name: "an async loop",
    handler: "(async () => { for (;;) await null })(); return request",
    ends: ["TIMEOUT"]
  },
  {
    name: "a promise that is never kept",
    handler: "return new Promise(() => {})",
    ends: ["ASYNC_NOT_SUPPORTED"]
  },
  {
    name: "a thenable whose then does not end",
    handler: "return { get then() { for (;;); } }",
    ends: ["TIMEOUT"]
  },
  { name: "a getter that does not end", handler: "return { get body() { for (;;); } }", ends: ["TIMEOUT"] },
  {
    name: "a toJSON that does not end",
    handler: "return { body: { toJSON() { for (;;); } } }",
    ends: ["TIMEOUT"]
  },
  {
    name: "an error whose message does not end",
    handler: "throw { get message() { for (;;); } }",
    ends: ["TIMEOUT"]
  },
  {
    name: "a rejection whose message does not end",
    handler: "Promise.reject({ get message() { for (;;); } }); return request",
    ends: ["TIMEOUT"]
  },
  {
    name: "a stack that does not end",
    handler: "Error.prepareStackTrace = () => { for (;;); }; null.x",
    ends: ["TIMEOUT"]
  },
  {
    name: "a generator without end",
    handler: "return { body: [...(function* () { for (;;) yield 1 })()] }",
    ends: ["TIMEOUT", "MEMORY_LIMIT", "RUNTIME_ERROR"]
  },
  {
    name: "an async generator without end",
    handler: "(async () => { for await (const x of (async function* () { for (;;) yield 1 })()); })(); return request",
    ends: ["TIMEOUT"]
  },
  {
    name: "recursion without end",
    handler: "const f = () => f() + 1; f()",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "recursion that catches its own overflow",
    handler: "const f = () => { try { f() } finally { f() } }; f()",
    ends: ["TIMEOUT", "RUNTIME_ERROR"]
  },
  {
    name: "recursion through JSON, Proxy and getters",
    handler: "const p = new Proxy({}, { get: (t, k, r) => r[k] }); return { body: p.x }",
    ends: ["RUNTIME_ERROR", "TIMEOUT"]
  },
  {
    name: "a sort whose comparison does not end",
    handler: "return { body: [3, 2, 1].sort(() => { for (;;); }) }",
    ends: ["TIMEOUT"]
  },
  {
    name: "a number with a million digits, multiplied on",
    handler: "let n = 3n; for (;;) n *= n",
    ends: ["TIMEOUT", "RUNTIME_ERROR", "MEMORY_LIMIT"]
  },
  {
    name: "dates and formats without end",
    handler: "for (;;) new Intl.DateTimeFormat('de', { dateStyle: 'full' }).format(new Date())",
    ends: ["TIMEOUT", "MEMORY_LIMIT"]
  },
  {
    name: "a host function called without end",
    handler: "for (;;) crypto.hash('sha512', 'x'.repeat(1e5))",
    ends: ["TIMEOUT"]
  },
  {
    name: "a search through a huge array that nothing is in",
    handler: "const a = []; a.length = 4294967295; return { body: a.indexOf(1) }",
    ends: ["TIMEOUT", "ok", "RUNTIME_ERROR"]
  },
  {
    name: "joining a huge hole",
    handler: "return { body: new Array(4294967295).join('x').length }",
    ends: ["TIMEOUT", "MEMORY_LIMIT", "RUNTIME_ERROR"]
  }
]
