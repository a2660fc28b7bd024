import type { FormatterCode } from "@tidegate/model/FormatterCode"

/** Details of a failure, for programs and for the author of the step. */
export interface FaultDetails {
  readonly field?: string
  readonly line_item_index?: number
  readonly value_preview?: string
  readonly hint?: string
  readonly position?: number
  readonly limit?: number
  readonly actual?: number
}

/**
 * Why an operation has no result. Operations throw it, and the engine catches it at its surface. Exceptions are used because operations are
 * deeply nested, and a `Result` in every line would be a burden.
 */
export class Fault extends Error {
  readonly code: FormatterCode
  readonly details: FaultDetails
  constructor(code: FormatterCode, message: string, details: FaultDetails = {}) {
    super(message)
    this.code = code
    this.details = details
  }
}

/** The beginning of a value, for an error. */
export const previewOf = (value: unknown): string => {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "")
  return text.length > 80 ? `${text.slice(0, 79).toWellFormed()}…` : text.toWellFormed()
}

export const tooMuch = (what: string, limit: number, actual: number, field?: string): Fault =>
  new Fault("FORMATTER_LIMIT_EXCEEDED", `${what}: at most ${limit}, not ${actual}`, {
    limit,
    actual,
    ...(field === undefined ? {} : { field })
  })
