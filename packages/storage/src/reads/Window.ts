import { Result } from "effect"
import { type FieldError, fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { idBound, type Prefix } from "@tidegate/model/Ids"

/** A window of time in Unix milliseconds, both ends included. */
export interface Window {
  readonly from: number
  readonly to: number
}

/** What a caller gave of a window; the names say which fields an error is about. */
export interface WindowInput {
  readonly from?: string | undefined
  readonly to?: string | undefined
}

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const relative = /^now(?:-(\d{1,9})([smhd]))?$/
// A plus sign that was not escaped arrives as a space.
const iso = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+\- ]\d{2}:?\d{2})?)?$/i

/** Unix milliseconds of ISO 8601 (UTC where no offset is given), `now` or `now-<n><s|m|h|d>`; null for anything else. */
export const parseTime = (text: string, now: number): number | null => {
  const ago = relative.exec(text)
  if (ago !== null) {
    return ago[1] === undefined ? now : Math.max(0, now - Number(ago[1]) * units[ago[2] as keyof typeof units])
  }
  const parts = iso.exec(text)
  if (parts === null) return null
  const [, day, time = "00:00", zone = "Z"] = parts
  const offset = zone
    .replace(" ", "+")
    .replace(/^([+-]\d{2})(\d{2})$/, "$1:$2")
    .toUpperCase()
  const at = Date.parse(`${day}T${time}${offset}`)
  if (Number.isNaN(at)) return null
  // Date.parse takes the 31st of a short month for the 1st of the next.
  if (new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10) !== day) return null
  return Math.max(0, at)
}

const day = units.d

/** The window asked for; where its start was not told, `span` before its end: 24 hours unless said otherwise. */
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
