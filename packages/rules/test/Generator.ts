/**
 * Documents and conditions made from a tape of numbers, so that a property test can shrink a failing case by shrinking
 * the tape. Few keys and few values, and conditions that copy half of what they say from the document, so that matches
 * and misses are both common.
 */
export class Generator {
  private at = 0
  private readonly tape: ReadonlyArray<number>

  constructor(tape: ReadonlyArray<number>) {
    this.tape = tape
  }

  /** A number below `n`; 0, the simplest choice, once the tape is used up. */
  private below(n: number): number {
    return (this.tape[this.at++] ?? 0) % n
  }

  private pick<A>(values: ReadonlyArray<A>): A {
    return values[this.below(values.length)]!
  }

  private times<A>(most: number, make: () => A): Array<A> {
    return Array.from({ length: this.below(most + 1) }, make)
  }

  scalar(): unknown {
    return this.pick([
      1,
      "x",
      "1",
      2,
      "xy",
      true,
      null,
      10,
      "2",
      "",
      "y",
      false,
      "1.0",
      0,
      -1.5,
      "X",
      "010",
      "1e1",
      " 1"
    ])
  }

  key(): string {
    return this.pick([
      "a",
      "b",
      "c",
      "a",
      "b",
      "a.b",
      "b.c.a",
      "in",
      "ne",
      "exists",
      "0",
      "a.0",
      "__proto__",
      "constructor",
      "a.",
      "X-Y"
    ])
  }

  document(depth: number): unknown {
    switch (depth <= 0 ? 0 : this.below(5)) {
      case 1:
      case 2:
        return this.object(() => this.document(depth - 1))
      case 3:
      case 4:
        return this.times(3, () => this.document(depth - 1))
      default:
        return this.scalar()
    }
  }

  object(value: () => unknown): Record<string, unknown> {
    return Object.fromEntries(this.times(3, () => [this.key(), value()]))
  }

  path(): string {
    return this.pick([
      "a",
      "b",
      "a.b",
      "c",
      "a[0]",
      "a[$index].b",
      "b[$index]",
      "a[$index]",
      "a[$index].b[$index]",
      "$.c",
      "a.0",
      "b.c.a"
    ])
  }

  private operators(seen: unknown): Record<string, unknown> {
    const spelled = (...names: ReadonlyArray<string>): string => this.pick(names)
    const text = (): unknown =>
      typeof seen === "string" && this.below(2) === 0 ? seen.slice(0, 1) : this.pick(["x", "y", "1", ""])
    const scalar = (): unknown => (isScalar(seen) && this.below(2) === 0 ? seen : this.scalar())
    const plain = (): unknown => this.pick([1, "1", 2, "x", "xy", 10, "10"])
    const orReference = (make: () => unknown): unknown => (this.below(5) === 4 ? { $ref: this.path() } : make())
    const make: ReadonlyArray<() => [string, unknown]> = [
      () => [spelled("$eq", "eq"), orReference(() => (this.below(3) === 2 ? this.document(2) : scalar()))],
      () => [spelled("$neq", "$ne", "ne", "neq"), orReference(() => (this.below(3) === 2 ? (seen ?? null) : scalar()))],
      () => [spelled("$gt", "gt", "$gte", "gte"), orReference(plain)],
      () => [spelled("$lt", "lt", "$lte", "lte"), orReference(plain)],
      () => [
        spelled("$in", "in", "$nin", "nin"),
        orReference(() => (this.below(3) === 0 ? plain() : this.times(3, scalar)))
      ],
      () => [
        spelled("$startsWith", "$starts_with", "starts_with", "$endsWith", "$ends_with", "ends_with"),
        orReference(() => (this.below(3) === 0 ? this.times(2, text) : text()))
      ],
      () => [spelled("$contains", "contains"), orReference(() => (this.below(2) === 0 ? text() : plain()))],
      () => [spelled("$regex", "regex"), this.pick(["^x", "y$", "[0-9]", "^.$", "(x|y)+"])],
      () => [spelled("$exist", "$exists", "exists"), this.below(2) === 0]
    ]
    return Object.fromEntries(this.times(1, () => this.pick(make)()).concat([this.pick(make)()]))
  }

  /** A condition; `seen` is what the document holds at its place, or anything. */
  condition(seen: unknown, depth: number): unknown {
    const deeper = (): unknown => this.condition(seen, depth - 1)
    switch (depth <= 0 ? this.below(2) : this.below(12)) {
      case 0:
        return isScalar(seen) && this.below(3) > 0 ? seen : this.scalar()
      case 1:
      case 2:
      case 3:
        return this.operators(Array.isArray(seen) ? seen[0] : seen)
      case 4:
        return { [this.pick(["$or", "$and"])]: this.times(3, deeper) }
      case 5:
        return { $not: deeper(), ...(this.below(3) === 0 ? this.operators(seen) : {}) }
      case 6:
        return { $ref: this.path() }
      case 7:
        return this.times(2, () => this.condition(Array.isArray(seen) ? this.pick(seen) : seen, depth - 1))
      default:
        return this.fields(seen, depth)
    }
  }

  /** An object of fields, with an operator beside them at times. */
  fields(seen: unknown, depth: number): Record<string, unknown> {
    const inside = Array.isArray(seen) && seen.length > 0 ? this.pick(seen) : seen
    const entries = this.times(2, (): [string, unknown] => {
      const keys = isObject(inside) ? Object.keys(inside) : []
      const key = keys.length > 0 && this.below(4) > 0 ? this.pick(keys) : this.key()
      return [key, this.condition(isObject(inside) && Object.hasOwn(inside, key) ? inside[key] : seen, depth - 1)]
    })
    const beside = this.below(6) === 5 ? [["$or", this.times(2, () => this.condition(inside, depth - 1))] as const] : []
    return Object.fromEntries([...entries, ...beside])
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value)

const isScalar = (value: unknown): boolean => value === null || (typeof value !== "object" && value !== undefined)
