import type { Course } from "./Fault.ts"
import type { Findings } from "./Findings.ts"
import type { Connection } from "./Routes.ts"
import type { Arrival } from "./Target.ts"

/** Checks that every destination that the fault did not affect has deliveries again in time. Returns the longest time without a delivery. */
export const checkGaps = (
  findings: Findings,
  course: Course,
  undisturbed: ReadonlyArray<Connection>,
  arrivals: ReadonlyArray<Arrival>,
  until: number,
  slack: number
): number => {
  let longest = 0
  for (const { delayMs, key } of undisturbed) {
    const times = arrivals.filter((arrival) => arrival.key === key).map(({ at }) => at)
    const gap = longestGap(times, course.recoverableAt, until)
    longest = Math.max(longest, gap)
    const limitMs = course.limitMs * slack + delayMs
    if (gap <= limitMs) continue
    findings.broke(
      course.disturbed.length > 0 ? "one bad target costs the others nothing" : "deliveries go on in time",
      `${key}: ${Math.round(gap)} ms without a delivery, limit ${limitMs}`
    )
  }
  return longest
}

/** The longest time without any of these moments between `from` and `until`. */
export const longestGap = (times: ReadonlyArray<number>, from: number, until: number): number => {
  let longest = 0
  let last = from
  for (const time of times.filter((time) => time > from && time < until).sort((a, b) => a - b)) {
    longest = Math.max(longest, time - last)
    last = time
  }
  return Math.max(longest, until - last)
}
