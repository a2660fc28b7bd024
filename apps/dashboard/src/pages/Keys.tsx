import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { useState } from "react"
import { Action } from "../parts/Action.tsx"
import { Edit } from "../parts/Edit.tsx"
import { Boxes, checkedOf, Form, Secret, TextField, textOf } from "../parts/Form.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status, wordsOf } from "../parts/Status.tsx"
import { Read, Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"

const onlyOwners = <p className="muted">Only an owner who is signed in can see project keys. A key cannot.</p>

const scopes = [
  ["control:read", "Read and list (control:read)"],
  ["control:edit", "Create, change and delete (control:edit)"],
  ["control:execute", "Execute the calls that are granted (control:execute)"],
  ["tunnel:connect", "Hold a tunnel open (tunnel:connect)"]
] as const

/** How long (ms) before its end a key is marked. */
const soonMs = 7 * 86_400_000

interface Ending {
  readonly status: string
  readonly expires_at: string | null
}

/** The status of a key, or that it ends soon. */
const KeyStatus = ({ expires_at, status }: Ending) => {
  const endsSoon = status === "active" && expires_at !== null && Date.parse(expires_at) <= Date.now() + soonMs
  return <Status of={endsSoon ? "expiring" : status} />
}

const NewKey = ({ show }: { readonly show: (key: string) => void }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  return (
    <Form
      call="POST /project-api-keys"
      label="Make the key"
      send={async (form) => {
        const grants = textOf(form, "execute_grants").split(/\s+/).filter(Boolean)
        const rate = textOf(form, "rate_limit_per_minute")
        const end = textOf(form, "expires_at")
        const { data } = await client.post("/project-api-keys", {
          body: {
            name: textOf(form, "name"),
            scopes: checkedOf(form, "scopes") as Array<(typeof scopes)[number][0]>,
            ...(grants.length === 0 ? {} : { execute_grants: grants }),
            ...(rate === "" ? {} : { rate_limit_per_minute: Number(rate) }),
            ...(end === "" ? {} : { expires_at: new Date(end).toISOString() })
          }
        })
        show(data.api_key)
        await refresh()
      }}
    >
      <TextField name="name" label="Name" required maxLength={100} placeholder="ci" />
      <Boxes name="scopes" label="What it may do" values={scopes} checked={["control:read"]} />
      <div className="field">
        <label htmlFor="execute_grants">Calls that it may execute</label>
        <textarea
          id="execute_grants"
          name="execute_grants"
          className="mono"
          rows={3}
          spellCheck={false}
          placeholder="POST:/v1/events/:id/retry"
        />
        <p className="muted">
          One in each line, and only with <code>control:execute</code>:{" "}
          <a href="../docs/guides/permissions.md">what can be granted</a>.
        </p>
      </div>
      <TextField
        name="rate_limit_per_minute"
        label="Calls per minute"
        type="number"
        min={1}
        max={10_000}
        placeholder="240"
      />
      <TextField
        name="expires_at"
        label="Expires"
        type="datetime-local"
        help="In your time zone. Without it, the key does not expire."
      />
    </Form>
  )
}

/** The project keys of a team, and a form for another one. */
export const Keys = () => {
  const { client } = useSession()
  const { isSignedInOwner } = useRole()
  const [isMaking, setMaking] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  if (!isSignedInOwner) return <Panel title="Project keys">{onlyOwners}</Panel>
  const make = (
    <button
      type="button"
      aria-expanded={isMaking}
      onClick={() => {
        setSecret(null)
        setMaking(!isMaking)
      }}
    >
      New key…
    </button>
  )
  return (
    <Panel title="Project keys" right={make}>
      <div className="stack">
        {secret === null ? null : (
          <Secret label="The new key" value={secret}>
            Copy the key now: it is shown only once.
          </Secret>
        )}
        {isMaking ? (
          <NewKey
            show={(key) => {
              setSecret(key)
              setMaking(false)
            }}
          />
        ) : null}
        <Read name="keys" read={() => client.get("/project-api-keys")}>
          {({ data }) =>
            data.length === 0 ? (
              <p className="muted">There is no project key yet.</p>
            ) : (
              <Rows label="Project keys" columns={["Name", "Status", "Key", "Scopes", "Last used", "Expires", ""]}>
                {data.map(
                  ({ expires_at, id, last_used_at, legacy_project_secret, masked_key, name, scopes, status }) => (
                    <tr key={id}>
                      <td>
                        <Link to={`/team/keys/${id}`}>
                          <bdi>{name}</bdi>
                        </Link>
                      </td>
                      <td>
                        <KeyStatus status={status} expires_at={expires_at} />
                      </td>
                      <td className="mono">{masked_key}</td>
                      <td>{scopes.join(", ")}</td>
                      <td>
                        <Time at={last_used_at} />
                      </td>
                      <td>
                        <Time at={expires_at} />
                      </td>
                      <td>
                        {status === "revoked" ? null : (
                          <Action
                            call="DELETE /project-api-keys/{id}"
                            asks={legacy_project_secret ? "Revoke the team's own key?" : "Revoke it for ever?"}
                            run={() => client.delete("/project-api-keys/{id}", { params: { path: { id } } })}
                          >
                            Revoke
                          </Action>
                        )}
                      </td>
                    </tr>
                  )
                )}
              </Rows>
            )
          }
        </Read>
      </div>
    </Panel>
  )
}

/** What the key has called, and what the gateway decided. */
const Audit = ({ id }: { readonly id: string }) => {
  const { client } = useSession()
  return (
    <Panel title="Calls">
      <Read
        name={`audit of ${id}`}
        read={() => client.get("/project-api-keys/{id}/audit", { params: { path: { id } } })}
      >
        {({ data }) =>
          data.length === 0 ? (
            <p className="muted">No call was made with it.</p>
          ) : (
            <Rows label="Calls" columns={["Decision", "Route", "Needed", "Why", "Calls", "Last"]}>
              {data.map(({ count, decision, id, last_seen_at, permission, reason, route_key }) => (
                <tr key={id}>
                  <td>
                    <span className={`badge ${decision === "allowed" ? "good" : "bad"}`}>{wordsOf(decision)}</span>
                  </td>
                  <td className="mono">
                    <bdi>{route_key}</bdi>
                  </td>
                  <td>{permission}</td>
                  <td>{reason === null ? "–" : wordsOf(reason)}</td>
                  <td>{count.toLocaleString()}</td>
                  <td>
                    <Time at={last_seen_at} />
                  </td>
                </tr>
              ))}
            </Rows>
          )
        }
      </Read>
    </Panel>
  )
}

export const Key = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const { isSignedInOwner } = useRole()
  const path = { params: { path: { id } } }
  const key = useQuery({
    queryKey: ["key", team, id],
    queryFn: () => client.get("/project-api-keys/{id}", path),
    enabled: isSignedInOwner
  })
  if (!isSignedInOwner) {
    return (
      <>
        <header>
          <h1>Project key</h1>
        </header>
        {onlyOwners}
      </>
    )
  }
  if (key.isPending) return <Loading />
  if (key.isError) return <Failure error={key.error} retry={key.refetch} />
  const {
    created_at,
    execute_grants,
    expires_at,
    last_used_at,
    masked_key,
    name,
    rate_limit_per_minute,
    scopes,
    status
  } = key.data.data
  const change = { name, scopes, execute_grants, rate_limit_per_minute, expires_at }
  return (
    <>
      <header>
        <h1>
          <bdi>{name}</bdi>
        </h1>
        <KeyStatus status={status} expires_at={expires_at} />
        {status === "revoked" ? null : (
          <div className="actions">
            {status !== "disabled" ? (
              <Action
                call="PATCH /project-api-keys/{id}"
                asks="Refuse all its calls?"
                run={() => client.patch("/project-api-keys/{id}", { ...path, body: { status: "disabled" } })}
              >
                Disable
              </Action>
            ) : (
              <Action
                call="PATCH /project-api-keys/{id}"
                run={() => client.patch("/project-api-keys/{id}", { ...path, body: { status: "active" } })}
              >
                Enable
              </Action>
            )}
            <Action
              call="DELETE /project-api-keys/{id}"
              asks="Revoke it for ever?"
              run={() => client.delete("/project-api-keys/{id}", path)}
            >
              Revoke
            </Action>
          </div>
        )}
      </header>
      <Panel title="Key">
        <Facts
          of={[
            [
              "Key",
              <span key="key" className="mono">
                {masked_key}
              </span>
            ],
            ["Last used", <Time key="used" at={last_used_at} />],
            ["Expires", <Time key="expires" at={expires_at} precise />],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={created_at} precise />]
          ]}
        />
      </Panel>
      {status === "revoked" ? null : (
        <Edit
          call="PATCH /project-api-keys/{id}"
          title="What it may do"
          value={change}
          save={(body) => client.patch("/project-api-keys/{id}", { ...path, body })}
        />
      )}
      <Audit id={id} />
    </>
  )
}
