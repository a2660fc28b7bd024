import { bad, type Case, type Cases, one } from "../Run.ts"

const of = (
  inputs: Case["inputs"],
  output: Case["output"],
  options: Case["options"] = {},
  warnings: Case["warnings"] = []
): Case => ({ inputs, output, options, warnings })

const isEmpty = ["INPUT_EMPTY"]
const unchanged = ["UNPARSEABLE_UNCHANGED"]
const seeded = ["RANDOM_SEEDED"]

const phone = (
  input: unknown,
  result: string,
  format: string,
  type: string | null = "TOLL_FREE",
  country: string | null = "US"
): Case => of({ input }, { result, valid: true, country, type }, { format })

const noPhone = (input: string): Case["output"] => ({ result: input, valid: false, country: null, type: null })

const math = (
  operation: string,
  values: unknown,
  output: unknown,
  warnings: ReadonlyArray<string> = [],
  more: object = {}
): Case =>
  of(
    { values, ...more },
    typeof output === "string" && output.startsWith("FORMATTER_") ? output : { result: output },
    { operation },
    warnings
  )

const formula = (formula: unknown, output: unknown, variables?: object, warnings: ReadonlyArray<string> = []): Case =>
  of(
    { formula, ...(variables === undefined ? {} : { variables }) },
    typeof output === "string" && output.startsWith("FORMATTER_") ? output : { result: output },
    {},
    warnings
  )

