import { Link } from "@tanstack/react-router"
import { useMemo } from "react"
import type { Row } from "../../gateway.ts"
import { Name } from "../../parts/Named.tsx"
import { toneOf, wordsOf } from "../../parts/Status.tsx"
import { lengthOf } from "../../parts/Time.tsx"
import { type Lane, lanesOf, scaleOf, type Span } from "./Lanes.ts"

/** At most this many rows are drawn for a request. The list below has all of them. */
const maxLanes = 60

const percent = (part: number): string => `${(part * 100).toFixed(2)}%`

/** This is not a link, because it may be only a few pixels wide. The list below has a link for it. */
const Bar = ({ place, span }: { readonly span: Span; readonly place: (at: number) => number }) => {
  const { from, kind, said, status, to } = span
  return (
    <span
      className={kind === "wait" ? "span wait-line" : `span ${toneOf(status)}`}
      style={{ left: percent(place(from)), width: percent(place(to) - place(from)) }}
      role="img"
      aria-label={said}
      title={said}
    />
  )
}

const Title = ({ lane: { connectionId, kind, link, name, note, status } }: { readonly lane: Lane }) => {
  const shown =
    name === null && connectionId !== null ? <Name kind="connections" id={connectionId} /> : <bdi>{name}</bdi>
  return (
    <div className="lane-title">
      <span className="muted">{kind}</span> {link === null ? shown : <Link to={link}>{shown}</Link>}
      <span className="muted">{note ?? wordsOf(status)}</span>
    </div>
  )
}

/** The trace as rows over time: what waited, what was done, and how long each part took. */
export const TraceChart = ({ trace }: { readonly trace: Row<"Trace"> }) => {
  const begin = Date.parse(trace.request.ingested_at)
  const { end, lanes, place } = useMemo(() => {
    const lanes = lanesOf(trace).slice(0, maxLanes)
    const end = lanes.reduce((most, { spans }) => spans.reduce((at, { to }) => Math.max(at, to), most), begin)
    return { lanes, end, place: scaleOf(begin, lanes) }
  }, [begin, trace])
  if (lanes.length === 0) return null
  return (
    <div className="trace" role="group" aria-label="Trace over time">
      {lanes.map((lane) => (
        <div className="lane" key={lane.id}>
          <Title lane={lane} />
          <div className="lane-line">
            {lane.spans.map((span) => (
              <Bar key={span.id} span={span} place={place} />
            ))}
          </div>
        </div>
      ))}
      <div className="lane ends muted">
        <span />
        <div className="joined">
          <span>Received</span>
          <span>Long waits are drawn shorter</span>
          <span>+{lengthOf(end - begin)}</span>
        </div>
      </div>
    </div>
  )
}
