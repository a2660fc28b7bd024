/** Methods that look at all of a text or a list. */
const looking: ReadonlyArray<readonly [prototype: object, names: ReadonlyArray<string>]> = [
  [
    String.prototype,
    ["endsWith", "match", "matchAll", "replace", "replaceAll", "split", "startsWith", "trim", "trimEnd", "trimStart"]
  ],
  [
    Array.prototype,
    [
      "filter",
      "find",
      "findIndex",
      "findLast",
      "includes",
      "indexOf",
      "join",
      "map",
      "push",
      "toReversed",
      "shift",
      "slice"
    ]
  ],
  [Array.prototype, ["some", "splice", "unshift"]]
]

/** Methods that look at a few characters, or at none, whatever they are asked of. */
const brief = new Set(["endsWith", "push", "startsWith"])

/** What the methods of texts and lists are given to look at while something is done: characters and elements, without a clock. */
export const lookedAt = (work: () => void): number => {
  let looked = 0
  const originals = looking.flatMap(([prototype, names]) =>
    names.map((name) => [prototype, name, Object.getOwnPropertyDescriptor(prototype, name)!] as const)
  )
  try {
    for (const [prototype, name, original] of originals) {
      const method = original.value as (...given: ReadonlyArray<unknown>) => unknown
      const counted = function (this: { readonly length: number }, ...given: ReadonlyArray<unknown>): unknown {
        looked += brief.has(name) ? 1 : 1 + this.length
        return Reflect.apply(method, this, given)
      }
      Object.defineProperty(prototype, name, { ...original, value: counted })
    }
    work()
  } finally {
    for (const [prototype, name, original] of originals) Object.defineProperty(prototype, name, original)
  }
  return looked
}
