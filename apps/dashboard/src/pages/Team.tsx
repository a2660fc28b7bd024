import { Action } from "../parts/Action.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Settings } from "../parts/Settings.tsx"
import { Status } from "../parts/Status.tsx"
import { Read, Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRole, useSession } from "../session.ts"

const Members = ({ isOwner }: { readonly isOwner: boolean }) => {
  const { client } = useSession()
  return (
    <Panel title="Members">
      <Read name="members" read={() => client.get("/team/members")}>
        {({ data }) =>
          data.length === 0 ? (
            <p className="muted">The team has no members: only its key can use it.</p>
          ) : (
            <Rows label="Members" columns={["Person", "Role", "Added", ""]}>
              {data.map(({ created_at, email, expected, id, name, role }) => (
                <tr key={id}>
                  <td>
                    <bdi>{name ?? email ?? id}</bdi>
                    {expected ? <span className="muted"> has not signed in yet</span> : null}
                  </td>
                  <td>{role}</td>
                  <td>
                    <Time at={created_at} />
                  </td>
                  <td>
                    {isOwner ? (
                      <Action
                        asks="Remove this member?"
                        run={() => client.delete("/team/members/{id}", { params: { path: { id } } })}
                      >
                        Remove
                      </Action>
                    ) : null}
                  </td>
                </tr>
              ))}
            </Rows>
          )
        }
      </Read>
      {isOwner ? null : <p className="muted">Only an owner who is signed in can change members. A key cannot.</p>}
    </Panel>
  )
}

const Keys = ({ isOwner }: { readonly isOwner: boolean }) => {
  const { client } = useSession()
  return (
    <Panel title="Project keys">
      {isOwner ? (
        <Read name="keys" read={() => client.get("/project-api-keys")}>
          {({ data }) =>
            data.length === 0 ? (
              <p className="muted">There is no project key yet.</p>
            ) : (
              <Rows label="Project keys" columns={["Name", "Status", "Key", "Scopes", "Last used", ""]}>
                {data.map(({ id, last_used_at, masked_key, name, scopes, status }) => (
                  <tr key={id}>
                    <td>
                      <bdi>{name}</bdi>
                    </td>
                    <td>
                      <Status of={status} />
                    </td>
                    <td className="mono">{masked_key}</td>
                    <td>{scopes.join(", ")}</td>
                    <td>
                      <Time at={last_used_at} />
                    </td>
                    <td>
                      {status === "revoked" ? null : (
                        <Action
                          asks="Revoke it for ever?"
                          run={() => client.delete("/project-api-keys/{id}", { params: { path: { id } } })}
                        >
                          Revoke
                        </Action>
                      )}
                    </td>
                  </tr>
                ))}
              </Rows>
            )
          }
        </Read>
      ) : (
        <p className="muted">Only an owner who is signed in can see project keys. A key cannot.</p>
      )}
    </Panel>
  )
}

/** The team: who belongs to it, its keys, and how long it keeps data. */
export const Team = () => {
  const { client } = useSession()
  const { isSignedInOwner: isOwner } = useRole()
  return (
    <>
      <header>
        <h1>Team</h1>
      </header>
      <Read name="team" read={() => client.get("/team")}>
        {({ created_at, id, members, name, retention }) => (
          <>
            <Panel title={<bdi>{name}</bdi>}>
              <Facts
                of={[
                  ["Id", <code key="id">{id}</code>],
                  ["Members", members.toLocaleString()],
                  ["Created", <Time key="created" at={created_at} precise />]
                ]}
              />
            </Panel>
            <Settings
              title="Retention in days"
              value={{ payload_days: retention.payload_days, record_days: retention.record_days }}
              save={(change) => client.patch("/team", { body: { retention: change } })}
            />
          </>
        )}
      </Read>
      <Members isOwner={isOwner} />
      <Keys isOwner={isOwner} />
    </>
  )
}
