import { useState } from "react"
import { Fields, type FieldsProps, valuesIn } from "../../parts/Fields.tsx"
import { ChoiceField, TextField, textIn } from "../../parts/Form.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { authKindsOf, type Document, objectOf, resolved, type Schema, variantsOf } from "../../parts/Schema.ts"
import { useSession } from "../../session.ts"
import type { SourceType } from "../sources/SourceTypes.ts"
import { type KnownType, TypeChoice } from "./TypeChoice.tsx"

export const NameField = ({
  example,
  isOptional = false,
  label = "Name",
  name = "name",
  value = ""
}: {
  readonly example: string
  readonly label?: string
  readonly name?: string
  readonly isOptional?: boolean
  readonly value?: string
}) => (
  <TextField
    name={name}
    label={label}
    required={!isOptional}
    maxLength={longestName}
    placeholder={example}
    defaultValue={value}
  />
)

/** How long a name may be. */
export const longestName = 155

export type Kind = "Source" | "Destination"

/** The kinds of resources whose forms depend on a type: the plural of each, its first type, and examples for its form. */
export const kinds = {
  Source: { plural: "sources", first: "WEBHOOK", example: "Shop orders", exampleType: "Stripe" },
  Destination: { plural: "destinations", first: "HTTP", example: "Warehouse", exampleType: "Slack" }
} as const

/** The types of destinations, as the API's document has them: the usual one, and the others by their names. */
const destinationTypes = (variants: ReadonlyMap<string, Schema>): ReadonlyArray<KnownType> => {
  const [usual, ...others] = [...variants].map(([type, { description = "", title = type }]): KnownType => ({
    type,
    name: title,
    description
  }))
  return [...(usual === undefined ? [] : [usual]), ...others.toSorted((a, b) => a.name.localeCompare(b.name))]
}

/**
 * The schema of a type. For a provider's type, its own verification comes first, and the general ones after it, because a reader who chooses the
 * provider wants its own verification.
 */
export const settingsOf = (document: Document, kind: Kind, schema: Schema): Schema => {
  const [own] = (resolved(document, schema).anyOf ?? []).map((one) => resolved(document, one))
  // A broker's source names the kind of its credential; a provider has one.
  const isProvider =
    kind === "Source" && own?.required?.includes("auth") === true && !own.required.includes("auth_type")
  return isProvider ? own : schema
}

/**
 * The fields of a config. Where it has several kinds of authentication, one of them is chosen, and its settings have fields. A stored
 * credential is shown only with its own kind.
 */
export const ConfigFields = ({ document, prefix, schema, values = {} }: FieldsProps) => {
  const authKinds = authKindsOf(document, schema)
  const stored = typeof values["auth_type"] === "string" ? values["auth_type"] : ""
  const whole = objectOf(document, schema)
  const isNeeded = whole.required?.includes("auth_type") === true
  const [chosen, choose] = useState(stored === "" && isNeeded ? ([...authKinds.keys()][0] ?? "") : stored)
  if (authKinds.size < 2) return <Fields document={document} schema={whole} prefix={prefix} values={values} />
  const { auth: _, auth_type: __, ...properties } = whole.properties ?? {}
  const kind = authKinds.get(chosen)
  const { auth: credential, ...others } = values
  return (
    <>
      <Fields document={document} schema={{ ...whole, properties }} prefix={prefix} values={others} />
      <ChoiceField
        name={`${prefix}auth_type`}
        label={isNeeded ? "auth_type (required)" : "auth_type"}
        choices={[
          ...(isNeeded ? [] : [["", "–"] as const]),
          ...[...authKinds.keys()].map((one) => [one, one] as const)
        ]}
        defaultValue={chosen}
        onChoose={choose}
        help={kind?.type.description}
      />
      {kind === undefined ? null : (
        <Fields
          key={chosen}
          document={document}
          schema={{ properties: { auth: kind.auth }, required: kind.isRequired ? ["auth"] : [] }}
          prefix={prefix}
          values={chosen === stored ? { auth: credential } : {}}
        />
      )}
    </>
  )
}

/** The fields of a resource whose settings depend on its type: those of the type's schema. Their names begin with `prefix`. */
export const TypedFields = ({
  document,
  kind,
  of = "",
  prefix = "",
  types
}: {
  readonly document: Document
  readonly kind: Kind
  readonly prefix?: string
  /** The types of sources, for a form of a source. */
  readonly types: ReadonlyArray<SourceType>
  /** What the labels add where a page has several such forms. */
  readonly of?: string
}) => {
  const { example, exampleType, first } = kinds[kind]
  const [type, setType] = useState<string>(first)
  const variants = variantsOf(document, `${kind}Write`, first)
  // A provider without its own settings has the settings of a general sender.
  const variant = variants.get(type) ?? variants.get(first)
  const config = settingsOf(document, kind, variant?.properties?.["config"] ?? {})
  const known = kind === "Source" ? types : destinationTypes(variants)
  return (
    <>
      <NameField name={`${prefix}name`} label={`Name${of}`} example={example} />
      <TypeChoice
        name={`${prefix}type`}
        label={`Type${of}`}
        of={of}
        example={exampleType}
        chosen={type}
        types={known}
        change={setType}
      />
      <Panel title={`Settings of ${known.find((one) => one.type === type)?.name ?? type}`}>
        <ConfigFields key={type} document={document} schema={config} prefix={`${prefix}config.`} />
      </Panel>
    </>
  )
}

/** What was written in these fields. */
export const typedIn = (form: HTMLFormElement, prefix = "") => ({
  name: textIn(form, `${prefix}name`),
  type: textIn(form, `${prefix}type`),
  config: valuesIn(form, `${prefix}config.`)
})

/** Makes a source or a destination of what was written. */
export const useMake = () => {
  const { client } = useSession()
  return (kind: Kind, form: HTMLFormElement, prefix = ""): Promise<{ readonly id: string; readonly name: string }> =>
    client.post(`/${kinds[kind].plural}`, { body: typedIn(form, prefix) as never })
}
