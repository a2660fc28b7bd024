import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Edit } from "../parts/Edit.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { useFilters, valuesOf } from "../parts/Filters.tsx"
import { type Column, List } from "../parts/List.tsx"
import { NamedLink } from "../parts/Named.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Snapshot } from "../parts/Snapshot.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Read } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"

type Fixture = Row<"Fixture">

const columns: ReadonlyArray<Column<Fixture>> = [
  { title: "Name", width: "1.4fr", cell: ({ name }) => <bdi>{name}</bdi> },
  { title: "Source", width: "1fr", cell: ({ source_name }) => <bdi>{source_name}</bdi> },
  { title: "Description", width: "1.4fr", cell: ({ description }) => <bdi>{description ?? "–"}</bdi> },
  { title: "Sent", width: "60px", cell: ({ replay_count }) => replay_count.toLocaleString() },
  { title: "Last sent", width: "110px", cell: ({ last_replayed_at }) => <Time at={last_replayed_at} /> },
  { title: "Kept", width: "110px", cell: ({ created_at }) => <Time at={created_at} /> }
]

const filters: ReadonlyArray<Filter> = [
  { name: "source_id", label: "Source", kind: "sources" },
  { name: "q", key: "name", label: "Text in the name", isText: true, isUsual: true }
]

export const Fixtures = () => {
  const { client, team } = useSession()
  const { search } = useFilters()
  const { q } = search
  const query = { ...(q === undefined ? {} : { q }), ...valuesOf(search, ["source_id"]) }
  return (
    <>
      <header>
        <h1>Fixtures</h1>
        <div className="filters">
          <FilterBar path="/request-fixtures" of={filters} />
        </div>
      </header>
      <List
        label="Fixtures"
        keys={["fixtures", team, query]}
        columns={columns}
        to={({ id }) => `/fixtures/${id}`}
        read={(page) =>
          client.get("/request-fixtures", {
            params: { query: { ...query, ...page } }
          })
        }
        empty={
          <p>
            No fixture is found. A fixture keeps a request, so that you can send it again at any time: open a{" "}
            <Link to="/requests">request</Link>, and keep it as a fixture.
          </p>
        }
      />
    </>
  )
}

const Sending = ({ id }: { readonly id: string }) => {
  const { client } = useSession()
  const [target, setTarget] = useState("")
  const [sent, setSent] = useState<string | null>(null)
  const path = { params: { path: { id } } }
  return (
    <Panel title="Send it">
      <Read name={`targets of ${id}`} read={() => client.get("/request-fixtures/{id}/targets", path)}>
        {({ models }) =>
          models.length === 0 ? (
            <p className="muted">
              Its source has no enabled <Link to="/connections">connection</Link>, so it cannot be sent anywhere.
            </p>
          ) : (
            <div className="stack">
              <div className="bar">
                <div className="field">
                  <label htmlFor="connection">Connection</label>
                  <select id="connection" value={target} onChange={(event) => setTarget(event.target.value)}>
                    <option value="">–</option>
                    {models.map(({ connection_id, connection_name, destination_name }) => (
                      <option key={connection_id} value={connection_id}>
                        {connection_name} → {destination_name}
                      </option>
                    ))}
                  </select>
                </div>
                {target === "" ? null : (
                  <Action
                    call="POST /request-fixtures/{id}/replay"
                    primary
                    done="Sent"
                    run={async () => {
                      const { replay_request_id } = await client.post("/request-fixtures/{id}/replay", {
                        ...path,
                        body: { connection_id: target }
                      })
                      setSent(replay_request_id)
                    }}
                  >
                    Send
                  </Action>
                )}
              </div>
              <p className="muted">Only this connection gets it, as a new request. Its current rules apply.</p>
              {sent === null ? null : (
                <p>
                  It is the request{" "}
                  <Link to={`/requests/${sent}`} className="mono">
                    {sent}
                  </Link>
                  .
                </p>
              )}
            </div>
          )
        }
      </Read>
    </Panel>
  )
}

export const Fixture = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const navigate = useNavigate()
  const path = { params: { path: { id } } }
  const fixture = useQuery({
    queryKey: ["fixture", team, id],
    queryFn: () => client.get("/request-fixtures/{id}", path)
  })
  if (fixture.isPending) return <Loading />
  if (fixture.isError) return <Failure error={fixture.error} retry={fixture.refetch} />
  const { created_at, description, last_replayed_at, name, original_request_id, replay_count, snapshot, source_id } =
    fixture.data
  return (
    <>
      <header>
        <h1>
          <bdi>{name}</bdi>
        </h1>
        <div className="actions">
          <Action
            call="DELETE /request-fixtures/{id}"
            asks="Delete it for ever?"
            run={async () => {
              await client.delete("/request-fixtures/{id}", path)
              await navigate({ to: "/fixtures" })
            }}
          >
            Delete
          </Action>
        </div>
      </header>
      <Sending id={id} />
      <Panel title="Fixture">
        <Facts
          of={[
            ["Source", <NamedLink key="source" kind="sources" id={source_id} />],
            [
              "Request",
              <Link key="request" to={`/requests/${original_request_id}`} className="mono">
                {original_request_id}
              </Link>
            ],
            ["Times sent", replay_count.toLocaleString()],
            ["Last sent", last_replayed_at === null ? undefined : <Time key="last" at={last_replayed_at} precise />],
            ["Id", <code key="id">{id}</code>],
            ["Kept", <Time key="kept" at={created_at} precise />]
          ]}
        />
      </Panel>
      <Edit
        call="PATCH /request-fixtures/{id}"
        title="Name and description"
        value={{ name, description }}
        save={(body) => client.patch("/request-fixtures/{id}", { ...path, body })}
      />
      <Panel title="What was received">
        {snapshot === undefined ? (
          <p className="muted">The request is not shown.</p>
        ) : (
          <Snapshot of={snapshot} name={id} />
        )}
      </Panel>
    </>
  )
}
