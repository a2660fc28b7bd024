/** Where a formatter step failed: in its settings, in its inputs, or in its execution. */
export type FormatterStage = "config" | "input" | "execution"

interface About {
  readonly stage: FormatterStage
  readonly when: string
}

const config = (when: string): About => ({ stage: "config", when })
const input = (when: string): About => ({ stage: "input", when })
const execution = (when: string): About => ({ stage: "execution", when })

/**
 * Why an operation of the formatter gives no value. A fault of a setting has the stage `config`; the same fault of a mapped value
 * has `input`.
 */
export const formatterCodes = {
  FORMATTER_UNKNOWN_OPERATION: config("The formatter has no such operation."),
  FORMATTER_VERSION_UNSUPPORTED: config("The engine has no such version."),
  FORMATTER_CONFIG_INVALID: config("An option of the operation is wrong."),
  FORMATTER_PATTERN_INVALID: config("The pattern is not valid in RE2."),
  FORMATTER_DATE_FORMAT_INVALID: config("The date format has a letter without a meaning."),
  FORMATTER_TIMEZONE_UNKNOWN: config("There is no such time zone."),
  FORMATTER_CURRENCY_UNKNOWN: config("There is no such currency."),
  FORMATTER_LOCALE_UNKNOWN: config("There is no such locale."),
  FORMATTER_FORMULA_SYNTAX: config("The formula has a syntax error at `position`."),
  FORMATTER_FORMULA_UNKNOWN_FUNCTION: config("The formula calls an unknown function."),
  FORMATTER_TEMPLATE_INVALID: input("A `{{…}}` is not closed, or is not a path."),
  FORMATTER_INPUT_REQUIRED: input("A required input is missing."),
  FORMATTER_INPUT_INVALID: input("An input has the wrong type."),
  FORMATTER_LINE_ITEMS_NOT_SUPPORTED: input("There is a list where a single value is required."),
  FORMATTER_LIMIT_EXCEEDED: input("An input is too long, or has too many elements."),
  FORMATTER_DATE_UNPARSEABLE: execution("The value is not a date in a known form."),
  FORMATTER_DATE_EXPRESSION_INVALID: execution("The expression is not like `+1 day -2 hours`."),
  FORMATTER_DATE_OUT_OF_RANGE: execution("The date is not within the years 1 to 9999."),
  FORMATTER_DIVISION_BY_ZERO: execution("A division by zero."),
  FORMATTER_FORMULA_UNKNOWN_VARIABLE: execution("The formula uses an unknown variable."),
  FORMATTER_FORMULA_ARGUMENTS: execution("A function was given too few or too many arguments."),
  FORMATTER_FORMULA_TYPE: execution("A function or operator was given a value of another type."),
  FORMATTER_FORMULA_DOMAIN: execution(
    "A function is not defined for its arguments, such as the root of a negative number."
  ),
  FORMATTER_FORMULA_LIMIT: execution("The formula, its nesting, its number of steps or its result exceeds a limit."),
  FORMATTER_CSV_INVALID: execution("A quote is not closed."),
  FORMATTER_OUTPUT_TOO_LARGE: execution("The output is too large."),
  FORMATTER_TIMEOUT: execution("The operation exceeds its time limit.")
} as const

export type FormatterCode = keyof typeof formatterCodes
