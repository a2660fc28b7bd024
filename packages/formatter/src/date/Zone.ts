import { Fault } from "../engine/Fault.ts"
import { memo } from "../engine/Memo.ts"
import type { Call } from "../engine/Operation.ts"

/** Names of zones and what clocks show in them. */

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

/** Whether there is a zone of that name. */
export const isZone = (name: string): boolean => name.length <= 64 && known(name).zone !== null

/** The zone of a name: IANA's, `UTC`, or an offset like `+02:00`. */
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

/** Refuses what no calendar of ours shows. */
export const inRange = (moment: Temporal.ZonedDateTime, field: string): Temporal.ZonedDateTime => {
  if (moment.year < 1 || moment.year > 9999) throw outOfRange(field)
  return moment
}

export const zonedAt = (millis: number, zone: string, field: string): Temporal.ZonedDateTime => {
  if (!(Math.abs(millis) <= 8.64e15)) throw outOfRange(field)
  return inRange(Temporal.Instant.fromEpochMilliseconds(Math.trunc(millis)).toZonedDateTimeISO(zone), field)
}

/** When clocks of the zone show that time: the later one of a time that they skip, the first of one that they show twice; and which it was. */
export const resolved = (
  local: Temporal.PlainDateTime,
  zone: string,
  field: string,
  call: Call
): Temporal.ZonedDateTime => {
  try {
    const moment = local.toZonedDateTime(zone)
    if (zone === "UTC") return inRange(moment, field)
    // The clocks are changed within a day, or it is neither.
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
