import { useNavigate, useSearch } from "@tanstack/react-router"
import { wordsOf } from "./Status.tsx"

/** What the URL says about a list: its filters, so that a view can be kept as a link. */
export type Search = Readonly<Record<string, string>>

/** The texts of a URL's query. Anything else in it is dropped. */
export const searchOf = (given: Record<string, unknown>): Search =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" ? [[name, String(value)]] : []
    )
  )

export const useFilters = () => {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const set = (name: string, value: string) => {
    const { [name]: _, ...others } = search
    void navigate({ to: ".", search: value === "" ? others : { ...others, [name]: value }, replace: true })
  }
  return { search, set }
}

/** One filter of a list: its values, of which none or one is chosen. */
export const Choice = ({
  label,
  name,
  values
}: {
  readonly name: string
  readonly label: string
  readonly values: ReadonlyArray<string | readonly [value: string, label: string]>
}) => {
  const { search, set } = useFilters()
  return (
    <select aria-label={label} value={search[name] ?? ""} onChange={({ target }) => set(name, target.value)}>
      <option value="">{label}: all</option>
      {values.map((one) => {
        const [value, text] = typeof one === "string" ? [one, wordsOf(one)] : one
        return (
          <option key={value} value={value}>
            {text}
          </option>
        )
      })}
    </select>
  )
}

const ranges = [
  ["now-1h", "Last hour"],
  ["now-24h", "Last 24 hours"],
  ["now-7d", "Last 7 days"],
  ["now-30d", "Last 30 days"]
] as const

export const defaultRange = "now-24h"

/** The time range that a page shows; other pages keep it, because it is in the URL. */
export const Range = () => {
  const { search, set } = useFilters()
  return (
    <select
      aria-label="Time range"
      value={search["from"] ?? defaultRange}
      onChange={({ target }) => set("from", target.value)}
    >
      {ranges.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}

/** Full text: it is searched for when the reader presses Enter. */
export const TextSearch = ({ label }: { readonly label: string }) => {
  const { search, set } = useFilters()
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      key={search["q"] ?? ""}
      defaultValue={search["q"] ?? ""}
      onKeyDown={(event) => {
        if (event.key === "Enter") set("q", event.currentTarget.value.trim())
      }}
    />
  )
}

/** Filters that came with a link from another page: shown, and removed by a click. */
export const Chips = ({ names }: { readonly names: Readonly<Record<string, string>> }) => {
  const { search, set } = useFilters()
  return Object.entries(names).flatMap(([name, label]) =>
    search[name] === undefined ? (
      []
    ) : (
      <button key={name} type="button" aria-label={`Remove the filter ${label}`} onClick={() => set(name, "")}>
        {label}: <span className="mono">{search[name]}</span> ×
      </button>
    )
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
