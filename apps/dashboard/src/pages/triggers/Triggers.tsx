import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { type ReactNode, useRef, useState } from "react"
import { TidegateError } from "@tidegate/client/source"
import type { Row } from "../../gateway.ts"
import { exactLength } from "../../parts/Duration.tsx"
import { Form, textOf } from "../../parts/Form.tsx"
import { NamedLink } from "../../parts/Named.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { Facts, Panel } from "../../parts/Panel.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { useRefresh, useRole, useSession } from "../../session.ts"
import { type Members, TriggerFields } from "./TriggerFields.tsx"
import type { TriggerField, TriggerKind, TriggerName } from "./TriggerKind.ts"
import { titleOf, triggerKinds } from "./TriggerKinds.ts"

/** A setting in the form, and what is stored of it; null: it is new. */
interface Item {
  readonly key: number
  readonly values: Members | null
}

type Items = ReadonlyMap<TriggerName, ReadonlyArray<Item>>

const storedOf = ({ triggers }: Row<"Workflow">, { name }: TriggerKind): ReadonlyArray<Members> => {
  const stored = triggers?.[name] ?? []
  return Array.isArray(stored) ? stored : [stored]
}

const itemsOf = (workflow: Row<"Workflow">): Items =>
  new Map(triggerKinds.map((kind) => [kind.name, storedOf(workflow, kind).map((values, key) => ({ key, values }))]))

const pathOf = ({ most, name }: TriggerKind, index: number): string =>
  most > 1 ? `triggers.${name}.${index}` : `triggers.${name}`

const memberIn = (form: HTMLFormElement, { fields }: TriggerKind, path: string): Members =>
  Object.fromEntries(
    fields.flatMap(({ kind, name }): ReadonlyArray<readonly [string, string | number | null]> => {
      const text = textOf(form, `${path}.${name}`)
      if (text === "") return kind === "workflow" ? [[name, null]] : []
      return [[name, kind === "duration" || kind === "number" ? Number(text) : text]]
    })
  )

/**
 * The settings of the form, as they are stored. Without any setting, the stored value stays as it was, because an empty object has a meaning: the
 * workflow may have no source.
 */
const triggersIn = (form: HTMLFormElement, items: Items, { triggers }: Row<"Workflow">): Members | null => {
  const used = triggerKinds.flatMap((kind) => {
    const members = (items.get(kind.name) ?? []).map((_, index) => memberIn(form, kind, pathOf(kind, index)))
    if (members.length === 0) return []
    return [[kind.name, kind.most > 1 ? members : members[0]] as const]
  })
  return used.length === 0 && triggers === null ? null : Object.fromEntries(used)
}

/** Why a setting cannot be chosen now; null: it can. */
const obstacle = (kind: TriggerKind, items: Items, { source_id }: Row<"Workflow">): string | null => {
  const other = kind.excludes.find((name) => (items.get(name) ?? []).length > 0)
  if (other !== undefined) return `It cannot be used together with “${titleOf(other)}”.`
  const { needsOneOf = [] } = kind
  if (needsOneOf.length > 0 && needsOneOf.every((name) => (items.get(name) ?? []).length === 0)) {
    return `It needs ${needsOneOf.map((name) => `“${titleOf(name)}”`).join(" or ")}.`
  }
  return kind.needsSource === true && source_id === null ? "It needs a source, and the workflow has none." : null
}

