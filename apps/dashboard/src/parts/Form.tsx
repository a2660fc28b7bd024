import { type FormEvent, type ReactNode, useState } from "react"
import { messageOf } from "../gateway.ts"

/** Fields and the button that sends them. A refusal is shown above the button, and nothing that was written is lost. */
export const Form = ({
  children,
  label,
  send
}: {
  /** What the button says. */
  readonly label: string
  readonly send: (form: HTMLFormElement) => Promise<unknown>
  readonly children: ReactNode
}) => {
  const [error, setError] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (form: HTMLFormElement) => {
    setBusy(true)
    setError(null)
    try {
      await send(form)
    } catch (failure) {
      setError(messageOf(failure))
    }
    setBusy(false)
  }
  return (
    <form
      className="form"
      onSubmit={(event: FormEvent<HTMLFormElement>) => {
        event.preventDefault()
        void submit(event.currentTarget)
      }}
    >
      {children}
      {error === null ? null : (
        <p role="alert" className="notice bad">
          {error}
        </p>
      )}
      <button type="submit" className="primary" disabled={isBusy}>
        {label}
      </button>
    </form>
  )
}

/** One line of text. `name` is also its id, so it is once on a page. */
export const TextField = ({
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
  readonly type?: "text" | "password" | "number" | "email" | "url"
  readonly min?: number
  readonly max?: number
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <input id={name} name={name} autoComplete="off" {...input} />
    {help === undefined ? null : <p className="muted">{help}</p>}
  </div>
)

export const ChoiceField = ({
  choices,
  defaultValue,
  label,
  name,
  onChoose
}: {
  readonly name: string
  readonly label: string
  readonly choices: ReadonlyArray<readonly [value: string, label: string]>
  readonly defaultValue?: string
  readonly onChoose?: (value: string) => void
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <select id={name} name={name} defaultValue={defaultValue} onChange={({ target }) => onChoose?.(target.value)}>
      {choices.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
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
