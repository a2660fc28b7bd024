import type { components } from "@tidegate/client/source"

/** Series of the API as bars. */

type Schemas = components["schemas"]

export interface Bar {
  readonly at: string
  /** From the bottom up. */
  readonly parts: ReadonlyArray<{ readonly tone: "good" | "bad" | "plain" | "off"; readonly count: number }>
}

export const requestBars = (series: Schemas["RequestSeries"]["series"]): ReadonlyArray<Bar> =>
  series.map(({ accepted_count, rejected_count, timestamp }) => ({
    at: timestamp,
    parts: [
      { tone: "plain", count: accepted_count ?? 0 },
      { tone: "bad", count: rejected_count ?? 0 }
    ]
  }))

/** Events of a bucket that are not finished: those that are queued, under way or on hold. */
export const waitingIn = ({
  hold_count,
  processing_count,
  queued_count
}: Schemas["EventSeries"]["series"][number]): number =>
  (queued_count ?? 0) + (processing_count ?? 0) + (hold_count ?? 0)

/** Delivered, failed, waiting and cancelled events. The series has no count of the cancelled ones: they are all others. */
export const eventBars = (series: Schemas["EventSeries"]["series"]): ReadonlyArray<Bar> =>
  series.map((at) => {
    const { count = 0, delivered_count: delivered = 0, failed_count: failed = 0, timestamp } = at
    const waiting = waitingIn(at)
    return {
      at: timestamp,
      parts: [
        { tone: "good", count: delivered },
        { tone: "bad", count: failed },
        { tone: "plain", count: waiting },
        { tone: "off", count: Math.max(0, count - delivered - failed - waiting) }
      ]
    }
  })
