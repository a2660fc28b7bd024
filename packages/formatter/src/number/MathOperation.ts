import type { Decimal } from "decimal.js"
import { isJsonNumber } from "@tidegate/json/ExactNumber"
import type { Schema } from "effect"
import { Fault, previewOf } from "../engine/Fault.ts"
import { integer, isEmpty, list, mapped, option, select } from "../engine/Fields.ts"
import { decimal } from "../engine/Libraries.ts"
import { type Call, either, num, operation, string } from "../engine/Operation.ts"
import { emitted } from "../formula/Values.ts"
import { numberIn } from "./Numerals.ts"

const decimalOf = (value: Schema.Json): Decimal | null => {
  if (isJsonNumber(value)) return new (decimal())(String(value))
  const digits = typeof value === "string" ? numberIn(value, ".") : null
  return digits === null ? null : new (decimal())(digits)
}

/** The numbers of a list; other values count as missing. */
const numbersOf = (values: ReadonlyArray<Schema.Json>, call: Call): ReadonlyArray<Decimal> =>
  values.flatMap((value) => {
    const number = decimalOf(value)
    if (number === null && !isEmpty(value)) call.warn("INPUT_SKIPPED", `${previewOf(value)} is no number`, "values")
    return number === null ? [] : [number]
  })

const divide = (left: Decimal, right: Decimal): Decimal => {
  if (right.isZero()) throw new Fault("FORMATTER_DIVISION_BY_ZERO", "a division by zero", { field: "values" })
  return left.div(right)
}

const tooLarge = (): Fault =>
  new Fault("FORMATTER_INPUT_INVALID", "values make a number that is too large", { field: "values" })

/** Operators that are applied from the first to the last value. */
const folds: Readonly<Record<string, (left: Decimal, right: Decimal) => Decimal>> = {
  add: (left, right) => left.plus(right),
  subtract: (left, right) => left.minus(right),
  multiply: (left, right) => left.times(right),
  divide
}

const ofOne: Readonly<Record<string, (value: Decimal, decimals: number) => Decimal>> = {
  negate: (value) => value.negated(),
  abs: (value) => value.abs(),
  round: (value, decimals) => value.toDecimalPlaces(decimals)
}

export const math = operation({
  key: "number.math",
  label: "Calculate",
  description:
    "Adds, subtracts, multiplies or divides a list from its first to its last; negates or rounds each value of it",
  fields: {
    operation: option(
      select(
        "Operation",
        {
          add: "Add",
          subtract: "Subtract",
          multiply: "Multiply",
          divide: "Divide",
          negate: "Negate",
          abs: "Without sign",
          round: "Round"
        },
        null
      )
    ),
    values: mapped(list("Values", { required: true, help: "Two of them may be given as a and b" })),
    decimals: integer("Decimals", { default: 0, minimum: 0, maximum: 10 })
  },
  dynamic: [{ when: { field: "operation", in: ["round"] }, fields: ["decimals"] }],
  elements: { values: ["a", "b"] },
  lines: "map",
  linesFor: ({ operation }) => (operation !== undefined && operation in folds ? "aggregate" : "map"),
  output: { result: either(num, string) },
  empty: { result: 0 },
  warnings: ["INPUT_SKIPPED", "NUMBER_AS_TEXT"],
  errors: ["FORMATTER_DIVISION_BY_ZERO"],
  cost: { call: 10 },
  sample: { inputs: { values: [4, 12.95, 1.06625] }, options: { operation: "multiply" }, output: { result: 55.23175 } },
  run: ({ decimals, operation, values }, call) => {
    const fold = folds[operation]
    if (fold !== undefined) {
      call.spend(values.length * 4)
      const [first, ...rest] = numbersOf(values, call)
      return { result: first === undefined ? 0 : emitted(rest.reduce(fold, first), call, tooLarge) }
    }
    const [value = null] = values
    const number = decimalOf(value)
    if (number === null) {
      throw new Fault("FORMATTER_INPUT_INVALID", "values takes numbers", {
        field: "values",
        value_preview: previewOf(value)
      })
    }
    return { result: emitted(ofOne[operation]!(number, decimals), call, tooLarge) }
  }
})
