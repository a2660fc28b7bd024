import type { Hostile } from "./Hostile.ts"

const contained = ["MEMORY_LIMIT", "TIMEOUT", "RUNTIME_ERROR"] as const

/** Code that means to take all memory. */
export const memory: ReadonlyArray<Hostile> = [
  { name: "arrays of arrays", handler: "const a = []; for (;;) a.push(new Array(1000).fill(1))", ends: contained },
  { name: "arrays of objects", handler: "const a = []; for (;;) a.push({ x: [] })", ends: contained },
  { name: "one array of half a billion", handler: "new Array(5e8).fill(1)", ends: contained },
  { name: "an array by its length", handler: "const a = [1.5]; a.length = 3e8; a.fill(1.5)", ends: contained },
  {
    name: "Array.from of a length",
    handler: "return { body: Array.from({ length: 1e9 }, (_, i) => i) }",
    ends: contained
  },
  {
    name: "an array that spreads itself",
    handler: "let a = [1, 2, 3, 4]; for (;;) a = [...a, ...a]",
    ends: contained
  },
  { name: "concat on concat", handler: "let a = [0]; for (;;) a = a.concat(a)", ends: contained },
  { name: "a string that doubles", handler: "let s = 'xy'; for (;;) s += s", ends: contained },
  {
    name: "a string that doubles and is flattened",
    handler: "let s = 'xy'; for (;;) { s += s; s.charCodeAt(s.length - 1); /z/.test(s) }",
    ends: contained
  },
  { name: "strings in a list", handler: "const a = []; for (;;) a.push('x'.repeat(1e6) + a.length)", ends: contained },
  {
    name: "a repeat of half a gigabyte",
    handler: "return { body: 'x'.repeat(5e8) }",
    ends: [...contained, "OUTPUT_TOO_LARGE"]
  },
  {
    name: "a replacement that multiplies",
    handler: "return { body: 'x'.repeat(3e7).replace(/x/g, 'yyyyyyyyyyyyyyyy') }",
    ends: [...contained, "OUTPUT_TOO_LARGE"]
  },
  {
    name: "a split of a huge string",
    handler: "return { body: 'x,'.repeat(2e7).split(',') }",
    ends: [...contained, "OUTPUT_TOO_LARGE"]
  },
  { name: "padding", handler: "const a = []; for (;;) a.push('x'.padEnd(1e7, String(a.length)))", ends: contained },
  { name: "one typed array of two gigabytes", handler: "return { body: new Uint8Array(2e9).length }", ends: contained },
  {
    name: "typed arrays in a list",
    handler: "const a = []; for (;;) a.push(new Float64Array(1e5).fill(a.length))",
    ends: contained
  },
  {
    name: "a buffer that grows",
    handler: "const b = new ArrayBuffer(1, { maxByteLength: 2 ** 30 }); b.resize(2 ** 30); new Uint8Array(b).fill(1)",
    ends: contained
  },
  { name: "a Map", handler: "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })", ends: contained },
  {
    name: "a Set of strings",
    handler: "const s = new Set(); for (let i = 0; ; i++) s.add('value ' + i)",
    ends: contained
  },
  {
    name: "a WeakMap that holds on",
    handler: "const keys = [], m = new WeakMap(); for (;;) { const k = {}; keys.push(k); m.set(k, [k]) }",
    ends: contained
  },
  {
    name: "closures that hold on to each other",
    handler:
      "let f = () => 0; for (;;) { const g = f; const held = new Array(100).fill(g); f = () => held.length + g() }",
    ends: contained
  },
  {
    name: "properties of one object",
    handler: "const o = {}; for (let i = 0; ; i++) o['key' + i] = i",
    ends: contained
  },
  { name: "a sparse object", handler: "const o = []; for (let i = 0; ; i += 1e4) o[i % 4e9] = {}", ends: contained },
  { name: "symbols", handler: "const a = []; for (let i = 0; ; i++) a.push(Symbol.for('s' + i))", ends: contained },
  {
    name: "a JSON bomb",
    handler: "return { body: JSON.parse('[' + '[1,2,3],'.repeat(5e6) + '0]') }",
    ends: [...contained, "OUTPUT_TOO_LARGE", "INVALID_OUTPUT"]
  },
  {
    name: "a deep JSON bomb",
    handler: "return { body: JSON.parse('['.repeat(2e6) + ']'.repeat(2e6)) }",
    ends: [...contained, "INVALID_OUTPUT"]
  },
  {
    name: "the billion laughs",
    handler: "let a = ['lol']; for (let i = 0; i < 30; i++) a = [a, a, a, a]; return { body: a }",
    ends: [...contained, "OUTPUT_TOO_LARGE", "INVALID_OUTPUT"]
  },
  {
    name: "promises in a list",
    handler: "const a = []; for (;;) a.push(Promise.resolve(a.length).then((x) => [x]))",
    ends: contained
  },
  {
    name: "a generator for each number",
    handler: "const a = []; for (;;) { const g = (function* () { yield a })(); g.next(); a.push(g) }",
    ends: contained
  },
  { name: "big integers", handler: "const a = []; for (;;) a.push(2n ** 1000000n)", ends: contained },
  {
    name: "a toString that grows",
    handler: "const o = { s: 'x', toString() { return this.s += this.s } }; for (;;) `${o}`",
    ends: contained
  },
  {
    name: "errors with deep stacks",
    handler:
      "Error.stackTraceLimit = Infinity; const a = []; const f = (n) => n ? f(n - 1) : a.push(new Error('x').stack); for (;;) f(2000)",
    ends: contained
  },
  {
    name: "regular expressions",
    handler:
      "const a = []; for (let i = 0; ; i++) { const r = new RegExp('(?:a|b){1,50}' + i); r.test('abab'); a.push(r) }",
    ends: contained
  },
  {
    name: "base64 of much, again and again",
    handler: "let s = 'x'.repeat(1e7); const a = []; for (;;) a.push(btoa(s))",
    ends: contained
  },
  {
    name: "formatters, whose memory is not the heap's",
    handler: "const a = []; for (;;) a.push(new Intl.DateTimeFormat('ar', { dateStyle: 'full', timeStyle: 'full' }))",
    ends: contained
  }
]
