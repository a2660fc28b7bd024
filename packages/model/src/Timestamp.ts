import { Schema } from "effect"

/** A time as the interfaces show it: ISO 8601 in UTC with milliseconds. */
export const Timestamp = Schema.String.annotate({
  format: "date-time",
  description: "ISO 8601, UTC, milliseconds",
  examples: ["2026-01-01T00:00:00.000Z"]
})

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
  // Date.parse reads the 31st of a short month as the 1st of the next.
  if (new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10) !== day) return null
  return Math.max(0, at)
}
