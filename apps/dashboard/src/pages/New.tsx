import { Link, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { Form, textIn } from "../parts/Form.tsx"
import { useChoices } from "../parts/Named.tsx"
import { Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import type { Call } from "../may.ts"
import { useRefresh, useSession } from "../session.ts"
import { TryDestination } from "./resources/TryDestination.tsx"
import { type Kind, kinds, longestName, NameField, typedIn, TypedFields, useMake } from "./resources/TypedFields.tsx"
import { useForms } from "./sources/Forms.ts"
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
      {kind === "Destination" ? <TryDestination bodyOf={(form) => ({ destination: typedIn(form) })} /> : null}
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

/** The source or destination of a connection: an existing one, or a new one with its settings. */
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
  /** The resource that was just created is selected from now on, so that the form does not create it twice if the next call is refused. */
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
