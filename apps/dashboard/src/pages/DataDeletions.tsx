import { useQuery } from "@tanstack/react-query"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Form, TextField, textOf } from "../parts/Form.tsx"
import { Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useSession } from "../session.ts"

type Deletion = Row<"DataDeletion">

const Counts = ({ of, total }: { readonly of: Readonly<Record<string, number>>; readonly total: number }) =>
  total === 0 ? (
    0
  ) : (
    <details>
      <summary>{total.toLocaleString()}</summary>
      {Object.entries(of).map(([table, count]) => (
        <div key={table}>
          {table}: {count.toLocaleString()}
        </div>
      ))}
    </details>
  )

/** The filter of the deletion. The text itself is not stored: the gateway keeps its hash. */
const soughtBy = ({ filter, text_hash }: Deletion): string => {
  const said = Object.entries(filter).map(([name, value]) => `${name}: ${String(value)}`)
  return [...(text_hash === null ? [] : ["a text"]), ...said].join(", ")
}

const Plan = () => {
  const { client } = useSession()
  const refresh = useRefresh()
  return (
    <Form
      call="POST /data-deletions"
      label="Plan the deletion"
      send={async (form) => {
        await client.post("/data-deletions", { body: { text: textOf(form, "text") } })
        await refresh()
      }}
    >
      <TextField
        name="text"
        label="Text of a person"
        required
        placeholder="ada@example.com"
        help="Requests and runs with this text in them are looked for and counted. Nothing is deleted before you confirm."
      />
    </Form>
  )
}

/** The deletions of data, with their plans and proofs. For owners. */
export const DataDeletions = () => {
  const { client, team } = useSession()
  const list = useQuery({
    queryKey: ["data deletions", team],
    queryFn: () => client.get("/data-deletions"),
    refetchInterval: ({ state }) =>
      state.data?.data.some(({ cancelable, stage }) => cancelable && stage !== "planned") === true ? 2_000 : false
  })
  if (list.isPending) return <Loading />
  if (list.isError) return <Failure error={list.error} retry={list.refetch} />
  const { data } = list.data
  return (
    <Panel title="Deletions of data">
      <div className="stack">
        {data.some(({ cancelable }) => cancelable) ? null : <Plan />}
        {data.length === 0 ? (
          <p className="muted">No data was deleted yet.</p>
        ) : (
          <Rows
            label="Deletions of data"
            columns={["Status", "Requested", "Selected by", "Planned rows", "Deleted rows", ""]}
          >
            {data.map((one) => (
              <tr key={one.id}>
                <td>
                  <Status of={one.stage} />
                  {one.error === null ? null : <div className="muted">{one.error.message}</div>}
                </td>
                <td>
                  <Time at={one.requested_at} />
                </td>
                <td>
                  <bdi>{soughtBy(one)}</bdi>
                  {one.unreadable_count === 0 ? null : (
                    <div className="muted">
                      {one.unreadable_count.toLocaleString()} compressed bodies could not be read
                    </div>
                  )}
                </td>
                <td>
                  <Counts of={one.planned} total={one.planned_total} />
                </td>
                <td>
                  <Counts of={one.deleted} total={one.deleted_total} />
                </td>
                <td>
                  <div className="bar">
                    {one.stage === "planned" ? (
                      <Action
                        call="POST /data-deletions/{id}/run"
                        asks="Delete for ever?"
                        run={() => client.post("/data-deletions/{id}/run", { params: { path: { id: one.id } } })}
                      >
                        Delete
                      </Action>
                    ) : null}
                    {one.cancelable ? (
                      <Action
                        call="POST /data-deletions/{id}/cancel"
                        asks="Leave the rest as it is?"
                        run={() => client.post("/data-deletions/{id}/cancel", { params: { path: { id: one.id } } })}
                      >
                        Stop
                      </Action>
                    ) : null}
                  </div>
                </td>
              </tr>
            ))}
          </Rows>
        )}
      </div>
    </Panel>
  )
}
