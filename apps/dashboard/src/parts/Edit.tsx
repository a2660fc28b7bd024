import { type FormEvent, type ReactNode, useState } from "react"
import { messageOf } from "../gateway.ts"
import { exactJson, isMembers } from "../json.ts"
import { type Call, useMay } from "../may.ts"
import { useRefresh } from "../session.ts"
import { Panel } from "./Panel.tsx"

type Members = Readonly<Record<string, unknown>>

/** What a change sends: members that are new or other, and null for those that were removed. */
export const changesOf = (before: Members, after: Members): Members => {
  const isSame = (name: string) => JSON.stringify(before[name]) === JSON.stringify(after[name])
  const removed = Object.keys(before).filter((name) => !(name in after))
  return Object.fromEntries([
    ...Object.entries(after).filter(([name]) => !isSame(name)),
    ...removed.map((name) => [name, null] as const)
  ])
}

const parsed = (text: string): unknown => {
  try {
    return exactJson.parse(text)
  } catch (error) {
    throw new Error(`This is not valid JSON: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * Settings as JSON, to look at and to change, and with `form` in its fields too. Only what the reader changes is sent, so that masked secrets stay what they are. If the
 * gateway refuses a change, it says why, and the text stays.
 */
export const Edit = ({
  call,
  form,
  save,
  title,
  value
}: {
  /** The fields; `close` ends the change. */
  readonly form?: (close: () => void) => ReactNode
  /** The call that `save` makes. */
  readonly call: Call
  readonly title: string
  readonly value: Members | ReadonlyArray<unknown>
  readonly save: (changes: never) => Promise<unknown>
}) => {
  const refresh = useRefresh()
  const may = useMay()
  const [editing, setEditing] = useState<"form" | "json" | null>(null)
  const [error, setError] = useState<string | null>(null)
  const text = JSON.stringify(value, null, 2)
  const store = async (written: string) => {
    setError(null)
    try {
      const next = parsed(written)
      await save((isMembers(next) && isMembers(value) ? changesOf(value, next) : next) as never)
      await refresh()
      setEditing(null)
    } catch (failure) {
      setError(messageOf(failure))
    }
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const written = new FormData(event.currentTarget).get("settings")
    void store(typeof written === "string" ? written : "")
  }
  const change = (
    <div className="bar">
      {form === undefined ? null : (
        <button type="button" onClick={() => setEditing("form")}>
          Change
        </button>
      )}
      <button type="button" onClick={() => setEditing("json")}>
        Edit as JSON
      </button>
    </div>
  )
  return (
    <Panel title={title} right={editing !== null || !may(call) ? undefined : change}>
      {editing === "form" ? (
        form?.(() => setEditing(null))
      ) : editing === "json" ? (
        <form onSubmit={submit}>
          <textarea
            name="settings"
            aria-label={`${title} as JSON`}
            className="mono"
            rows={Math.min(30, text.split("\n").length + 2)}
            spellCheck={false}
            defaultValue={text}
          />
          {error === null ? null : (
            <p role="alert" className="notice bad">
              {error}
            </p>
          )}
          <div className="tabs">
            <button type="submit" className="primary">
              Save
            </button>
            <button type="button" onClick={() => setEditing(null)}>
              Cancel
            </button>
          </div>
        </form>
      ) : (
        <pre className="text" tabIndex={0}>
          <bdi>{text}</bdi>
        </pre>
      )}
    </Panel>
  )
}
