import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { handler } from "../openSandbox.ts"
import { errors, levels, returns, world } from "../semantics.ts"

const root = join(import.meta.dirname, "../../../..")

const isEndless = (text: string): boolean => /for \(;;\)|while \(true\)|new Array\(|\$\{/.test(text)

/** The bodies of handlers that stand in suites as texts without parts that are filled in. */
const written = globSync(["packages/sandbox/test/Semantics.test.ts", "test/contract/*.ts"], { cwd: root }).flatMap(
  (path) =>
    [
      ...readFileSync(join(root, path), "utf8").matchAll(/\bhandler\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1\s*\)/gs)
    ].flatMap(([, , text = ""]) =>
      isEndless(text) ? [] : [text.replaceAll("\\n", "\n").replaceAll(/\\(["'`\\])/g, "$1")]
    )
)

/** Every transformation of the suites that means no harm. */
export const transformations: ReadonlyArray<string> = [
  ...new Set([
    ...returns.map(([, body]) => handler(body)),
    ...errors.map(([code]) => code),
    ...levels.map(([line]) => handler(`${line};return request`)),
    ...world.map(([expression]) => handler(`return { body: ${expression} }`)),
    ...written.map(handler)
  ])
]

const body = (expression: string): string => handler(`return { body: ${expression} }`)

/** What differs from call to call by itself, and is the same in both worlds when it is given the same. */
export const changing: Readonly<Record<string, string>> = {
  "the time": body("[Date.now(), new Date(), Date(), new Date().getTime(), +new Date]"),
  "the time of a subclass": body(
    "(() => { class Own extends Date {} return [new Own(), new Own() instanceof Date, new Own().constructor === Own] })()"
  ),
  "a wait": handler("const end = Date.now() + 5; let n = 0; while (Date.now() < end) n++; return { body: n }"),
  "random numbers": body("Array.from({ length: 100 }, Math.random)"),
  ids: body("[crypto.randomUUID(), crypto.randomUUID()]"),
  "all of them in the log": handler("console.log(Math.random(), new Date(), crypto.randomUUID()); return request"),
  "an error that chance decides": handler(
    "if (Math.random() < 0.5) throw new Error(String(Date.now())); return request"
  ),
  "chance before the handler": `const id = crypto.randomUUID(), at = Date.now();${body("[id, at]")}`
}

/** What cannot be given the same. It may come out equal by chance, and never counts against the code. */
export const noisy: Readonly<Record<string, string>> = {
  "what Intl takes for now": body("new Intl.DateTimeFormat('en', { fractionalSecondDigits: 3 }).format()"),
  "Temporal.Now": body("String(Temporal.Now.instant())")
}

/** What people write that runs in a reused isolate as in a fresh context. */
export const ordinary: Readonly<Record<string, string>> = {
  "globals of its own": handler(
    "globalThis.total = 1; other = 2; return { body: [total, other, globalThis.other, typeof none] }"
  ),
  "a script's this": `this.kept = 1; ${body("[kept, globalThis.kept]")}`,
  "errors of its own": handler(
    "class Own extends Error { constructor(m) { super(m); this.name = 'Own'; this.message = m + '!' } } throw new Own('x')"
  ),
  "old errors of its own": handler(
    "function Own(m) { this.message = m; this.name = 'Own' } Own.prototype = Object.create(Error.prototype); Own.prototype.constructor = Own; Own.prototype.toString = () => 'own'; throw new Own('x')"
  ),
  "old inheritance": body(
    "(() => { function A() {} A.prototype.constructor = A; A.prototype.valueOf = () => 7; function B() {} B.prototype = Object.create(A.prototype); B.prototype.constructor = B; B.prototype.toString = () => 'b'; return [+new B(), String(new B())] })()"
  ),
  "members that everything has": body(
    "(() => { const o = {}; o.toString = () => 'o'; o.constructor = 1; o.hasOwnProperty = 2; o.valueOf = 3; return [Object.keys(o), { ...o }.constructor] })()"
  ),
  "members of functions": body(
    "(() => { function f() {} f.bind = 1; f.call = 2; f.toString = () => 'f'; return [f.bind, f.call, `${f}`] })()"
  ),
  "maps and sets with members": body(
    "(() => { class M extends Map { get(k) { return super.get(k) ?? 0 } } const m = new M(); m.has = () => 1; m.set('a', 2); return [m.get('a'), m.get('b'), m.has('x')] })()"
  ),
  "subclasses of arrays": body(
    "(() => { class L extends Array { sum() { return this.reduce((a, b) => a + b, 0) } } return [L.from([1, 2]).map((n) => n * 2).sum()] })()"
  ),
  "getters, setters, symbols": body(
    "(() => { const o = { get a() { return 1 }, set a(v) {}, [Symbol.toPrimitive]: () => 5 }; o.a = 2; return [o.a, +o] })()"
  ),
  "generators and iterators": body(
    "[...(function* () { yield* [1, 2] })()].concat(Array.from(new Set([3]).values().map((n) => n + 1)))"
  ),
  "regular expressions": body(
    "['a-b'.replace(/(\\w)-(\\w)/, '$2-$1'), 'xay'.match(/(?<m>a)/).groups, [...'aXbX'.matchAll(/X/g)].length, 'a,b'.split(/,/)]"
  ),
  "private members": body(
    "(() => { class P { #n = 1; static #s = 2; add() { return this.#n++ + P.#s } } const p = new P(); p.add(); return p.add() })()"
  ),
  proxies: body("JSON.stringify(new Proxy({ a: 1 }, { get: (o, k) => o[k] ?? k }))"),
  dates: body(
    "[new Date(0).toISOString(), Date.UTC(2026, 1), Date.parse('2026-01-01'), new Date(2026, 0).getMonth(), new Date('x').getTime(), Date.length, Date.name, typeof Date.prototype.constructor.now]"
  ),
  formats: body(
    "[new Intl.NumberFormat('de').format(1.5), (1234.5).toLocaleString('en'), new Date(0).toLocaleDateString('en', { timeZone: 'UTC' })]"
  ),
  "a stack": body("new Error('x').stack.split('\\n').length"),
  "a stack in the log": handler("try { null.x } catch (error) { console.error(error.stack) } return request"),
  "functions as texts": body(
    "[String(() => 1), String(Math.max), String(Object), Function.prototype.toString.call(Map)]"
  ),
  "a module that finds its world": `(function (root, make) { typeof exports === "object" ? (module.exports = make()) : typeof define === "function" ? define(make) : (root.tool = make()) })(this, function () { "use strict"; return { twice: (n) => n * 2 } });${body("tool.twice(21)")}`,
  "promises that are kept in time": handler("Promise.resolve(1).then(() => console.log('later')); return request"),
  "names of globals as variables": `const console = { log() {} }; var process = 1; function addHandlerToo() {} ${body("[typeof console.log, process]")}`
}

/** What a reused isolate does not accept, with what it reports. */
export const unsuited: Readonly<Record<string, readonly [code: string, reason: RegExp]>> = {
  "a polyfill": [
    `Array.prototype.last = function () { return this.at(-1) };${body("[1, 2].last()")}`,
    /RUNTIME_ERROR \(TypeError: Cannot add property last/
  ],
  "a polyfill in a try": [
    `try { Array.prototype.last = function () { return this.at(-1) } } catch {};${body("typeof [].last")}`,
    /what it returns/
  ],
  "another now": [`Date.now = () => 5;${body("Date.now()")}`, /Cannot assign to read only property 'now'/],
  "another global": [
    `JSON = { stringify: () => 'mine' };${body("JSON.stringify(1)")}`,
    /Cannot assign to read only property 'JSON'/
  ],
  "a method of arrays": [`[].__proto__.map = () => 'mine';${body("[1].map(String)")}`, /Cannot assign to read only/],
  "a member of an array that arrays have": [
    body("(() => { const a = []; a.map = 1; return a.map })()"),
    /Cannot assign to read only/
  ],
  "what was matched last": [body("(/(b)/.exec('abc'), RegExp.$1)"), /RegExp\.\$1 is not there/],
  "what was matched last, in a try": [
    body("(() => { try { return /(b)/.exec('abc') && RegExp.$1 } catch { return '' } })()"),
    /what it returns/
  ],
  with: [`with ({ n: 1 }) { ${body("n")} }`, /does not compile in strict mode: .*with/],
  "an octal number": [body("010"), /does not compile in strict mode/],
  "a variable that is deleted": [`var n; delete n;${body("n")}`, /does not compile in strict mode/],
  "this in plain functions": [body("(function () { return typeof this })()"), /what it returns/],
  "arguments that follow": [body("(function (n) { arguments[0] = 2; return n })(1)"), /what it returns/],
  callee: [body("(function (n) { return n ? n + arguments.callee(n - 1) : 0 })(3)"), /RUNTIME_ERROR/],
  "what is logged": [
    `try { Object.prototype.x = 1 } catch { console.log('no') };${handler("return request")}`,
    /what it logs/
  ],
  "frozen or not": [body("Object.isFrozen(Array.prototype)"), /what it returns/],
  "keys of the global object": [body("(globalThis.mine = 1, Object.keys(globalThis))"), /what it returns/],
  "a definition on the global object": [
    `Object.defineProperty(globalThis, 'mine', { get: () => 3 });${body("mine")}`,
    /RUNTIME_ERROR/
  ]
}
