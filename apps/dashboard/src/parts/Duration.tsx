import { useState } from "react"

const units = [
  ["milliseconds", 1],
  ["seconds", 1_000],
  ["minutes", 60_000],
  ["hours", 3_600_000],
  ["days", 86_400_000]
] as const

/** The largest unit in which a duration is a whole number. */
const unitOf = (ms: number): number =>
  units.findLast(([, length]) => ms >= length && ms % length === 0)?.[1] ?? units[0][1]

/** A duration in the unit that the reader chooses; the value is in milliseconds. Null: nothing is written. */
export const Duration = ({
  change,
  label,
  ms
}: {
  readonly label: string
  readonly ms: number | null
  readonly change: (ms: number | null) => void
}) => {
  const [unit, setUnit] = useState(() => unitOf(ms ?? 1_000))
  return (
    <div className="field">
      <span className="label">{label}</span>
      <span className="joined">
        <input
          type="number"
          min={0}
          step="any"
          className="short"
          aria-label={label}
          value={ms === null ? "" : ms / unit}
          onChange={({ target }) => change(target.value === "" ? null : Math.round(Number(target.value) * unit))}
        />
        <select
          aria-label={`Unit of ${label.toLowerCase()}`}
          value={unit}
          onChange={({ target }) => {
            const next = Number(target.value)
            if (ms !== null) change(Math.round((ms / unit) * next))
            setUnit(next)
          }}
        >
          {units.map(([name, length]) => (
            <option key={name} value={length}>
              {name}
            </option>
          ))}
        </select>
      </span>
    </div>
  )
}
