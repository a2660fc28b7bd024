import { maxInput } from "./Parse.ts"
import { maxFormat } from "./Tokens.ts"

/** The common parts of the date operations. */
export const dateWarnings = [
  "DATE_AMBIGUOUS",
  "DATE_FUZZY",
  "DATE_TIME_ASSUMED",
  "DST_GAP_ADJUSTED",
  "DST_OVERLAP_EARLIER"
] as const
export const dateErrors = [
  "FORMATTER_DATE_UNPARSEABLE",
  "FORMATTER_DATE_FORMAT_INVALID",
  "FORMATTER_DATE_OUT_OF_RANGE",
  "FORMATTER_TIMEZONE_UNKNOWN"
] as const
export const dateLimits = { format: maxFormat, input: maxInput } as const
