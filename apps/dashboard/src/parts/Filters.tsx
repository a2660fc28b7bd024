import { useNavigate, useSearch } from "@tanstack/react-router"

/** What the URL says about a list: its filters, so that a view can be kept as a link. */
export type Search = Readonly<Record<string, string>>

/** The texts of a URL's query. Anything else in it is dropped. */
export const searchOf = (given: Record<string, unknown>): Search =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" ? [[name, String(value)]] : []
    )
  )

/** The filters of these names, as the API takes those that can have several values. */
export const valuesOf = (search: Search, names: ReadonlyArray<string>): Readonly<Record<string, Array<string>>> =>
  Object.fromEntries(names.flatMap((name) => (search[name] === undefined ? [] : [[name, [search[name]]]])))

/** The filters of these names that are yes or no. */
export const flagsOf = (search: Search, names: ReadonlyArray<string>): Readonly<Record<string, boolean>> =>
  Object.fromEntries(names.flatMap((name) => (search[name] === undefined ? [] : [[name, search[name] === "true"]])))

export const useFilters = () => {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  /** Several filters at once; an empty text removes one. */
  const change = (values: Search) => {
    const next = Object.fromEntries(Object.entries({ ...search, ...values }).filter(([, value]) => value !== ""))
    void navigate({ to: ".", search: next, replace: true })
  }
  const set = (name: string, value: string) => change({ [name]: value })
  return { search, set, change }
}

const ranges = [
  ["now-1h", "Last hour"],
  ["now-24h", "Last 24 hours"],
  ["now-7d", "Last 7 days"],
  ["now-30d", "Last 30 days"]
] as const

export const defaultRange = "now-24h"

/** The time range of the URL, as the API takes it. */
export const rangeOf = ({ from = defaultRange, to }: Search) => ({ from, ...(to === undefined ? {} : { to }) })

/** A time of the URL as a field for local times has it; empty: it is none that the field can show. */
const localOf = (text: string | undefined): string => {
  const ms = Date.parse(text ?? "")
  if (Number.isNaN(ms)) return ""
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

const isoOf = (local: string): string => (local === "" ? "" : new Date(local).toISOString())

/** The time range that a page shows; other pages keep it, because it is in the URL. */
export const Range = () => {
  const { change, search } = useFilters()
  const { from = defaultRange, to } = search
  const isOwn = to !== undefined || ranges.every(([value]) => value !== from)
  const begin = () => {
    const hour = 3_600_000
    change({ from: new Date(Date.now() - hour).toISOString(), to: new Date().toISOString() })
  }
  return (
    <>
      <select
        aria-label="Time range"
        value={isOwn ? "own" : from}
        onChange={({ target }) => (target.value === "own" ? begin() : change({ from: target.value, to: "" }))}
      >
        {ranges.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        <option value="own">From … to …</option>
      </select>
      {isOwn ? (
        <>
          <input
            type="datetime-local"
            aria-label="From"
            className="when"
            value={localOf(from)}
            onChange={({ target }) => change({ from: isoOf(target.value) })}
          />
          <input
            type="datetime-local"
            aria-label="To"
            className="when"
            value={localOf(to)}
            onChange={({ target }) => change({ to: isoOf(target.value) })}
          />
        </>
      ) : null}
    </>
  )
}

/** Whether a list reads its newest rows every two seconds. */
export const Live = () => {
  const { search, set } = useFilters()
  return (
    <label>
      <input
        type="checkbox"
        checked={search["live"] === "1"}
        onChange={({ target }) => set("live", target.checked ? "1" : "")}
      />{" "}
      Live
    </label>
  )
}
