import { useId, useState } from "react"

/** A type of a resource, as people know it. */
export interface KnownType {
  readonly type: string
  readonly name: string
  readonly description: string
  /** The group in which it is offered; undefined: above all groups. */
  readonly group?: string
}

/** How the groups are called, in the order in which they are offered. */
const groups: ReadonlyArray<readonly [group: string | undefined, title: string]> = [
  [undefined, ""],
  ["plain", "Webhooks of any sender"],
  ["webhooks", "Webhooks of a provider"],
  ["brokers", "Messages of a broker"],
  ["schedule", "By a schedule"],
  ["items", "Items of a provider's account"],
  ["gateway", "The gateway's own events"]
]

/** The types whose name, type or description contains the text. Types whose name begins with it come first. */
const matching = (types: ReadonlyArray<KnownType>, text: string): ReadonlyArray<KnownType> => {
  const sought = text.trim().toLowerCase()
  const has = (one: string): boolean => one.toLowerCase().includes(sought)
  const begins = ({ name }: KnownType): number => Number(!name.toLowerCase().startsWith(sought))
  return types
    .filter(({ description, name, type }) => has(name) || has(type) || has(description))
    .toSorted((a, b) => begins(a) - begins(b))
}

const Options = ({ of }: { readonly of: ReadonlyArray<KnownType> }) =>
  of.map(({ name, type }) => (
    <option key={type} value={type}>
      {name}
    </option>
  ))

/** The choice of a resource's type by its name. What is searched chooses the first type that it finds. */
export const TypeChoice = ({
  change,
  chosen,
  example,
  label,
  name,
  of,
  types
}: {
  readonly name: string
  readonly label: string
  readonly chosen: string
  /** What somebody may search for. */
  readonly example: string
  /** What the labels add where a page has several such choices. */
  readonly of: string
  readonly types: ReadonlyArray<KnownType>
  readonly change: (type: string) => void
}) => {
  const [text, setText] = useState("")
  const help = useId()
  const found = matching(types, text)
  const search = (sought: string) => {
    setText(sought)
    const [first] = matching(types, sought)
    if (sought !== "" && first !== undefined) change(first.type)
  }
  const offered = found.length === 0 ? types : found
  return (
    <>
      <div className="field">
        <label htmlFor={`${name}.search`}>Search the type{of} by name</label>
        <input
          id={`${name}.search`}
          type="search"
          value={text}
          autoComplete="off"
          placeholder={example}
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
        <select
          id={name}
          name={name}
          value={chosen}
          aria-describedby={help}
          onChange={({ target }) => change(target.value)}
        >
          {groups.map(([group, title]) => {
            const those = offered.filter((one) => one.group === group)
            if (those.length === 0) return null
            if (group === undefined) return <Options key={title} of={those} />
            return (
              <optgroup key={title} label={title}>
                <Options of={those} />
              </optgroup>
            )
          })}
        </select>
        <p id={help} className="muted">
          {types.find(({ type }) => type === chosen)?.description}
        </p>
      </div>
    </>
  )
}
