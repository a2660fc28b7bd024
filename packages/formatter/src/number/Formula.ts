import { Fault } from "../engine/Fault.ts"
import { formula as field, judged, mapped, pairs } from "../engine/Fields.ts"
import { bool, either, nullable, num, operation, string } from "../engine/Operation.ts"
import { compileFormula, evaluate } from "../formula/Formula.ts"
import { formulaLimits } from "../formula/Tokens.ts"
import { emitted, isNumber } from "../formula/Values.ts"

const maxVariables = 100

/** The variables have a separate limit: `characters` would limit all inputs together. */
const { characters: maxFormula, ...ofFormula } = formulaLimits

export const formula = operation({
  key: "number.formula",
  label: "Formula",
  description: "Calculates as a spreadsheet does, with variables: `=IF(price > 10, price * 0.9, price)`",
  fields: {
    formula: judged(field("Formula"), compileFormula),
    variables: mapped(pairs("Variables", { maximum: maxVariables }))
  },
  lines: "map",
  output: { result: nullable(either(num, string, bool)) },
  warnings: ["NUMBER_AS_TEXT", "RANDOM_SEEDED"],
  errors: [
    "FORMATTER_TEMPLATE_INVALID",
    "FORMATTER_FORMULA_SYNTAX",
    "FORMATTER_FORMULA_UNKNOWN_FUNCTION",
    "FORMATTER_FORMULA_UNKNOWN_VARIABLE",
    "FORMATTER_FORMULA_ARGUMENTS",
    "FORMATTER_FORMULA_TYPE",
    "FORMATTER_FORMULA_DOMAIN",
    "FORMATTER_FORMULA_LIMIT",
    "FORMATTER_DIVISION_BY_ZERO"
  ],
  limits: { formula: maxFormula, ...ofFormula, variables: maxVariables },
  cost: { call: 20, character: 200 },
  sample: {
    inputs: { formula: "price * quantity", variables: { price: 4.5, quantity: 3 } },
    options: {},
    output: { result: 13.5 }
  },
  run: ({ formula, variables }, call) => {
    if (formula.trim() === "") throw new Fault("FORMATTER_INPUT_REQUIRED", "formula is required", { field: "formula" })
    const value = evaluate(formula, variables, call)
    return { result: isNumber(value) ? emitted(value, call) : value }
  }
})
