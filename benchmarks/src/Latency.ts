import { build, type Histogram } from "hdr-histogram-js"

/** A summary of recorded latencies, in milliseconds. */
export interface Latency {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** An HDR histogram of microseconds with three significant digits, for values up to ten minutes. */
export const makeHistogram = (): Histogram =>
  build({ lowestDiscernibleValue: 1, highestTrackableValue: 600_000_000, numberOfSignificantValueDigits: 3 })

/** Records a duration in microseconds. A negative one can only come from rounding of the clock, and counts as zero. */
export const record = (histogram: Histogram, micros: number): void => {
  histogram.recordValue(Math.max(0, Math.round(micros)))
}

/** The summary of a histogram made by `makeHistogram`. */
export const summarize = (histogram: Histogram): Latency => ({
  count: histogram.totalCount,
  p50: histogram.getValueAtPercentile(50) / 1000,
  p99: histogram.getValueAtPercentile(99) / 1000,
  max: histogram.maxValue / 1000
})