const Setting = ({
  change,
  items,
  kind,
  workflow
}: {
  readonly kind: TriggerKind
  readonly items: Items
  readonly workflow: Row<"Workflow">
  readonly change: (own: ReadonlyArray<Item>) => void
}) => {
  const own = items.get(kind.name) ?? []
  const why = own.length === 0 ? obstacle(kind, items, workflow) : null
  const add = () => change([...own, { key: 1 + Math.max(0, ...own.map(({ key }) => key)), values: null }])
  return (
    <fieldset className="rule">
      <legend>{kind.title}</legend>
      <p className="muted">{kind.about}</p>
      {kind.most > 1 ? null : (
        <label>
          <input
            type="checkbox"
            aria-label={`Use it: ${kind.title}`}
            checked={own.length > 0}
            disabled={why !== null}
            onChange={() => (own.length > 0 ? change([]) : add())}
          />{" "}
          Use it
        </label>
      )}
      {why === null ? null : <p>{why}</p>}
      {own.map(({ key, values }, index) => (
        <div key={key} className={kind.most > 1 ? "stack part" : "stack"}>
          <TriggerFields kind={kind} path={pathOf(kind, index)} values={values} workflow={workflow} />
          {kind.most > 1 ? (
            <div>
              <button
                type="button"
                aria-label={`Remove ${index + 1}`}
                onClick={() => change(own.filter((one) => one.key !== key))}
              >
                Remove
              </button>
            </div>
          ) : null}
        </div>
      ))}
      {kind.most > 1 ? (
        <div className="bar">
          <button type="button" disabled={own.length >= kind.most} onClick={add}>
            Add one
          </button>
        </div>
      ) : null}
    </fieldset>
  )
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

const Write = ({ workflow }: { readonly workflow: Row<"Workflow"> }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  const path = { params: { path: { id: workflow.id } } }
  const [items, setItems] = useState(() => itemsOf(workflow))
  /** The version that the form began with, or that it has saved. */
  const known = useRef(workflow)
  const save = async (version: number, triggers: Members | null): Promise<Row<"Workflow">> => {
    try {
      return await client.patch("/workflows/{id}", { ...path, body: { version, triggers } })
    } catch (error) {
      if (!(error instanceof TidegateError && error.code === "workflow_conflict")) throw error
      const now = await client.get("/workflows/{id}", path)
      if (now.version !== version && isSame(now.triggers, known.current.triggers)) return save(now.version, triggers)
      throw new Error("Somebody else has changed the triggers meanwhile. Reload the page to see them.", {
        cause: error
      })
    }
  }
  return (
    <Form
      call="PATCH /workflows/{id}"
      label="Save the triggers"
      done="Saved"
      send={async (form) => {
        known.current = await save(known.current.version, triggersIn(form, items, known.current))
        await refresh()
      }}
    >
      {triggerKinds.map((kind) => (
        <Setting
          key={kind.name}
          kind={kind}
          items={items}
          workflow={workflow}
          change={(own) => setItems(new Map([...items, [kind.name, own]]))}
        />
      ))}
    </Form>
  )
}

const shownAs = ({ choices = [], empty, kind }: TriggerField, value: unknown): ReactNode => {
  if (value === null) return empty
  if (typeof value === "number") return kind === "duration" ? exactLength(value) : value.toLocaleString()
  if (typeof value !== "string") return undefined
  return kind === "workflow" ? (
    <NamedLink kind="workflows" id={value} />
  ) : (
    (choices.find(([one]) => one === value)?.[1] ?? value)
  )
}

/** For those who may not change them. */
const Show = ({ workflow }: { readonly workflow: Row<"Workflow"> }) => {
  const set = triggerKinds.flatMap((kind) => storedOf(workflow, kind).map((values) => ({ kind, values })))
  return (
    <>
      {set.map(({ kind, values }) => (
        <Panel key={`${kind.name} ${JSON.stringify(values)}`} title={kind.title}>
          <p className="muted">{kind.about}</p>
          <Facts of={kind.fields.map((field) => [field.label, shownAs(field, values[field.name])] as const)} />
        </Panel>
      ))}
      {set.length === 0 ? <p>Only requests of its source, and calls, begin runs.</p> : null}
      <OnlyOwners may="change workflows" />
    </>
  )
}

/** The form of a workflow's triggers: what starts runs besides requests, and what makes runs wait. */
export const Triggers = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const { mayOwn } = useRole()
  // Read once: what the reader writes stays, whatever others save.
  const workflow = useQuery({
    queryKey: ["triggers", team, id],
    queryFn: () => client.get("/workflows/{id}", { params: { path: { id } } }),
    gcTime: 0
  })
  if (workflow.isPending) return <Loading />
  if (workflow.isError) return <Failure error={workflow.error} retry={workflow.refetch} />
  const { data } = workflow
  return (
    <>
      <header>
        <h1>
          Triggers of <bdi>{data.name}</bdi>
        </h1>
        <div className="actions">
          <Link to={`/workflows/${id}`} className="button">
            Back
          </Link>
        </div>
      </header>
      {mayOwn ? <Write workflow={data} /> : <Show workflow={data} />}
    </>
  )
}
