import type { Hostile } from "./Hostile.ts"

/** Code that changes the world it runs in, or returns what is not what it seems. */
export const prototypes: ReadonlyArray<Hostile> = [
  {
    name: "a polluted Object.prototype",
    handler: "Object.prototype.headers = { polluted: 'yes' }; Object.prototype.leak = 1; return { body: 1 }",
    ends: ["ok"]
  },
  {
    name: "a polluted Array.prototype",
    handler:
      "Array.prototype.push = () => { throw 1 }; Array.prototype[Symbol.iterator] = () => { throw 2 }; Array.prototype[0] = 'x'; console.log('a', 'b'); return { body: [1] }",
    ends: ["ok"],
    body: [1]
  },
  {
    name: "setters where arrays put their items",
    handler:
      "let seen = 0; for (let i = 0; i < 8; i++) Object.defineProperty(Array.prototype, i, { set() { seen++ }, get() { return 'evil' } }); return { body: { seen } }",
    ends: ["ok"],
    body: { seen: 0 }
  },
  {
    name: "a replaced Promise",
    handler: "globalThis.Promise = function () { throw 1 }; Object.prototype.then = 1; return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "a then on every object",
    handler: "Object.prototype.then = function (resolve) { resolve({ body: 'evil' }) }; return { body: 1 }",
    ends: ["ASYNC_NOT_SUPPORTED"]
  },
  {
    name: "a replaced JSON",
    handler:
      "JSON.stringify = () => '}{'; JSON.parse = () => null; globalThis.JSON = null; globalThis.String = null; return { body: { fine: true } }",
    ends: ["ok"],
    body: { fine: true }
  },
  {
    name: "a toJSON on every object",
    handler: "Object.prototype.toJSON = () => 'evil'; return { body: { a: 1 } }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a toJSON that returns something else each time",
    handler: "let n = 0; return { headers: { toJSON() { return n++ ? { a: 'b' } : 7 } }, body: 1 }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a Reflect that applies something else",
    handler:
      "Reflect.apply = () => { throw 1 }; Reflect.defineProperty = () => { throw 1 }; Function.prototype.call = Function.prototype.apply = () => 'evil'; return { body: 2 }",
    ends: ["ok"],
    body: 2
  },
  {
    name: "a getter that throws",
    handler: "return { get headers() { throw new Error('no') } }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a getter with two faces",
    handler: "let n = 0; return { body: { get a() { return n++ ? (() => {}) : 1 } } }",
    ends: ["ok"],
    body: { a: 1 }
  },
  {
    name: "a Proxy as the result",
    handler:
      "return new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : key === 'body' ? 'proxied' : undefined) })",
    ends: ["ok"],
    body: "proxied"
  },
  {
    name: "a Proxy that throws whatever is done to it",
    handler:
      "const no = () => { throw new Error('no') }; return new Proxy({}, { get: no, has: no, ownKeys: no, getPrototypeOf: no })",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "a Proxy with endless keys",
    handler:
      "return { body: new Proxy({}, { ownKeys: () => Array.from({ length: 3e6 }, (_, i) => 'k' + i), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }) }) }",
    ends: ["TIMEOUT", "MEMORY_LIMIT", "OUTPUT_TOO_LARGE", "INVALID_OUTPUT"]
  },
  {
    name: "a revoked Proxy",
    handler: "const p = Proxy.revocable({}, {}); p.revoke(); return p.proxy",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "Symbol.toPrimitive on a header",
    handler: "return { headers: { a: { [Symbol.toPrimitive]: () => 'x\\r\\nevil: 1' } } }",
    ends: ["INVALID_OUTPUT"]
  },
  {
    name: "Symbol.species and a constructor of its own",
    handler:
      "class Evil extends Array { static get [Symbol.species]() { return function () { return { length: 0, set length(v) { throw 1 } } } } }; const a = Evil.from([1, 2]); try { a.map((x) => x) } catch {}; return { body: Array.from(a) }",
    ends: ["ok"],
    body: [1, 2]
  },
  {
    name: "a hostile name, message and stack",
    handler: "throw { name: { toString() { throw 1 } }, message: Symbol('x'), get stack() { throw 2 } }",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "a thrown Proxy",
    handler: "throw new Proxy(new Error('x'), { get() { throw new Error('y') }, getPrototypeOf() { throw 1 } })",
    ends: ["RUNTIME_ERROR"]
  },
  { name: "a thrown null", handler: "throw null", ends: ["RUNTIME_ERROR"] },
  {
    name: "a thrown function",
    handler: "throw Object.assign(() => {}, { message: 'x'.repeat(1e6) })",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "a message of twenty million characters",
    handler: "throw new Error('x'.repeat(2e7))",
    ends: ["RUNTIME_ERROR", "MEMORY_LIMIT"]
  },
  {
    name: "a forged line",
    handler: "const e = new Error('x'); e.stack = 'transformation.js:999999999999:1'; throw e",
    ends: ["RUNTIME_ERROR"]
  },
  {
    name: "frozen built-ins",
    handler:
      "for (const key of Object.getOwnPropertyNames(globalThis)) { try { Object.freeze(globalThis[key]); Object.freeze(globalThis[key].prototype) } catch {} } Object.freeze(globalThis); return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "all globals deleted",
    handler:
      "const all = globalThis; for (const key of Object.getOwnPropertyNames(all)) delete all[key]; return { body: 1 }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "a state left for the next call",
    handler:
      "globalThis.leak = (globalThis.leak ?? 0) + 1; Object.prototype.leak = 1; Symbol.for('leak'); request.constructor.leak = 1; return { body: globalThis.leak }",
    ends: ["ok"],
    body: 1
  },
  {
    name: "a state left in what is shared by functions",
    handler:
      "addHandler.leak = (addHandler.leak ?? 0) + 1; console.log.leak = (console.log.leak ?? 0) + 1; crypto.hash.leak = 1; URL.leak = 1; return { body: [addHandler.leak, console.log.leak] }",
    ends: ["ok"],
    body: [1, 1]
  }
]
