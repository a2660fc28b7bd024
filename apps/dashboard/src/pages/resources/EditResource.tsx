import { useRef } from "react"
import { changesOf, Edit } from "../../parts/Edit.tsx"
import { valuesIn } from "../../parts/Fields.tsx"
import { Form, TextArea, textIn } from "../../parts/Form.tsx"
import { useDocument, variantsOf } from "../../parts/Schema.ts"
import { Failure, Loading } from "../../parts/States.tsx"
import type { Call } from "../../may.ts"
import { useRefresh, useSession } from "../../session.ts"
import { TryDestination } from "./TryDestination.tsx"
import { ConfigFields, type Kind, kinds, NameField, settingsOf } from "./TypedFields.tsx"

type Members = Readonly<Record<string, unknown>>

interface Stored {
  readonly id: string
  readonly name: string
  readonly description: string | null
}

interface StoredTyped extends Stored {
  readonly type: string
  readonly config: Members
}

const aboutIn = (form: HTMLFormElement): Members => ({
  name: textIn(form, "name"),
  description: textIn(form, "description") === "" ? null : textIn(form, "description")
})

/** The name and the description of a resource. */
export const AboutFields = ({ description, example, name }: Omit<Stored, "id"> & { readonly example: string }) => (
  <>
    <NameField example={example} value={name} />
    <TextArea name="description" label="Description" rows={2} isCode={false} defaultValue={description ?? ""} />
  </>
)

/** The changes of the name and the description. */
export const aboutChanges = (form: HTMLFormElement, { description, name }: Stored): Members =>
  changesOf({ name, description }, aboutIn(form))

/**
 * The form of a new source or destination with the present values. Only what differs from what it has shown is sent, so that secrets
 * stay what they are.
 */
const EditTyped = ({
  call,
  close,
  kind,
  save,
  stored
}: {
  readonly kind: Kind
  readonly call: Call
  readonly stored: StoredTyped
  readonly save: (changes: Members) => Promise<unknown>
  readonly close: () => void
}) => {
  const api = useDocument()
  const refresh = useRefresh()
  /** The first values of the fields. Null while there are no fields. */
  const shown = useRef<Members | null>(null)
  if (api.isPending) return <Loading />
  if (api.isError) return <Failure error={api.error} retry={api.refetch} />
  const { example, first } = kinds[kind]
  const schema = variantsOf(api.data, `${kind}Write`, first).get(stored.type)?.properties?.["config"] ?? {}
  const changesIn = (form: HTMLFormElement): Members => {
    const config = changesOf(shown.current ?? {}, valuesIn(form, "config."))
    return { ...aboutChanges(form, stored), ...(Object.keys(config).length === 0 ? {} : { config }) }
  }
  return (
    <Form
      call={call}
      label="Save"
      cancel={close}
      send={async (form) => {
        const changes = changesIn(form)
        if (Object.keys(changes).length > 0) await save(changes)
        await refresh()
        close()
      }}
    >
      <div
        className="stack"
        ref={(place) => {
          const form = place?.closest("form")
          if (form != null) shown.current ??= valuesIn(form, "config.")
        }}
      >
        <AboutFields {...stored} example={example} />
        <ConfigFields
          document={api.data}
          schema={settingsOf(api.data, kind, schema)}
          prefix="config."
          values={stored.config}
        />
      </div>
      {kind === "Destination" ? (
        <TryDestination bodyOf={(form) => ({ destination_id: stored.id, destination: changesIn(form) })} />
      ) : null}
    </Form>
  )
}

/** The settings of a source or a destination: to look at, and to change in fields or as JSON. */
export const TypedSettings = ({ kind, stored }: { readonly kind: Kind; readonly stored: StoredTyped }) => {
  const { client } = useSession()
  const path = `/${kinds[kind].plural}/{id}` as const
  const call = `PATCH ${path}` as const
  const save = (changes: Members) => client.patch(path, { params: { path: { id: stored.id } }, body: changes as never })
  return (
    <Edit
      call={call}
      title="Settings"
      value={stored.config}
      form={(close) => <EditTyped kind={kind} call={call} stored={stored} close={close} save={save} />}
      save={(config) => save({ config })}
    />
  )
}
