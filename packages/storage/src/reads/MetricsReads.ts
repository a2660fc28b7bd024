import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import {
  defaultBuckets,
  type EventMeasure,
  type Granularity,
  granularities,
  maxBuckets,
  type RequestMeasure
} from "@tidegate/model/Metrics"
import { inReportSteps } from "@tidegate/runtime/ReportPace"
import { mapped } from "@tidegate/runtime/Resumable"
import type { EventFilter } from "./EventPlan.ts"
import { eventBuckets } from "./EventTally.ts"
import { ignoredBuckets } from "./IgnoredTally.ts"
import type { RequestFilter } from "./RequestConditions.ts"
import { requestBuckets } from "./RequestTally.ts"
import type { Buckets } from "./Buckets.ts"
import { readAtMost } from "./Tally.ts"
import { parseWindow, type WindowInput } from "./Window.ts"

/** A request for a series. `measures` selects which measures to return (default: all). */
export interface SeriesRequest<Measure extends string> {
  readonly window: WindowInput
  readonly granularity: Granularity | undefined
  readonly measures: ReadonlyArray<Measure>
}

type Failure = GatewayError | SqlError.SqlError

const all = Object.keys(granularities) as ReadonlyArray<Granularity>

/** The buckets of a window, in UTC. */
const bucketsOf = ({ from, to }: { readonly from: number; readonly to: number }, granularity: Granularity): Buckets => {
  const step = granularities[granularity]
  const start = Math.floor(from / step) * step
  return { from: start, to: Math.max(start + step, Math.ceil(to / step) * step), step }
}

const steps = ({ from, step, to }: Buckets): number => (to - from) / step

/** Advice to avoid reading rows: the rollups have minutes for two days, and hours. */
const advice = (granularity: Granularity): string =>
  granularities[granularity] < granularities["1m"]
    ? "take 1m or a coarser granularity, a shorter range or fewer filters"
    : granularity === "1h"
      ? "take a shorter range or fewer filters"
      : "take 1h, a shorter range or fewer filters"

const tooMany = (granularity: Granularity) =>
  fail("INVALID_TIME_RANGE", `more than ${readAtMost} records would have to be read: ${advice(granularity)}`)

/**
 * Reads a series in the requested granularity. By default in the finest one that has few buckets or, when that reads too many
 * rows, by the minute or the hour.
 */
const seriesOf = Effect.fnUntraced(function* <A, R>(
  { granularity, window }: Pick<SeriesRequest<string>, "granularity" | "window">,
  read: (buckets: Buckets) => Effect.Effect<A | null, Failure, R>
): Effect.fn.Return<{ readonly found: A; readonly buckets: Buckets; readonly granularity: Granularity }, Failure, R> {
  const missing = (["from", "to"] as const).filter((name) => window[name] === undefined)
  if (missing.length > 0) return yield* invalid(missing.map((path) => ({ path, message: "is required" })))
  const asked = yield* Effect.fromResult(parseWindow(window, yield* Clock.currentTimeMillis))
  const wanted =
    granularity ?? all.find((name) => steps(bucketsOf(asked, name)) <= defaultBuckets) ?? all[all.length - 1]!
  const buckets = bucketsOf(asked, wanted)
  if (steps(buckets) > maxBuckets) {
    const coarser = all.find((name) => steps(bucketsOf(asked, name)) <= maxBuckets)
    const instead = coarser === undefined ? "take a shorter range" : `take ${coarser} or coarser`
    return yield* fail("INVALID_TIME_RANGE", `the range has more than ${maxBuckets} buckets of ${wanted}: ${instead}`)
  }
  // A caller that named no granularity never gets an error about one.
  const tried =
    granularity === undefined ? [...new Set([wanted, coarserOf(wanted, "1m"), coarserOf(wanted, "1h")])] : [wanted]
  for (const name of tried) {
    const found = yield* read(bucketsOf(asked, name))
    if (found !== null) return { found, buckets: bucketsOf(asked, name), granularity: name }
  }
  return yield* tooMany(tried.at(-1)!)
})

const coarserOf = (a: Granularity, b: Granularity): Granularity => (granularities[a] > granularities[b] ? a : b)

const shown = Effect.fnUntraced(function* <Measure extends string>(
  { from, step, to }: Buckets,
  granularity: Granularity,
  measures: ReadonlyArray<Measure>,
  of: ReadonlyArray<Readonly<Record<Measure, number>>>
): Effect.fn.Return<Series<Measure>> {
  return {
    date_range: { start: new Date(from).toISOString(), end: new Date(to).toISOString() },
    granularity,
    series: yield* inReportSteps(
      mapped(of, (bucket, index) => ({
        timestamp: new Date(from + index * step).toISOString(),
        ...(Object.fromEntries(measures.map((measure) => [measure, bucket[measure]])) as { [M in Measure]?: number })
      }))
    )
  }
})

interface Series<Measure extends string> {
  readonly date_range: { readonly start: string; readonly end: string }
  readonly granularity: Granularity
  readonly series: ReadonlyArray<{ readonly timestamp: string } & { readonly [M in Measure]?: number }>
}

/** Requests over time. */
export const requests = Effect.fnUntraced(function* (
  team: string,
  filter: RequestFilter,
  request: SeriesRequest<RequestMeasure>
): Effect.fn.Return<
  Series<RequestMeasure> & { readonly partial: boolean; readonly unavailable_shard_count: number },
  Failure,
  SqlClient.SqlClient
> {
  const { buckets, found, granularity } = yield* seriesOf(request, (at) => requestBuckets(team, filter, at))
  // There is one database, so every answer is complete.
  return {
    ...(yield* shown(buckets, granularity, request.measures, found)),
    partial: false,
    unavailable_shard_count: 0
  }
})

/** Events over time, by the time that lists order them by, and by their current status. */
export const events = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  request: SeriesRequest<EventMeasure>
): Effect.fn.Return<Series<EventMeasure> & { readonly partial: boolean }, Failure, SqlClient.SqlClient> {
  const { measures } = request
  const ignoredIsAsked = measures.includes("ignored_count")
  const { buckets, found, granularity } = yield* seriesOf(
    request,
    Effect.fnUntraced(function* (at) {
      const events = yield* eventBuckets(team, filter, at)
      if (events === null) return null
      const ignored = ignoredIsAsked ? yield* ignoredBuckets(team, filter, at) : []
      return ignored === null ? null : { ...events, ignored }
    })
  )
  const rows = found.buckets.map((bucket, index) => ({ ...bucket, ignored_count: found.ignored[index] ?? 0 }))
  return { ...(yield* shown(buckets, granularity, measures, rows)), partial: found.partial }
})
