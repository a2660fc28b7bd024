import { useMutation, useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useRef } from "react"
import { messageOf, type Row } from "../gateway.ts"
import { exactJson } from "../json.ts"
import { NewLink } from "../parts/NewLink.tsx"
import { Action } from "../parts/Action.tsx"
import { Edit } from "../parts/Edit.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { useFilters } from "../parts/Filters.tsx"
import { Form, TextField, textOf } from "../parts/Form.tsx"
import { type Column, List } from "../parts/List.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"

type Listed = Row<"ListedFilter">
type Conditions = Row<"FilterConditions">

const onlyOwners = <p className="muted">Only an owner who is signed in can change filters. A key cannot.</p>

const partsOf = (conditions: Conditions): string =>
  Object.entries(conditions)
    .filter(([, condition]) => condition !== null)
    .map(([part]) => part)
    .join(", ")

const columns: ReadonlyArray<Column<Listed>> = [
  { title: "Name", width: "1.4fr", cell: ({ name }) => <bdi>{name}</bdi> },
  { title: "Conditions on", width: "1fr", cell: ({ conditions }) => partsOf(conditions) },
  { title: "Connections", width: "100px", cell: ({ connections_count }) => connections_count.toLocaleString() },
  {
    title: "Workflow steps",
    width: "110px",
    cell: ({ workflow_steps_count }) => workflow_steps_count.toLocaleString()
  },
  { title: "Changed", width: "110px", cell: ({ updated_at }) => <Time at={updated_at} /> }
]

const filters: ReadonlyArray<Filter> = [{ name: "q", key: "name", label: "Exact name", isText: true, isUsual: true }]

/** Conditions with a name, which the rules of several connections share. */
export const StoredFilters = () => {
  const { client, team } = useSession()
  const { isSignedInOwner } = useRole()
  const { q } = useFilters().search
  const query = q === undefined ? {} : { name: q }
  return (
    <>
      <header>
        <h1>Filters</h1>
        <div className="filters">
          <FilterBar path="/filters" of={filters} />
        </div>
        <NewLink to="/filters/new" call="POST /filters">
          New filter
        </NewLink>
      </header>
      {isSignedInOwner ? null : onlyOwners}
      <List
        label="Filters"
        keys={["filters", team, query]}
        columns={columns}
        to={({ id }) => `/filters/${id}`}
        read={(page) =>
          client.get("/filters", {
            params: { query: { ...query, ...page } }
          })
        }
        empty={
          <p>
            No filter is found. A filter has conditions with a name, so that the rules of several connections share
            them.
          </p>
        }
      />
    </>
  )
}

const example = `{
  "body": { "total": { "$gte": 100 } }
}`

export const NewStoredFilter = () => {
  const { client } = useSession()
  const { isSignedInOwner } = useRole()
  const navigate = useNavigate()
  const refresh = useRefresh()
  return (
    <>
      <header>
        <h1>Create the filter</h1>
      </header>
      {isSignedInOwner ? (
        <Form
          call="POST /filters"
          label="Create the filter"
          send={async (form) => {
            const conditions = exactJson.parse(textOf(form, "conditions")) as Conditions
            const { id } = await client.post("/filters", {
              body: { name: textOf(form, "name"), conditions }
            })
            await refresh()
            await navigate({ to: `/filters/${id}` })
          }}
        >
          <TextField
            name="name"
            label="Name"
            required
            maxLength={155}
            placeholder="paid-orders"
            help="Letters, digits, hyphens and underscores."
          />
          <div className="field">
            <label htmlFor="conditions">Conditions as JSON</label>
            <textarea
              id="conditions"
              name="conditions"
              className="mono"
              rows={8}
              required
              spellCheck={false}
              defaultValue={example}
            />
            <p className="muted">
              Members <code>headers</code>, <code>body</code>, <code>query</code> and <code>path</code>, which must all
              hold: <a href="../docs/guides/filters.md">the conditions of filters</a>.
            </p>
          </div>
        </Form>
      ) : (
        onlyOwners
      )}
    </>
  )
}

const shown = (value: unknown): string => (value === null || value === undefined ? "–" : JSON.stringify(value))

