import type { Hostile } from "./Hostile.ts"

/** Code that looks for a way out. Its handlers return what they found. */
export const escapes: ReadonlyArray<Hostile> = [
  { name: "eval", handler: "return { body: eval('1 + 1') }", ends: ["RUNTIME_ERROR"] },
  { name: "indirect eval", handler: "return { body: (0, globalThis.eval)('1 + 1') }", ends: ["RUNTIME_ERROR"] },
  { name: "Function", handler: "return { body: new Function('return 1')() }", ends: ["RUNTIME_ERROR"] },
  {
    name: "constructor.constructor",
    handler: "return { body: request.constructor.constructor('return typeof process.exit')() }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "the constructor of a host function",
    handler: "return { body: crypto.hash.constructor('return this')() }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "the constructor of async functions",
    handler: "return { body: (async () => {}).constructor('return 1')() }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "the constructor of generators",
    handler: "return { body: (function* () {}).constructor('yield 1')().next() }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "the constructor of async generators",
    handler: "return { body: (async function* () {}).constructor('yield 1')() }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "Reflect.construct of Function",
    handler: "return { body: Reflect.construct(Object.getPrototypeOf(() => {}).constructor, ['return 1'])() }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "the constructor of a class's heritage",
    handler:
      "class A extends (Object.getPrototypeOf(class {}).constructor) { constructor() { return super('return 1') } }; return { body: new A()() }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "call sites of the stack",
    handler:
      "Error.prepareStackTrace = (_, sites) => sites.map((s) => [typeof s.getThis(), typeof s.getFunction(), String(s.getFileName())]); const sites = new Error().stack; return { body: sites.some((s) => s[2].includes('/') || (s[2] === 'guest.js' && s[1] !== 'undefined')) }",
    ends: ["ok"],
    body: false
  },
  {
    name: "the caller of the handler",
    code: 'addHandler("transform", function () { let c; try { c = arguments.callee.caller } catch {} return { body: c === null || c === undefined } })',
    ends: ["ok"],
    body: true,
    probe: false
  },
  {
    name: "the caller of a getter that the host reads",
    code: 'addHandler("transform", function () { let seen = "none"; return { get headers() { try { (function f() { seen = String(f.caller) })() } catch (e) { seen = "threw" } return undefined }, get body() { return /ask|parse/.test(seen) } } })',
    ends: ["ok"],
    body: false,
    probe: false
  },
  {
    name: "import()",
    handler: "import('node:fs').then((fs) => { globalThis.leak = fs }, () => {}); return { body: typeof leak }",
    ends: ["ok"],
    body: "undefined"
  },
  { name: "import.meta", code: "import.meta.url", ends: ["SYNTAX_ERROR"], probe: false },
  { name: "a static import", code: 'import fs from "node:fs"', ends: ["SYNTAX_ERROR"], probe: false },
  {
    name: "stepping out of the wrapper",
    code: "}); throw new Error('outside'); (function () {",
    ends: ["SYNTAX_ERROR"],
    probe: false
  },
  {
    name: "stepping out of the wrapper by a comment",
    code: "}) /*",
    ends: ["SYNTAX_ERROR"],
    probe: false
  },
  {
    name: "names of Node",
    handler:
      "return { body: [typeof require, typeof module, typeof exports, typeof Buffer, typeof global, typeof __dirname, typeof setTimeout, typeof queueMicrotask, typeof fetch, typeof structuredClone].join() }",
    ends: ["ok"],
    body: Array.from({ length: 10 }, () => "undefined").join()
  },
  {
    name: "process",
    handler:
      "return { body: [Object.keys(process), process.env.PATH === undefined, typeof process.binding, typeof process.mainModule] }",
    ends: ["ok"],
    body: [["env"], true, "undefined", "undefined"]
  },
  {
    name: "references of the engine",
    handler:
      "return { body: Object.getOwnPropertyNames(globalThis).filter((name) => /ivm|isolate|Reference$|callback|external|ask|guest/i.test(name)) }",
    ends: ["ok"],
    body: []
  },
  { name: "WebAssembly", handler: "return { body: typeof WebAssembly }", ends: ["ok"], body: "undefined" },
  {
    name: "shared memory",
    handler: "return { body: [typeof SharedArrayBuffer, typeof Atomics] }",
    ends: ["ok"],
    body: ["undefined", "undefined"]
  },
  {
    name: "Atomics.wait",
    handler: "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "work after the call",
    handler: "new FinalizationRegistry(() => { for (;;); }).register({}, 1)",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "console's insides",
    handler:
      "const c = console.log.constructor; return { body: [console.log.toString().includes('native'), typeof c.prototype.constructor('return 1')] }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "an object where the host wants text",
    handler:
      "const bad = { toString() { return { } } }; try { crypto.hash('sha256', bad) } catch (e) { return { body: e instanceof TypeError } }",
    ends: ["ok"],
    body: true
  },
  {
    name: "an error of the host",
    handler:
      "try { new URL('::') } catch (e) { return { body: [e instanceof TypeError, /node:|\\/|Users/.test(String(e.stack).replace(/transformation.js|guest.js/g, ''))] } }",
    ends: ["ok"],
    body: [true, false]
  },
  {
    name: "an error's constructor from the host",
    handler: "try { new URL('::') } catch (e) { return { body: e.constructor.constructor('return 1')() } }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "operations that the host does not have",
    handler: "return { body: typeof crypto.hmac.call.call }",
    ends: ["ok"],
    body: "function"
  },
  { name: "a hash that is none", handler: "return { body: crypto.hash('__proto__', 'x') }", ends: ["RUNTIME_ERROR"] },
  {
    name: "an encoding that is none",
    handler: "return { body: crypto.hash('sha256', 'x', 'constructor') }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "with and a Proxy",
    code: 'with (new Proxy({}, { has: () => true, get: (_, k) => (k === Symbol.unscopables ? undefined : () => { throw new Error("caught " + String(k)) }) })) { addHandler("transform", () => 1) }',
    ends: ["RUNTIME_ERROR"],
    probe: false
  },
  {
    name: "Annex B comments",
    code: "<!-- \n--> x\naddHandler('transform', () => ({ body: 1 }))",
    ends: ["ok"],
    body: 1,
    probe: false
  }
]
