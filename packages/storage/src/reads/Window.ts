import { Result } from "effect"
import { type FieldError, fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { idBound, idTime, type Prefix } from "@tidegate/model/Ids"
import { parseTime } from "@tidegate/model/Timestamp"

/** A window of time in Unix milliseconds, both ends included. */
export interface Window {
  readonly from: number
  readonly to: number
}

/** The caller's window; the names say which fields an error is about. */
export interface WindowInput {
  readonly from?: string | undefined
  readonly to?: string | undefined
}

const day = 86_400_000

/** The requested window. By default it starts `span` before its end; the default span is 24 hours. */
export const parseWindow = (
  input: WindowInput,
  now: number,
  span: number = day
): Result.Result<Window, GatewayError> => {
  const wrong: Array<FieldError> = []
  const read = (name: "from" | "to"): number | null => {
    const text = input[name]
    if (text === undefined) return null
    const at = parseTime(text, now)
    if (at === null) wrong.push({ path: name, message: "must be ISO 8601, now, or now-<n><s|m|h|d>" })
    return at
  }
  const from = read("from")
  const to = read("to") ?? now
  if (wrong.length > 0) return Result.fail(invalid(wrong))
  const start = from ?? Math.max(0, to - span)
  if (start > to) return Result.fail(fail("INVALID_TIME_RANGE", "from is later than to"))
  return Result.succeed({ from: start, to })
}

export const appliedRange = ({ from, to }: Window): { readonly from: string; readonly to: string } => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString()
})

/** The ids of records made in the window: `>= lower` and `< upper`. */
export const idRange = (prefix: Prefix, { from, to }: Window): IdRange => ({
  lower: idBound(prefix, from),
  upper: idBound(prefix, to + 1)
})

export interface IdRange {
  readonly lower: string
  readonly upper: string
}

/**
 * The time of a record, which orders lists and selects windows and series: the time in its id. A record that slow rules made has
 * the time of its request there, and was stored later.
 */
export const timeOf = ({ created_at, id }: { readonly id: string; readonly created_at: Date }): string =>
  new Date(idTime(id) ?? created_at).toISOString()

/** A stretch of time (Unix ms); its end is excluded. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

/** The ids of records made in it. */
export const idsOf = (prefix: Prefix, { from, to }: Stretch): IdRange => idRange(prefix, { from, to: to - 1 })
