import { createHmac } from "node:crypto"
import { callOf } from "./openSandbox.ts"

/** What handlers do, and what comes of it. */

const original = callOf("").request
export const invalid = { code: "INVALID_OUTPUT" }

/** A name, the handler's body, and the request or the error. */
export const returns: ReadonlyArray<readonly [string, string, object]> = [
  ["nothing", "", { ...invalid, message: "the handler returned nothing: end it with `return request`" }],
  ["null", "return null", { ...invalid, message: "the handler did not return a request object" }],
  ["false", "return false", invalid],
  ["a text", "return 'x'", invalid],
  ["a list", "return [request]", invalid],
  ["a promise", "return Promise.resolve(request)", { code: "ASYNC_NOT_SUPPORTED" }],
  ["an empty object", "return {}", original],
  ["members that are undefined", "return { ...request, body: undefined, path: undefined }", original],
  ["a body of null", "return { body: null }", { ...original, body: null }],
  ["a body of text", "return { body: 'plain' }", { ...original, body: "plain" }],
  ["a body of false", "return { body: false }", { ...original, body: false }],
  [
    "NaN and undefined inside a body",
    "return { body: [NaN, undefined, { a: undefined }] }",
    { ...original, body: [null, null, {}] }
  ],
  ["a date in a body", "return { body: new Date(0) }", { ...original, body: "1970-01-01T00:00:00.000Z" }],
  ["a body of BigInt", "return { body: { a: 1n } }", invalid],
  ["a cycle", "const a = {}; a.a = a; return { body: a }", invalid],
  ["a body of a symbol", "return { body: Symbol('x') }", invalid],
  [
    "headers of numbers and booleans",
    "return { headers: { A: 1, b: true, c: [1, 'x'], d: ['y'], e: null, f: [] } }",
    { ...original, headers: { a: "1", b: "true", c: ["1", "x"], d: "y" } }
  ],
  [
    "headers that differ in case",
    "return { headers: { 'X-A': '1', 'x-a': '2' } }",
    { ...original, headers: { "x-a": "2" } }
  ],
  ["headers of objects", "return { headers: { a: {} } }", invalid],
  ["headers that are a list", "return { headers: ['a'] }", invalid],
  ["headers that are null", "return { headers: null }", invalid],
  ["a header name with a space", "return { headers: { 'a b': 'x' } }", invalid],
  ["a header name that is empty", "return { headers: { '': 'x' } }", invalid],
  ["a header name with a colon", "return { headers: { 'a:': 'x' } }", invalid],
  ["a header value with a line break", "return { headers: { a: 'x\\ny' } }", invalid],
  ["a header value with NUL", "return { headers: { a: 'x\\0' } }", invalid],
  ["a header value beyond Latin 1", "return { headers: { a: '\\u20ac' } }", invalid],
  ["a header value of Latin 1", "return { headers: { a: '\\u00e9\\t' } }", { ...original, headers: { a: "\u00e9\t" } }],
  [
    "another query",
    "return { ...request, query: 'z=1&z=2' }",
    { ...original, query: "z=1&z=2", parsed_query: { z: ["1", "2"] } }
  ],
  ["a query with its mark", "return { query: '?z=1' }", { ...original, query: "z=1", parsed_query: { z: "1" } }],
  [
    "a query of an object",
    "return { query: { a: 'b c', d: [1, 2] } }",
    { ...original, query: "a=b+c&d=1&d=2", parsed_query: { a: "b c", d: ["1", "2"] } }
  ],
  ["a query of null", "return { query: null }", { ...original, query: "", parsed_query: {} }],
  ["a query of a number", "return { query: 5 }", invalid],
  ["a query with a line break", "return { query: 'a=\\n' }", invalid],
  [
    "a query with a space and a hash",
    "return { query: 'a=b c#d\\u00e9' }",
    { ...original, query: "a=b%20c%23d%C3%A9", parsed_query: { a: "b c#dé" } }
  ],
  [
    "another parsed query",
    "request.parsed_query.q = '9'; return request",
    { ...original, query: "q=9&r=2", parsed_query: { q: "9", r: "2" } }
  ],
  [
    "another query and another parsed query",
    "request.query = 'x=1'; request.parsed_query.q = '9'; return request",
    { ...original, query: "x=1", parsed_query: { x: "1" } }
  ],
  ["another path", "return { path: '/a b/\\u00e9' }", { ...original, path: "/a%20b/%C3%A9" }],
  ["a path without a slash", "return { path: 'a' }", invalid],
  ["a path with a query", "return { path: '/a?b' }", invalid],
  ["a path with a fragment", "return { path: '/a#b' }", invalid],
  ["a path of null", "return { path: null }", invalid],
  ["a path with a control character", "return { path: '/\\u0085' }", invalid],
  ["another method", "return { method: 'put' }", { ...original, method: "PUT" }],
  ["a method that is none", "return { method: 'TRACE' }", invalid],
  ["a method of an object", "return { method: {} }", invalid],
  ["other members", "return { ...request, evil: 1 }", original]
]

