import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { messageOf } from "../gateway.ts"
import { Bars } from "./Bars.tsx"
import { waitAfter } from "./Pace.ts"
import type { Bar } from "./Series.ts"

/** Bars over time, and the end of the last one. */
export interface Counted {
  readonly bars: ReadonlyArray<Bar>
  readonly end: string
}

/** Counting costs more than reading the newest rows, most of all with filters for which the gateway has no counts ready. */
const pace = { minMs: 10_000, maxMs: 60_000, share: 0.02 }

/** The counts are read again when a twentieth of a bar has passed: sooner, nobody would see a difference. */
const paceOf = ([first, second]: ReadonlyArray<Bar>) =>
  first === undefined || second === undefined
    ? pace
    : {
        ...pace,
        minMs: Math.min(pace.maxMs, Math.max(pace.minMs, (Date.parse(second.at) - Date.parse(first.at)) / 20))
      }

const short = (at: string): string =>
  new Date(at).toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" })

/** How many rows of a list there are over its time range. */
export const Histogram = ({
  isLive,
  keys,
  label,
  read
}: {
  readonly label: string
  readonly keys: ReadonlyArray<unknown>
  readonly isLive: boolean
  readonly read: () => Promise<Counted>
}) => {
  const { data, error } = useQuery({
    queryKey: ["histogram", ...keys],
    queryFn: async () => {
      const began = performance.now()
      const counted = await read()
      return { ...counted, waitMs: waitAfter(performance.now() - began, paceOf(counted.bars)) }
    },
    refetchInterval: ({ state }) => isLive && (state.data?.waitMs ?? pace.minMs),
    placeholderData: keepPreviousData,
    retry: false
  })
  if (error !== null) return <p className="muted">The counts could not be read: {messageOf(error)}</p>
  if (data === undefined) return <div className="histogram" />
  const { bars, end } = data
  return (
    <div className="histogram">
      <Bars label={label} bars={bars} end={end} isLow />
      <div className="ends muted">
        <span>{bars[0] === undefined ? "" : short(bars[0].at)}</span>
        <span>{short(end)}</span>
      </div>
    </div>
  )
}
