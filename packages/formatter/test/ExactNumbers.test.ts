import { Decimal } from "decimal.js"
import { expect, it } from "vitest"
import { isExactNumber, readNumber } from "@tidegate/json/ExactNumber"
import { writeJson } from "@tidegate/json/NumberMarks"
import { operations } from "../src/Operations.ts"
import { outcomeOf } from "./Run.ts"

/** Numbers that JavaScript does not hold: of each operation, the same comes as of a text of their digits. */

const written = ["12345678901234567891", "-9007199254740993", "0.1000000000000000055", "12345678901234567.25"]

/** With each such number as the text that it is. */
const inTexts = (value: unknown): unknown => {
  if (isExactNumber(value)) return String(value)
  if (Array.isArray(value)) return value.map(inTexts)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inTexts(inner)]))
}

const fields = [...operations.values()].flatMap(({ key, sample: { inputs, options } }) =>
  Object.keys(inputs).map((name) => [`${key} ${name}`, key, name, inputs, options] as const)
)

it.each(fields)("Field %s gives the same result for a long number as for its text", (_, key, name, inputs, options) => {
  const isList = Array.isArray(inputs[name])
  const given = (value: unknown) => Object.assign({}, inputs, { [name]: isList ? [value] : value })
  for (const text of written) {
    const ofNumber = outcomeOf(key, given(readNumber(text)), options)
    const ofText = outcomeOf(key, given(text), options)
    if ("failed" in ofNumber || "failed" in ofText) expect(ofNumber).toEqual(ofText)
    else {
      const { output, warnings } = ofNumber
      expect([inTexts(output), warnings.filter((code) => code !== "INPUT_COERCED")]).toEqual([
        ofText.output,
        ofText.warnings
      ])
    }
  }
})

it("Calculations on whole numbers of up to 28 digits keep every digit", () => {
  const integers = [12345678901234567891n, -9007199254740993n, 98765432109876543210987654n, 7n]
  for (const a of integers) {
    for (const b of integers) {
      const of = (operation: string) =>
        outcomeOf("number.math", { values: [readNumber(String(a)), readNumber(String(b))] }, { operation })
      for (const [operation, oracle] of [
        ["add", a + b],
        ["subtract", a - b]
      ] as const) {
        expect(String((of(operation) as { output: { result: unknown } }).output.result)).toBe(String(oracle))
      }
    }
    const ofOne = (operation: string) => outcomeOf("number.math", { values: [readNumber(String(a))] }, { operation })
    for (const [operation, oracle] of [
      ["negate", -a],
      ["abs", a < 0n ? -a : a],
      ["round", a]
    ] as const) {
      const { output } = ofOne(operation) as { output: { result: unknown } }
      expect([output.result].flat().map(String)).toEqual([String(oracle)])
    }
  }
})

it("Results with a fraction have 15 digits, rounded like those of another decimal library", () => {
  const Oracle = Decimal.clone({ precision: 28 })
  for (const a of written) {
    for (const b of ["0.3", "12345678901234567890123.5", "3"]) {
      const oracle = new Oracle(a).times(b).toSignificantDigits(15)
      const { output } = outcomeOf("number.math", { values: [a, b].map(readNumber) }, { operation: "multiply" }) as {
        output: { result: number | string }
      }
      if (!new Oracle(a).times(b).isInteger()) expect(new Oracle(output.result).equals(oracle)).toBe(true)
    }
  }
})

it("Formulas compare and calculate with all digits of their numbers", () => {
  const variables = { a: readNumber("12345678901234567891"), b: readNumber("12345678901234567892") }
  const of = (formula: string) => outcomeOf("number.formula", { formula, variables })
  expect(of("a = b")).toMatchObject({ output: { result: false } })
  expect(of("b - a")).toMatchObject({ output: { result: 1 } })
  expect(of("a + b")).toMatchObject({ output: { result: "24691357802469135783" } })
})

it("Lookup table compares all digits, and a number that passes through stays a number", () => {
  const [first, second] = written.slice(0, 1).flatMap((text) => [readNumber(text), readNumber("12345678901234567892")])
  const table = { "12345678901234567891": "first", "12345678901234567892": "second" }
  const found = [first, second].map((input) => outcomeOf("utility.lookup_table", { input }, { table }))
  expect(found).toMatchObject([{ output: { result: "first" } }, { output: { result: "second" } }])
  expect(writeJson(outcomeOf("utility.pick_from_list", { list: [1, first] }, { operation: "last" }))).toContain(
    '"result":12345678901234567891'
  )
})

it("Number found in a text stays a text if it would be rounded as a number", () => {
  const found = (input: string) => outcomeOf("text.extract_number", { input }, { as: "number" })
  expect(found("rate 0.1000000000000000055")).toMatchObject({
    output: { result: "0.1000000000000000055" },
    warnings: ["NUMBER_AS_TEXT"]
  })
  expect(found("rate 0.10")).toMatchObject({ output: { result: 0.1 }, warnings: [] })
  const csv = "a,b\n123456789012345.123456789012345,1.50"
  expect(outcomeOf("utility.import_csv", { csv }, { types: "infer" })).toMatchObject({
    output: { line_items: [{ a: "123456789012345.123456789012345", b: 1.5 }] }
  })
})
