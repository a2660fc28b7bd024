import { useState } from "react"
import { Duration } from "../../parts/Duration.tsx"
import { Conditions, membersOf } from "./Conditions.tsx"
import { listOf, type RuleForm, type RuleKind } from "./Rule.ts"

const modes = [
  ["whole", "the whole request"],
  ["exclude_fields", "all but these fields"],
  ["include_fields", "these fields"]
] as const
type Mode = (typeof modes)[number][0]

const targets = ["body", "headers"] as const

const modeOf = ({ exclude_fields, include_fields }: RuleForm<"deduplicate">["rule"]): Mode =>
  include_fields !== undefined ? "include_fields" : exclude_fields !== undefined ? "exclude_fields" : "whole"

const Form = ({ change, rule }: RuleForm<"deduplicate">) => {
  const { exclude_fields, include_fields, window, ...conditions } = rule
  const [mode, setMode] = useState(modeOf(rule))
  const [text, setText] = useState((include_fields ?? exclude_fields ?? []).join(", "))
  const [isNarrow, setNarrow] = useState(targets.some((target) => (rule[target] ?? null) !== null))
  const [only, setOnly] = useState(() =>
    Object.fromEntries(targets.flatMap((target) => (rule[target] ? [[target, rule[target]] as const] : [])))
  )
  const write = (next: Mode, fields: string, ms: number | null, narrowed: object) => {
    setMode(next)
    setText(fields)
    const list = listOf(fields)
    if (ms === null || (next !== "whole" && list.length === 0)) return change(null)
    change({ type: conditions.type, window: ms, ...(next === "whole" ? {} : { [next]: list }), ...narrowed })
  }
  return (
    <>
      <div className="bar">
        <label className="field">
          Equal are requests that agree in
          <select value={mode} onChange={({ target }) => write(target.value as Mode, text, window, only)}>
            {modes.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </label>
        {mode === "whole" ? null : (
          <label className="field">
            Fields
            <input
              value={text}
              placeholder="body.id, headers.x-event-id"
              onChange={({ target }) => write(mode, target.value, window, only)}
            />
          </label>
        )}
        <Duration label="Within" ms={window} change={(ms) => write(mode, text, ms, only)} />
      </div>
      <label>
        <input
          type="checkbox"
          checked={isNarrow}
          onChange={({ target }) => {
            setNarrow(target.checked)
            write(mode, text, window, target.checked ? only : {})
          }}
        />{" "}
        Only for requests that meet conditions
      </label>
      {isNarrow ? (
        <Conditions
          targets={targets}
          conditions={only}
          change={(next) => {
            if (next === null) return change(null)
            setOnly(membersOf(next) as never)
            write(mode, text, window, next)
          }}
        />
      ) : null}
    </>
  )
}

export const deduplicateRule: RuleKind<"deduplicate"> = {
  type: "deduplicate",
  title: "Deduplicate",
  about: "The first of equal requests becomes an event, and the others in the time after it are ignored.",
  fresh: { type: "deduplicate", window: 60_000 },
  Form
}
