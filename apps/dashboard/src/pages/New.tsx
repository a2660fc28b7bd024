import { Link, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { Fields, valuesIn } from "../parts/Fields.tsx"
import { Form, textIn } from "../parts/Form.tsx"
import { useChoices } from "../parts/Named.tsx"
import { Panel } from "../parts/Panel.tsx"
import { objectOf, resolved, type Schema, variantsOf } from "../parts/Schema.ts"
import { Failure, Loading } from "../parts/States.tsx"
import type { Call } from "../may.ts"
import { useRefresh, useSession } from "../session.ts"
import { useForms } from "./sources/Forms.ts"
import type { SourceType } from "./sources/SourceTypes.ts"
import { TypeChoice } from "./sources/TypeChoice.tsx"
import { type Drafts, RuleBuilder, rulesOf } from "./rules/RuleBuilder.tsx"
import { TryRules } from "./rules/TryRules.tsx"

/** A form that makes a resource and opens it. The gateway's refusal is shown above the button, and nothing is lost. */
export const Making = ({
  call,
  children,
  make,
  title
}: {
  readonly call: Call
  readonly title: string
  readonly make: (form: HTMLFormElement) => Promise<string>
  readonly children: ReactNode
}) => {
  const navigate = useNavigate()
  const refresh = useRefresh()
  return (
    <>
      <header>
        <h1>{title}</h1>
      </header>
      <Form
        call={call}
        label={title}
        send={async (form) => {
          const to = await make(form)
          await refresh()
          await navigate({ to })
        }}
      >
        {children}
      </Form>
    </>
  )
}

export const NameField = ({
  example,
  isOptional = false,
  label = "Name",
  name = "name"
}: {
  readonly example: string
  readonly label?: string
  readonly name?: string
  readonly isOptional?: boolean
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <input id={name} name={name} required={!isOptional} maxLength={longestName} placeholder={example} />
  </div>
)

/** How long a name may be. */
const longestName = 155

type Kind = "Source" | "Destination"
type Document = NonNullable<ReturnType<typeof useForms>["made"]>["document"]

/** What a form about a kind shows and chooses at first. */
const kinds = {
  Source: { plural: "sources", first: "WEBHOOK", example: "Shop orders" },
  Destination: { plural: "destinations", first: "HTTP", example: "Warehouse" }
} as const

/** A type as its reader knows it: what the document says it does names the service, such as Slack. */
const titleOf = (type: string, { description }: Schema): string =>
  description === undefined ? type : `${type}: ${description.replace(/\.$/, "")}`

/**
 * What is written about a type. A provider's type has its own way to verify first, and those of other senders after it: somebody who
 * chooses the provider means its own.
 */
const settingsOf = (document: Document, kind: Kind, schema: Schema): Schema => {
  const [own] = (resolved(document, schema).anyOf ?? []).map((one) => resolved(document, one))
  const isProvider = kind === "Source" && own?.required?.includes("auth") === true
  return objectOf(document, isProvider ? own : schema)
}

/** The fields of a resource whose settings depend on its type: those of the type's schema. Their names begin with `prefix`. */
const TypedFields = ({
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
  const { example, first } = kinds[kind]
  const [type, setType] = useState<string>(first)
  const variants = variantsOf(document, `${kind}Write`, first)
  // A vendor without settings of its own has those of any sender.
  const variant = variants.get(type) ?? variants.get(first)
  const config = settingsOf(document, kind, variant?.properties?.["config"] ?? {})
  const field = `${prefix}type`
  return (
    <>
      <NameField name={`${prefix}name`} label={`Name${of}`} example={example} />
      {kind === "Source" ? (
        <TypeChoice name={field} label={`Type${of}`} chosen={type} types={types} change={setType} />
      ) : (
        <div className="field">
          <label htmlFor={field}>Type{of}</label>
          <select id={field} name={field} value={type} onChange={({ target }) => setType(target.value)}>
            {[...variants].map(([value, one]) => (
              <option key={value} value={value}>
                {titleOf(value, one)}
              </option>
            ))}
          </select>
        </div>
      )}
      <Panel title={`Settings of ${types.find((one) => one.type === type)?.name ?? type}`}>
        <Fields key={type} document={document} schema={config} prefix={`${prefix}config.`} />
      </Panel>
    </>
  )
}

/** What was written in these fields. */
const typedIn = (form: HTMLFormElement, prefix = "") => ({
  name: textIn(form, `${prefix}name`),
  type: textIn(form, `${prefix}type`),
  config: valuesIn(form, `${prefix}config.`)
})

/** Makes a source or a destination of what was written. */
const useMake = () => {
  const { client } = useSession()
  return (kind: Kind, form: HTMLFormElement, prefix = ""): Promise<{ readonly id: string; readonly name: string }> =>
    client.post(`/${kinds[kind].plural}`, { body: typedIn(form, prefix) as never })
}

/** The page with the form of a source or a destination. */
const Typed = ({ kind, label }: { readonly kind: Kind; readonly label: string }) => {
  const { failed, made } = useForms(kind === "Source")
  const makeOne = useMake()
  if (failed !== null) return <Failure error={failed.error} retry={failed.refetch} />
  if (made === null) return <Loading />
  return (
    <Making
      call={`POST /${kinds[kind].plural}`}
      title={label}
      make={async (form) => `/${kinds[kind].plural}/${(await makeOne(kind, form)).id}`}
    >
      <TypedFields {...made} kind={kind} />
    </Making>
  )
}

export const NewSource = () => <Typed kind="Source" label="Create the source" />

export const NewDestination = () => <Typed kind="Destination" label="Create the destination" />

export const Choose = ({
  choices,
  label,
  name,
  to
}: {
  readonly name: string
  readonly label: string
  readonly to: string
  readonly choices: ReadonlyArray<readonly [string, string]>
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <select id={name} name={name} required defaultValue="">
      <option value="">–</option>
      {choices.map(([id, text]) => (
        <option key={id} value={id}>
          {text}
        </option>
      ))}
    </select>
    {choices.length === 0 ? (
      <p>
        There is none yet: <Link to={to}>create one</Link>.
      </p>
    ) : null}
  </div>
)

/** The choice that shows the form of another resource. */
const another = "another"

/** An end of a connection: one that exists, or another one with its settings. */
const End = ({
  choices,
  choose,
  chosen,
  kind
}: {
  readonly kind: Kind
  readonly choices: ReadonlyArray<readonly [string, string]>
  readonly chosen: string
  readonly choose: (id: string) => void
}) => {
  const { failed, made } = useForms(kind === "Source", chosen === another)
  const field = kind.toLowerCase()
  return (
    <>
      <div className="field">
        <label htmlFor={field}>{kind}</label>
        <select id={field} required value={chosen} onChange={({ target }) => choose(target.value)}>
          <option value="">–</option>
          <option value={another}>A new one…</option>
          {choices.map(([id, text]) => (
            <option key={id} value={id}>
              {text}
            </option>
          ))}
        </select>
      </div>
      {chosen !== another ? null : failed !== null ? (
        <Failure error={failed.error} retry={failed.refetch} />
      ) : made === null ? (
        <Loading />
      ) : (
        <TypedFields {...made} kind={kind} prefix={`${field}.`} of={` of the ${field}`} />
      )}
    </>
  )
}

export const NewConnection = () => {
  const { client } = useSession()
  const refresh = useRefresh()
  const makeOne = useMake()
  const [source, setSource] = useState("")
  const [destination, setDestination] = useState("")
  const [drafts, setDrafts] = useState<Drafts>([])
  const ends = {
    Source: { choices: useChoices("sources"), chosen: source, choose: setSource },
    Destination: { choices: useChoices("destinations"), chosen: destination, choose: setDestination }
  }
  const rules = rulesOf(drafts)
  /** One that was just made is chosen from now on: when the next call is refused, the form does not make it twice. */
  const endOf = async (kind: Kind, form: HTMLFormElement) => {
    const { choices, choose, chosen } = ends[kind]
    if (chosen !== another) return { id: chosen, name: choices.find(([id]) => id === chosen)?.[1] ?? chosen }
    const made = await makeOne(kind, form, `${kind.toLowerCase()}.`)
    await refresh()
    choose(made.id)
    return made
  }
  return (
    <Making
      call="POST /connections"
      title="Create the connection"
      make={async (form) => {
        if (rules === null) throw new Error("A rule is not complete yet.")
        const name = textIn(form, "name")
        const from = await endOf("Source", form)
        const to = await endOf("Destination", form)
        const body = {
          name: name === "" ? `${from.name} to ${to.name}`.slice(0, longestName) : name,
          source_id: from.id,
          destination_id: to.id,
          rules
        }
        const { id } = await client.post("/connections", { body })
        return `/connections/${id}`
      }}
    >
      <End kind="Source" {...ends.Source} />
      <End kind="Destination" {...ends.Destination} />
      <NameField isOptional example="What it connects, if you leave this empty" />
      <Panel title="Rules">
        <div className="stack">
          <RuleBuilder drafts={drafts} change={setDrafts} />
          {drafts.length === 0 ? null : <TryRules rules={rules} sourceId={source === another ? "" : source} />}
        </div>
      </Panel>
    </Making>
  )
}
