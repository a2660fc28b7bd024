import { Link, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { Fields, valuesIn } from "../parts/Fields.tsx"
import { Form, textIn } from "../parts/Form.tsx"
import { useChoices } from "../parts/Named.tsx"
import { Panel } from "../parts/Panel.tsx"
import { objectOf, useDocument, variantsOf } from "../parts/Schema.ts"
import { Failure, Loading } from "../parts/States.tsx"
import { useRefresh, useSession } from "../session.ts"
import { type Drafts, RuleBuilder, rulesOf } from "./rules/RuleBuilder.tsx"
import { TryRules } from "./rules/TryRules.tsx"

/** A form that makes a resource and opens it. The gateway's refusal is shown above the button, and nothing is lost. */
export const Making = ({
  children,
  make,
  title
}: {
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

export const NameField = ({ example }: { readonly example: string }) => (
  <div className="field">
    <label htmlFor="name">Name</label>
    <input id="name" name="name" required maxLength={155} placeholder={example} />
  </div>
)

/** A form for a resource whose settings depend on its type: its fields are those of the type's schema. */
const Typed = ({
  first,
  kind,
  label,
  make
}: {
  readonly kind: "Source" | "Destination"
  readonly label: string
  /** The type that is chosen at first. */
  readonly first: string
  readonly make: (body: object) => Promise<{ readonly id: string }>
}) => {
  const api = useDocument()
  const [type, setType] = useState(first)
  if (api.isPending) return <Loading />
  if (api.isError) return <Failure error={api.error} retry={api.refetch} />
  const variants = variantsOf(api.data, `${kind}Write`, first)
  const config = objectOf(api.data, variants.get(type)?.properties?.["config"] ?? {})
  const folder = kind === "Source" ? "sources" : "destinations"
  return (
    <Making
      title={label}
      make={async (form) => {
        const { id } = await make({ name: textIn(form, "name"), type, config: valuesIn(form, "config.") })
        return `/${folder}/${id}`
      }}
    >
      <NameField example={kind === "Source" ? "Shop orders" : "Warehouse"} />
      <div className="field">
        <label htmlFor="type">Type</label>
        <select id="type" value={type} onChange={({ target }) => setType(target.value)}>
          {[...variants.keys()].map((value) => (
            <option key={value}>{value}</option>
          ))}
        </select>
      </div>
      <Panel title={`Settings of ${type}`}>
        <Fields key={type} document={api.data} schema={config} prefix="config." />
      </Panel>
    </Making>
  )
}

export const NewSource = () => {
  const { client } = useSession()
  return (
    <Typed
      kind="Source"
      label="Create the source"
      first="WEBHOOK"
      make={(body) => client.post("/sources", { body: body as never })}
    />
  )
}

export const NewDestination = () => {
  const { client } = useSession()
  return (
    <Typed
      kind="Destination"
      label="Create the destination"
      first="HTTP"
      make={(body) => client.post("/destinations", { body: body as never })}
    />
  )
}

export const Choose = ({
  choices,
  chosen,
  label,
  name,
  to
}: {
  readonly name: string
  readonly label: string
  readonly to: string
  readonly choices: ReadonlyArray<readonly [string, string]>
  /** Told what is chosen, if that matters to other fields. */
  readonly chosen?: (id: string) => void
}) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <select id={name} name={name} required defaultValue="" onChange={({ target }) => chosen?.(target.value)}>
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

export const NewConnection = () => {
  const { client } = useSession()
  const sources = useChoices("sources")
  const destinations = useChoices("destinations")
  const [source, setSource] = useState("")
  const [drafts, setDrafts] = useState<Drafts>([])
  const rules = rulesOf(drafts)
  return (
    <Making
      title="Create the connection"
      make={async (form) => {
        if (rules === null) throw new Error("A rule is not complete yet.")
        const body = {
          name: textIn(form, "name"),
          source_id: source,
          destination_id: textIn(form, "destination_id"),
          rules
        }
        const { id } = await client.post("/connections", { body })
        return `/connections/${id}`
      }}
    >
      <NameField example="Orders to the warehouse" />
      <Choose name="source_id" label="Source" choices={sources} to="/sources/new" chosen={setSource} />
      <Choose name="destination_id" label="Destination" choices={destinations} to="/destinations/new" />
      <Panel title="Rules">
        <div className="stack">
          <RuleBuilder drafts={drafts} change={setDrafts} />
          {drafts.length === 0 ? null : <TryRules rules={rules} sourceId={source} />}
        </div>
      </Panel>
    </Making>
  )
}
