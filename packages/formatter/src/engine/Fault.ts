import type { FormatterCode } from "@tidegate/model/FormatterCode"

/** What a program, or whoever set the step up, needs to know of a failure. */
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
 * Why there is no value. Operations throw it, and the engine catches it at its surface: an operation is deep enough to make a result of
 * every line of its own a burden, and nothing else of it can fail.
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

/** As much of a value as is told in an error. */
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
