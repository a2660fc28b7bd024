import { useState } from "react"
import type { SourceType } from "./SourceTypes.ts"

/** How the groups are called, in the order in which they are offered. */
const groups: ReadonlyArray<readonly [SourceType["group"], string]> = [
  ["plain", "Webhooks of any sender"],
  ["webhooks", "Webhooks of a provider"],
  ["brokers", "Messages of a broker"],
  ["schedule", "By a schedule"],
  ["items", "Items of a provider's account"],
  ["gateway", "The gateway's own events"]
]

/** Those whose name, type or description has the text. Those whose name begins with it come first. */
const matching = (types: ReadonlyArray<SourceType>, text: string): ReadonlyArray<SourceType> => {
  const sought = text.trim().toLowerCase()
  const has = (one: string): boolean => one.toLowerCase().includes(sought)
  const begins = ({ name }: SourceType): number => Number(!name.toLowerCase().startsWith(sought))
  return types
    .filter(({ description, name, type }) => has(name) || has(type) || has(description))
    .toSorted((a, b) => begins(a) - begins(b))
}

/** The choice of a source's type by its name. What is searched chooses the first type that it finds. */
export const TypeChoice = ({
  change,
  chosen,
  label,
  name,
  types
}: {
  readonly name: string
  readonly label: string
  readonly chosen: string
  readonly types: ReadonlyArray<SourceType>
  readonly change: (type: string) => void
}) => {
  const [text, setText] = useState("")
  const found = matching(types, text)
  const search = (sought: string) => {
    setText(sought)
    const [first] = matching(types, sought)
    if (sought !== "" && first !== undefined) change(first.type)
  }
  return (
    <>
      <div className="field">
        <label htmlFor={`${name}.search`}>Search by name</label>
        <input
          id={`${name}.search`}
          type="search"
          value={text}
          autoComplete="off"
          placeholder="Stripe"
          onChange={({ target }) => search(target.value)}
          onKeyDown={(event) => {
            // Enter would send the form.
            if (event.key === "Enter") event.preventDefault()
          }}
        />
        {found.length === 0 ? <p role="status">No type has this name: all are offered.</p> : null}
      </div>
      <div className="field">
        <label htmlFor={name}>{label}</label>
        <select id={name} name={name} value={chosen} onChange={({ target }) => change(target.value)}>
          {groups.map(([group, title]) => {
            const those = (found.length === 0 ? types : found).filter((one) => one.group === group)
            return those.length === 0 ? null : (
              <optgroup key={group} label={title}>
                {those.map((one) => (
                  <option key={one.type} value={one.type}>
                    {one.name}
                  </option>
                ))}
              </optgroup>
            )
          })}
        </select>
        <p className="muted">{types.find(({ type }) => type === chosen)?.description}</p>
      </div>
    </>
  )
}
