/** What one call may try to leave for the next, and how that looks for it. `code` stands around both, as in any transformation. */
export interface Leftover {
  readonly name: string
  readonly code?: string
  readonly leave: string
  readonly look: string
  /** It is stopped, not waited for. */
  readonly isEndless?: true
}

const statics = [
  "$1",
  "$9",
  "input",
  "$_",
  "lastMatch",
  "$&",
  "lastParen",
  "$+",
  "leftContext",
  "$`",
  "rightContext",
  "$'"
]
const intrinsics = `Object Function Array String Number Boolean Symbol BigInt Date RegExp Promise Map Set WeakMap
  WeakSet ArrayBuffer DataView Uint8Array Float64Array Error TypeError AggregateError Proxy Reflect
  JSON Math Intl Iterator Temporal DisposableStack URL URLSearchParams TextEncoder TextDecoder crypto
  atob btoa parseInt encodeURIComponent isNaN globalThis eval escape`.split(/\s+/)
const perCall = [
  "console",
  "console.log",
  "console.error",
  "process",
  "process.env",
  "addHandler",
  "request",
  "context",
  "context.env"
]
/** Ways of ending otherwise than by an outcome; what comes before them must not be found afterwards. */
const endings = {
  "a loop": "for (;;);",
  "a loop that catches": "for (;;) { try { for (;;); } catch {} finally { continue } }",
  "a loop of microtasks": "const again = () => Promise.resolve().then(again); again(); return request",
  "an async loop": "(async () => { for (;;) await null })(); return request",
  "a getter without end": "return { get body() { for (;;); } }",
  "a rejection": "Promise.reject(new Error('left')); return request",
  "a rejection in a microtask": "Promise.resolve().then(() => { throw new Error('left') }); return request"
}
const before = {
  "a global": "globalThis.left = 1;",
  "an undeclared variable": "left = 1;",
  "a microtask that logs": "Promise.resolve().then(() => console.log('left'));",
  "a chain of microtasks that log":
    "let n = 0; const go = () => { if (n++ < 1000) { console.log('left'); Promise.resolve().then(go) } }; go();",
  "a finally that logs": "try { Promise.resolve().then(() => { globalThis.left = 1 }) } finally { console.log('left') }"
}

const found = "return [typeof left, 'left' in globalThis, globalThis.left === undefined]"

