import { resolved, type Schema, type useDocument } from "./Schema.ts"

type Document = NonNullable<ReturnType<typeof useDocument>["data"]>

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

/** One field for each member of a schema, required ones first, with the values that it has so far. */
export const Fields = ({
  document,
  prefix,
  schema,
  values = {}
}: {
  readonly document: Document
  readonly schema: Schema
  readonly prefix: string
  readonly values?: Readonly<Record<string, unknown>>
}) => {
  const required = new Set(schema.required ?? [])
  const members = Object.entries(schema.properties ?? {}).toSorted(
    ([a], [b]) => Number(required.has(b)) - Number(required.has(a))
  )
  return members.map(([name, given]) => {
    const member = plain(document, given)
    const field = `${prefix}${name}`
    const kind = kindOf(member)
    const shown = shownAs(values[name], kind)
    const label = (
      <>
        {name}
        {required.has(name) ? " (required)" : ""}
      </>
    )
    return (
      <div className="field" key={name}>
        <label htmlFor={field}>{label}</label>
        {kind === "choice" || kind === "boolean" ? (
          <select id={field} name={field} data-kind={kind} required={required.has(name)} defaultValue={shown}>
            <option value="">–</option>
            {(kind === "boolean" ? ["true", "false"] : member.enum!).map((value) => (
              <option key={value}>{value}</option>
            ))}
          </select>
        ) : kind === "json" ? (
          <textarea
            id={field}
            name={field}
            data-kind="json"
            rows={3}
            spellCheck={false}
            className="mono"
            placeholder="JSON"
            defaultValue={shown}
          />
        ) : (
          <input
            id={field}
            name={field}
            data-kind={kind}
            type={kind === "number" ? "number" : isSecret(name) ? "password" : "text"}
            autoComplete="off"
            required={required.has(name)}
            placeholder={exampleOf(member)}
            defaultValue={shown}
          />
        )}
        {member.description === undefined ? null : <p className="muted">{member.description}</p>}
      </div>
    )
  })
}

/** The members that the reader has filled in, with the types of their fields. Throws for JSON that is none. */
export const valuesIn = (form: HTMLFormElement, prefix: string): Record<string, unknown> => {
  const values: Record<string, unknown> = {}
  for (const field of form.elements) {
    if (
      !(field instanceof HTMLInputElement || field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement)
    )
      continue
    if (!field.name.startsWith(prefix) || field.value === "") continue
    const name = field.name.slice(prefix.length)
    const { kind } = field.dataset
    if (kind === "number") values[name] = Number(field.value)
    else if (kind === "boolean") values[name] = field.value === "true"
    else if (kind === "json") values[name] = parsed(name, field.value)
    else values[name] = field.value
  }
  return values
}

const parsed = (name: string, text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${name} is not valid JSON`)
  }
}
