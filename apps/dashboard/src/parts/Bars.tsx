import { type PointerEvent, useState } from "react"
import { useFilters } from "./Filters.tsx"
import type { Bar } from "./Series.ts"
import { exact } from "./Time.tsx"

const width = 1_000
const height = 140

/** The indexes of the bars between the two ends of a drag. */
interface Dragged {
  readonly from: number
  readonly to: number
}

/**
 * Counts over time, stacked. Each bar's numbers are its title, and the whole is described for readers who do not see it. A click or a drag
 * makes the bars the time range of the page; the same can be done in the fields of the range.
 */
export const Bars = ({
  bars,
  end,
  isLow = false,
  label
}: {
  readonly bars: ReadonlyArray<Bar>
  /** The end of the last bar. */
  readonly end: string
  readonly label: string
  readonly isLow?: boolean
}) => {
  const { change } = useFilters()
  const [dragged, setDragged] = useState<Dragged | null>(null)
  const totals = bars.map(({ parts }) => parts.reduce((sum, { count }) => sum + count, 0))
  const most = Math.max(1, ...totals)
  const step = width / Math.max(1, bars.length)
  const all = totals.reduce((sum, count) => sum + count, 0)
  const barAt = ({ clientX, currentTarget }: PointerEvent<SVGSVGElement>): number => {
    const { left, width: wide } = currentTarget.getBoundingClientRect()
    return Math.min(bars.length - 1, Math.max(0, Math.floor(((clientX - left) / wide) * bars.length)))
  }
  const first = dragged === null ? 0 : Math.min(dragged.from, dragged.to)
  const last = dragged === null ? 0 : Math.max(dragged.from, dragged.to)
  const choose = () => {
    if (dragged !== null && bars.length > 0) change({ from: bars[first]!.at, to: bars[last + 1]?.at ?? end })
    setDragged(null)
  }
  return (
    <svg
      className={isLow ? "chart low" : "chart"}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${all} in all, at most ${most} in one interval`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId)
        setDragged({ from: barAt(event), to: barAt(event) })
      }}
      onPointerMove={(event) => {
        const to = barAt(event)
        setDragged((now) => (now === null || now.to === to ? now : { ...now, to }))
      }}
      onPointerUp={choose}
      onPointerCancel={() => setDragged(null)}
    >
      {dragged === null ? null : (
        <rect className="chosen" x={first * step} y={0} width={(last - first + 1) * step} height={height} />
      )}
      {bars.map(({ at, parts }, index) => {
        let top = height
        return (
          <g key={at}>
            <title>{`${exact(Date.parse(at))}: ${parts.map(({ count }) => count).join(" + ")}`}</title>
            <rect x={index * step} y={0} width={step} height={height} fill="transparent" />
            {parts.map(({ count, tone }) => {
              const tall = (count / most) * (height - 4)
              top -= tall
              return count === 0 ? null : (
                <rect
                  key={tone}
                  className={tone}
                  x={index * step + step * 0.1}
                  y={top}
                  width={step * 0.8}
                  height={tall}
                />
              )
            })}
          </g>
        )
      })}
    </svg>
  )
}
