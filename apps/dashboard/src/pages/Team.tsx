import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { Action } from "../parts/Action.tsx"
import { ChoiceField, Form, TextField, textOf } from "../parts/Form.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Read, Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"
import { DataDeletions } from "./DataDeletions.tsx"
import { Keys } from "./Keys.tsx"
import { Retention } from "./Retention.tsx"
import { TeamDeletionPanel } from "./TeamDeletion.tsx"

const NewMember = ({ close }: { readonly close: () => void }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  return (
    <Form
      call="POST /team/members"
      label="Add the member"
      send={async (form) => {
        const role = textOf(form, "role") === "owner" ? "owner" : "member"
        await client.post("/team/members", { body: { email: textOf(form, "email"), role } })
        await refresh()
        close()
      }}
    >
      <TextField
        name="email"
        label="E-mail address"
        type="email"
        required
        placeholder="grace@example.com"
        help="They are let in when they sign in with this address."
      />
      <ChoiceField
        name="role"
        label="Role"
        choices={[
          ["member", "Member: uses everything, but changes neither access nor settings of the team"],
          ["owner", "Owner: may do everything"]
        ]}
      />
    </Form>
  )
}

const Members = ({ isOwner }: { readonly isOwner: boolean }) => {
  const { client } = useSession()
  const [isAdding, setAdding] = useState(false)
  const add = (
    <button type="button" aria-expanded={isAdding} onClick={() => setAdding(!isAdding)}>
      New member…
    </button>
  )
  return (
    <Panel title="Members" right={isOwner ? add : undefined}>
      <div className="stack">
        {isAdding ? <NewMember close={() => setAdding(false)} /> : null}
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
                        <div className="bar">
                          <Action
                            call="PATCH /team/members/{id}"
                            asks={role === "owner" ? "Make a member?" : "Make an owner?"}
                            run={() =>
                              client.patch("/team/members/{id}", {
                                params: { path: { id } },
                                body: { role: role === "owner" ? "member" : "owner" }
                              })
                            }
                          >
                            {role === "owner" ? "Make a member" : "Make an owner"}
                          </Action>
                          <Action
                            call="DELETE /team/members/{id}"
                            asks="Remove this member?"
                            run={() => client.delete("/team/members/{id}", { params: { path: { id } } })}
                          >
                            Remove
                          </Action>
                        </div>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </Rows>
            )
          }
        </Read>
        {isOwner ? null : <p className="muted">Only an owner who is signed in can change members. A key cannot.</p>}
      </div>
    </Panel>
  )
}

/** The team: who belongs to it, its keys, how long it keeps data, and what of it was deleted. */
export const Team = () => {
  const { client } = useSession()
  const { isSignedInOwner: isOwner, mayOwn } = useRole()
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
            <Retention retention={retention} />
          </>
        )}
      </Read>
      <Members isOwner={isOwner} />
      <Keys />
      <Panel title="Project secrets">
        {mayOwn ? (
          <p>
            <Link to="/team/secrets">
              Show and replace the team’s own key, and the secret that signs its deliveries
            </Link>
          </p>
        ) : (
          <p className="muted">Only an owner of the team, or its own key, can see and replace them.</p>
        )}
      </Panel>
      {mayOwn ? <DataDeletions /> : null}
      <TeamDeletionPanel />
    </>
  )
}
