import type { Row } from "../gateway.ts"
import type { Bar } from "./Bars.tsx"

/** Series of the API as bars. */

export const requestBars = (series: Row<"RequestSeries">["series"]): ReadonlyArray<Bar> =>
  series.map(({ accepted_count, rejected_count, timestamp }) => ({
    at: timestamp,
    parts: [
      { tone: "plain", count: accepted_count ?? 0 },
      { tone: "bad", count: rejected_count ?? 0 }
    ]
  }))

export const eventBars = (series: Row<"EventSeries">["series"]): ReadonlyArray<Bar> =>
  series.map(({ count, delivered_count, failed_count, timestamp }) => ({
    at: timestamp,
    parts: [
      { tone: "good", count: delivered_count ?? 0 },
      { tone: "bad", count: failed_count ?? 0 },
      { tone: "plain", count: Math.max(0, (count ?? 0) - (delivered_count ?? 0) - (failed_count ?? 0)) }
    ]
  }))
