import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react"
import { type Call, useLacking } from "../may.ts"
import { Below, FaultsContext, faultsOf, noFaults, ShowFaults, useDescribed } from "./Faults.tsx"

/**
 * Fields and the button that sends them. A refusal is shown at the fields that it is about, or else above the button, and nothing that
 * was written is lost. Who may not make its call sees the reason instead.
 */
export const Form = ({
  call,
  cancel,
  children,
  done,
  label,
  send
}: {
  /** The call that `send` makes. */
  readonly call: Call
  /** What the button says. */
  readonly label: string
  /** What is said when it was sent, if the form stays. */
  readonly done?: string
  /** What else ends it. */
  readonly cancel?: () => void
  readonly send: (form: HTMLFormElement) => Promise<unknown>
  readonly children: ReactNode
}) => {
  const lacking = useLacking()(call)
  const form = useRef<HTMLFormElement>(null)
  const [faults, setFaults] = useState(noFaults)
  const [isBusy, setBusy] = useState(false)
  const [isDone, setDone] = useState(false)
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), [faults])
  const submit = async (form: HTMLFormElement) => {
    setBusy(true)
    setFaults(noFaults)
    setDone(false)
    try {
      await send(form)
      setDone(true)
    } catch (failure) {
      setFaults(faultsOf(failure, form))
    }
    setBusy(false)
  }
  if (lacking !== null) return <p className="muted">{lacking}</p>
  return (
    <form
      ref={form}
      className="form"
      onSubmit={(event: FormEvent<HTMLFormElement>) => {
        event.preventDefault()
        void submit(event.currentTarget)
      }}
    >
      <ShowFaults value={setFaults}>
        <FaultsContext value={faults}>{children}</FaultsContext>
      </ShowFaults>
      {faults.others.length === 0 ? null : (
        <p role="alert" className="notice bad">
          {faults.others.join("; ")}
        </p>
      )}
      <div className="bar">
        <button type="submit" className="primary" disabled={isBusy}>
          {label}
        </button>
        {cancel === undefined ? null : (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
        {isDone && done !== undefined ? (
          <span role="status" className="badge good">
            {done}
          </span>
        ) : null}
      </div>
    </form>
  )
}

/** One line of text. `name` is also its id, so it is once on a page. */
export const TextField = ({
  change,
  help,
  label,
  name,
  ...input
}: {
  readonly name: string
  readonly label: string
  readonly help?: ReactNode
  readonly required?: boolean
  readonly maxLength?: number
  readonly placeholder?: string
  readonly defaultValue?: string
  readonly type?: "text" | "password" | "number" | "email" | "url" | "datetime-local"
  readonly min?: number
  readonly max?: number
  readonly change?: (value: string) => void
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <input
      id={name}
      name={name}
      autoComplete="off"
      onChange={({ target }) => change?.(target.value)}
      {...useDescribed(name)}
      {...input}
    />
    <Below name={name} help={help} />
  </div>
)

/** A text of several lines. `value` makes the page follow what is written, as in a field of React; `defaultValue` only begins with it. */
export const TextArea = ({
  change,
  help,
  isCode = true,
  label,
  name,
  ...area
}: {
  readonly name: string
  readonly label: string
  readonly rows: number
  readonly help?: ReactNode
  readonly value?: string
  readonly defaultValue?: string
  /** Whether its letters are all as wide as each other. */
  readonly isCode?: boolean
  readonly change?: (value: string) => void
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <textarea
      id={name}
      name={name}
      className={isCode ? "mono" : ""}
      spellCheck={false}
      autoComplete="off"
      onChange={({ target }) => change?.(target.value)}
      {...useDescribed(name)}
      {...area}
    />
    <Below name={name} help={help} />
  </div>
)

/** A box to check. */
export const SwitchField = ({
  help,
  isOn,
  label,
  name,
  required = false
}: {
  readonly name: string
  readonly label: string
  readonly help?: ReactNode
  readonly isOn: boolean
  readonly required?: boolean
}) => (
  <div className="field">
    <label>
      <input type="checkbox" name={name} value="on" required={required} defaultChecked={isOn} {...useDescribed(name)} />{" "}
      {label}
    </label>
    <Below name={name} help={help} />
  </div>
)

export const ChoiceField = ({
  choices,
  defaultValue,
  help,
  label,
  name,
  onChoose,
  required = false
}: {
  readonly name: string
  readonly label: string
  readonly choices: ReadonlyArray<readonly [value: string, label: string]>
  readonly defaultValue?: string
  readonly help?: ReactNode
  readonly required?: boolean
  readonly onChoose?: (value: string) => void
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <select
      id={name}
      name={name}
      required={required}
      defaultValue={defaultValue}
      onChange={({ target }) => onChoose?.(target.value)}
      {...useDescribed(name)}
    >
      {choices.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
    <Below name={name} help={help} />
  </div>
)

/** Several of some values, each with a box to check. */
export const Boxes = ({
  checked = [],
  label,
  name,
  values
}: {
  readonly name: string
  readonly label: string
  readonly values: ReadonlyArray<readonly [value: string, label: ReactNode]>
  readonly checked?: ReadonlyArray<string>
}) => (
  <fieldset className="boxes">
    <legend>{label}</legend>
    {values.map(([value, text]) => (
      <label key={value}>
        <input type="checkbox" name={name} value={value} defaultChecked={checked.includes(value)} /> {text}
      </label>
    ))}
  </fieldset>
)

/** A field's text; empty if there is no such field. */
export const textIn = (form: HTMLFormElement, name: string): string => {
  const value = new FormData(form).get(name)
  return typeof value === "string" ? value : ""
}

/** The same without the spaces around it. */
export const textOf = (form: HTMLFormElement, name: string): string => textIn(form, name).trim()

/** The values whose boxes are checked. */
export const checkedOf = (form: HTMLFormElement, name: string): Array<string> =>
  new FormData(form).getAll(name).filter((value) => typeof value === "string")

/** The lines of such a field that have something in them. */
export const linesOf = (form: HTMLFormElement, name: string): Array<string> =>
  textIn(form, name)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")

/** A value that the gateway shows only once. */
export const Secret = ({
  children,
  label,
  value
}: {
  readonly label: string
  readonly value: string
  readonly children: ReactNode
}) => (
  <div className="notice" role="status">
    <p>{children}</p>
    <input className="mono" aria-label={label} readOnly value={value} onFocus={({ target }) => target.select()} />
  </div>
)
