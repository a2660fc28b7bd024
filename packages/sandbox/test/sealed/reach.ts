/**
 * Code that finds everything that code can reach, does something to each, and tells what it looks like: `query` says what.
 * `describe` gives a text for each object, `attack:<kind>` does that to each and gives how many there were, and
 * `self:<kind>` gives how many texts changed by it within the same call.
 */
export const reach = `
const { getOwnPropertyDescriptor, getPrototypeOf, ownKeys, defineProperty, deleteProperty, set, setPrototypeOf } = Reflect
const isObject = (value) => typeof value === "function" || (typeof value === "object" && value !== null)
const hidden = () => {
  const generator = function* () {}
  const asyncGenerator = async function* () {}
  const values = {
    generator, asyncGenerator, plain: function () {}, arrow: () => {}, async: async () => {}, class: class {},
    running: generator(), asyncRunning: asyncGenerator(), arrays: [].values(), maps: new Map().entries(), sets: new Set().values(),
    texts: ""[Symbol.iterator](), matches: "".matchAll(/./g), helper: [].values().map(String), wrapped: Iterator.from({ next() {} }),
    concat: Iterator.concat([]), segments: new Intl.Segmenter().segment("a"), segment: new Intl.Segmenter().segment("a")[Symbol.iterator](),
    promise: Promise.resolve(1), regexp: /a/, bytes: new Uint8Array(1), buffer: new ArrayBuffer(1), view: new DataView(new ArrayBuffer(1)),
    boxed: Object(1n), template: ((strings) => strings)\`a\`, error: new Error("x"), aggregate: new AggregateError([]),
    url: new URL("https://a.test/?b=1"), params: new URLSearchParams("a=1"), date: new Date(0), format: new Intl.NumberFormat("en"),
    match: "a".match(/(?<n>a)/d), bound: (() => {}).bind(1), proxy: Proxy.revocable({}, {}), weak: new WeakMap(), duration: new Temporal.Duration(1),
    collator: new Intl.Collator("en").compare, args: (function () { return arguments })(), resolvers: Promise.withResolvers()
  }
  return Object.entries(values).map(([name, value]) => [name, getPrototypeOf(value), value])
}
const reachable = () => {
  const found = new Map()
  const add = (value, path) => { if (isObject(value) && !found.has(value)) found.set(value, path) }
  add(globalThis, "globalThis")
  for (const [name, prototype, value] of hidden()) {
    add(prototype, "of " + name)
    // What an instance has of its own is its own; functions in it may be everybody's.
    for (const key of ownKeys(value)) {
      const { get, set } = getOwnPropertyDescriptor(value, key)
      add(get, "get " + String(key) + " of " + name)
      add(set, "set " + String(key) + " of " + name)
    }
  }
  for (const [object, path] of found) {
    for (const key of ownKeys(object)) {
      const { get, set, value } = getOwnPropertyDescriptor(object, key) ?? {}
      add(value, path + "." + String(key))
      add(get, path + ".get " + String(key))
      add(set, path + ".set " + String(key))
    }
    add(getPrototypeOf(object), path + ".__proto__")
  }
  return found
}
const slots = [
  (o) => Map.prototype.get.call(o, "leak"), (o) => Set.prototype.has.call(o, "leak"), (o) => Date.prototype.getTime.call(o),
  (o) => o[0], (o) => RegExp.prototype.exec.call(o, "leak"), (o) => Number.prototype.valueOf.call(o), (o) => "leak" in o
]
const describe = () => {
  const found = reachable()
  const shown = (value) => isObject(value) ? "<" + found.get(value) + ">" : typeof value + " " + String(value)
  return [...found].map(([object, path]) => {
    const members = ownKeys(object).map((key) => {
      const descriptor = getOwnPropertyDescriptor(object, key) ?? {}
      return String(key) + "=" + ["value", "get", "set", "writable", "enumerable", "configurable"].map((part) => part in descriptor ? shown(descriptor[part]) : "").join(",")
    })
    const inside = slots.map((read) => { try { return shown(read(object)) } catch (error) { return error.name } })
    return [path, shown(getPrototypeOf(object)), Object.isExtensible(object), ...members, ...inside].join(";")
  })
}
const leak = () => "leak"
const symbol = Symbol.for("leak")
class Stamp extends (function (given) { return given }) { #leak = 1 }
const attacks = {
  add: (o) => { o.leak = 1 },
  symbol: (o) => { o[symbol] = leak },
  define: (o) => { defineProperty(o, "leak", { value: leak, writable: true, configurable: true }) },
  accessor: (o) => { Object.defineProperty(o, "leak", { get: leak, configurable: true }) },
  old: (o) => { Object.prototype.__defineGetter__.call(o, "leak", leak) },
  overwrite: (o) => { for (const key of ownKeys(o)) { try { o[key] = leak } catch {} } },
  redefine: (o) => { for (const key of ownKeys(o)) { defineProperty(o, key, { value: leak }); defineProperty(o, key, { get: leak }) } },
  erase: (o) => { for (const key of ownKeys(o)) { try { delete o[key] } catch {} deleteProperty(o, key) } },
  inherit: (o) => { setPrototypeOf(o, { leak }) },
  proto: (o) => { o.__proto__ = { leak } },
  receiver: (o) => { for (const key of [...ownKeys(Object.prototype), "leak"]) set({ __proto__: Object.prototype }, key, leak, o) },
  setters: (o) => {
    for (let holder = o; holder !== null; holder = getPrototypeOf(holder))
      for (const key of ownKeys(holder)) { try { getOwnPropertyDescriptor(holder, key)?.set?.call(o, leak) } catch {} }
  },
  derived: (o) => { const own = Object.create(o); for (const key of ownKeys(o)) { try { own[key] = leak } catch {} } },
  stamp: (o) => { new Stamp(o) },
  assign: (o) => { Object.assign(o, { leak, 0: leak, length: 0 }) },
  slots: (o) => {
    const act = [
      () => Map.prototype.set.call(o, "leak", 1), () => Set.prototype.add.call(o, "leak"), () => WeakMap.prototype.set.call(o, o, 1),
      () => Date.prototype.setTime.call(o, 1), () => RegExp.prototype.compile.call(o, "leak"), () => Array.prototype.push.call(o, leak),
      () => Array.prototype.fill.call(o, leak), () => ArrayBuffer.prototype.resize.call(o, 0), () => Array.prototype.copyWithin.call(o, 0, 1),
      () => Error.captureStackTrace(o), () => Object.groupBy([o], () => "leak"), () => o.next?.(), () => o.return?.(), () => o.use?.(leak)
    ]
    for (const one of act) { try { one() } catch {} }
  },
  calls: (o) => {
    if (typeof o !== "function") return
    for (const given of [[], [globalThis], [Object.prototype, "leak", { value: leak }], [leak]]) {
      try { o(...given) } catch {}
      try { new o(...given) } catch {}
      try { o.call(Object.prototype, ...given) } catch {}
    }
  }
}
addHandler("transform", ({ query }) => {
  const [what, kind] = query.split(":")
  if (what === "describe") return { body: describe() }
  const before = what === "self" ? describe() : []
  const found = [...reachable().keys()]
  for (const object of found) { try { attacks[kind](object) } catch {} }
  if (what === "attack") return { body: found.length }
  const after = describe()
  return { body: before.filter((text) => !after.includes(text)).length }
})
`
export const kinds = [
  "add",
  "symbol",
  "define",
  "accessor",
  "old",
  "overwrite",
  "redefine",
  "erase",
  "inherit",
  "proto",
  "receiver",
  "setters",
  "derived",
  "stamp",
  "assign",
  "slots",
  "calls"
]
