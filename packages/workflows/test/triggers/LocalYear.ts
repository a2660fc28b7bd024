/**
 * The times of a cron expression in a year, worked out without a library for cron or dates: each minute of the year is rendered in
 * the time zone, and compared with the expression. Only the offset of the zone comes from the runtime (`Intl`).
 */

const minute = 60_000
const quarter = 15 * minute

/** The offset of a zone (ms) at each quarter of an hour from `from` to `until`: it changes at no other time. */
const offsetsOf = (timezone: string, from: number, until: number): ReadonlyArray<number> => {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: timezone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit"
  })
  const offsets: Array<number> = []
  for (let at = from; at < until; at += quarter) {
    const [, month, day, year, hour, minutes] = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+)$/
      .exec(format.format(at))!
      .map(Number)
    offsets.push(Date.UTC(year!, month! - 1, day, hour, minutes) - at)
  }
  return offsets
}

/** The values that a field names: `*`, `a`, `a-b`, each with `/n`, separated by commas. */
const valuesOf = (field: string, least: number, most: number): ReadonlySet<number> =>
  new Set(
    field.split(",").flatMap((item) => {
      const [range = "", step] = item.split("/")
      const [first, last] = range === "*" ? [least, most] : range.split("-").map(Number)
      const end = last ?? (step === undefined ? first! : most)
      return Array.from({ length: end - first! + 1 }, (_, i) => first! + i).filter(
        (value) => (value - first!) % Number(step ?? 1) === 0
      )
    })
  )

/** The minutes that fit of the quarter of an hour that begins at a local time, written as if it were UTC. */
const fitting = (cron: string): ((local: number) => ReadonlyArray<number>) => {
  const [minutes, hours, days, months, weekdays] = cron.split(" ") as [string, string, string, string, string]
  const minuteValues = [...valuesOf(minutes, 0, 59)]
  const ofQuarter = [0, 15, 30, 45].map((first) => minuteValues.filter((n) => n >= first && n < first + 15))
  const hourValues = valuesOf(hours, 0, 23)
  const dayValues = valuesOf(days, 1, 31)
  const monthValues = valuesOf(months, 1, 12)
  const weekdayValues = valuesOf(weekdays, 0, 6)
  // If both days are limited, one of them is enough.
  const either = days !== "*" && weekdays !== "*"
  return (local) => {
    const date = new Date(local)
    if (!hourValues.has(date.getUTCHours()) || !monthValues.has(date.getUTCMonth() + 1)) return []
    const [day, weekday] = [dayValues.has(date.getUTCDate()), weekdayValues.has(date.getUTCDay())]
    return (either ? day || weekday : day && weekday)
      ? ofQuarter[date.getUTCMinutes() / 15]!.map((n) => local + (n - date.getUTCMinutes()) * minute)
      : []
  }
}

export interface LocalYear {
  /** Unix ms. */
  readonly from: number
  readonly until: number
  /** The times at which an expression is due, by the rules of the page on triggers. */
  readonly due: (cron: string) => ReadonlyArray<number>
}

export const localYear = (timezone: string, year: number): LocalYear => {
  const [from, until] = [Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1)]
  const offsets = offsetsOf(timezone, from, until)
  const due = (cron: string): ReadonlyArray<number> => {
    const fits = fitting(cron)
    const occursTwice = cron.split(" ")[1]!.startsWith("*")
    const times = new Set<number>()
    /** The local times up to this one have been. */
    let known = from + offsets[0]! - minute
    for (const [i, offset] of offsets.entries()) {
      const start = from + i * quarter
      const before = offsets[i - 1] ?? offset
      // Local times that the clock leaves out are due as much later as it is moved.
      for (let quarters = start + before; quarters < start + offset; quarters += quarter) {
        for (const local of fits(quarters)) times.add(local - before)
      }
      for (const local of fits(start + offset)) {
        if (local > known || occursTwice) times.add(local - offset)
      }
      known = Math.max(known, start + offset + quarter - minute)
    }
    return [...times].filter((at) => at < until).toSorted((left, right) => left - right)
  }
  return { from, until, due }
}
