import { useSyncExternalStore } from "react"

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" })
const steps: ReadonlyArray<readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number]> = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1]
]

const ago = (ms: number): string => {
  const seconds = (ms - Date.now()) / 1_000
  const [unit, length] = steps.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1]
  return relative.format(Math.round(seconds / length), unit)
}

/** The time of the reader's zone with milliseconds, and its offset. */
export const exact = (ms: number): string => {
  const date = new Date(ms)
  const offset = date.toTimeString().replace(/.*(GMT[+-]\d{4}).*/, "$1")
  const part = (number: number, length = 2) => String(number).padStart(length, "0")
  return (
    `${date.getFullYear()}-${part(date.getMonth() + 1)}-${part(date.getDate())} ` +
    `${part(date.getHours())}:${part(date.getMinutes())}:${part(date.getSeconds())}.${part(date.getMilliseconds(), 3)} ${offset}`
  )
}

/** All times of a page are written again together, by one timer. */
const shown = new Set<() => void>()
let ticks = 0
let timer: ReturnType<typeof setInterval> | undefined
const follow = (draw: () => void): (() => void) => {
  shown.add(draw)
  timer ??= setInterval(() => {
    ticks++
    for (const draw of shown) draw()
  }, 10_000)
  return () => {
    shown.delete(draw)
    if (shown.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}
const ticksNow = () => ticks

/** A time: how long ago in the list, the exact one when it is pointed at. */
export const Time = ({ at, precise = false }: { readonly at: string | null; readonly precise?: boolean }) => {
  useSyncExternalStore(follow, ticksNow)
  if (at === null) return <span className="muted">–</span>
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={exact(ms)}>
      {precise ? exact(ms) : ago(ms)}
    </time>
  )
}

/** Milliseconds in words: `340 ms`, `2.1 s`, `3 min`. */
export const lengthOf = (ms: number | null | undefined): string => {
  if (ms === null || ms === undefined) return "–"
  if (ms > 0 && ms < 1) return "<1 ms"
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${(ms / 3_600_000).toFixed(1)} h`
}
