import { areEqualNumbers, type ExactNumber, isExactNumber, isWholeNumber } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { mayRoundIn, roundNumbers } from "@tidegate/json/NumberMarks"
import { visitJson } from "@tidegate/json/VisitJson"
import type { Schema } from "effect"

type Json = Schema.Json

/**
 * Code works with JavaScript's numbers, so numbers of a body that do not fit are rounded for it. Values that the code leaves unchanged
 * get their exact digits back afterwards, where that is unambiguous.
 */

/** A body as the code receives it. `isRounded`: at least one number was rounded. */
export const roundedJson = (body: Json): { readonly text: string; readonly isRounded: boolean } => {
  const json = JSON.stringify(body)
  if (!mayRoundIn(json)) return { text: json, isRounded: false }
  const rounded = roundNumbers(json)
  return { text: rounded, isRounded: rounded !== json }
}

/** The JavaScript number for an exact one; null if JSON cannot express it. */
const roundedOf = (number: ExactNumber): number | null => {
  const rounded = Number(String(number))
  return Number.isFinite(rounded) ? rounded : null
}

/** Characters. A longer body stays as the code returned it, because it would be parsed and written without a pause. */
const restoredAtMost = 1_048_576

/**
 * The JSON of a returned body, in which rounded numbers have their digits again. A whole number is restored wherever it appears, unless
 * two numbers of the body round to the same value. Any other number is restored at its own place only: under the same names, and in a list that
 * is unchanged.
 */
export const withDigits = (before: Json, returned: string): string => {
  if (returned.length > restoredAtMost) return returned
  const parsed = parseJson(returned)
  if (parsed.kind !== "json") return returned
  return JSON.stringify(new Digits(before).restored(before, parsed.value))
}

class Digits {
  /** Exact numbers by the value they round to; null: several exact numbers round to it. */
  readonly #whole = new Map<number, ExactNumber | null>()

  constructor(before: Json) {
    visitJson(before, (value) => {
      if (isExactNumber(value)) this.#learn(value)
      return true
    })
  }

  #learn(number: ExactNumber): void {
    const rounded = roundedOf(number)
    if (rounded === null || !isWholeNumber(number)) return
    const known = this.#whole.get(rounded)
    const isOther = known === null || (known !== undefined && !areEqualNumbers(known, number))
    this.#whole.set(rounded, isOther ? null : number)
  }

  /** `before`: the value that was at this place; undefined if the place is unknown. */
  restored(before: unknown, after: unknown): unknown {
    if (typeof after === "number" || after === null) {
      if (isExactNumber(before) && roundedOf(before) === after) return before
      return (after === null ? null : this.#whole.get(after)) ?? after
    }
    if (typeof after !== "object") return after
    if (Array.isArray(after)) {
      // Elements can move. In a changed list their old places are unknown.
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
