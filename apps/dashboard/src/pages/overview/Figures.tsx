import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { Row } from "../../gateway.ts"
import { rangeOf, useFilters, valuesOf } from "../../parts/Filters.tsx"
import { waitingIn } from "../../parts/Series.ts"
import { lengthOf, Time } from "../../parts/Time.tsx"
import type { ReactNode } from "react"
import { useSession } from "../../session.ts"
import { waiting } from "../Waiting.ts"

type Received = Row<"RequestSeries">["series"]
type Routed = Row<"EventSeries">["series"]

/** A part of all, in words. */
export const shareOf = (part: number, all: number): string =>
  all === 0 ? "–" : `${((part / all) * 100).toLocaleString(undefined, { maximumFractionDigits: 1 })} %`

/** The API's metrics have no percentiles, so they are made of the newest delivered events: a page of their list. */
const maxTimed = 100

interface Times {
  /** Sorted (ms). */
  readonly ms: ReadonlyArray<number>
  /** There are older events in the time range, which were not read. */
  readonly isCut: boolean
}

/** The value below which this share of them lies. */
const quantile = (sorted: ReadonlyArray<number>, share: number): number | undefined =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]

/** Filters in force, as the API takes them. */
type Narrowed = ReturnType<typeof valuesOf>

/** How long the newest delivered events took, from their creation to the target's answer: with all waits and retries (ms). */
const useTimes = (range: ReturnType<typeof rangeOf>, ofEvents: Narrowed): Times => {
  const { client, team } = useSession()
  const { data } = useQuery({
    queryKey: ["times", team, range, ofEvents],
    queryFn: async () => {
      const query = { ...range, ...ofEvents, status: ["SUCCESSFUL" as const], limit: maxTimed }
      const { has_more, models } = await client.get("/events", { params: { query } })
      const ms = models
        .flatMap(({ created_at, successful_at }) =>
          successful_at === null ? [] : [Math.max(0, Date.parse(successful_at) - Date.parse(created_at))]
        )
        .toSorted((a, b) => a - b)
      return { ms, isCut: has_more }
    },
    refetchInterval: 30_000
  })
  return data ?? { ms: [], isCut: false }
}

const sum = <Point,>(points: ReadonlyArray<Point>, of: (point: Point) => number | undefined): number =>
  points.reduce((all, point) => all + (of(point) ?? 0), 0)

/** The numbers of a time range, each with the list that it counts. */
export const Figures = ({
  ofEvents,
  ofRequests,
  received,
  routed
}: {
  readonly received: Received
  readonly routed: Routed
  readonly ofRequests: Narrowed
  readonly ofEvents: Narrowed
}) => {
  const range = rangeOf(useFilters().search)
  const { isCut, ms: times } = useTimes(range, ofEvents)
  const linked = (of: Narrowed) =>
    Object.fromEntries(Object.entries(of).flatMap(([name, values]) => values.map((value) => [name, value])))
  const delivered = sum(routed, (at) => at.delivered_count)
  const failed = sum(routed, (at) => at.failed_count)
  const oldest = routed.find((at) => waitingIn(at) > 0)?.timestamp
  const figures: ReadonlyArray<readonly [value: ReactNode, label: string, to: string, status: string]> = [
    [sum(received, (at) => at.accepted_count).toLocaleString(), "Requests accepted", "/requests", "accepted"],
    [sum(received, (at) => at.rejected_count).toLocaleString(), "Requests rejected", "/requests", "rejected"],
    [delivered.toLocaleString(), "Events delivered", "/events", "SUCCESSFUL"],
    [failed.toLocaleString(), "Events failed", "/events", "FAILED"],
    [shareOf(failed, failed + delivered), "Error rate", "/events", "FAILED"],
    [sum(routed, waitingIn).toLocaleString(), "Events waiting", "/events", waiting.name],
    [oldest === undefined ? "–" : <Time key="oldest" at={oldest} />, "The oldest that waits", "/events", waiting.name],
    [
      times.length === 0 ? "–" : `${lengthOf(quantile(times, 0.5))} / ${lengthOf(quantile(times, 0.99))}`,
      `p50 / p99 to the target${times.length === 0 ? "" : `, ${isCut ? "only of the newest" : "of all"} ${times.length}`}`,
      "/events",
      "SUCCESSFUL"
    ]
  ]
  return (
    <>
      <div className="figures">
        {figures.map(([value, label, to, status]) => (
          <div key={label} className="figure">
            <strong>{value}</strong>
            <Link to={to} search={{ ...range, ...linked(to === "/requests" ? ofRequests : ofEvents), status }}>
              {label}
            </Link>
          </div>
        ))}
      </div>
      {isCut ? (
        <p className="muted">
          The API counts events, and not how long they took: p50 and p99 are of the newest {times.length} delivered
          events of this time, and not of all. Choose a shorter time to come closer.
        </p>
      ) : null}
    </>
  )
}
