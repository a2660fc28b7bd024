import { useMemo, useState } from "react"
import { exactJson, isNested } from "../json.ts"

/** Members of a list or an object that are shown at once. */
const maxMembers = 100
/** Characters of a text that are shown. */
const maxCharacters = 2_000

const isText = (value: unknown): value is string => typeof value === "string"

const shownLeaf = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text
}

const membersOf = (value: object): ReadonlyArray<readonly [name: string, value: unknown]> =>
  Array.isArray(value) ? value.map((member, at) => [String(at), member] as const) : Object.entries(value)

const Members = ({ of }: { readonly of: object }) => {
  const [most, setMost] = useState(maxMembers)
  const all = membersOf(of)
  return (
    <ul>
      {all.slice(0, most).map(([name, value]) => (
        <li key={name}>
          <Node name={name} value={value} />
        </li>
      ))}
      {all.length > most ? (
        <li>
          <button type="button" className="link" onClick={() => setMost(most + maxMembers)}>
            Show more: {most.toLocaleString()} of {all.length.toLocaleString()} are shown
          </button>
        </li>
      ) : null}
    </ul>
  )
}

/** A member, which is collapsed until it is opened. The content of a collapsed member is not rendered. */
const Node = ({ name, value }: { readonly name: string; readonly value: unknown }) => {
  const [isOpen, setOpen] = useState(false)
  const label = <bdi>{name}</bdi>
  if (!isNested(value)) {
    return (
      <>
        {label}: <bdi className={isText(value) ? "" : "muted"}>{shownLeaf(value)}</bdi>
      </>
    )
  }
  const count = membersOf(value).length
  const [open, close] = Array.isArray(value) ? "[]" : "{}"
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {label}:{" "}
        <span className="muted">
          {open}
          {count === 0 ? "" : ` ${count.toLocaleString()} `}
          {close}
        </span>
      </summary>
      {isOpen ? <Members of={value} /> : null}
    </details>
  )
}

/** Null: it is nested more deeply than the browser can read. */
const readDeeply = (text: string): object | null => {
  try {
    return exactJson.parse(text) as object
  } catch {
    return null
  }
}

/** JSON as a tree whose parts open one by one. The text has to be JSON of an object or a list. */
export const Tree = ({ text }: { readonly text: string }) => {
  const value = useMemo(() => readDeeply(text), [text])
  return value === null ? (
    <p className="muted">It is nested too deeply for a tree.</p>
  ) : (
    <div className="tree">
      <Members of={value} />
    </div>
  )
}
