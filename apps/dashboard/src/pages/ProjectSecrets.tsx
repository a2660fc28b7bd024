import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { beginSession, type Row } from "../gateway.ts"
import { Form, Secret, SwitchField } from "../parts/Form.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Read } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"

type Name = "api_key" | "signing_secret"

/** One of the secrets, and the form that replaces it. */
const Rotation = ({
  agree,
  children,
  label,
  name,
  of,
  rotate,
  title
}: {
  readonly name: Name
  readonly title: string
  readonly label: string
  /** What the reader agrees to. */
  readonly agree: string
  readonly of: Row<"ProjectSecret">
  readonly rotate: () => Promise<void>
  readonly children: ReactNode
}) => (
  <Panel title={title}>
    <div className="stack">
      <Facts
        of={[
          [
            "Now",
            <span key="now" className="mono">
              {of.masked_value}
            </span>
          ],
          ["Since", <Time key="since" at={of.last_rotated_at} precise />]
        ]}
      />
      {children}
      <Form
        call="POST /project-secrets/rotate"
        label={label}
        send={async (form) => {
          await rotate()
          form.reset()
        }}
      >
        <SwitchField name={`agree_${name}`} label={agree} isOn={false} required />
      </Form>
    </div>
  </Panel>
)

const Secrets = ({ now }: { readonly now: Row<"ProjectSecrets"> }) => {
  const { client, me } = useSession()
  const refresh = useRefresh()
  const [made, setMade] = useState<Partial<Pick<Row<"RotatedSecrets">, Name>>>({})
  const isByKey = me.user === null
  const rotate = async (name: Name) => {
    const rotated = await client.post("/project-secrets/rotate", { body: { rotate: [name] } })
    // Shown before anything else can fail: nobody can read it again.
    setMade((before) => ({ ...before, [name]: rotated[name] }))
    // The key of this browser's session may be the one that has just ended.
    if (name === "api_key" && isByKey) await beginSession(rotated.api_key.value ?? "")
    await refresh()
  }
  const { api_key, signing_secret } = made
  return (
    <>
      <Rotation
        name="api_key"
        title="API key"
        label="Replace the API key"
        agree="Programs that use the key are refused until they have the new one"
        of={now.api_key}
        rotate={() => rotate("api_key")}
      >
        <p>
          The team’s own key acts as an owner. It is invalid <strong>at once</strong> when you replace it, in every
          process: calls with it get the answer 401. <Link to="/team">Project keys</Link> and people who are signed in
          go on.
          {isByKey
            ? " You are signed in with it: this browser goes on with the new one, others must sign in again."
            : ""}
        </p>
        {api_key?.value === undefined ? null : (
          <Secret label="The new API key" value={api_key.value}>
            Copy the key now: it is shown only once.
          </Secret>
        )}
      </Rotation>
      <Rotation
        name="signing_secret"
        title="Signing secret"
        label="Replace the signing secret"
        agree="All receivers get the new secret within 24 hours"
        of={now.signing_secret}
        rotate={() => rotate("signing_secret")}
      >
        <p>
          Deliveries are signed with it. When you replace it, they are signed with both secrets{" "}
          <strong>for 24 hours</strong>. Receivers that do not have the new one then refuse them. A second replacement
          within that time ends the first secret at once.
        </p>
        {signing_secret?.value === undefined ? null : (
          <>
            <Secret label="The new signing secret" value={signing_secret.value}>
              Copy the secret now: it is shown only once.
            </Secret>
            <Secret label="The same for Standard Webhooks libraries" value={signing_secret.whsec_value ?? ""}>
              The same secret, as Standard Webhooks libraries need it.
            </Secret>
          </>
        )}
      </Rotation>
    </>
  )
}

/** The team's own key and the secret that signs its deliveries: how old they are, and how they are replaced. */
export const ProjectSecrets = () => {
  const { client } = useSession()
  const { mayOwn } = useRole()
  return (
    <>
      <header>
        <h1>Project secrets</h1>
        <div className="actions">
          <Link to="/team" className="button">
            Back
          </Link>
        </div>
      </header>
      {mayOwn ? (
        <Read name="project secrets" read={() => client.get("/project-secrets")}>
          {(now) => <Secrets now={now} />}
        </Read>
      ) : (
        <p className="muted">Only an owner of the team, or its own key, can see and replace them.</p>
      )}
    </>
  )
}