export const leftovers: ReadonlyArray<Leftover> = [
  ...statics.map((name) => ({
    name: `RegExp[${name}]`,
    leave: "'left'.match(/(l)(e)(f)(t)/)",
    look: `try { return String(RegExp[${JSON.stringify(name)}]) } catch (error) { return error.name }`
  })),
  ...intrinsics.flatMap((name): ReadonlyArray<Leftover> => [
    {
      name: `a member of ${name}`,
      leave: `${name}.left = 1`,
      look: `return [typeof ${name}.left, Object.isFrozen(${name})]`
    },
    {
      name: `a prototype's member of ${name}`,
      leave: `(${name}.prototype ?? Object.getPrototypeOf(${name})).left = 1`,
      look: `return [typeof (${name}.prototype ?? Object.getPrototypeOf(${name})).left, typeof ${name}.left]`
    },
    {
      name: `another ${name}`,
      leave: `globalThis.${name} = 1`,
      look: `return [typeof ${name}, typeof globalThis.${name}]`
    },
    {
      name: `another ${name}, undeclared`,
      leave: `${name} = 1`,
      look: `return [typeof ${name}, typeof globalThis.${name}]`
    },
    { name: `no ${name}`, leave: `delete globalThis.${name}`, look: `return [typeof ${name}, "${name}" in globalThis]` }
  ]),
  ...perCall.flatMap((name): ReadonlyArray<Leftover> => [
    { name: `a member of ${name}`, leave: `${name}.left = 1`, look: `return typeof ${name}.left` },
    {
      name: `a prototype of ${name}`,
      leave: `Object.setPrototypeOf(${name}, { left: 1 })`,
      look: `return typeof ${name}.left`
    },
    { name: `frozen: ${name}`, leave: `Object.freeze(${name})`, look: `return Object.isFrozen(${name})` }
  ]),
  ...Object.entries(before).flatMap(([what, first]) =>
    Object.entries(endings).map(([how, then]) => ({
      name: `${what}, then ${how}`,
      leave: `${first} ${then}`,
      look: found,
      isEndless: true as const
    }))
  ),
  ...Object.entries(before).map(([what, leave]) => ({ name: what, leave, look: found })),
  {
    name: "a variable of the code",
    code: "let left = 0; var other = 0; class Kept { static left = 0 }",
    leave: "left++; other++; Kept.left++",
    look: "return [left, other, Kept.left]"
  },
  {
    name: "a handler",
    leave: "addHandler('transform', () => ({ body: 'left' }))",
    look: "return 1"
  },
  {
    name: "an env variable",
    leave: "process.env.NAME = 'left'; context.env.NAME = 'left'",
    look: "return [process.env, context.env]"
  },
  {
    name: "a console of its own",
    leave: "console.log = () => {}; globalThis.console = null",
    look: "console.log('heard'); return typeof console.log"
  },
  {
    name: "a Symbol.for",
    leave: "globalThis[Symbol.for('left')] = 1",
    look: "return typeof globalThis[Symbol.for('left')]"
  },
  {
    name: "a global symbol on Object.prototype",
    leave: "Object.prototype[Symbol.for('left')] = 1",
    look: "return typeof ({})[Symbol.for('left')]"
  },
  {
    name: "a member of a template's strings",
    code: "const tag = (strings) => strings; const strings = () => tag`ab`",
    leave:
      "const s = strings(); try { s.left = 1 } catch {} try { s.raw.left = 1 } catch {} try { s.push(1) } catch {}",
    look: "return [strings().left, strings().raw.left, strings().length]"
  },
  {
    name: "a private field on what is shared",
    code: "class Stamp extends (function (o) { return o }) { #left = 1; static has(o) { return #left in o } }",
    leave:
      "for (const o of [Object.prototype, Array.prototype, globalThis, Math, JSON, Map]) { try { new Stamp(o) } catch {} }",
    look: "return [Object.prototype, Array.prototype, globalThis, Math, JSON, Map].map((o) => Stamp.has(o))"
  },
  {
    name: "a WeakMap's entry of what is shared",
    code: "const known = new WeakMap()",
    leave: "for (const o of [Object.prototype, Array, globalThis]) known.set(o, 1)",
    look: "return [Object.prototype, Array, globalThis].map((o) => known.has(o))"
  },
  {
    name: "the position of a regular expression",
    code: "const sticky = /a/g",
    leave: "sticky.lastIndex = 5",
    look: "return sticky.lastIndex"
  },
  {
    name: "the position of a literal",
    code: "const made = () => /a/g",
    leave: "made().lastIndex = 5",
    look: "return made().lastIndex"
  },
  {
    name: "a generator's place",
    code: "const steps = (function* () { yield 1; yield 2 })()",
    leave: "steps.next()",
    look: "return steps.next().value"
  },
  {
    name: "a function's member",
    code: "function kept() {}",
    leave: "kept.left = 1; kept.prototype.left = 1",
    look: "return [typeof kept.left, typeof kept.prototype.left]"
  },
  {
    name: "a class's static",
    code: "class Kept { static #n = 0; static next() { return Kept.#n++ } }",
    leave: "Kept.next(); Kept.left = 1",
    look: "return [Kept.next(), typeof Kept.left]"
  },
  {
    name: "a literal's member",
    code: "const made = () => ({ list: [] })",
    leave: "made().list.push(1); made().left = 1",
    look: "return [made().list, typeof made().left]"
  },
  { name: "a stack trace limit", leave: "Error.stackTraceLimit = 1", look: "return Error.stackTraceLimit" },
  {
    name: "a stack trace preparer",
    leave: "Error.prepareStackTrace = () => 'left'",
    look: "return typeof Error.prepareStackTrace"
  },
  { name: "a getter on the global object", leave: "globalThis.__defineGetter__('left', () => 1)", look: found },
  {
    name: "a getter behind the global object",
    leave: "Object.getPrototypeOf(globalThis).__defineGetter__('left', () => 1)",
    look: found
  },
  { name: "a member behind the global object", leave: "Object.getPrototypeOf(globalThis).left = 1", look: found },
  {
    name: "a definition behind the global object",
    leave: "Reflect.defineProperty(Object.getPrototypeOf(globalThis), 'left', { value: 1, configurable: true })",
    look: found
  },
  {
    name: "a fixed definition behind the global object",
    leave: "Reflect.defineProperty(Object.getPrototypeOf(globalThis), 'left', { value: 1 })",
    look: found
  },
  {
    name: "another prototype behind the global object",
    leave: "Reflect.setPrototypeOf(Object.getPrototypeOf(globalThis), { left: 1 })",
    look: found
  },
  {
    name: "another prototype of the global object",
    leave: "Reflect.setPrototypeOf(globalThis, { left: 1 })",
    look: found
  },
  {
    name: "what is behind the global object, closed",
    leave: "Object.preventExtensions(Object.getPrototypeOf(globalThis))",
    look: "globalThis.mine = 1; return mine"
  },
  {
    name: "a heir of the global object",
    leave: "const heir = Object.create(globalThis); heir.left = 1; heir.console = 1",
    look: `${found.slice(0, -1)}, typeof console.log]`
  },
  {
    name: "a reset by what is behind the global object",
    leave: "const p = Object.getPrototypeOf(globalThis); for (const k of Reflect.ownKeys(p)) delete p[k]",
    look: "return [typeof console, typeof process, typeof addHandler]"
  },
  {
    name: "a language of Intl",
    leave: "Intl.DateTimeFormat = class { format() { return 'left' } }",
    look: "return new Intl.DateTimeFormat('en', { timeZone: 'UTC' }).format(0)"
  },
  {
    name: "a member of a format's prototype",
    leave: "Intl.NumberFormat.prototype.format = () => 'left'",
    look: "return new Intl.NumberFormat('de').format(1234.5)"
  },
  {
    name: "a then on every object",
    leave: "Object.prototype.then = (resolve) => resolve(1)",
    look: "return typeof ({}).then"
  },
  { name: "a toJSON on every object", leave: "Object.prototype.toJSON = () => 'left'", look: "return { a: 1 }" },
  {
    name: "an iterator of arrays",
    leave: "Array.prototype[Symbol.iterator] = function* () { yield 'left' }",
    look: "return [...[1, 2]]"
  },
  {
    name: "a next of iterators",
    leave: "Object.getPrototypeOf([].values()).next = () => ({ done: true })",
    look: "return [...[1, 2]]"
  },
  {
    name: "a next of generators",
    leave: "Object.getPrototypeOf(Object.getPrototypeOf((function* () {})())).next = () => ({ done: true })",
    look: "return [...(function* () { yield 1 })()]"
  },
  {
    name: "a segment's member",
    leave: "Object.getPrototypeOf(new Intl.Segmenter().segment('a')).left = 1",
    look: "return typeof new Intl.Segmenter().segment('a').left"
  },
  {
    name: "a segment iterator's member",
    leave: "Object.getPrototypeOf(new Intl.Segmenter().segment('a')[Symbol.iterator]()).left = 1",
    look: "return typeof new Intl.Segmenter().segment('a')[Symbol.iterator]().left"
  },
  {
    name: "a species",
    leave: "Object.defineProperty(Array, Symbol.species, { get: () => function () { return { left: 1 } } })",
    look: "return [1].map((n) => n)"
  },
  {
    name: "a constructor of arrays",
    leave: "Array.prototype.constructor = { [Symbol.species]: function () { return { left: 1 } } }",
    look: "return [1].map((n) => n)"
  },
  {
    name: "a constructor of promises",
    leave: "Promise.prototype.constructor = null",
    look: "return typeof Promise.resolve(1).then"
  },
  {
    name: "an exec of regular expressions",
    leave: "RegExp.prototype.exec = () => null",
    look: "return 'a'.replace(/a/, 'b')"
  },
  {
    name: "a recompiled prototype",
    leave: "try { RegExp.prototype.compile('left') } catch {}",
    look: "return String(RegExp.prototype)"
  },
  { name: "a Date's now", leave: "Date.now = () => 1", look: "return Date.now() > 1e12" },
  {
    name: "a Date's prototype",
    leave: "Date.prototype.toISOString = () => 'left'",
    look: "return new Date(0).toISOString()"
  },
  {
    name: "a Date",
    leave: "globalThis.Date = class { left() {} }; Date.prototype.constructor.left = 1",
    look: "return [typeof Date.now, typeof new Date(0).left, typeof Date.left]"
  },
  { name: "a random number's source", leave: "Math.random = () => 4", look: "return Math.random() < 1" },
  {
    name: "a URL's class members",
    leave: "URL.parse = () => 'left'; URL.prototype.toString = () => 'left'",
    look: "return String(URL.parse('https://a.test'))"
  },
  {
    name: "a URL's parts",
    leave: "Object.defineProperty(URL.prototype, 'host', { get: () => 'left' })",
    look: "return new URL('https://a.test').host"
  },
  {
    name: "a decoder's encoding",
    leave: "TextDecoder.prototype.decode = () => 'left'",
    look: "return new TextDecoder().decode(new TextEncoder().encode('a'))"
  },
  { name: "a hash of its own", leave: "crypto.hash = () => 'left'", look: "return crypto.hash('md5', 'x')" },
  { name: "a caller", leave: "try { (function f() { f.caller.left = 1 })() } catch {}", look: found },
  { name: "callee", leave: "try { (function () { arguments.callee.left = 1 })() } catch {}", look: found },
  {
    name: "a queue of asynchronous generators",
    code: "const g = (async function* () { for (let n = 0; ; n++) yield n })()",
    leave: "g.next(); g.next()",
    look: "return String(g)"
  },
  {
    name: "a promise that nobody keeps",
    code: "const { promise, resolve } = Promise.withResolvers()",
    leave: "promise.then(() => { globalThis.left = 1; console.log('left') })",
    look: `resolve(); ${found}`
  },
  { name: "a thrown prototype", leave: "Object.prototype.left = 1; throw Object.prototype", look: found },
  { name: "a deep recursion", leave: "const f = () => { globalThis.left = 1; f() }; f()", look: found },
  {
    name: "a deep recursion through the log",
    leave: "const f = () => { console.log('left'); f() }; try { f() } catch {}",
    look: "console.log('heard'); return 1"
  },
  {
    name: "a full log",
    leave: "for (let i = 0; i < 500; i++) console.log('left')",
    look: "console.log('heard'); return 1"
  },
  {
    name: "an error's members",
    leave: "try { null.x } catch (error) { Object.getPrototypeOf(error).left = 1; error.constructor.left = 1 }",
    look: "return [typeof new TypeError().left, typeof TypeError.left]"
  },
  {
    name: "an error of the host's members",
    leave: "try { new URL('::') } catch (error) { error.constructor.prototype.left = 1 }",
    look: "return typeof new TypeError().left"
  },
  {
    name: "a stack's setter",
    leave:
      "const { set } = Object.getOwnPropertyDescriptor(new Error(), 'stack'); set.left = 1; set.call(Error.prototype, 'left')",
    look: "return [typeof Object.getOwnPropertyDescriptor(new Error(), 'stack').set.left, typeof Error.prototype.stack]"
  },
  {
    name: "an assignment through Reflect",
    leave: "Reflect.set(Object.prototype, 'left', 1); Reflect.set(Array.prototype, 'at', 1, Object.prototype)",
    look: found
  },
  {
    name: "an assignment to what is inherited",
    leave: "Object.assign(Object.getPrototypeOf(class A {}), { left: 1 })",
    look: "return typeof (class {}).left"
  },
  {
    name: "an accessor's receiver",
    leave: "Object.getOwnPropertyDescriptor(Object.prototype, 'toString').set?.call(Object.prototype, () => 'left')",
    look: "return String({})"
  },
  {
    name: "an accessor's function",
    leave:
      "const d = Object.getOwnPropertyDescriptor(Object.prototype, 'toString'); (d.set ?? d.value).left = 1; (d.get ?? d.value).left = 1",
    look: "const d = Object.getOwnPropertyDescriptor(Object.prototype, 'toString'); return [typeof (d.set ?? d.value).left, typeof (d.get ?? d.value).left]"
  },
  {
    name: "__proto__",
    leave: "({}).__proto__.left = 1; [].__proto__.__proto__.left = 1",
    look: "return typeof ({}).left"
  },
  {
    name: "a constructor's prototype",
    leave: "request.constructor.prototype.left = 1; request.constructor.left = 1",
    look: "return [typeof ({}).left, typeof Object.left]"
  },
  {
    name: "unscopables",
    leave: "Array.prototype[Symbol.unscopables].left = 1",
    look: "return typeof Array.prototype[Symbol.unscopables].left"
  },
  {
    name: "an iterator helper's member",
    leave: "Iterator.prototype.left = 1; Object.getPrototypeOf([].values().map(String)).left = 1",
    look: "return [typeof [].values().left, typeof [].values().map(String).left]"
  },
  {
    name: "a disposable's member",
    leave: "DisposableStack.prototype.left = 1; Symbol.dispose.description",
    look: "return typeof new DisposableStack().left"
  },
  {
    name: "Temporal's member",
    leave: "Temporal.Now.left = 1; Temporal.PlainDate.prototype.left = 1",
    look: "return [typeof Temporal.Now.left, typeof Temporal.PlainDate.from('2026-01-01').left]"
  }
]
