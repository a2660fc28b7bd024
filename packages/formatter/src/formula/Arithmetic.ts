import { Fault } from "../engine/Fault.ts"
import { decimal } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"
import { formulaLimits } from "./Tokens.ts"
import { domain, numeric, type Value } from "./Values.ts"

/** The context of a formula's evaluation. */
export interface Scope {
  readonly call: Call
  readonly variable: (name: string) => Value
  /** Counts steps, and throws a `Fault` above the limit. */
  readonly step: (steps: number) => void
}

export type Term = (scope: Scope) => Value

/** Checks the length of a text that a formula has built. */
export const boundedText = (text: string, scope: Scope): string => {
  if (text.length > formulaLimits.text) {
    throw new Fault("FORMATTER_FORMULA_LIMIT", "a text becomes too long", {
      limit: formulaLimits.text,
      actual: text.length
    })
  }
  scope.step(text.length / 1000)
  return text
}

export const divided = (left: Value, right: Value): Value => {
  const by = numeric(right)
  if (by.isZero()) throw new Fault("FORMATTER_DIVISION_BY_ZERO", "a division by zero", { field: "formula" })
  return numeric(left).div(by)
}

/** A power: exact for whole exponents, otherwise computed with doubles. */
export const power = (left: Value, right: Value, scope: Scope): Value => {
  const [base, exponent] = [numeric(left), numeric(right)]
  if (exponent.abs().greaterThan(1000))
    throw new Fault("FORMATTER_FORMULA_LIMIT", "exponents are at most 1000", { limit: 1000 })
  if (base.isZero() && exponent.isNegative() && !exponent.isZero()) {
    throw new Fault("FORMATTER_DIVISION_BY_ZERO", "a division by zero", { field: "formula" })
  }
  scope.step(20)
  if (exponent.isInteger()) return finite(base.pow(exponent))
  const value = Math.pow(base.toNumber(), exponent.toNumber())
  if (!Number.isFinite(value)) throw domain("the power has no value")
  return new (decimal())(value)
}

export const finite = (value: ReturnType<typeof numeric>): Value => {
  if (!value.isFinite()) throw domain("the number is too large")
  return value
}
