import { areEqualNumbers, type ExactNumber, isExactNumber, isWholeNumber } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { mayRoundIn, roundNumbers } from "@tidegate/json/NumberMarks"
import type { Schema } from "effect"

type Json = Schema.Json

/**
 * Code has JavaScript's numbers: of a body with others it is given the rounded ones. What it leaves alone gets its digits back afterwards, as far as
 * it can be told.
 */

/** A body as code is given it. `isRounded`: it has other numbers than the body. */
export const roundedJson = (body: Json): { readonly text: string; readonly isRounded: boolean } => {
  const json = JSON.stringify(body)
  if (!mayRoundIn(json)) return { text: json, isRounded: false }
  const rounded = roundNumbers(json)
  return { text: rounded, isRounded: rounded !== json }
}

/** What JavaScript makes of one; null: nothing that JSON has. */
const roundedOf = (number: ExactNumber): number | null => {
  const rounded = Number(String(number))
  return Number.isFinite(rounded) ? rounded : null
}

/** A longer one stays as code has returned it (characters): it is parsed and written in one go. */
const restoredAtMost = 1_048_576

/**
 * The JSON of a returned body, in which what was rounded has its digits again. A whole number has them wherever it stands, unless two of the body are
 * rounded to the same; any other at its own place alone: under the same names, and in a list that is as it was.
 */
export const withDigits = (before: Json, returned: string): string => {
  if (returned.length > restoredAtMost) return returned
  const parsed = parseJson(returned)
  if (parsed.kind !== "json") return returned
  return JSON.stringify(new Digits(before).restored(before, parsed.value))
}

class Digits {
  /** By what they are rounded to; null: several. */
  readonly #whole = new Map<number, ExactNumber | null>()

  constructor(before: Json) {
    const open: Array<unknown> = [before]
    while (open.length > 0) {
      const value = open.pop()
      if (isExactNumber(value)) this.#learn(value)
      else if (typeof value === "object" && value !== null) for (const one of Object.values(value)) open.push(one)
    }
  }

  #learn(number: ExactNumber): void {
    const rounded = roundedOf(number)
    if (rounded === null || !isWholeNumber(number)) return
    const known = this.#whole.get(rounded)
    const isOther = known === null || (known !== undefined && !areEqualNumbers(known, number))
    this.#whole.set(rounded, isOther ? null : number)
  }

  /** `before`: what was at the place; undefined: nothing that is known to be the same. */
  restored(before: unknown, after: unknown): unknown {
    if (typeof after === "number" || after === null) {
      if (isExactNumber(before) && roundedOf(before) === after) return before
      return (after === null ? null : this.#whole.get(after)) ?? after
    }
    if (typeof after !== "object") return after
    if (Array.isArray(after)) {
      // Elements change their places: of a list that is another one, nothing is known of where they stood.
      if (Array.isArray(before) && roundNumbers(JSON.stringify(before)) === JSON.stringify(after)) return before
      return after.map((one) => this.restored(undefined, one))
    }
    const members = typeof before === "object" && before !== null && !isExactNumber(before) ? before : {}
    return Object.fromEntries(
      Object.entries(after).map(([name, one]) => [
        name,
        this.restored(Object.hasOwn(members, name) ? Reflect.get(members, name) : undefined, one)
      ])
    )
  }
}
