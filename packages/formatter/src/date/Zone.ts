import { Fault } from "../engine/Fault.ts"
import { memo } from "../engine/Memo.ts"
import type { Call } from "../engine/Operation.ts"

/** Time zones, and local times in them. */

const known = memo(500, (name): { readonly zone: string | null } => {
  if (!/^(?:[A-Za-z][A-Za-z0-9_+\-/]{0,63}|[+-]\d\d(?::?\d\d)?)$/.test(name)) return { zone: null }
  try {
    return {
      zone: Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name === "Z" ? "UTC" : name).timeZoneId
    }
  } catch {
    return { zone: null }
  }
})

/** Whether a zone with this name exists. */
export const isZone = (name: string): boolean => name.length <= 64 && known(name).zone !== null

/** Returns the zone: an IANA name, `UTC`, or an offset like `+02:00`. Throws a `Fault` if it is unknown. */
export const checkZone = (name: string, field: string): string => {
  const { zone } = name.length > 64 ? { zone: null } : known(name.trim())
  if (zone === null) {
    throw new Fault("FORMATTER_TIMEZONE_UNKNOWN", "there is no such time zone", {
      field,
      value_preview: name.slice(0, 64)
    })
  }
  return zone
}

export const outOfRange = (field: string): Fault =>
  new Fault("FORMATTER_DATE_OUT_OF_RANGE", "the date is not within the years 1 to 9999", { field })

/** Throws a `Fault` for years that are not supported. */
export const inRange = (moment: Temporal.ZonedDateTime, field: string): Temporal.ZonedDateTime => {
  if (moment.year < 1 || moment.year > 9999) throw outOfRange(field)
  return moment
}

export const zonedAt = (millis: number, zone: string, field: string): Temporal.ZonedDateTime => {
  if (!(Math.abs(millis) <= 8.64e15)) throw outOfRange(field)
  return inRange(Temporal.Instant.fromEpochMilliseconds(Math.trunc(millis)).toZonedDateTimeISO(zone), field)
}

/**
 * The time at which the zone's clock shows `local`. A skipped time becomes the later one, and a repeated time the first one; both cause a
 * warning.
 */
export const resolved = (
  local: Temporal.PlainDateTime,
  zone: string,
  field: string,
  call: Call
): Temporal.ZonedDateTime => {
  try {
    const moment = local.toZonedDateTime(zone)
    if (zone === "UTC") return inRange(moment, field)
    // If the offset is the same a day before and a day after, the time is neither skipped nor repeated.
    if (moment.subtract({ hours: 26 }).offsetNanoseconds === moment.add({ hours: 26 }).offsetNanoseconds)
      return inRange(moment, field)
    if (!moment.toPlainDateTime().equals(local))
      call.warn("DST_GAP_ADJUSTED", "the clocks skip that time; the later one was taken", field)
    else if (local.toZonedDateTime(zone, { disambiguation: "later" }).epochNanoseconds !== moment.epochNanoseconds) {
      call.warn("DST_OVERLAP_EARLIER", "the clocks show that time twice; the first was taken", field)
    }
    return inRange(moment, field)
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    throw outOfRange(field)
  }
}
