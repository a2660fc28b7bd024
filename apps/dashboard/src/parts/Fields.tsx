import type { ReactNode } from "react"
import { exactJson, isMembers, numberOf } from "../json.ts"
import { Below, useDescribed } from "./Faults.tsx"
import { type Document, objectOf, resolved, type Schema } from "./Schema.ts"

/** How a member is written: a field of its kind, or JSON for what has members or elements of its own. */
const kindOf = (schema: Schema): "text" | "number" | "boolean" | "choice" | "json" => {
  if (schema.enum !== undefined) return "choice"
  if (schema.type === "boolean") return "boolean"
  if (schema.type === "integer" || schema.type === "number") return "number"
  return schema.type === "string" ? "text" : "json"
}

/** A member that may be null is written as what it is otherwise. */
const plain = (document: Document, schema: Schema): Schema => {
  const found = resolved(document, schema)
  const others = (found.anyOf ?? []).map((one) => resolved(document, one)).filter(({ type }) => type !== "null")
  return others.length === 1
    ? { ...others[0], ...(found.description === undefined ? {} : { description: found.description }) }
    : found
}

/** An object with more members than this is written as JSON. One that must be written has more fields: somebody has to fill it in. */
const maxNested = 5
const maxRequired = 16

/**
 * The schema of an object that has a few plain members, such as a credential: each gets a field of its own. So do all members of an object that
 * must be written, such as a schedule. Null: it is written as JSON.
 */
const nestedOf = (document: Document, schema: Schema, isRequired: boolean): Schema | null => {
  const found = objectOf(document, schema)
  const members = Object.values(found.properties ?? {})
  const isShort = members.length > 0 && members.length <= (isRequired ? maxRequired : maxNested)
  const isPlain = members.every((one) => kindOf(plain(document, one)) !== "json")
  return isShort && (isRequired || isPlain) ? found : null
}

const membersOf = (value: unknown): Readonly<Record<string, unknown>> => (isMembers(value) ? value : {})

/** A stored secret as a read shows it. To write it back means that it stays. */
const isMasked = (text: string): boolean => text.includes("****")

const isSecret = (name: string): boolean => /secret|password|token|api_key|private_key/.test(name)

const exampleOf = ({ examples = [] }: Schema): string => {
  const [first] = examples
  return typeof first === "string" || typeof first === "number" ? String(first) : ""
}

/** A value as its field shows it. */
const shownAs = (value: unknown, kind: string): string =>
  value === undefined || value === null
    ? ""
    : typeof value === "string" && kind !== "json"
      ? value
      : JSON.stringify(value, null, 2)

/** A text of the API's document: what it has in backticks is code. */
const Description = ({ of }: { readonly of: string }) => (
  <p className="muted">{of.split("`").map((part, at) => (at % 2 === 0 ? part : <code key={part}>{part}</code>))}</p>
)

const labelOf = (name: string, isRequired: boolean): string => (isRequired ? `${name} (required)` : name)

export interface FieldsProps {
  readonly document: Document
  readonly schema: Schema
  /** The beginning of the fields' names. */
  readonly prefix: string
  /** The values that the members have so far. */
  readonly values?: Readonly<Record<string, unknown>>
}

/** One field for each member of a schema, required ones first. */
export const Fields = ({ document, prefix, schema, values = {} }: FieldsProps) => {
  const required = new Set(schema.required ?? [])
  const members = Object.entries(schema.properties ?? {}).toSorted(
    ([a], [b]) => Number(required.has(b)) - Number(required.has(a))
  )
  return members.map(([name, given]) => {
    const member = plain(document, given)
    const field = `${prefix}${name}`
    const kind = kindOf(member)
    const nested = kind === "json" ? nestedOf(document, member, required.has(name)) : null
    if (nested !== null) {
      return (
        <fieldset className="rule" key={name}>
          <legend>{labelOf(name, required.has(name))}</legend>
          {member.description === undefined ? null : <Description of={member.description} />}
          <Fields
            document={document}
            schema={required.has(name) ? nested : { ...nested, required: [] }}
            prefix={`${field}.`}
            values={membersOf(values[name])}
          />
        </fieldset>
      )
    }
    return (
      <MemberField
        key={name}
        field={field}
        label={labelOf(name, required.has(name))}
        kind={kind}
        member={member}
        isRequired={required.has(name)}
        isHidden={isSecret(name)}
        shown={shownAs(values[name], kind)}
      />
    )
  })
}

const MemberField = ({
  field,
  isHidden,
  isRequired,
  kind,
  label,
  member,
  shown
}: {
  readonly field: string
  readonly label: string
  readonly kind: ReturnType<typeof kindOf>
  readonly member: Schema
  readonly isRequired: boolean
  readonly isHidden: boolean
  readonly shown: string
}) => {
  const own = { id: field, name: field, "data-kind": kind, defaultValue: shown, ...useDescribed(field) }
  // Required members with only one possible value are filled in.
  const isDecided = isRequired && member.enum?.length === 1
  const isKept = isMasked(shown)
  const help: ReactNode = (
    <>
      {member.description === undefined ? null : <Description of={member.description} />}
      {isKept ? <p className="muted">It is stored and masked. It stays unless you write another one.</p> : null}
    </>
  )
  return (
    <div className="field">
      <label htmlFor={field}>{label}</label>
      {kind === "choice" || kind === "boolean" ? (
        <select {...own} required={isRequired}>
          {isDecided ? null : <option value="">–</option>}
          {(kind === "boolean" ? ["true", "false"] : member.enum!).map((value) => (
            <option key={value}>{value}</option>
          ))}
        </select>
      ) : kind === "json" ? (
        <textarea {...own} rows={3} spellCheck={false} className="mono" placeholder="JSON" />
      ) : (
        <input
          {...own}
          type={kind === "number" ? "number" : isHidden && !isKept ? "password" : "text"}
          autoComplete="off"
          required={isRequired}
          placeholder={exampleOf(member)}
          onFocus={({ target }) => {
            if (isMasked(target.value)) target.select()
          }}
        />
      )}
      <Below name={field} help={help} />
    </div>
  )
}

/** The object in which the last part of a path stands; it is made if it is not there. */
const placeFor = (values: Record<string, unknown>, path: ReadonlyArray<string>): Record<string, unknown> =>
  path.slice(0, -1).reduce<Record<string, unknown>>((at, name) => {
    at[name] ??= {}
    return at[name] as Record<string, unknown>
  }, values)

/** The members that the reader has filled in, with the types of their fields. Throws for JSON that is none. */
export const valuesIn = (form: HTMLFormElement, prefix: string): Record<string, unknown> => {
  const values: Record<string, unknown> = {}
  for (const field of form.elements) {
    if (
      !(field instanceof HTMLInputElement || field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement)
    )
      continue
    if (!field.name.startsWith(prefix) || field.value === "") continue
    const path = field.name.slice(prefix.length).split(".")
    const name = path.at(-1)!
    const { kind } = field.dataset
    placeFor(values, path)[name] =
      kind === "number"
        ? numberOf(field.value)
        : kind === "boolean"
          ? field.value === "true"
          : kind === "json"
            ? parsed(name, field.value)
            : field.value
  }
  return values
}

const parsed = (name: string, text: string): unknown => {
  try {
    return exactJson.parse(text)
  } catch {
    throw new Error(`${name} is not valid JSON`)
  }
}
