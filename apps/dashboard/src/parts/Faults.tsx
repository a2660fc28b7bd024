import { createContext, type ReactNode, use } from "react"
import { TidegateError } from "@tidegate/client/source"
import { messageOf } from "../gateway.ts"

/** The faults that the gateway has found in a form: those of single fields, and those of the form as a whole. */
export interface Faults {
  readonly atFields: ReadonlyMap<string, string>
  readonly others: ReadonlyArray<string>
}

export const noFaults: Faults = { atFields: new Map(), others: [] }

export const FaultsContext = createContext(noFaults)

/** Shows faults at the fields of the form around it: for a call of a part of the form, beside the one that sends it. */
export const ShowFaults = createContext<(faults: Faults) => void>(() => {})

interface Refused {
  readonly path: string
  readonly message: string
}

const refusedOf = (error: unknown): ReadonlyArray<Refused> => {
  if (!(error instanceof TidegateError)) return []
  // Names are unique in a team, so a conflict is always about the name.
  if (error.code === "RESOURCE_ALREADY_EXISTS") return [{ path: "name", message: "name has another one already" }]
  const { fields } = error.data
  return Array.isArray(fields) ? (fields as ReadonlyArray<Refused>) : []
}

const isBelow = (path: string, above: string): boolean => path.startsWith(`${above}.`)

/** The field that a path of the API names: its own, that of the list around it, or the first one of the members below it. */
const fieldOf = (path: string, names: ReadonlyArray<string>): string | undefined =>
  names.find((name) => name === path) ??
  names.find((name) => isBelow(path, name)) ??
  names.find((name) => isBelow(name, path))

const namesIn = (form: HTMLFormElement): ReadonlyArray<string> =>
  [...form.querySelectorAll<HTMLElement>("[data-field]")].map(({ dataset }) => dataset["field"] ?? "")

/**
 * Where a form shows a failure. One that is about none of its fields is shown as a whole. `nameOf`: the name that a path of the call has
 * in the form, if they differ.
 */
export const faultsOf = (
  error: unknown,
  form: HTMLFormElement,
  nameOf: (path: string) => string = (path) => path
): Faults => {
  const names = namesIn(form)
  const atFields = new Map<string, string>()
  const others: Array<string> = []
  for (const { message, path } of refusedOf(error)) {
    const written = nameOf(path)
    const name = fieldOf(written, names)
    if (name === undefined) others.push(`${written} ${message}`)
    else atFields.set(name, message)
  }
  return atFields.size === 0 ? { atFields, others: [messageOf(error)] } : { atFields, others }
}

const helpId = (name: string): string => `${name}-help`
const faultId = (name: string): string => `${name}-fault`

/** The attributes of a field below which its faults are shown. Screen readers read its help and its fault with it. */
export const useDescribed = (name: string) => {
  const isFaulty = use(FaultsContext).atFields.has(name)
  return {
    "data-field": name,
    "aria-invalid": isFaulty,
    "aria-describedby": isFaulty ? `${faultId(name)} ${helpId(name)}` : helpId(name)
  } as const
}

/** What is below a field: why the gateway refuses its value, and what it means. */
export const Below = ({ help, name }: { readonly name: string; readonly help?: ReactNode }) => {
  const fault = use(FaultsContext).atFields.get(name)
  return (
    <>
      {fault === undefined ? null : (
        <p id={faultId(name)} role="alert" className="fault">
          This {fault}
        </p>
      )}
      <div id={helpId(name)} className="muted">
        {help}
      </div>
    </>
  )
}
