import { isExactNumber } from "./ExactNumber.ts"

/** Where the visited value stands. It changes with each visit, so it is not kept. */
export interface Place {
  /** Nesting level; 0: the whole value. */
  readonly level: number
  /** Names and indexes on the way to the value, such as `items.0.id`; empty for the whole value. */
  path(): string
}

/** `name`: the value's name in its object; null for elements of lists and for the whole value. Returns whether to go on. */
export type Visit = (value: unknown, name: string | null, place: Place) => boolean

/** An object or list whose members are being visited, the last one first. */
class Holder implements Place {
  readonly around: Holder | null
  readonly level: number
  readonly values: Readonly<Record<string | number, unknown>>
  /** Null: a list. */
  readonly names: ReadonlyArray<string> | null
  position: number

  constructor(values: object, around: Holder | null) {
    this.around = around
    this.level = around === null ? 1 : around.level + 1
    this.values = values as Readonly<Record<string | number, unknown>>
    this.names = Array.isArray(values) ? null : Object.keys(values)
    this.position = (this.names ?? (values as ReadonlyArray<unknown>)).length
  }

  /** The name or index of the visited value. */
  get step(): string | number {
    return this.names?.[this.position] ?? this.position
  }

  path(): string {
    const steps = [this.step]
    for (let { around } = this; around !== null; around = around.around) steps.push(around.step)
    return steps.toReversed().join(".")
  }
}

const whole: Place = { level: 0, path: () => "" }

/**
 * Visits a JSON value and everything in it: a value before its members, the last member first. An exact number is one value. The
 * visit ends when `visit` returns false; this is how callers limit levels, number or size, and the cost then depends on their
 * limit and not on the value. Returns whether it was visited to its end. Without recursion, because a parsed value may be nested deeper than
 * the stack allows.
 */
export const visitJson = (root: unknown, visit: Visit): boolean => {
  if (!visit(root, null, whole)) return false
  if (typeof root !== "object" || root === null || isExactNumber(root)) return true
  let holder: Holder | null = new Holder(root, null)
  while (holder !== null) {
    if (holder.position === 0) {
      holder = holder.around
      continue
    }
    const position: number = --holder.position
    const name: string | null = holder.names === null ? null : holder.names[position]!
    const value: unknown = name === null ? holder.values[position] : holder.values[name]
    if (!visit(value, name, holder)) return false
    if (typeof value === "object" && value !== null && !isExactNumber(value)) holder = new Holder(value, holder)
  }
  return true
}
