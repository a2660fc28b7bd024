import { exact } from "./Time.tsx"

export interface Bar {
  readonly at: string
  /** From the bottom up. */
  readonly parts: ReadonlyArray<{ readonly tone: "good" | "bad" | "plain"; readonly count: number }>
}

const width = 1_000
const height = 140

/** Counts over time, stacked. Each bar's numbers are its title, and the whole is described for readers who do not see it. */
export const Bars = ({ bars, label }: { readonly bars: ReadonlyArray<Bar>; readonly label: string }) => {
  const totals = bars.map(({ parts }) => parts.reduce((sum, { count }) => sum + count, 0))
  const most = Math.max(1, ...totals)
  const step = width / Math.max(1, bars.length)
  const all = totals.reduce((sum, count) => sum + count, 0)
  return (
    <svg
      className="chart"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${all} in all, at most ${most} in one interval`}
    >
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