/** A code, and its error. */
export const errors: ReadonlyArray<readonly [string, object]> = [
  [
    "addHandler('transform', () => {\n  throw new RangeError('bad')\n})",
    { code: "RUNTIME_ERROR", name: "RangeError", message: "bad", line: 2 }
  ],
  ["\n\nnull.x", { code: "RUNTIME_ERROR", name: "TypeError", line: 3 }],
  ["addHandler('transform', () => { throw 'text' })", { code: "RUNTIME_ERROR", message: "text", line: null }],
  ["addHandler('transform', () => { throw undefined })", { code: "RUNTIME_ERROR", message: "undefined" }],
  [
    "class Own extends Error { name = 'Own' }\nconst f = () => {\n throw new Own('x') }\naddHandler('transform', () => f())",
    { name: "Own", line: 3 }
  ],
  ["a\nb c", { code: "SYNTAX_ERROR", name: "SyntaxError", line: 2 }],
  ["return 1", { code: "SYNTAX_ERROR", line: 1 }],
  ["await 1", { code: "SYNTAX_ERROR", line: 1 }],
  ["export const x = 1", { code: "SYNTAX_ERROR", line: 1 }],
  ["'use strict'\nwith ({}) {}", { code: "SYNTAX_ERROR", line: 2 }],
  ["'use strict'\nundeclared = 1", { code: "RUNTIME_ERROR", name: "ReferenceError", line: 2 }],
  [
    "addHandler('transform', () => { Promise.reject(new Error('late')); return {} })",
    { code: "RUNTIME_ERROR", message: "unhandled rejection: late" }
  ]
]

/** The beginning of a handler's body, and the level of its log. */
export const levels: ReadonlyArray<readonly [string, string]> = [
  ["", "info"],
  ["console.debug(1)", "debug"],
  ["console.debug(1); console.log(2)", "info"],
  ["console.info(1)", "info"],
  ["console.warn(1); console.info(1)", "warn"],
  ["console.error(1); console.warn(1)", "error"],
  ["console.debug(1); throw 1", "fatal"],
  ["return null", "fatal"]
]

/** An expression, and its value. */
export const world: ReadonlyArray<readonly [string, unknown]> = [
  ["atob(btoa('h\\u00e9'))", "hé"],
  ["(() => { try { btoa('\\u20ac') } catch (e) { return e.name } })()", "TypeError"],
  ["[...new TextEncoder().encode('h\\u00e9\\ud83d\\udca7')]", [104, 195, 169, 240, 159, 146, 167]],
  ["new TextDecoder().decode(new Uint8Array([104, 195, 169]))", "hé"],
  ["new TextDecoder('utf-16le').decode(new Uint8Array([104, 0]).buffer)", "h"],
  ["new TextDecoder().decode(new DataView(new Uint8Array([1, 104, 105, 2]).buffer, 1, 2))", "hi"],
  [
    "(() => { try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { return e.name } })()",
    "TypeError"
  ],
  ["new URL('../b?x=1#h', 'https://u:p@example.com:8443/a/c').href", "https://u:p@example.com:8443/b?x=1#h"],
  [
    "(() => { const { protocol, username, host, hostname, port, pathname, search, hash, origin } = new URL('https://u@ex.com:1/p?q#h'); return [protocol, username, host, hostname, port, pathname, search, hash, origin] })()",
    ["https:", "u", "ex.com:1", "ex.com", "1", "/p", "?q", "#h", "https://ex.com:1"]
  ],
  [
    "(() => { const u = new URL('https://ex.com/?a=1'); u.searchParams.append('b', 'c d'); u.pathname = '/x y'; return JSON.stringify({ u }) })()",
    '{"u":"https://ex.com/x%20y?a=1&b=c+d"}'
  ],
  [
    "(() => { const u = new URL('https://ex.com/?a=1'); const p = u.searchParams; u.search = '?z=9'; return [p.get('z'), p.has('a')] })()",
    ["9", false]
  ],
  ["[URL.canParse('x'), URL.canParse('x:y'), URL.parse('::')]", [false, true, null]],
  ["[...new URLSearchParams('?a=1&b=2&a=3').getAll('a')]", ["1", "3"]],
  ["new URLSearchParams({ a: 'b c', d: '\\u00e9' }).toString()", "a=b+c&d=%C3%A9"],
  ["new URLSearchParams([['a', '1'], ['a', '2']]).size", 2],
  [
    "(() => { const p = new URLSearchParams('b=1&a=2&b=3'); p.set('b', '9'); p.sort(); p.delete('zz'); return Object.fromEntries(p) })()",
    { a: "2", b: "9" }
  ],
  ["[...new URLSearchParams(new URLSearchParams('a=1')).keys()]", ["a"]],
  ["crypto.hash('sha256', 'x')", "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"],
  ["crypto.hash('md5', new Uint8Array([120]))", "9dd4e461268c8034f5c8564e155c67a6"],
  ["crypto.hmac('sha256', 'k', 'd', 'base64')", createHmac("sha256", "k").update("d").digest("base64")],
  [
    "crypto.hmac('SHA-512', new Uint8Array([0, 255]), '\\u00e9', 'base64url')",
    createHmac("sha512", Buffer.from([0, 255]))
      .update("é")
      .digest("base64url")
  ],
  [
    "[crypto.timingSafeEqual('a', 'a'), crypto.timingSafeEqual('a', 'ab'), crypto.timingSafeEqual('a', new Uint8Array([97]))]",
    [true, false, true]
  ],
  ["/^[0-9a-f]{8}-[0-9a-f]{4}-4/.test(crypto.randomUUID()) && crypto.randomUUID() !== crypto.randomUUID()", true],
  ["new Date(2026, 0, 1).toISOString()", "2026-01-01T00:00:00.000Z"],
  ["new Intl.NumberFormat('de').format(1234.5)", "1.234,5"],
  ["(() => {}) instanceof Function", true],
  ["Math.abs(Date.now() - Date.parse(new Date().toISOString())) < 1000", true]
]
