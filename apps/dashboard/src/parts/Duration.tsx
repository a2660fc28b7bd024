import { type ReactNode, useState } from "react"
import { Below, useDescribed } from "./Faults.tsx"

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

/** A duration in words, exactly: `1 day`, `90 seconds`. */
export const exactLength = (ms: number): string => {
  const unit = unitOf(ms)
  const name = units.find(([, length]) => length === unit)![0]
  return `${ms / unit} ${ms === unit ? name.slice(0, -1) : name}`
}

interface Written {
  readonly label: string
  readonly ms: number | null
  readonly change: (ms: number | null) => void
}

const Length = ({
  change,
  label,
  ms,
  ...described
}: Written & {
  readonly required?: boolean
  readonly "aria-describedby"?: string
  readonly "aria-invalid"?: boolean
}) => {
  const [unit, setUnit] = useState(() => unitOf(ms ?? 1_000))
  return (
    <span className="joined">
      <input
        type="number"
        min={0}
        step="any"
        className="short"
        aria-label={label}
        value={ms === null ? "" : ms / unit}
        onChange={({ target }) => change(target.value === "" ? null : Math.round(Number(target.value) * unit))}
        {...described}
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
  )
}

/** A duration in the unit that the reader chooses; the value is in milliseconds. Null: nothing is written. */
export const Duration = (written: Written) => (
  <div className="field">
    <span className="label">{written.label}</span>
    <Length {...written} />
  </div>
)

/** The same as a field of a form, whose value is the milliseconds. */
export const DurationField = ({
  help,
  label,
  ms,
  name,
  required = false
}: {
  readonly name: string
  readonly label: string
  readonly help: ReactNode
  readonly ms: number | null
  readonly required?: boolean
}) => {
  const [now, setNow] = useState(ms)
  return (
    <div className="field">
      <span className="label">{label}</span>
      <Length label={label} ms={now} change={setNow} required={required} {...useDescribed(name)} />
      <input type="hidden" name={name} value={now ?? ""} />
      <Below name={name} help={help} />
    </div>
  )
}
