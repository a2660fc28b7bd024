import { useId, useState } from "react"
import { isMembers } from "../../json.ts"
import { valueOf } from "./Rule.ts"

export type Members = Readonly<Record<string, unknown>>

const operators = [
  ["$eq", "equals"],
  ["$neq", "does not equal"],
  ["$gt", "is greater than"],
  ["$gte", "is at least"],
  ["$lt", "is less than"],
  ["$lte", "is at most"],
  ["$contains", "contains"],
  ["$startsWith", "starts with"],
  ["$endsWith", "ends with"],
  ["$in", "is in the list or text"],
  ["$exist", "exists (true or false)"]
] as const

export const membersOf = (value: unknown): Members => (isMembers(value) ? value : {})

/** The conditions with one more, below the path of its value. */
const withCondition = (all: Members, [name, ...rest]: ReadonlyArray<string>, condition: Members): Members =>
  name === undefined
    ? { ...all, ...condition }
    : { ...all, [name]: withCondition(membersOf(all[name]), rest, condition) }

const objectIn = (text: string): Members | null => {
  const read = valueOf(text)
  return isMembers(read) ? read : null
}

/** Conditions on the parts of a request: they are added in a row of fields, and shown and changed as JSON. */
export const Conditions = ({
  change,
  conditions,
  targets
}: {
  readonly conditions: Members
  readonly targets: ReadonlyArray<string>
  /** Null: the text is no object. */
  readonly change: (conditions: Members | null) => void
}) => {
  const id = useId()
  const [text, setText] = useState(() => JSON.stringify(conditions, null, 2))
  const [target, setTarget] = useState(targets[0]!)
  const [member, setMember] = useState("")
  const [operator, setOperator] = useState<string>("$eq")
  const [value, setValue] = useState("")
  const write = (next: string) => {
    setText(next)
    change(objectIn(next))
  }
  const isReady = value !== "" && objectIn(text) !== null && (target !== "headers" || member !== "")
  const add = () => {
    if (!isReady) return
    const steps = target === "path" || member === "" ? [] : target === "body" ? member.split(".") : [member]
    const condition = { [operator]: valueOf(value) }
    write(JSON.stringify(withCondition(objectIn(text) ?? {}, [target, ...steps], condition), null, 2))
    setValue("")
  }
  return (
    <div
      className="stack"
      onKeyDown={(event) => {
        // Enter adds the condition, and does not send the form around it.
        if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return
        event.preventDefault()
        add()
      }}
    >
      <div className="bar">
        <select aria-label="Part of the request" value={target} onChange={(event) => setTarget(event.target.value)}>
          {targets.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        {target === "path" ? null : (
          <input
            aria-label="Member"
            className="short"
            value={member}
            placeholder={target === "body" ? "order.total" : "name"}
            onChange={(event) => setMember(event.target.value.trim())}
          />
        )}
        <select aria-label="Operator" value={operator} onChange={(event) => setOperator(event.target.value)}>
          {operators.map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
        <input
          aria-label="Value"
          className="short"
          value={value}
          placeholder="100"
          onChange={(event) => setValue(event.target.value)}
        />
        <button type="button" disabled={!isReady} onClick={add}>
          Add the condition
        </button>
      </div>
      <div className="field">
        <label htmlFor={id}>Conditions as JSON</label>
        <textarea
          id={id}
          className="mono"
          rows={Math.min(20, text.split("\n").length + 1)}
          spellCheck={false}
          value={text}
          aria-invalid={objectIn(text) === null}
          onChange={(event) => write(event.target.value)}
        />
        {objectIn(text) === null ? <p className="fault">This is not a JSON object.</p> : null}
      </div>
    </div>
  )
}
