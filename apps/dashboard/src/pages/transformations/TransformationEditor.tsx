import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useRef, useState } from "react"
import type { Row } from "../../gateway.ts"
import { Action } from "../../parts/Action.tsx"
import { Code, type CodeHandle } from "../../parts/Code.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { Facts, Panel } from "../../parts/Panel.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { lengthOf, Time } from "../../parts/Time.tsx"
import { useRole, useSession } from "../../session.ts"
import { completions, hintOf } from "./SandboxNames.ts"
import { Trial } from "./Trial.tsx"

type Transformation = Row<"Transformation">

const fresh = `addHandler("transform", (request, context) => {
  request.headers["x-request-id"] = context.request_id
  return request
})
`

const envIn = (text: string): Record<string, string> => {
  const value = (() => {
    try {
      return JSON.parse(text) as unknown
    } catch {
      return null
    }
  })()
  if (
    typeof value !== "object" ||
    value === null ||
    Array.isArray(value) ||
    Object.values(value).some((one) => typeof one !== "string")
  )
    throw new Error("The variables are not a JSON object of texts.")
  return value as Record<string, string>
}

/** The newest executions on requests that arrived, with their errors. */
const Executions = ({ id }: { readonly id: string }) => {
  const { client, team } = useSession()
  const executions = useQuery({
    queryKey: ["executions", team, id],
    queryFn: () =>
      client.get("/transformations/{id}/executions", { params: { path: { id }, query: { from: "now-7d", limit: 20 } } })
  })
  if (executions.isPending) return <Loading />
  if (executions.isError) return <Failure error={executions.error} retry={executions.refetch} />
  const { models } = executions.data
  if (models.length === 0) return <p className="muted">It has not run in the last seven days.</p>
  return (
    <table aria-label="Executions">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Result</th>
          <th scope="col">Took</th>
          <th scope="col">Request</th>
        </tr>
      </thead>
      <tbody>
        {models.map(({ created_at, error_message, id, logs, request_id, stats }) => (
          <tr key={id}>
            <td>
              <Time at={created_at} />
            </td>
            <td>
              {error_message === null ? (
                <span className="badge good">Succeeded</span>
              ) : (
                <>
                  <span className="badge bad">Failed</span> <bdi>{error_message}</bdi>
                </>
              )}
              {logs.length === 0 ? null : (
                <span className="muted"> {logs.length === 1 ? "1 line" : `${logs.length} lines`} of log</span>
              )}
            </td>
            <td>{lengthOf(stats.duration_ms)}</td>
            <td>
              <Link className="mono" to={`/requests/${request_id}`}>
                {request_id}
              </Link>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** What code can use and what a call may cost, as the gateway says. */
const Capabilities = () => {
  const { client } = useSession()
  const { data } = useQuery({
    queryKey: ["capabilities"],
    queryFn: () => client.get("/transformations/capabilities"),
    staleTime: Infinity
  })
  if (data === undefined) return null
  const { globals, limits } = data
  return (
    <details>
      <summary>What the code can use</summary>
      <Facts
        of={[
          ["Names", <code key="names">{globals.join(", ")}</code>],
          ["Time of a call", `${limits.time_ms.toLocaleString()} ms`],
          ["Memory", `${Math.round(limits.memory_bytes / 1024 / 1024).toLocaleString()} MiB`],
          ["Lines of log", limits.log_lines.toLocaleString()],
          [
            "More",
            <a key="guide" href="../docs/guides/transformations.md">
              The guide to transformations
            </a>
          ]
        ]}
      />
    </details>
  )
}

const Editor = ({ stored }: { readonly stored: Transformation | null }) => {
  const { client } = useSession()
  const { mayOwn } = useRole()
  const navigate = useNavigate()
  const [name, setName] = useState(stored?.name ?? "")
  const [code, setCode] = useState(stored?.code ?? fresh)
  const [variables, setVariables] = useState(() => JSON.stringify(stored?.env ?? {}, null, 2))
  const [fault, setFault] = useState<number | null>(null)
  const handle = useRef<CodeHandle>(null)
  const known = useRef(variables)
  known.current = variables
  const [complete] = useState(() =>
    completions(() => {
      try {
        return Object.keys(envIn(known.current))
      } catch {
        return []
      }
    })
  )
  const save = async () => {
    const body = { name, code, env: envIn(variables) }
    if (stored !== null) {
      return client.patch("/transformations/{id}", { params: { path: { id: stored.id } }, body })
    }
    const { id } = await client.post("/transformations", { body })
    return navigate({ to: `/transformations/${id}` })
  }
  return (
    <>
      <header>
        <h1>
          <bdi>{stored?.name ?? "New transformation"}</bdi>
        </h1>
        {mayOwn ? (
          <div className="actions">
            <Action
              call={stored === null ? "POST /transformations" : "PATCH /transformations/{id}"}
              primary
              disabled={name.trim() === ""}
              done="Saved"
              run={save}
            >
              Save
            </Action>
            {stored === null ? null : (
              <Action
                call="DELETE /transformations/{id}"
                asks="Delete it?"
                run={async () => {
                  await client.delete("/transformations/{id}", { params: { path: { id: stored.id } } })
                  await navigate({ to: "/transformations" })
                }}
              >
                Delete
              </Action>
            )}
          </div>
        ) : null}
      </header>
      <OnlyOwners may="save or delete transformations" />
      <Panel title="Code">
        <div className="stack">
          <label className="field">
            Name
            <input
              value={name}
              maxLength={155}
              placeholder="add-tenant"
              onChange={({ target }) => setName(target.value)}
            />
          </label>
          <Code
            label="Code"
            initial={code}
            change={setCode}
            complete={complete}
            hint={hintOf}
            fault={fault}
            handle={handle}
          />
          <p className="muted">
            Ctrl-Space completes names; point at a name to see what it is. Changed code is used by all connections and
            workflows that name the transformation, as soon as it is saved.
          </p>
          <details open={variables !== "{}"}>
            <summary>Variables</summary>
            <textarea
              aria-label="Variables as JSON"
              className="mono"
              rows={4}
              spellCheck={false}
              value={variables}
              onChange={({ target }) => setVariables(target.value)}
            />
            <p className="muted">
              The code reads them as <code>process.env.NAME</code>.
            </p>
          </details>
          <Capabilities />
        </div>
      </Panel>
      <Trial code={code} env={() => envIn(variables)} mark={setFault} goTo={(line) => handle.current?.goTo(line)} />
      {stored === null ? null : (
        <Panel title="Executions">
          <Executions id={stored.id} />
        </Panel>
      )}
    </>
  )
}

export const TransformationEditor = () => {
  const { id } = useParams({ strict: false })
  const { client, team } = useSession()
  const stored = useQuery({
    queryKey: ["transformation", team, id],
    queryFn: () => client.get("/transformations/{id}", { params: { path: { id: id! } } }),
    enabled: id !== undefined
  })
  if (id === undefined) return <Editor key="new" stored={null} />
  if (stored.isPending) return <Loading />
  if (stored.isError) return <Failure error={stored.error} retry={stored.refetch} />
  return <Editor key={id} stored={stored.data} />
}
