import type { Schema } from "effect"

export type FieldType =
  | "string"
  | "text"
  | "integer"
  | "number"
  | "boolean"
  | "datetime"
  | "timezone"
  | "select"
  | "key_value"
  | "list"
  | "formula"
  | "pattern"
  | "any"

export interface Choice {
  readonly value: string | number
  readonly label: string
  readonly sample: string | null
}

/** The context in which a field is read. */
export interface Reading {
  /** The name of the field. */
  readonly field: string
  /** The time zone of the run, which is the default zone. */
  readonly timezone: string
  readonly warn: (code: WarningCode, message: string, field?: string) => void
}

/** An input or option: it validates values, and is shown in the catalog. */
export interface Field<out A = unknown> {
  readonly label: string
  readonly type: FieldType
  /** True for an input, which may be a template; false for an option, which is fixed in the step. */
  readonly mappable: boolean
  readonly required: boolean
  readonly default: Schema.Json
  /** A list means line items: the operation runs for each element. */
  readonly lines: boolean
  readonly choices: ReadonlyArray<Choice> | null
  /** Other values than the choices are accepted, too. */
  readonly custom: boolean
  readonly minimum: number | null
  readonly maximum: number | null
  readonly help: string | null
  /** Validates a literal text (not a template) of a step before it runs: a zone or a pattern. Throws a `Fault`. */
  readonly judge: ((text: string, field: string) => void) | null
  /** Converts a value for the operation; null and undefined go to `absent`. Throws a `Fault`. */
  readonly read: (value: unknown, at: Reading) => A
  readonly absent: (at: Reading) => A
}

export type Fields = Readonly<Record<string, Field>>
export type ValuesOf<F extends Fields> = { readonly [Name in keyof F]: F[Name] extends Field<infer A> ? A : never }

/** Warnings that an operation may return with its value. */
export const warnings = {
  INPUT_EMPTY: "The input is empty.",
  INPUT_COERCED: "A number or boolean was taken as text.",
  INPUT_SKIPPED: "A value that is none of this kind was left out.",
  TEMPLATE_VALUE_MISSING: "A `{{…}}` names what there is not.",
  NO_MATCH: "Nothing was found.",
  UNPARSEABLE_UNCHANGED: "The value is no number, and was left as it is.",
  PHONE_INVALID: "There is no such phone number.",
  DATE_AMBIGUOUS: "Day and month could be either; the month was taken to come first.",
  DATE_FUZZY: "The date was found in words.",
  DATE_TIME_ASSUMED: "The date has no time; midnight was taken.",
  DST_GAP_ADJUSTED: "The clocks skip that time; the later one was taken.",
  DST_OVERLAP_EARLIER: "The clocks show that time twice; the first was taken.",
  LOOKUP_FALLBACK_USED: "The table has no such key.",
  LINE_ITEM_LENGTH_MISMATCH: "The lists are not of one length.",
  DUPLICATE_HEADER_RENAMED: "Two columns have one name.",
  RAGGED_ROW: "A row has more or fewer cells than the first.",
  DIALECT_GUESSED: "What separates the columns was guessed.",
  PROPERTY_EXISTS: "A row has that property already; it was kept.",
  MALFORMED_ESCAPE: "A `%` is not followed by two hexadecimal digits.",
  LINK_SCHEME_REMOVED: "A link with a dangerous scheme was dropped.",
  NUMBER_AS_TEXT: "The number is too large for JSON's readers, and given as text.",
  OUTPUT_CAPPED: "There are more than are shown.",
  RANDOM_SEEDED: "The value is drawn from the run's seed: the same run draws it again.",
  ENGINE_VERSION_OLD: "There is a newer version of the engine.",
  WARNINGS_CAPPED: "There are more warnings than are shown."
} as const
export type WarningCode = keyof typeof warnings

export interface Warning {
  readonly code: WarningCode
  readonly field: string | null
  readonly line_item_index: number | null
  readonly message: string
}