/** Compares the filter with a stored request, and says which condition decides. */
const Try = ({ id }: { readonly id: string }) => {
  const { client } = useSession()
  const field = useRef<HTMLInputElement>(null)
  const attempt = useMutation({
    mutationFn: async () => {
      const given = field.current?.value.trim() ?? ""
      const request =
        given === ""
          ? (await client.get("/requests", { params: { query: { limit: 1, from: "now-30d" } } })).models[0]?.id
          : given
      if (request === undefined) throw new Error("There is no stored request to try it on.")
      return { request, ...(await client.post("/filters/test", { body: { filter_id: id, request_id: request } })) }
    }
  })
  const { data } = attempt
  return (
    <Panel title="Try it on a request">
      <div className="stack">
        <div className="bar">
          <div className="field">
            <label htmlFor="request">Id of the request</label>
            <input id="request" ref={field} className="mono id" placeholder="The latest one" />
          </div>
          <button type="button" disabled={attempt.isPending} onClick={() => attempt.mutate()}>
            {attempt.isPending ? "Trying…" : "Try it"}
          </button>
        </div>
        {attempt.isError ? (
          <p role="alert" className="notice bad">
            {messageOf(attempt.error)}
          </p>
        ) : null}
        {data === undefined ? null : (
          <>
            <p role="status">
              <span className={`badge ${data.matched ? "good" : "bad"}`}>
                {data.matched ? "It matches" : "It does not match"}
              </span>{" "}
              <Link to={`/requests/${data.request}`} className="mono">
                {data.request}
              </Link>
            </p>
            <Rows label="Conditions" columns={["Matches", "Where", "Operator", "Expected", "Actual"]}>
              {data.explanation.map(({ actual, expected, matched, operator, path, target }) => (
                <tr key={`${target} ${path} ${operator ?? ""} ${JSON.stringify(expected)}`}>
                  <td>{matched ? "Yes" : "No"}</td>
                  <td className="mono">
                    <bdi>{path === "" ? target : `${target}.${path}`}</bdi>
                  </td>
                  <td className="mono">{operator ?? "–"}</td>
                  <td className="mono">
                    <bdi>{shown(expected)}</bdi>
                  </td>
                  <td className="mono">
                    <bdi>{shown(actual)}</bdi>
                  </td>
                </tr>
              ))}
            </Rows>
          </>
        )}
      </div>
    </Panel>
  )
}

export const StoredFilter = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const { isSignedInOwner } = useRole()
  const navigate = useNavigate()
  // The conditions keep the digits that were written.
  const path = { params: { path: { id } } }
  const filter = useQuery({ queryKey: ["filter", team, id], queryFn: () => client.get("/filters/{id}", path) })
  if (filter.isPending) return <Loading />
  if (filter.isError) return <Failure error={filter.error} retry={filter.refetch} />
  const { conditions, connections, connections_count, created_at, name, updated_at, workflow_steps_count } = filter.data
  const uses = connections_count + workflow_steps_count
  return (
    <>
      <header>
        <h1>
          <bdi>{name}</bdi>
        </h1>
        {isSignedInOwner ? (
          <div className="actions">
            <Action
              call="DELETE /filters/{id}"
              asks={uses === 0 ? "Delete it?" : `Delete it? The ${uses.toLocaleString()} that use it keep a copy`}
              run={async () => {
                await client.delete("/filters/{id}", path)
                await navigate({ to: "/filters" })
              }}
            >
              Delete
            </Action>
          </div>
        ) : null}
      </header>
      {isSignedInOwner ? (
        <Edit
          call="PATCH /filters/{id}"
          title="Name and conditions"
          value={{ name, conditions }}
          save={(body) => client.patch("/filters/{id}", { ...path, body })}
        />
      ) : (
        <Panel title="Conditions">
          <pre className="text" tabIndex={0}>
            <bdi>{JSON.stringify(conditions, null, 2)}</bdi>
          </pre>
          {onlyOwners}
        </Panel>
      )}
      <Try id={id} />
      <Panel title="Used by">
        <Facts
          of={[
            ["Connections", connections_count.toLocaleString()],
            ["Workflow steps", workflow_steps_count.toLocaleString()],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={created_at} precise />],
            ["Changed", <Time key="changed" at={updated_at} precise />]
          ]}
        />
        {connections.length === 0 ? null : (
          <ul className="plain">
            {connections.map((one) => (
              <li key={one.id}>
                <Link to={`/connections/${one.id}`}>
                  <bdi>{one.name}</bdi>
                </Link>
              </li>
            ))}
          </ul>
        )}
        {connections.length < connections_count ? (
          <p className="muted">The first {connections.length} connections are shown.</p>
        ) : null}
      </Panel>
    </>
  )
}