export const numbers: Cases = {
  "number.format": [
    // Three letters are a currency's code, or the text is no number.
    one("12abc", "12abc", {}, {}, ["UNPARSEABLE_UNCHANGED"]),
    one("12 XYZ", "12 XYZ", {}, {}, ["UNPARSEABLE_UNCHANGED"]),
    one("1234 EUR", "1,234"),
    one("1.234,5", "1,234.5", {}, { input_decimal_mark: "," }),
    one("-1234", "-1,234"),
    one("Something", "Something", {}, {}, unchanged),
    one("1234.567", "1,234.567"),
    one("1234.567", "1.234,567", {}, { output_format: "1" }),
    one("1234.567", "1 234.567", {}, { output_format: "2" }),
    one("1234.567", "1 234,567", {}, { output_format: "3" }),
    one("1234.565", "1,234.57", { decimals: 2 }),
    one(1234567.5, "1,234,567.50", { decimals: 2 }),
    one("123456789", "12,34,56,789", {}, { grouping: "indian" }),
    one("1234567", "1234567", {}, { grouping: "none" }),
    one("$1,234.50", "1,234.50"),
    one("", "", {}, {}, isEmpty),
    one("-0.4", "0", { decimals: 0 }),
    one("007", "7"),
    one("1e3", "1,000"),
    one(["1000", null], ["1,000", ""], {}, {}, isEmpty),
    bad(null, "INPUT_REQUIRED"),
    bad("1", "INPUT_INVALID", { decimals: 11 })
  ],
  "number.currency": [
    one("1234.1", "€1.234,10 EUR", { currency: "EUR" }, { locale: "es-ES" }),
    one("1234.1", "$1,234.10 USD"),
    one("1e400", "1e400", {}, {}, ["UNPARSEABLE_UNCHANGED"]),
    one("1234.1", "$1,234.10", {}, { pattern: "¤#,##0.00" }),
    one("1234.1", "$1234.10", {}, { pattern: "¤###0.00" }),
    one("1234.1", "1,234.10", {}, { pattern: "#,##0.00" }),
    one("1234.1", "1234.10", {}, { pattern: "###0.00" }),
    one("1234.1", "$1,234.10 US dollars", {}, { pattern: "¤#,##0.00 ¤¤¤" }),
    one("1234.1", "¥1,234 JPY", { currency: "jpy" }),
    one("1234.5", "1\u202f234,50\u00a0€", { currency: "EUR" }, { locale: "fr_FR", pattern: "locale" }),
    one("-5", "-$5.00 USD"),
    one("text", "text", {}, {}, unchanged),
    one("", "", {}, {}, isEmpty),
    one(["1", "2"], ["$1.00 USD", "$2.00 USD"]),
    bad("1", "CURRENCY_UNKNOWN", { currency: "XXQ" }),
    bad("1", "LOCALE_UNKNOWN", {}, { locale: "zz" }),
    bad("1", "CONFIG_INVALID", {}, { pattern: "0.0" })
  ],
  "number.phone": [
    phone("8005551212", "+18005551212", "0"),
    phone("8005551212", "+1 800-555-1212", "1"),
    phone("8005551212", "(800) 555-1212", "2"),
    phone("8005551212", "+1-800-555-1212", "3"),
    phone("8005551212", "800-555-1212", "4"),
    phone("8005551212", "+1 800 555 1212", "5"),
    phone("8005551212", "800 555-1212", "6"),
    phone("8005551212", "8005551212", "7"),
    phone("8005551212", "18005551212", "8"),
    // The digits of the national form, as Python's phonenumbers writes it.
    of(
      { input: "+44 20 7946 0958" },
      { result: "02079460958", valid: true, country: "GB", type: "FIXED_LINE" },
      { format: "7" }
    ),
    phone("(800) 555-1212 x5", "8005551212", "7"),
    phone("tel:+1-800-555-1212", "(800) 555-1212", "2"),
    phone("TEL:800-555-1212", "+18005551212", "0"),
    phone("tel:8005551212;phone-context=+1", "8005551212", "7"),
    phone("tel:+18005551212;ext=5", "+1-800-555-1212;ext=5", "3"),
    phone(8005551212, "+18005551212", "0"),
    of(
      { input: "030 901820" },
      { result: "+4930901820", valid: true, country: "DE", type: "FIXED_LINE" },
      { region: "de" }
    ),
    of({ input: "123" }, noPhone("123"), {}, ["PHONE_INVALID"]),
    of({ input: "hello" }, noPhone("hello"), {}, ["PHONE_INVALID"]),
    of({ input: "" }, noPhone(""), {}, isEmpty),
    bad("1", "CONFIG_INVALID", {}, { region: "ZZ" }),
    bad("1".repeat(251), "LIMIT_EXCEEDED")
  ],
  "number.math": [
    math("multiply", [4, 12.95, 1.06625], 55.23175),
    math("add", [0.1, 0.2], 0.3),
    math("add", ["1", "Something", 2], 3, ["INPUT_SKIPPED"]),
    math("add", [], 0),
    math("add", ["9007199254740991", 1], "9007199254740992", ["NUMBER_AS_TEXT"]),
    math("multiply", ["1e300", "1e300"], "FORMATTER_INPUT_INVALID"),
    math("add", ["9007199254740993", 1], "9007199254740994", ["NUMBER_AS_TEXT"]),
    math("subtract", [10, 3, 2], 5),
    math("divide", [10, 4], 2.5),
    math("divide", [1, 0], "FORMATTER_DIVISION_BY_ZERO"),
    math("negate", [1, -2], [-1, 2]),
    math("abs", -5, 5),
    math("round", [1.005, 2.5], [1.01, 2.5], [], { decimals: 2 }),
    math("round", 2.5, 3),
    math("negate", "x", "FORMATTER_INPUT_INVALID"),
    math("multiply", ["9007199254740993", 3], "27021597764222979", ["NUMBER_AS_TEXT"]),
    math("power", [1], "FORMATTER_CONFIG_INVALID"),
    math("add", null, "FORMATTER_INPUT_REQUIRED"),
    math("add", "5", 5)
  ],
  "number.formula": [
    formula("1 - -1", 2),
    formula('=IF(AND("Mon"="Sun",1<20),"a","b")', "b"),
    formula("(135743*(0.5/100))+2050+1350", 4078.715),
    formula("ABND(0)", "FORMATTER_FORMULA_UNKNOWN_FUNCTION"),
    formula("", "FORMATTER_INPUT_REQUIRED"),
    formula("-2^2", 4),
    formula("2^3^2", 64),
    formula("ROUND(8.385,2)", 8.39),
    formula("1%", 0.01),
    formula("price * 2", 9, { price: 4.5 }),
    formula('Price & "!"', "4.5!", { price: 4.5 }),
    formula("a + b", [2, 4], { a: [1, 3], b: 1 }),
    formula("missing", "FORMATTER_FORMULA_UNKNOWN_VARIABLE"),
    formula("1/0", "FORMATTER_DIVISION_BY_ZERO"),
    formula("IFERROR(1/0, 7)", 7),
    formula("SQRT(-1)", "FORMATTER_FORMULA_DOMAIN"),
    formula('"a" + 1', "FORMATTER_FORMULA_TYPE"),
    formula("1 +", "FORMATTER_FORMULA_SYNTAX"),
    formula("MAX(1,2;3)", "FORMATTER_FORMULA_SYNTAX"),
    formula("ABS()", "FORMATTER_FORMULA_ARGUMENTS"),
    formula("2^1001", "FORMATTER_FORMULA_LIMIT"),
    formula("FACT(171)", "FORMATTER_FORMULA_LIMIT"),
    formula("2^60", "1152921504606846976", undefined, ["NUMBER_AS_TEXT"]),
    formula("1=1", true),
    formula("x", "1) + SUM(9", { x: "1) + SUM(9" }),
    formula("MOD(-7,3)", 2),
    formula("QUOTIENT(-7,2)", -3),
    formula("INT(-1.5)", -2),
    formula('"say ""hi"""', 'say "hi"'),
    formula("0.1+0.2=0.3", true),
    formula("RANDBETWEEN(5,5)", 5, undefined, seeded)
  ],
  "number.random": [
    of({ lower: 5, upper: 5 }, { result: 5 }, {}, seeded),
    of({ lower: 0.57, upper: 0.57, decimals: 2 }, { result: 0.57 }, {}, seeded),
    of({ lower: 1.5, upper: 1.5, decimals: 1 }, { result: 1.5 }, {}, seeded),
    of({ lower: 2, upper: 2, count: 3 }, { result: [2, 2, 2] }, {}, seeded),
    of({ lower: 2, upper: 1 }, "FORMATTER_INPUT_INVALID"),
    of({ lower: 0.1, upper: 0.2 }, "FORMATTER_INPUT_INVALID"),
    of({ decimals: 11 }, "FORMATTER_INPUT_INVALID"),
    of({ count: 0 }, "FORMATTER_INPUT_INVALID"),
    of({ count: 101 }, "FORMATTER_INPUT_INVALID"),
    of({ lower: [1] }, "FORMATTER_LINE_ITEMS_NOT_SUPPORTED"),
    of({ lower: "abc" }, "FORMATTER_INPUT_INVALID"),
    of({ lower: -3, upper: -3 }, { result: -3 }, {}, seeded),
    of({ lower: "7", upper: "7" }, { result: 7 }, {}, seeded),
    of({ lower: -1e308, upper: 1e308 }, "FORMATTER_INPUT_INVALID")
  ]
}
