/**
 * Freezes a context for good, so that many calls can run in it one after the other and none sees the effects of another.
 * **Its source text is evaluated inside the isolate**, once, as the last thing before the first call.
 *
 * All reachable objects are frozen: the global object, and every object and function of the language, including hidden ones. Values that
 * belong to one call, among them everything that code writes to the global object, are kept in an object behind it. The returned function
 * replaces that object for each call. Code cannot reach this function.
 *
 * Frozen prototypes have a cost: `object.toString = …` fails if the inherited `toString` is read-only. Where such assignments are
 * common (on plain objects, functions, errors, dates, maps, sets and the guest's own classes) the inherited member becomes an accessor that
 * allows them. Arrays, texts and regular expressions keep plain members, because V8 is fast with them only in that form.
 */
export const seal = (): ((globals: Readonly<Record<string, unknown>>) => void) => {
  "use strict"
  const { defineProperty, deleteProperty, get, getOwnPropertyDescriptor, getPrototypeOf, has, ownKeys, set } = Reflect
  const { assign, create, freeze } = Object
  const world: Record<string, unknown> = globalThis
  const plainPrototype = Object.prototype

  const isObject = (value: unknown): value is object =>
    typeof value === "function" || (typeof value === "object" && value !== null)
  const readOnly = (key: string): TypeError => new TypeError(`Cannot assign to read only property '${key}' of object`)

  /** Lets objects that inherit from `holder` define members of the same names, as they could if `holder` were not frozen. */
  const overridable = (holder: object): void => {
    for (const key of ownKeys(holder)) {
      const descriptor = getOwnPropertyDescriptor(holder, key)
      if (typeof key !== "string" || descriptor?.configurable !== true || !("value" in descriptor)) continue
      const { enumerable, value } = descriptor
      const access: object = {
        get [key](): unknown {
          return value
        },
        set [key](given: unknown) {
          if (this === holder || !isObject(this)) throw readOnly(key)
          const isOwn = getOwnPropertyDescriptor(this, key) !== undefined
          const next = isOwn ? { value: given } : { value: given, writable: true, enumerable: true, configurable: true }
          if (!defineProperty(this, key, next)) throw readOnly(key)
        }
      }
      const { get, set } = getOwnPropertyDescriptor(access, key) as Required<PropertyDescriptor>
      defineProperty(holder, key, { get, set, enumerable: enumerable === true, configurable: true })
    }
  }
  const errors = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError]
  const guests = ["URL", "URLSearchParams", "TextEncoder", "TextDecoder", "SuppressedError"].map((name) => world[name])
  for (const type of [Object, Function, Date, Map, Set, ...errors, ...guests]) {
    if (typeof type === "function") overridable(type.prototype as object)
  }

  // `RegExp.$1` and similar members expose the last match, even of another call. They are removed, because code that uses them would get wrong
  // values without an error.
  for (const key of ownKeys(RegExp)) {
    if (typeof key !== "string" || typeof getOwnPropertyDescriptor(RegExp, key)?.get !== "function") continue
    const refuse = (): never => {
      throw new TypeError(`RegExp.${key} is not there: use what the match returns`)
    }
    defineProperty(RegExp, key, { get: refuse, set: refuse, enumerable: false, configurable: true })
  }

  let bag: object = create(plainPrototype)
  const isOfGlobal = (receiver: unknown): boolean => receiver === world
  const beyond = new Proxy(
    create(null) as object,
    freeze(
      assign(create(null) as ProxyHandler<object>, {
        get: (_: object, key: PropertyKey, receiver: unknown): unknown => get(bag, key, receiver),
        set: (_: object, key: PropertyKey, value: unknown, receiver: unknown): boolean =>
          isOfGlobal(receiver) ? set(bag, key, value) : set(bag, key, value, receiver),
        has: (_: object, key: PropertyKey): boolean => has(bag, key),
        deleteProperty: (_: object, key: PropertyKey): boolean => deleteProperty(bag, key),
        defineProperty: (_: object, key: PropertyKey, descriptor: PropertyDescriptor): boolean =>
          defineProperty(bag, key, descriptor),
        getOwnPropertyDescriptor: (_: object, key: PropertyKey) => getOwnPropertyDescriptor(bag, key),
        ownKeys: () => ownKeys(bag),
        getPrototypeOf: () => plainPrototype,
        setPrototypeOf: () => false,
        isExtensible: () => true,
        preventExtensions: () => false
      })
    )
  )
  Object.setPrototypeOf(world, beyond)

  const attempt = (make: () => unknown): unknown => {
    try {
      return make()
    } catch {
      // This version of the language does not have it.
      return undefined
    }
  }
  const { Iterator: iterators } = world as unknown as {
    readonly Iterator: { readonly [name in "from" | "concat" | "zip"]: (given: unknown) => unknown }
  }
  const strictArguments = (function () {
    // oxlint-disable-next-line prefer-rest-params -- it is the object itself that is looked at
    return arguments
  })()
  const generator = function* () {}
  const asyncGenerator = async function* () {}
  /** Intrinsics that have no name and are reachable only through values that the language creates. */
  const hidden: Array<unknown> = [
    strictArguments,
    new Error(),
    generator,
    asyncGenerator,
    async function () {},
    generator(),
    asyncGenerator(),
    [][Symbol.iterator](),
    new Map()[Symbol.iterator](),
    new Set()[Symbol.iterator](),
    ""[Symbol.iterator](),
    "".matchAll(/./g),
    ...[
      () => iterators.from({ next: () => ({ done: true }) }),
      () => [].values().map((value) => value),
      () => iterators.concat([]),
      () => iterators.zip([]),
      () => new Intl.Segmenter().segment(""),
      () => new Intl.Segmenter().segment("")[Symbol.iterator]()
    ].map(attempt)
  ]

  const seen = new Set<object>([beyond])
  const waiting: Array<unknown> = [world, plainPrototype, ...hidden]
  for (let next = waiting.pop(); waiting.length > 0 || next !== undefined; next = waiting.pop()) {
    if (!isObject(next) || seen.has(next)) continue
    seen.add(next)
    freeze(next)
    waiting.push(getPrototypeOf(next))
    for (const key of ownKeys(next)) {
      const { get, set, value } = getOwnPropertyDescriptor(next, key) ?? {}
      waiting.push(value, get, set)
    }
  }

  return (globals) => {
    bag = create(plainPrototype)
    for (const name of ownKeys(globals)) {
      defineProperty(bag, name, { value: get(globals, name), writable: true, enumerable: false, configurable: true })
    }
  }
}
