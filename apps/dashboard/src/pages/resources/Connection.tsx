import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../../gateway.ts"
import { useMay } from "../../may.ts"
import { Action } from "../../parts/Action.tsx"
import { changesOf, Edit } from "../../parts/Edit.tsx"
import { ChoiceField, Form, textIn } from "../../parts/Form.tsx"
import { NamedLink, useChoices } from "../../parts/Named.tsx"
import { Facts, Panel } from "../../parts/Panel.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { Time } from "../../parts/Time.tsx"
import { useRefresh, useSession } from "../../session.ts"
import { ConnectionRules } from "../rules/ConnectionRules.tsx"
import { aboutChanges, AboutFields } from "./EditResource.tsx"
import { Head } from "./Head.tsx"

/** The present end of a connection is a choice even if the names are not read yet. */
const withPresent = (
  choices: ReadonlyArray<readonly [string, string]>,
  { id, name }: { readonly id: string; readonly name: string }
): ReadonlyArray<readonly [string, string]> => [[id, name], ...choices.filter(([one]) => one !== id)]

/** The form of a new connection with the present values. Its rules are changed in the panel below. */
const ConnectionAbout = ({ connection }: { readonly connection: Row<"Connection"> }) => {
  const { client } = useSession()
  const may = useMay()
  const refresh = useRefresh()
  const [isEditing, setEditing] = useState(false)
  const sources = withPresent(useChoices("sources"), connection.source)
  const destinations = withPresent(useChoices("destinations"), connection.destination)
  const call = "PATCH /connections/{id}"
  if (!may(call)) return null
  const { destination_id, id, source_id } = connection
  return (
    <Panel
      title="Name and ends"
      right={
        isEditing ? undefined : (
          <button type="button" onClick={() => setEditing(true)}>
            Change
          </button>
        )
      }
    >
      {isEditing ? (
        <Form
          call={call}
          label="Save"
          cancel={() => setEditing(false)}
          send={async (form) => {
            const ends = { source_id: textIn(form, "source_id"), destination_id: textIn(form, "destination_id") }
            const body = { ...aboutChanges(form, connection), ...changesOf({ source_id, destination_id }, ends) }
            if (Object.keys(body).length > 0)
              await client.patch("/connections/{id}", { params: { path: { id } }, body })
            await refresh()
            setEditing(false)
          }}
        >
          <AboutFields {...connection} example="Shop orders to Warehouse" />
          <ChoiceField name="source_id" label="Source" choices={sources} defaultValue={source_id} />
          <ChoiceField name="destination_id" label="Destination" choices={destinations} defaultValue={destination_id} />
        </Form>
      ) : (
        <p className="muted">The name, the description, the source and the destination.</p>
      )}
    </Panel>
  )
}

export const Connection = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const path = { params: { path: { id } } }
  const connection = useQuery({
    queryKey: ["connection", team, id],
    queryFn: () => client.get("/connections/{id}", path)
  })
  if (connection.isPending) return <Loading />
  if (connection.isError) return <Failure error={connection.error} retry={connection.refetch} />
  const { data } = connection
  return (
    <>
      <Head kind="connections" row={data} asksDisable="Route nothing more over it?" asksDelete="Delete it?">
        {data.paused_at === null ? (
          <Action call="PUT /connections/{id}/pause" run={() => client.put("/connections/{id}/pause", path)}>
            Pause
          </Action>
        ) : (
          <Action call="PUT /connections/{id}/unpause" run={() => client.put("/connections/{id}/unpause", path)}>
            Resume
          </Action>
        )}
      </Head>
      <Panel title="Connection">
        <Facts
          of={[
            ["Source", <NamedLink key="source" kind="sources" id={data.source_id} />],
            ["Destination", <NamedLink key="destination" kind="destinations" id={data.destination_id} />],
            ["Description", data.description ?? undefined],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={data.created_at} precise />],
            [
              "Events",
              <Link key="events" to="/events" search={{ connection_id: id }}>
                Show its events
              </Link>
            ]
          ]}
        />
      </Panel>
      <ConnectionAbout connection={data} />
      <ConnectionRules key={JSON.stringify(data.rules)} connection={data} />
      <Edit
        call="PATCH /connections/{id}"
        title="The same rules"
        value={data.rules}
        save={(rules) => client.patch("/connections/{id}", { ...path, body: { rules } })}
      />
    </>
  )
}
